"""podperf: how fast a containerized infrastructure forwards packets. Nothing here imports Robot Framework."""

__version__ = "0.1.0"
