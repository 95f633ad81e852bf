"""Runs the programs of application traffic in a pod, by exec: commands, and processes in the background."""

from __future__ import annotations

from collections.abc import Sequence

from podperf.hosts.base import Commands, Completed, shell_script
from podperf.kubernetes.api import Api
from podperf.kubernetes.commands_in_pods import complete, succeeded

FOLDER = "/run/podperf"  # the only one of a pod where programs can write
# Starts a command with its errors in the file $1, and prints its process number.
_START = 'errors=$1; shift; "$@" >/dev/null 2>"$errors" </dev/null & echo $!'
_STDIN = 'said=$1; shift; printf %s "$said" | "$@"'
# The CPU time of the container's control group: microseconds in version 2, nanoseconds in version 1.
_GROUP = "/sys/fs/cgroup"
_CPU_TIME = r"""
cd "$1" || exit
sed -n 's/^usage_usec \(.*\)/\1000/p' cpu.stat 2>/dev/null | grep . && exit
cat cpuacct/cpuacct.usage 2>/dev/null || cat cpu,cpuacct/cpuacct.usage 2>/dev/null || :
"""
_END = shell_script("end_process.sh", beside=__file__)


class PodPlace(Commands):
    """One pod. Programs there write their temporary files into the pod's own folder."""

    def __init__(self, api: Api, namespace: str, pod: str) -> None:
        self._api, self._namespace, self._pod = api, namespace, pod
        self.name = f"pod {pod}"

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        given = command if stdin is None else ("sh", "-c", _STDIN, "sh", stdin, *command)
        there = ("env", f"TMPDIR={FOLDER}", *given)
        done = complete(self._api, self._pod, self._namespace, there, timeout)
        if check:
            succeeded(self._pod, done)
        return done

    def cpu_time(self) -> float | None:
        """Nanoseconds that the container's programs have taken so far. None: the container cannot see its group."""
        said = self.do("sh", "-c", _CPU_TIME, "sh", _GROUP, check=False).stdout.strip()
        return float(said) if said.isdecimal() else None

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> InPod:
        """Start a process. The container's own CPUs are those of the process, and it ends with the container."""
        return InPod(self, command)


class InPod:
    """A process in the background of a pod. Nobody collects its exit code, so its number is no other process's."""

    def __init__(self, place: PodPlace, command: Sequence[str]) -> None:
        self._place, self.errors_file = place, f"{FOLDER}/errors"
        self.pid = int(place.do("sh", "-c", _START, "sh", self.errors_file, *command).stdout)

    def alive(self, assumed: bool = True) -> bool:
        return self._end("") == "alive"

    def errors(self, assumed: str = "") -> str:
        return self._place.ask("cat", self.errors_file).stdout

    def stop(self, timeout: float = 5.0) -> None:
        self._end("TERM", timeout)
        self._end("KILL", timeout)

    def _end(self, signal: str, timeout: float = 0.0) -> str:
        looks = f"{timeout / 0.05:.0f}"
        return self._place.do("sh", "-c", _END, "sh", str(self.pid), signal, looks, timeout=timeout + 20).stdout.strip()
