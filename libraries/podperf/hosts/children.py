"""Commands that run as children: podperf gives them their input, reads what they print, and ends them."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import subprocess
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import IO, Protocol

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Commands, Completed, TooMuchOutput
from podperf.hosts.output import Latest, Lines, Overflow, Whole

CHUNK = 65536  # bytes
_SEND_TIMEOUT = 30.0  # seconds in which a process takes a line


class Child(Protocol):
    """A command that runs, with the methods of subprocess.Popen: a process here, or a session of an SSH connection."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None

    def poll(self) -> int | None: ...
    def wait(self, timeout: float) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class ChildProcess:
    """A child in the background. Threads read its output, so that a call that waits for a line can time out."""

    def __init__(self, host: str, command: Sequence[str], child: Child) -> None:
        self._host, self._command, self._child = host, tuple(command), child
        self.pid = child.pid
        self._lines, self._errors = Lines(), Latest()
        threading.Thread(target=self._gather_lines, daemon=True, name=f"output of {command[0]}").start()
        self._gathering_errors = threading.Thread(
            target=self._gather_errors, daemon=True, name=f"errors of {command[0]}"
        )
        self._gathering_errors.start()

    def _gather_lines(self) -> None:
        assert self._child.stdout is not None
        while chunk := os.read(self._child.stdout.fileno(), CHUNK):
            self._lines.add(chunk)
        self._lines.end()

    def _gather_errors(self) -> None:
        assert self._child.stderr is not None
        while chunk := os.read(self._child.stderr.fileno(), CHUNK):
            self._errors.add(chunk)

    def send(self, line: str) -> None:
        assert self._child.stdin is not None
        deadline = time.monotonic() + _SEND_TIMEOUT
        left = memoryview((line + "\n").encode())
        try:
            while left:
                if not ready(self._child.stdin.fileno(), select.POLLOUT, deadline - time.monotonic()):
                    raise PodperfError(f"on {self._host}, `{self._command[0]}` took no input in {_SEND_TIMEOUT:.0f} s")
                left = left[os.write(self._child.stdin.fileno(), left[: select.PIPE_BUF]) :]
        except (OSError, ValueError) as error:
            raise self._gone() from error

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        try:
            line = self._lines.next(timeout)
        except queue.Empty:
            raise PodperfError(f"on {self._host}, `{self._command[0]}` gave no answer in {timeout:.0f} s") from None
        except Overflow:
            raise TooMuchOutput(self._host, self._command) from None
        if line is None:
            raise self._gone()
        return line

    def _gone(self) -> PodperfError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(1)
        return CommandFailed(self._host, self._command, self._child.poll(), self.errors())

    def alive(self, assumed: bool = True) -> bool:
        return self._child.poll() is None

    def errors(self, assumed: str = "") -> str:
        if self._child.poll() is not None:
            self._gathering_errors.join(1)  # a process that the child started may hold the stream open
        return self._errors.text()

    def stop(self, timeout: float = 5.0) -> None:
        for end in (self._child.terminate, self._child.kill):
            if self._child.poll() is None:
                end()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(timeout)


class CommandsAsChildren(Commands):
    """A host that runs each command as a child."""

    name: str

    @abstractmethod
    def _start(self, command: Sequence[str]) -> Child:
        """Start a command."""

    @abstractmethod
    def _end(self, child: Child) -> None:
        """Kill a command and the processes that it started."""

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        code, output, errors = self._converse(command, (stdin or "").encode(), timeout)
        return self._completed(command, code, output.text(), errors.text(), check=check)

    def _completed(self, command: tuple[str, ...], code: int, output: str, errors: str, *, check: bool) -> Completed:
        if check and code != 0:
            raise CommandFailed(self.name, command, code, errors or output)
        return Completed(command, code, output, errors)

    def _converse(self, command: Sequence[str], given: bytes, timeout: float) -> tuple[int, Whole, Whole]:
        """Run a command with this input to its end. Returns its exit code, and its output on both streams."""
        child, output, errors = self._start(command), Whole(), Whole()
        try:
            return _converse(child, given, timeout, output, errors), output, errors
        except subprocess.TimeoutExpired:
            raise CommandFailed(self.name, command, None, f"{timeout:.0f} s") from None
        except Overflow:
            raise TooMuchOutput(self.name, command) from None
        finally:
            if child.poll() is None:
                self._end(child)
            for stream in (child.stdin, child.stdout, child.stderr):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _converse(child: Child, given: bytes, timeout: float, output: Whole, errors: Whole) -> int:
    """Raises subprocess.TimeoutExpired after `timeout` seconds, and Overflow if the output is too long."""
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    deadline = time.monotonic() + timeout
    said = {child.stdout.fileno(): output, child.stderr.fileno(): errors}
    taking = child.stdin.fileno()
    left = memoryview(given)
    waiting = select.poll()
    for stream in said:
        waiting.register(stream, select.POLLIN)
    waiting.register(taking, select.POLLOUT)
    streams = {*said, taking}
    while streams:
        found = waiting.poll(max(0.0, deadline - time.monotonic()) * 1000)
        if not found:
            raise subprocess.TimeoutExpired("", timeout)
        for stream, _ in found:
            if stream in said:
                if chunk := os.read(stream, CHUNK):
                    said[stream].add(chunk)
                    continue
            else:
                with contextlib.suppress(BrokenPipeError):  # the child ended and did not read all of its input
                    left = left[os.write(stream, left[: select.PIPE_BUF]) :] if left else left
                    if left:
                        continue
                child.stdin.close()
            waiting.unregister(stream)
            streams.remove(stream)
    return child.wait(max(0.0, deadline - time.monotonic()))


def ready(stream: int, event: int, timeout: float) -> bool:
    """Whether a stream is ready for this event of poll(2) within `timeout` seconds."""
    waiting = select.poll()
    waiting.register(stream, event)
    return bool(waiting.poll(max(0.0, timeout) * 1000))
