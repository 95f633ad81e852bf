"""Forwarders: what moves frames from one interface of a pod to the other."""
