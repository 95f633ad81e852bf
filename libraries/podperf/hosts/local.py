"""This machine; and a network namespace of this or of any other one."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Completed, Host, Process

_TIED_TO_US = ("setpriv", "--pdeathsig", "KILL", "--")  # nothing outlives a killed run; survives exec


class LocalProcess:
    """A child process; a thread gathers its output so that reading can time out."""

    def __init__(self, host: str, command: Sequence[str], cpus: Sequence[int]) -> None:
        self._host, self._command = host, tuple(command)
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        try:
            self._child = subprocess.Popen(
                [*_TIED_TO_US, *pinned, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                errors="replace",  # a serial console and an interface's alias are whatever somebody wrote
                bufsize=1,
                # Ctrl-C reaches the harness only, which ends its processes in order; and where the kernel shares CPU
                # time between sessions (autogroup, sched(7)), a nice value counts only among those of one session.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise PodperfError(f"on {host}, `{error.filename}` is not installed") from error
        self.pid = self._child.pid
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._gather, daemon=True, name=f"output of {command[0]}").start()

    def _gather(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def send(self, line: str) -> None:
        assert self._child.stdin is not None
        try:
            self._child.stdin.write(line + "\n")
            self._child.stdin.flush()
        except (BrokenPipeError, ValueError) as error:
            raise self._gone() from error

    def receive(self, timeout: float) -> str:
        try:
            line = self._lines.get(timeout=timeout)
        except queue.Empty:
            raise PodperfError(f"on {self._host}, `{self._command[0]}` gave no answer in {timeout:.0f} s") from None
        if line is None:
            self._lines.put(None)
            raise self._gone()
        return line

    def _gone(self) -> PodperfError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=1)
        return CommandFailed(self._host, self._command, self._child.returncode, self.errors())

    def alive(self) -> bool:
        return self._child.poll() is None

    def errors(self) -> str:
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace")

    def stop(self, timeout: float = 5.0) -> None:
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(timeout)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()


class LocalHost:
    """This machine."""

    def __init__(self) -> None:
        self.name = "this machine"

    def run(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        try:
            done = subprocess.run(
                command,
                input=stdin if stdin is not None else "",
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
                start_new_session=True,  # a terminal's Ctrl-C is for us: what is being taken down is taken down
            )
        except FileNotFoundError as error:
            raise PodperfError(f"on {self.name}, `{command[0]}` is not installed") from error
        except subprocess.TimeoutExpired as error:
            raise CommandFailed(self.name, command, None, f"{timeout:.0f} s") from error
        if check and done.returncode != 0:
            raise CommandFailed(self.name, command, done.returncode, done.stderr or done.stdout)
        return Completed(tuple(command), done.returncode, done.stdout, done.stderr)

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return LocalProcess(self.name, command, cpus)

    def put(self, content: bytes, path: str) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        whole = Path(f"{path}.new")  # whoever reads finds all of it, or what was there before
        whole.write_bytes(content)
        whole.replace(path)

    def get(self, path: str) -> bytes:
        return Path(path).read_bytes()


class NetworkNamespace:
    """A network namespace of a host, by its name under /run/netns. Only the network is another one."""

    def __init__(self, namespace: str, host: Host | None = None) -> None:
        self._host = host or LocalHost()
        self.namespace = namespace
        self.name = f"namespace {namespace}"
        if not isinstance(self._host, LocalHost):
            self.name += f" of {self._host.name}"
        # nsenter, unlike `ip netns exec`, keeps the mount namespace: other namespaces stay reachable by name.
        self._inside = ("nsenter", f"--net=/run/netns/{namespace}", "--")

    def run(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        try:
            done = self._host.run(*self._inside, *command, stdin=stdin, check=check, timeout=timeout)
        except CommandFailed as error:
            raise CommandFailed(self.name, command, error.exit_code, error.output) from None
        return replace(done, command=command)

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return self._host.spawn(*self._inside, *command, cpus=cpus)

    def put(self, content: bytes, path: str) -> None:
        self._host.put(content, path)

    def get(self, path: str) -> bytes:
        return self._host.get(path)
