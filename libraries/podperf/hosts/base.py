"""The host seam: run a command, start a process, move a file, wherever the host is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Protocol

from podperf.errors import PodperfError
from podperf.hosts.output import MOST_MIB


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end."""

    command: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str


_MOST_SHOWN = 200  # characters of a command, which may be a program of many lines
_MOST_TOLD = 4000  # characters of what a command that failed said: the last ones


def shown(command: Sequence[str]) -> str:
    """A command as it stands in a message: in one line."""
    return shorten(" ".join(command), _MOST_SHOWN, placeholder=" …")


class CommandFailed(PodperfError):
    """A command ended with an exit code other than 0, or did not end in time."""

    def __init__(self, host: str, command: Sequence[str], exit_code: int | None, output: str) -> None:
        how = "did not end in time" if exit_code is None else f"ended with exit code {exit_code}"
        said = output.strip()
        detail = f": {'… ' if len(said) > _MOST_TOLD else ''}{said[-_MOST_TOLD:]}" if said else ""
        super().__init__(f"on {host}, `{shown(command)}` {how}{detail}")
        self.exit_code = exit_code
        self.output = output


class TooMuchOutput(PodperfError):
    """A command, or a process that nobody listened to, said more than there is a place for."""

    def __init__(self, host: str, command: Sequence[str]) -> None:
        super().__init__(f"on {host}, `{shown(command)}` said more than {MOST_MIB} MiB, which were not kept")


class Process(Protocol):
    """A process that a host runs in the background, spoken to by lines on its standard input and output."""

    pid: int

    def send(self, line: str) -> None:
        """Write one line. PodperfError, with what the process said on standard error, when it is gone."""

    def receive(self, timeout: float) -> str:
        """The next line of standard output, without its end. PodperfError when the process is gone or time is up.

        TooMuchOutput when lines were lost, because it said more than 16 MiB that nobody read.
        """

    def alive(self) -> bool:
        """True while the process runs."""

    def errors(self) -> str:
        """The text that the process has written to standard error so far, at most its last 1 MiB."""

    def stop(self, timeout: float = 5.0) -> None:
        """SIGTERM, and SIGKILL when `timeout` seconds were not enough. Returns when it is gone; safe to repeat."""


class Host(Protocol):
    """A place where commands run: this machine, one of its network namespaces, a machine behind SSH."""

    name: str

    def ask(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        """Run a command that changes nothing on the host: it reads something, or waits until something is true.

        CommandFailed if the command exits non-zero and `check` is set, or if it runs longer than `timeout` seconds.
        A command that runs too long is killed. A command that says more than 16 MiB is killed, too (TooMuchOutput).
        """

    def do(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        """Run a command that changes something on the host. It ends, and fails, like a command of `ask`.

        A plan shows only these commands.
        """

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        """Start a process, held to `cpus` where given. It dies with this program, or with the way to the host."""

    def put(self, content: bytes, path: str) -> None:
        """Write a file on the host; folders are made."""

    def get(self, path: str) -> bytes:
        """Read a file of the host. FileNotFoundError when there is none, TooMuchOutput when it has more than 16 MiB."""


class Commands(ABC):
    """`ask` and `do` of a host that runs the commands of both in the same way."""

    def ask(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        """See Host."""
        return self._run(*command, stdin=stdin, check=check, timeout=timeout)

    def do(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        """See Host."""
        return self._run(*command, stdin=stdin, check=check, timeout=timeout)

    @abstractmethod
    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        """Run a command to its end."""
