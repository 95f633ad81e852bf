"""Watches other work on the measuring CPUs, and measures the real speed of these CPUs."""
