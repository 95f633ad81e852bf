"""The host seam: runs commands, starts processes and copies files on any host."""

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
_MOST_TOLD = 4000  # last characters of a failed command's output


def shown(command: Sequence[str]) -> str:
    """A command in one line, for messages."""
    return shorten(" ".join(command), _MOST_SHOWN, placeholder=" …")


class CommandFailed(PodperfError):
    """A command ended with an exit code other than 0, or did not end in time."""

    def __init__(self, host: str, command: Sequence[str], exit_code: int | None, output: str) -> None:
        how = "did not end in time" if exit_code is None else f"ended with exit code {exit_code}"
        said = output.strip()
        detail = f": {'… ' if len(said) > _MOST_TOLD else ''}{said[-_MOST_TOLD:]}" if said else ""
        super().__init__(f"on {host}, `{shown(command)}` {how}{detail}")
        self.host = host
        self.exit_code = exit_code
        self.output = output


class TooMuchOutput(PodperfError):
    """The output of a command, or the unread output of a process, was larger than the limit."""

    def __init__(self, host: str, command: Sequence[str]) -> None:
        super().__init__(f"on {host}, `{shown(command)}` said more than {MOST_MIB} MiB, which were not kept")


class Process(Protocol):
    """A background process on a host. Standard input and output are lines."""

    pid: int

    def send(self, line: str) -> None:
        """Write one line. If the process has ended, raises PodperfError with its standard error."""

    def receive(self, timeout: float) -> str:
        """The next line of standard output, without its line end.

        Raises PodperfError if the process has ended, or after `timeout` seconds. Raises TooMuchOutput if lines were
        lost, because more than 16 MiB were unread.
        """

    def alive(self) -> bool:
        """True while the process runs."""

    def errors(self) -> str:
        """The text that the process has written to standard error so far, at most its last 1 MiB."""

    def stop(self, timeout: float = 5.0) -> None:
        """Send SIGTERM, and SIGKILL after `timeout` seconds. Returns when the process has ended. Safe to repeat."""


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
        """Start a process, pinned to `cpus` if given. It ends with this program, or with the connection to the host."""

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
