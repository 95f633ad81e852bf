"""Users' shell commands around the set-up of a chain, in the networks of its workers and of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host
from podperf.pods.base import Pod
from podperf.topology import Hook

TIMEOUT = 60.0  # seconds, for one command
PORTS = "PODPERF_PORTS"  # the environment variable with the interfaces of a worker or of a pod
_PROGRAM = "/run/podperf-hook"  # in the machine


def run_hook(name: str, hook: Hook, host: Host, ports: Sequence[str] = (), timeout: float = TIMEOUT) -> None:
    """Run the command or the program of a hook. If it fails, PodperfError with `name` and the last words."""
    command = hook.run
    if hook.program is not None:
        command = _PROGRAM
        host.put(Path(hook.program).read_bytes(), command)
        host.do("chmod", "755", command)
    run_command(name, command, host, ports, timeout)


def run_command(name: str, command: str, host: Host, ports: Sequence[str], timeout: float = TIMEOUT) -> None:
    """Run a shell command that is told these interfaces. If it fails, PodperfError with `name` and the last words."""
    try:
        host.do(*in_shell(command, ports), timeout=timeout)
    except CommandFailed as error:
        how = (
            f"did not end in {timeout:.0f} s" if error.exit_code is None else f"ended with exit code {error.exit_code}"
        )
        said = error.output.strip() or "it said nothing"
        raise PodperfError(f"{name} {how}: {said}") from error


def in_shell(command: str, ports: Sequence[str]) -> tuple[str, ...]:
    """The words that run a shell command which is told these interfaces."""
    return "env", f"{PORTS}={' '.join(ports)}", "sh", "-e", "-c", command


def chosen(hook: Hook, pods: Sequence[Pod]) -> Sequence[Pod]:
    """Those of a chain's pods in which a hook runs. Empty if the chain has no pod of the hook's number."""
    return pods if hook.pod is None else pods[hook.pod - 1 : hook.pod]
