"""The run directory of a host: sockets, configurations, and what a run changed outside of its namespaces."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.shell_script import shell_script

RUN_DIRECTORY = Path("/run/podperf")  # there while a chain stands; what a killed run left there, the next one reads
SHARED_MEMORY = "podperf"  # what programs of a run call theirs begins so; one that is killed leaves it
_FREE = shell_script("free_shared_memory.sh", beside=__file__)


def shared_memory_prefix() -> str:
    """How the shared memory of one program begins: nobody can have put a file of that name there before it."""
    return f"{SHARED_MEMORY}-{token_hex(4)}"


def free_shared_memory(host: Host) -> None:
    """Remove what programs that have ended left. PodperfError, in one line, when something cannot be removed."""
    done = host.run("sh", "-c", _FREE, "sh", SHARED_MEMORY, check=False)
    if done.exit_code:
        raise PodperfError(f"shared memory of an earlier run stays on {host.name}: {' '.join(done.stderr.split())}")
