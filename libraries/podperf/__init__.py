"""podperf: how fast a containerized infrastructure forwards packets. Plain Python; nothing here imports Robot Framework."""

__version__ = "0.1.0"
