"""A command on a machine behind SSH: what it says is gathered while it runs, and it dies with its connection."""

from __future__ import annotations

import contextlib
import queue
import re
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import paramiko

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, TooMuchOutput, shown
from podperf.hosts.output import MOST_ERRORS, Latest, Lines, Overflow, Whole, as_text

# Run by `sh -c` with a command as its arguments, which keeps this shell's process number. The shell's parent is the
# SSH server's process for the connection: when that ends, the kernel kills the command (PR_SET_PDEATHSIG, prctl(2)).
# Nobody else may write to the files that it makes, whatever umask the login has.
_TIED_TO_THE_CONNECTION = (
    'PATH=$PATH:/usr/sbin:/sbin; umask go-w; echo "podperf $$ $PPID" >&2; exec setpriv --pdeathsig KILL -- "$@"'
)
_NUMBERS = re.compile(rb"^podperf (\d+) (\d+)\n", re.MULTILINE)
NOT_INSTALLED = "setpriv: failed to execute"


class ConnectionLost(PodperfError):
    """The machine no longer answers. What ran there has ended, or does so when its SSH server notices."""


class Command:
    """A command that runs on a channel. Its output is kept whole, or, with `lines`, queued by lines.

    One that says more than there is a place for is cut off from us, and `overflowed`. With `lines` some are lost then.
    """

    def __init__(
        self,
        host: str,
        command: Sequence[str],
        channel: paramiko.Channel,
        *,
        stdin: str | None = None,
        lines: bool = False,
    ) -> None:
        """Start it. With `stdin`, that is all that it has to read. ConnectionLost when the connection is."""
        self.channel = channel
        self.pid: int | None = None
        self.server: int | None = None  # the SSH server's process that it is a child of
        self.lines = Lines() if lines else None
        self.overflowed = False
        self._host, self._command = host, tuple(command)
        self._output = Whole()
        self._start = bytearray()  # of its errors, until the numbers are found there
        self._errors: Latest | Whole = Latest() if lines else Whole()
        self._numbered = threading.Event()
        try:
            channel.exec_command("exec " + shlex.join(["sh", "-c", _TIED_TO_THE_CONNECTION, "sh", *command]))
        except (paramiko.SSHException, EOFError, OSError) as error:
            channel.close()
            raise self.lost() from error
        gathering: list[Callable[[], None]] = [self._gather_output, self._gather_errors]
        if stdin is not None:
            gathering.append(lambda: self._feed(stdin.encode()))
        self._threads = [threading.Thread(target=each, daemon=True, name=f"of {command[0]}") for each in gathering]
        for thread in self._threads:
            thread.start()

    def _feed(self, content: bytes) -> None:
        with contextlib.suppress(OSError):  # it ended without reading all of it
            self.channel.sendall(content)
            self.channel.shutdown_write()

    def _gather_output(self) -> None:
        self._gather(self.channel.recv, (self.lines or self._output).add)
        if self.lines is not None:
            self.lines.end()

    def _gather_errors(self) -> None:
        self._gather(self.channel.recv_stderr, self._add_errors)
        self._numbered.set()

    def _gather(self, receive: Callable[[int], bytes], add: Callable[[bytes], None]) -> None:
        try:
            while chunk := _received(receive):
                add(chunk)
        except Overflow:
            self.overflowed = True
            self.channel.close()  # which ends all waiting

    def _add_errors(self, chunk: bytes) -> None:
        if self.pid is not None:
            self._errors.add(chunk)
            return
        self._start += chunk
        if found := _NUMBERS.search(self._start):
            self.pid, self.server = int(found[1]), int(found[2])
            self._numbered.set()
            self._errors.add(bytes(self._start[found.end() :]))  # a login shell may have complained before
        elif len(self._start) > MOST_ERRORS:
            raise Overflow

    def await_start(self, timeout: float) -> int:
        """Its process number. PodperfError when it did not start."""
        self._numbered.wait(timeout)
        if self.pid is None:
            self.channel.close()
            self.raise_if_lost()
            raise CommandFailed(self._host, self._command, None, f"it did not start; {self.errors()}")
        return self.pid

    def wait(self, timeout: float) -> None:
        """Until it has ended and all that it said is here. TimeoutError when that takes longer."""
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise TimeoutError
        if not self.channel.status_event.wait(max(0.0, deadline - time.monotonic())):
            raise TimeoutError

    @property
    def connected(self) -> bool:
        """True while the machine answers."""
        transport = self.channel.get_transport()
        return transport is not None and transport.is_active()

    @property
    def ended(self) -> bool:
        """True when it is gone, as far as is known here."""
        return self.channel.exit_status_ready() or not self.connected

    @property
    def exit_code(self) -> int:
        """As a shell has it; -1 when a signal ended it."""
        return int(self.channel.exit_status)

    def said(self) -> str:
        """What it wrote to standard output so far, of a command without `lines`."""
        return self._output.text()

    def errors(self) -> str:
        """What it wrote to standard error so far."""
        return self._errors.text() if self.pid is not None else as_text(self._start)

    def raise_if_lost(self) -> None:
        """ConnectionLost when nobody knows how it ended, because the connection did before."""
        if self.exit_code < 0 and not self.connected:
            raise self.lost()

    def lost(self) -> ConnectionLost:
        """The error that says so."""
        return ConnectionLost(
            f"the SSH connection to {self._host} was lost while `{shown(self._command)}` ran there: the machine, "
            "its SSH server or the link went down"
        )


def _received(receive: Callable[[int], bytes]) -> bytes:
    try:
        return receive(65536)
    except OSError:
        return b""


class Signalling(Protocol):
    """Whoever can send signals to processes of a machine."""

    name: str

    def signal(self, signal: str, process: int) -> None:
        """Send it to a process, or, with its number negated, to its process group; it may be gone."""


class SshProcess:
    """A process in the background on a machine behind SSH."""

    def __init__(self, host: Signalling, name: str, command: Command, pid: int) -> None:
        assert command.lines is not None
        self.pid = pid
        self._host, self._name, self._command, self._lines = host, name, command, command.lines

    def send(self, line: str) -> None:
        try:
            self._command.channel.sendall((line + "\n").encode())
        except OSError as error:
            raise self._gone() from error

    def receive(self, timeout: float) -> str:
        try:
            line = self._lines.next(timeout)
        except queue.Empty:
            raise PodperfError(f"on {self._host.name}, `{self._name}` gave no answer in {timeout:.0f} s") from None
        except Overflow:
            raise TooMuchOutput(self._host.name, [self._name]) from None
        if line is None:
            raise self._gone()
        return line

    def _gone(self) -> PodperfError:
        with contextlib.suppress(TimeoutError):
            self._command.wait(1)
        if not self._command.connected:
            return self._command.lost()
        return CommandFailed(self._host.name, [self._name], self._command.exit_code, self.errors())

    def alive(self) -> bool:
        return not self._command.ended

    def errors(self) -> str:
        return self._command.errors()

    def stop(self, timeout: float = 5.0) -> None:
        for signal in ("TERM", "KILL"):
            if self._command.ended:
                break
            self._host.signal(signal, self.pid)
            self._command.channel.status_event.wait(timeout)
        with contextlib.suppress(TimeoutError):  # a child of its own may hold its output open
            self._command.wait(1)
        self._command.channel.close()
