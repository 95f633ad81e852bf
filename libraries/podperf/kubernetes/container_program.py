"""Starts the program of a container: the container waits for a command line, and then becomes this program.

The program has the rights, the CPUs and the memory that the cluster gives the container, and needs no exec. Command
line, input and output go through named pipes in a folder that node and container share.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process, shell_script, shown
from podperf.hosts.run_directory import RUN_DIRECTORY

_FOLDERS = RUN_DIRECTORY / "containers"
_PIPES = ("program", "input", "output", "errors")
_LOOK_AGAIN = 0.02  # seconds
_SIGNAL = ("sh", "-c", shell_script("signal_process.sh", beside=__file__), "sh")
_RELAY = ("sh", "-c", shell_script("relay.sh", beside=__file__), "sh")


def folder_of(container: str) -> Path:
    """The folder of a container's named pipes."""
    return _FOLDERS / container


def make_pipes(machine: Host, container: str) -> None:
    """Make the named pipes of a container on its node. They are gone with the run directory."""
    folder = folder_of(container)
    machine.do("mkdir", "-p", str(folder))
    machine.do("mkfifo", "-m", "600", *(str(folder / pipe) for pipe in _PIPES))


def waiting(container: str) -> tuple[str, ...]:
    """The command of a container that waits for the command line of its program."""
    return ("sh", str(_FOLDERS / container / "program"))


def start_program(
    machine: Host,
    container: str,
    pid: int,
    why_ended: Callable[[], str | None],
    command: Sequence[str],
    undo: ExitStack,
) -> Process:
    """Let a container that waits become this program. `pid` is the container's first process, as the node counts.

    `why_ended` asks the cluster for the reason why the container has ended. None: it runs, or nobody knows the reason.
    """
    process = ProgramOfContainer(machine, container, pid, why_ended, command)
    undo.callback(process.stop)
    return process


def within(command: Sequence[str]) -> tuple[str, Sequence[str]] | None:
    """The container in which a command of `start_program` runs a program, and the program. None for other commands."""
    if tuple(command[: len(_RELAY)]) != _RELAY:
        return None
    folder, program = command[len(_RELAY) :]
    return folder.rpartition("/")[2], shlex.split(program)


class ProgramOfContainer(Process):
    """A program whose input and output a process of the node passes on."""

    def __init__(
        self, machine: Host, container: str, pid: int, why_ended: Callable[[], str | None], command: Sequence[str]
    ) -> None:
        self._machine, self._why_ended, self.pid = machine, why_ended, pid
        self._name = f"`{shown(command)}` in container {container}"
        self._began = machine.ask(*_SIGNAL, str(pid), check=False, assumed="").stdout.strip()
        self._relay = machine.spawn(*_RELAY, str(_FOLDERS / container), shlex.join(command))

    def send(self, line: str) -> None:
        self._relay.send(line)

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        try:
            return self._relay.receive(timeout, assumed)
        except PodperfError as error:
            if self.alive():
                raise PodperfError(
                    f"on {self._machine.name}, {self._name} gave no answer in {timeout:.0f} s"
                ) from error
            raise PodperfError(f"on {self._machine.name}, {self._name} has ended: {self.errors()}") from error

    def alive(self, assumed: bool = True) -> bool:
        return self._relay.alive(assumed)

    def errors(self, assumed: str = "") -> str:
        said = self._relay.errors(assumed)
        if self.alive() or not (why := self._why_ended()):
            return said
        return f"{said.rstrip()}\nerror, as the cluster says: {why}"

    def stop(self, timeout: float = 5.0) -> None:
        alive = self.alive()
        for signal in ("TERM", "KILL"):
            if alive:
                # A container can leave its output to another process, and end. Then its number can be another one's.
                self._machine.do(*_SIGNAL, str(self.pid), signal, self._began, check=False)
                deadline = time.monotonic() + timeout
                while (alive := self.alive(assumed=False)) and time.monotonic() < deadline:
                    time.sleep(_LOOK_AGAIN)
        self._relay.stop()
