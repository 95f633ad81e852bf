"""The run directory of a host: sockets and configurations of a run."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

from podperf.errors import PodperfError
from podperf.hosts.base import Host, shell_script
from podperf.hosts.linux import unix_socket

RUN_DIRECTORY = Path("/run/podperf")  # exists while a chain is set up
SOCKETS = "sockets"  # the folder there with the sockets of pods; pods of a cluster see no other folder of all pods
SHARED_MEMORY = "podperf"  # the prefix of files in shared memory; a killed program leaves its files there
_FREE = shell_script("free_shared_memory.sh", beside=__file__)


def pod_socket(run_directory: str, name: str) -> str:
    """The path of a socket between two pods, or between a pod and the switch."""
    return unix_socket(f"{run_directory}/{SOCKETS}", name)


def shared_memory_prefix() -> str:
    """A random prefix for the shared memory of one program. Nobody can guess it and make a file of this name before."""
    return f"{SHARED_MEMORY}-{token_hex(4)}"


def free_shared_memory(host: Host) -> None:
    """Remove shared memory of programs that have ended. Raises PodperfError, in one line, if something is left."""
    done = host.do("sh", "-c", _FREE, "sh", SHARED_MEMORY, check=False)
    if done.exit_code:
        raise PodperfError(f"shared memory of an earlier run stays on {host.name}: {' '.join(done.stderr.split())}")
