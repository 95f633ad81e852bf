"""Quietness: what else runs on the measuring CPUs, and how fast they really are."""
