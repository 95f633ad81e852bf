"""A command on a machine behind SSH. Its output is read while it runs. The command ends with its connection."""

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

# `sh -c` runs this with a command as its arguments. The command keeps the shell's process number. The shell's parent is
# the SSH server's process for the connection. When that process ends, the kernel kills the command (PR_SET_PDEATHSIG,
# prctl(2)). The umask lets nobody else write to the files that the command makes, also if the login has another one.
_TIED_TO_THE_CONNECTION = (
    'PATH=$PATH:/usr/sbin:/sbin; umask go-w; echo "podperf $$ $PPID" >&2; exec setpriv --pdeathsig KILL -- "$@"'
)
_NUMBERS = re.compile(rb"^podperf (\d+) (\d+)\n", re.MULTILINE)
NOT_INSTALLED = "setpriv: failed to execute"


class ConnectionLost(PodperfError):
    """The machine no longer answers. Its commands have ended, or end when its SSH server notices the loss."""


class SshCommand:
    """A command that runs on a channel. Its output is kept as a whole, or with `lines` as a queue of lines.

    If its output is larger than the limit, podperf closes the channel, and `overflowed` is true. With `lines` some
    lines are lost then.
    """

    def __init__(self, host: str, command: Sequence[str], channel: paramiko.Channel, *, lines: bool = False) -> None:
        self.channel = channel
        self.pid: int | None = None
        self.server: int | None = None  # the SSH server's process, the parent of the command
        self.lines = Lines() if lines else None
        self.overflowed = False
        self._host, self._command = host, tuple(command)
        self._output = Whole()
        self._start = bytearray()  # the beginning of standard error, until the process numbers are found in it
        self._errors: Latest | Whole = Latest() if lines else Whole()
        self._numbered = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, stdin: str | None = None) -> None:
        """Start the command. `stdin` is its whole input. Raises ConnectionLost if the connection is lost."""
        # Both read before the start, because a command that is broken off is killed by its number.
        self._work(self._gather_output)
        self._work(self._gather_errors)
        try:
            self.channel.exec_command("exec " + shlex.join(["sh", "-c", _TIED_TO_THE_CONNECTION, "sh", *self._command]))
        except (paramiko.SSHException, EOFError, OSError) as error:
            self.channel.close()
            raise self.lost() from error
        if stdin is not None:
            self._work(lambda: self._feed(stdin.encode()))

    def _work(self, task: Callable[[], None]) -> None:
        thread = threading.Thread(target=task, daemon=True, name=f"of {self._command[0]}")
        thread.start()
        self._threads.append(thread)

    def _feed(self, content: bytes) -> None:
        with contextlib.suppress(OSError):  # the command ended without reading all of its input
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
            self.channel.close()  # this ends all waiting

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

    def number(self, timeout: float) -> int | None:
        """The command's process number. None if the command did not start within `timeout` seconds."""
        self._numbered.wait(timeout)
        return self.pid

    def await_start(self, timeout: float) -> int:
        """The command's process number. Raises PodperfError if the command did not start."""
        if (number := self.number(timeout)) is None:
            self.channel.close()
            self.raise_if_lost()
            raise CommandFailed(self._host, self._command, None, f"it did not start; {self.errors()}")
        return number

    def wait(self, timeout: float) -> None:
        """Wait for the command's end and its whole output. Raises TimeoutError after `timeout` seconds."""
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
        """True if the command has ended, as far as this side knows."""
        return self.channel.exit_status_ready() or not self.connected

    @property
    def exit_code(self) -> int:
        """The exit code; -1 if a signal ended the command."""
        return int(self.channel.exit_status)

    def said(self) -> str:
        """The standard output so far, of a command without `lines`."""
        return self._output.text()

    def errors(self) -> str:
        """The standard error so far."""
        return self._errors.text() if self.pid is not None else as_text(self._start)

    def raise_if_lost(self) -> None:
        """Raises ConnectionLost if the connection ended before the command, so that its exit code is unknown."""
        if self.exit_code < 0 and not self.connected:
            raise self.lost()

    def lost(self) -> ConnectionLost:
        """The error for a lost connection."""
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
    """A host that can send signals to processes."""

    name: str

    def signal(self, signal: str, process: int) -> None:
        """Send a signal to a process; a negative number means a process group. The process may have ended already."""


class SshProcess:
    """A process in the background on a machine behind SSH."""

    def __init__(self, host: Signalling, name: str, command: SshCommand, pid: int) -> None:
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
        with contextlib.suppress(TimeoutError):  # a child of the command may hold its output open
            self._command.wait(1)
        self._command.channel.close()
