"""The run directory of a host: sockets, configurations, and what a run changed outside of its namespaces."""

from __future__ import annotations

from pathlib import Path

from podperf.hosts.base import Host

RUN_DIRECTORY = Path("/run/podperf")  # there while a chain stands; what a killed run left there, the next one reads
SHARED_MEMORY = "podperf"  # what programs of a run call theirs begins so; one that is killed leaves it
# In /dev/shm, and as files of hugepages: a DPDK with legacy memory, which TRex wants, leaves those in any case.
_FREE = """
for folder in /dev/shm $(findmnt --noheadings --types hugetlbfs --output TARGET); do
  find "$folder" -maxdepth 1 -name "$1-*" -delete
done
"""


def free_shared_memory(host: Host) -> None:
    """Remove what programs that have ended left."""
    host.run("sh", "-c", _FREE, "sh", SHARED_MEMORY)
