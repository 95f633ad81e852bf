"""Hosts: where a command runs."""
