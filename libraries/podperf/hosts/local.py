"""This machine."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Commands, Completed, Process, TooMuchOutput
from podperf.hosts.output import Latest, Lines, Overflow, Whole

_TIED_TO_US = ("setpriv", "--pdeathsig", "KILL", "--")  # nothing outlives a killed run; survives exec
_UMASK = 0o022  # of the programs that a run starts as root; with a caller's umask 0, anybody could write their files
_CHUNK = 65536  # bytes


class LocalProcess:
    """A child process. Threads read its output, so that a call that waits for a line can time out."""

    def __init__(self, host: str, command: Sequence[str], cpus: Sequence[int]) -> None:
        self._host, self._command = host, tuple(command)
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
        self._child = _start(host, [*_TIED_TO_US, *pinned, *command])
        self.pid = self._child.pid
        self._lines, self._errors = Lines(), Latest()
        threading.Thread(target=self._gather_lines, daemon=True, name=f"output of {command[0]}").start()
        self._gathering_errors = threading.Thread(
            target=self._gather_errors, daemon=True, name=f"errors of {command[0]}"
        )
        self._gathering_errors.start()

    def _gather_lines(self) -> None:
        assert self._child.stdout is not None
        while chunk := os.read(self._child.stdout.fileno(), _CHUNK):
            self._lines.add(chunk)
        self._lines.end()

    def _gather_errors(self) -> None:
        assert self._child.stderr is not None
        while chunk := os.read(self._child.stderr.fileno(), _CHUNK):
            self._errors.add(chunk)

    def send(self, line: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write((line + "\n").encode())
            self._child.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._gone() from error

    def receive(self, timeout: float) -> str:
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
            self._child.wait(timeout=1)
        return CommandFailed(self._host, self._command, self._child.returncode, self.errors())

    def alive(self) -> bool:
        return self._child.poll() is None

    def errors(self) -> str:
        if self._child.poll() is not None:
            self._gathering_errors.join(1)  # a process that the child started may hold the stream open
        return self._errors.text()

    def stop(self, timeout: float = 5.0) -> None:
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(timeout)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()


class LocalHost(Commands):
    """This machine."""

    def __init__(self) -> None:
        self.name = "this machine"

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        child = _start(self.name, command)
        try:
            output, errors = _converse(child, (stdin or "").encode(), timeout)
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(self.name, command, None, f"{timeout:.0f} s") from error
        except Overflow:
            raise TooMuchOutput(self.name, command) from None
        finally:
            _end(child)
        if check and child.returncode != 0:
            raise CommandFailed(self.name, command, child.returncode, errors or output)
        return Completed(tuple(command), child.returncode, output, errors)

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return LocalProcess(self.name, command, cpus)

    def put(self, content: bytes, path: str) -> None:
        parent = Path(path).parent
        if not parent.is_dir():
            self.do("mkdir", "-p", str(parent))
        whole = Path(f"{path}.new")  # a reader finds the whole new content, or the whole old content
        whole.unlink(missing_ok=True)
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
        whole.replace(path)

    def get(self, path: str) -> bytes:
        content = Whole()
        try:
            with Path(path).open("rb") as file:
                while chunk := file.read(_CHUNK):
                    content.add(chunk)
        except Overflow:
            raise TooMuchOutput(self.name, ["cat", path]) from None
        return content.raw()


def _start(host: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """A child that nobody else's keyboard reaches, and of whose files nobody else can write any."""
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            umask=_UMASK,
            # With its own session, the child gets no Ctrl-C: podperf ends its processes in order. Also, if the kernel
            # divides CPU time among sessions (autogroup, sched(7)), a nice value only counts within a session.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise PodperfError(f"on {host}, `{command[0]}` is not installed") from error


def _converse(child: subprocess.Popen[bytes], given: bytes, timeout: float) -> tuple[str, str]:
    """Give a child its input, wait for its end, and return its output on both streams.

    Raises subprocess.TimeoutExpired after `timeout` seconds, and Overflow if the output is too long.
    """
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    deadline = time.monotonic() + timeout
    said = {child.stdout.fileno(): Whole(), child.stderr.fileno(): Whole()}
    output, errors = said.values()
    left = memoryview(given)
    with selectors.DefaultSelector() as waiting:
        for stream in said:
            waiting.register(stream, selectors.EVENT_READ)
        waiting.register(child.stdin, selectors.EVENT_WRITE)
        while waiting.get_map():
            ready = waiting.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(child.args, timeout)
            for key, _ in ready:
                if key.fd in said:
                    if chunk := os.read(key.fd, _CHUNK):
                        said[key.fd].add(chunk)
                    else:
                        waiting.unregister(key.fd)
                    continue
                with contextlib.suppress(BrokenPipeError):  # the child ended and did not read all of its input
                    left = left[os.write(key.fd, left[: select.PIPE_BUF]) :] if left else left
                    if left:
                        continue
                waiting.unregister(child.stdin)
                child.stdin.close()
    child.wait(max(0.0, deadline - time.monotonic()))
    return output.text(), errors.text()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child and the processes that it started, unless it has ended. Close the streams to it."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        assert stream is not None
        with contextlib.suppress(BrokenPipeError):
            stream.close()
