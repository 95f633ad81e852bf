"""This machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import Process, TooMuchOutput
from podperf.hosts.children import CHUNK, Child, ChildProcess, CommandsAsChildren
from podperf.hosts.output import Overflow, Whole

_TIED_TO_US = ("setpriv", "--pdeathsig", "KILL", "--")  # nothing outlives a killed run; survives exec
_KILLED = 60.0  # seconds in which the kernel ends a killed process
_UMASK = 0o022  # of the programs that a run starts as root; with a caller's umask 0, anybody could write their files


class LocalHost(CommandsAsChildren):
    def __init__(self) -> None:
        self.name = "this machine"

    def _start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """A child that nobody else's keyboard reaches, and of whose files nobody else can write any."""
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                umask=_UMASK,
                # With its own session, the child gets no Ctrl-C: podperf ends its processes in order. Also, if the
                # kernel divides CPU time among sessions (autogroup, sched(7)), a nice value only counts within one.
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise PodperfError(f"on {self.name}, `{command[0]}` is not installed") from error

    def _end(self, child: Child) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait(_KILLED)

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
        return ChildProcess(self.name, command, self._start([*_TIED_TO_US, *pinned, *command]))

    def put(self, content: bytes, path: str) -> None:
        parent = Path(path).parent
        if not parent.is_dir():
            self.do("mkdir", "-p", str(parent))
        whole = Path(f"{path}.new")  # a reader finds the whole new content, or the whole old content
        whole.unlink(missing_ok=True)
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
        whole.replace(path)

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        content = Whole()
        try:
            with Path(path).open("rb") as file:
                while chunk := file.read(CHUNK):  # some files of the kernel refuse to be read in one large piece
                    content.add(chunk)
        except Overflow:
            raise TooMuchOutput(self.name, ["cat", path]) from None
        return content.raw()
