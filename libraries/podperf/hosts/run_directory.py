"""The run directory of a host: sockets, configurations, and what a run changed outside of its namespaces."""

from __future__ import annotations

from pathlib import Path

RUN_DIRECTORY = Path("/run/podperf")  # there while a chain stands; what a killed run left there, the next one reads
