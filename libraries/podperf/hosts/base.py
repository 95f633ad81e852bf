"""The host seam: runs commands, starts processes and copies files on any host."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol, TypeVar

from podperf.errors import PodperfError
from podperf.hosts.output import MOST_MIB


@dataclass(frozen=True)
class Completed:
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


class Refusal(str):
    """The standard error of a command that a plan assumes to fail."""


WRITTEN = "written"
"""The answer to `ls` that a plan assumes: the names of the files that it has written into this folder."""

ASSUMED_NUMBERS = count(10_000_000)
"""Numbers of processes and threads that a plan assumes, each for one. Linux gives none so high (kernel.pid_max)."""

Answer = str | Callable[[], str] | None
"""The answer that a plan assumes, or a function that makes the answer if that takes further questions."""


class Background(Protocol):
    """A background process that nobody talks with. `assumed` is the answer in a plan."""

    pid: int

    def alive(self, assumed: bool = True) -> bool:
        """True while the process runs."""

    def errors(self, assumed: str = "") -> str:
        """The text that the process has written to standard error so far, at most its last 1 MiB."""

    def stop(self, timeout: float = 5.0) -> None:
        """Send SIGTERM, and SIGKILL after `timeout` seconds. Returns when the process has ended. Safe to repeat."""


class Process(Background, Protocol):
    """A background process on a host. Standard input and output are lines. `assumed` is the answer in a plan."""

    def send(self, line: str) -> None:
        """Write one line. If the process has ended, raises PodperfError with its standard error."""

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        """The next line of standard output, without its line end.

        Raises PodperfError if the process has ended, or after `timeout` seconds. Raises TooMuchOutput if lines were
        lost, because more than 16 MiB were unread.
        """


class ProgramPlace(Protocol):
    """A place where commands run: a host, or a pod of a cluster.

    A plan carries nothing out (podperf.preflight.plan). So each question of a set-up has, beside it, the answer that a
    plan assumes: `assumed`, the standard output of a command that succeeds, or the content of a file.
    """

    name: str

    def ask(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0, assumed: Answer = None
    ) -> Completed:
        """Run a command that changes nothing on the host: it reads something, or waits until something is true.

        CommandFailed if the command exits non-zero and `check` is set, or if it runs longer than `timeout` seconds.
        A command that runs too long is killed. A command that says more than 16 MiB is killed, too (TooMuchOutput).
        """

    def do(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0, assumed: Answer = ""
    ) -> Completed:
        """Run a command that changes something on the host. It ends, and fails, like a command of `ask`.

        A plan shows only these commands. `assumed` is the answer in a plan if something reads it.
        """

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Background:
        """Start a process, pinned to `cpus` if given. It ends with this program, or with the connection to the host."""


class Host(ProgramPlace, Protocol):
    """This machine, one of its network namespaces, or a machine behind SSH."""

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        """As a place does it, and the process can be talked with."""

    def put(self, content: bytes, path: str) -> None:
        """Write a file on the host; folders are made."""

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        """Read a file of the host. FileNotFoundError when there is none, TooMuchOutput when it has more than 16 MiB."""


class Commands(ABC):
    """`ask` and `do` of a host that runs the commands of both in the same way."""

    def ask(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0, assumed: Answer = None
    ) -> Completed:
        return self._run(*command, stdin=stdin, check=check, timeout=timeout)

    def do(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0, assumed: Answer = ""
    ) -> Completed:
        return self._run(*command, stdin=stdin, check=check, timeout=timeout)

    @abstractmethod
    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        """Run a command to its end."""


Value = TypeVar("Value")

MOST_QUOTED = 200  # characters of a wrong answer in a message


def json_answer(host: ProgramPlace, program: str, said: str, read: Callable[[Any], Value]) -> Value:
    """The value that `read` takes from a program's answer in JSON.

    Raises PodperfError, with the names of host and program, if the answer is no JSON, or if `read` lacks something.
    """
    try:
        return read(json.loads(said))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError) as error:
        quoted = repr(said[:MOST_QUOTED])
        raise PodperfError(f"on {host.name}, `{program}` gave no valid answer: {quoted}") from error


def shell_script(name: str, beside: str) -> str:
    """The text of a script for `sh -c`, without its comments. `beside` is the file of the module that runs it."""
    lines = Path(beside).with_name(name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
