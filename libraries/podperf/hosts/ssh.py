"""A machine behind SSH. Each command has a session of a connection."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shlex
import threading
import time
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Completed, Process, TooMuchOutput, shell_script
from podperf.hosts.children import Child, ChildProcess, CommandsAsChildren
from podperf.hosts.output import MOST
from podperf.hosts.ssh_connection import NOT_INSTALLED, Connection, SshCommand
from podperf.hosts.ssh_login import Login

_SLOWEST_COPY = 100_000  # bytes/s: a slower connection copies no file
_AGAIN_AFTER = 20.0  # seconds after a failed login without another try
_END_ALL_OF = shell_script("end_all_of.sh", beside=__file__)
# A reader of the file gets the whole new content, or the whole old content.
_PUT = 'folder=${1%/*}; [ -d "$folder" ] || mkdir -p "$folder"; cat >"$1.new" && mv -fT "$1.new" "$1"'


class SshHost(CommandsAsChildren):
    """A machine that is reached over SSH. Most of podperf's commands need a login as root.

    The first command logs in, and so does the first one after the connection was lost. The processes that this object
    started end when it is closed, or when this program ends.
    """

    def __init__(self, login: Login) -> None:
        self.name = login.address if login.port == 22 else f"{login.address} port {login.port}"
        self.servers: set[int] = set()  # PIDs of the SSH server's processes, the parents of this object's commands
        self.login = login
        self._connections: list[Connection] = []
        self._connecting = threading.Lock()
        self._losses = 0
        self._orphaned: list[str] = []  # names of lost connections, whose processes may still run
        self._refused: tuple[float, str] | None = None  # when the last login failed, and why

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
        return SshProcess(self.name, command, self._start([*pinned, *command]))

    def put(self, content: bytes, path: str) -> None:
        code, _, errors = self._converse(("sh", "-c", _PUT, "sh", path), content, self.time_of_copy(len(content)))
        if code:
            raise as_error(errors.text(), path)

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        try:
            code, content, errors = self._converse(("env", "LC_ALL=C", "cat", path), b"", self.time_of_copy(MOST))
        except TooMuchOutput:
            raise TooMuchOutput(self.name, ["cat", path]) from None
        if code:
            raise as_error(errors.text(), path)
        return content.raw()

    def time_of_copy(self, size: int) -> float:
        return self.login.timeouts.answer + size / _SLOWEST_COPY

    @property
    def losses(self) -> int:
        """How often a connection was lost, together with the processes that it had started."""
        for connection in list(self._connections):
            if not connection.alive:
                self._lose(connection)
        return self._losses

    def log_in_again(self) -> None:
        """Try at once, also just after a failed login. Raises PodperfError if the machine is still unreachable."""
        self._refused = None
        self.ask("true")

    def signal(self, signal: str, process: int) -> None:
        """Send a signal to a process; a negative number means a process group. The process may have ended already."""
        self.do("kill", "-s", signal, "--", str(process), check=False, timeout=self.login.timeouts.step)

    def close(self) -> None:
        """Log out. Processes that this object started and that still run end."""
        while self._connections:
            self._connections.pop().close()

    def _start(self, command: Sequence[str]) -> SshCommand:
        """Start a command, on a new connection if all connections have as many sessions as the server permits."""
        session = self._on_a_connection(command)
        if session is None:
            with self._connecting:  # other threads wait for this login, and use it
                if session := self._on_a_connection(command):
                    return session
                self._connections.append(self._connect())
            self._end_orphans()
            session = self._on_a_connection(command)
        if session is None:
            raise PodperfError(f"the SSH server of {self.name} permits no session (MaxSessions in sshd_config(5))")
        return session

    def _on_a_connection(self, command: Sequence[str]) -> SshCommand | None:
        for connection in list(self._connections):
            if not connection.busy and (session := self._session(connection, command)) is not None:
                return session
        return None

    def _session(self, connection: Connection, command: Sequence[str]) -> SshCommand | None:
        """A command that has begun. None if this connection has ended, or if the server permits no more sessions."""
        try:
            session = SshCommand(self.name, command, connection, self.signal)
        except (OSError, EOFError):
            self._lose(connection)
            return None
        try:
            if not session.start(self.login.timeouts.answer):
                session.hang_up()
                return None
            session.await_begin(self.login.timeouts.answer)
        except BaseException:  # Robot Framework turns signals into exceptions of its own
            self._end(session)
            session.hang_up()
            raise
        self.servers.add(session.server)
        return session

    def _end(self, child: Child) -> None:
        """Kill a command and the processes that it started, if the machine can still be reached."""
        assert isinstance(child, SshCommand)
        with contextlib.suppress(PodperfError):
            if not child.pid:
                child.await_begin(self.login.timeouts.step)
            if child.poll() is None:
                self.signal("KILL", -child.pid)  # sshd makes each command the leader of a session

    def _completed(self, command: tuple[str, ...], code: int, output: str, errors: str, *, check: bool) -> Completed:
        if code == 127 and errors.startswith(NOT_INSTALLED):
            raise PodperfError(f"on {self.name}, `{command[0]}` is not installed")
        return super()._completed(command, code, output, errors, check=check)

    def _lose(self, connection: Connection) -> None:
        if connection in self._connections:
            self._connections.remove(connection)
            self._losses += 1
            self._orphaned.append(connection.name)
            connection.close()

    def _end_orphans(self) -> None:
        """Kill the processes of lost connections. If the server does not notice a loss, they go on and keep locks."""
        orphaned, self._orphaned = self._orphaned, []
        if orphaned:
            self.do("sh", "-c", _END_ALL_OF, "sh", *orphaned, check=False)

    def _connect(self) -> Connection:
        """Log in. Just after a failure say the same at once: an undo has many commands, and each would wait.

        Each time the error is a new one: contextlib makes a circle of contexts from one error that is raised twice.
        """
        if self._refused is not None and time.monotonic() - self._refused[0] < _AGAIN_AFTER:
            raise PodperfError(self._refused[1])
        try:
            connection = Connection(self.login)
        except PodperfError as error:
            self._refused = time.monotonic(), str(error)
            raise
        self._refused = None
        return connection


class SshProcess(ChildProcess):
    """A process in the background on a machine behind SSH."""

    def __init__(self, host: str, command: Sequence[str], session: SshCommand) -> None:
        super().__init__(host, command, session)
        self._session = session

    def stop(self, timeout: float = 5.0) -> None:
        super().stop(timeout)
        self._gathering_errors.join(1)
        self._session.hang_up()


def as_error(said: str, path: str) -> OSError:
    """The error of a command that copies a file. Commands end their message with the text of the error's number."""
    reason = said.strip().rpartition(": ")[2]
    return OSError(next((each for each in errno.errorcode if os.strerror(each) == reason), errno.EIO), reason, path)


_RUN_COMMANDS = shell_script("run_commands.sh", beside=__file__)
# An answer sometimes stays in the serial port of a counted machine until more comes through it.
_KEEPALIVE = 1.0  # seconds, the client's shortest
_TIED_TO_THE_SHELL = ("setpriv", "--pdeathsig", "KILL", "--")


class ShellHost(SshHost):
    """A machine behind SSH with a slow CPU.

    There, a session takes three times the time of a command in a shell. While the shell is busy, commands of other
    threads have sessions of their own.
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

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        """Read a file, as base64: the shell's output is text in lines."""
        asked = ("env", "LC_ALL=C", "base64", "--wrap=0", path)
        done = self.ask(*asked, check=False, timeout=self.time_of_copy(MOST))
        if done.exit_code:
            raise as_error(done.stderr, path)
        return b64decode(done.stdout)

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
