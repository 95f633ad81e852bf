"""A machine behind SSH whose commands share one shell, where a channel for each of them takes too long."""

from __future__ import annotations

import secrets
import shlex
import threading
import time
from dataclasses import replace

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Completed, Process
from podperf.hosts.shell_script import shell_script
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import Login

_RUN_COMMANDS = shell_script("run_commands.sh", beside=__file__)
# An answer sometimes stays in the serial port of a counted machine until more comes through it.
_KEEPALIVE = 0.5  # seconds
_TIED_TO_THE_SHELL = ("setpriv", "--pdeathsig", "KILL", "--")


class ShellHost(SshHost):
    """A machine behind SSH with a slow CPU.

    A channel takes 60 ms of a counted machine, and a command in a shell takes 25. While the shell is busy, commands of
    other threads have channels of their own.
    """

    def __init__(self, login: Login) -> None:
        super().__init__(replace(login, timeouts=replace(login.timeouts, keepalive=_KEEPALIVE)))
        self._idle = threading.Lock()
        self._shell: Process | None = None
        self._mark = secrets.token_hex(16)

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        if not self._idle.acquire(blocking=False):
            return super()._run(*command, stdin=stdin, check=check, timeout=timeout)
        try:
            code, output, errors = self._in_shell(command, stdin, timeout)
        finally:
            self._idle.release()
        return self._completed(command, code, output, errors, check=check)

    def _in_shell(self, command: tuple[str, ...], stdin: str | None, timeout: float) -> tuple[int, str, str]:
        """Exit code, standard output and standard error. The shell ends if the command does not end in time."""
        deadline = time.monotonic() + timeout
        if self._shell is None or not self._shell.alive():
            self._shell = self.spawn("sh", "-c", _RUN_COMMANDS, "sh", self._mark)
        shell, output, errors = self._shell, list[str](), list[str]()
        try:
            shell.send(code_of(command, stdin))
            while not (line := self._line(shell, command, deadline, timeout)).startswith(f"{self._mark} "):
                output.append(line)
            code = int(line.split()[1])
            while (line := self._line(shell, command, deadline, timeout)) != self._mark:
                errors.append(line + "\n")
        except BaseException:  # Robot Framework turns signals into exceptions of its own
            self._shell = None
            if shell.alive():
                self.signal("KILL", -shell.pid)  # the command is in the shell's process group
            raise
        return code, "\n".join(output), "".join(errors)

    def _line(self, shell: Process, command: tuple[str, ...], deadline: float, timeout: float) -> str:
        try:
            return shell.receive(max(0.0, deadline - time.monotonic()))
        except PodperfError:
            if time.monotonic() < deadline:
                raise
            raise CommandFailed(self.name, command, None, f"{timeout:.0f} s") from None


def code_of(command: tuple[str, ...], stdin: str | None) -> str:
    """The line of shell code that runs a command with this input. `run_commands.sh` sets `nl` to a newline."""
    words = " ".join(map(_quoted, (*_TIED_TO_THE_SHELL, *command)))
    return f"{words} </dev/null" if stdin is None else f"printf %s {_quoted(stdin)} | {words}"


def _quoted(word: str) -> str:
    return shlex.quote(word).replace("\n", "'\"$nl\"'")
