"""The run directory of a host: sockets, configurations, and what a run changed outside of its namespaces."""

from __future__ import annotations

from pathlib import Path

from podperf.hosts.base import Host

RUN_DIRECTORY = Path("/run/podperf")  # there while a chain stands; what a killed run left there, the next one reads
SHARED_MEMORY = "podperf"  # what programs of a run call theirs begins so; one that is killed leaves it in /dev/shm


def free_shared_memory(host: Host) -> None:
    """Remove what programs that have ended left."""
    host.run("find", "/dev/shm", "-maxdepth", "1", "-name", f"{SHARED_MEMORY}-*", "-delete")
