"""Pods: the runtimes that make them, and the forwarders that run in them."""
