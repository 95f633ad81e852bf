"""A machine behind SSH. Each command has a channel of a connection; files are copied by SFTP."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePosixPath

import paramiko

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Commands, Completed, Process, TooMuchOutput
from podperf.hosts.output import MOST
from podperf.hosts.shell_script import shell_script
from podperf.hosts.ssh_command import NOT_INSTALLED, ConnectionLost, SshCommand, SshProcess
from podperf.hosts.ssh_login import Login, log_in

AGAIN_AFTER = 20.0  # seconds after a failed login without another try
SESSIONS = 8  # of one connection; sshd permits 10 by default (MaxSessions, sshd_config(5))
_END_ALL_OF = shell_script("end_all_of.sh", beside=__file__)


class SshHost(Commands):
    """A machine that is reached over SSH. Most of podperf's commands need a login as root.

    The first command logs in, and so does the first one after the connection was lost. The processes that this object
    started end when it is closed, or when this program ends.
    """

    def __init__(self, login: Login) -> None:
        self.name = login.address if login.port == 22 else f"{login.address} port {login.port}"
        self.servers: set[int] = set()  # PIDs of the SSH server's processes, the parents of this object's commands
        self.login = login
        self._connections: list[_Connection] = []
        self._losses = 0
        self._orphaned: list[str] = []  # lost connections, whose processes may still run
        self._files: paramiko.SFTPClient | None = None
        self._refused: tuple[float, str] | None = None  # when the last login failed, and why

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        started = SshCommand(self.name, command, self._channel())
        try:
            started.start(stdin or "")
            started.wait(timeout)
        except TimeoutError:
            self._kill(started)
            raise CommandFailed(self.name, command, None, f"{timeout:.0f} s") from None
        except BaseException:  # Robot Framework turns signals into exceptions of its own
            self._kill(started)
            raise
        finally:
            started.channel.close()
        if started.overflowed:
            self._kill(started)
            raise TooMuchOutput(self.name, command)
        started.raise_if_lost()
        if started.server is not None:
            self.servers.add(started.server)
        return self._completed(command, started.exit_code, started.said(), started.errors(), check=check)

    def _completed(self, command: tuple[str, ...], code: int, output: str, errors: str, *, check: bool) -> Completed:
        if code == 127 and errors.startswith(NOT_INSTALLED):
            raise PodperfError(f"on {self.name}, `{command[0]}` is not installed")
        if check and code != 0:
            raise CommandFailed(self.name, command, code, errors or output)
        return Completed(command, code, output, errors)

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        pinned = ["taskset", "--cpu-list", ",".join(map(str, cpus))] if cpus else []
        started = SshCommand(self.name, [*pinned, *command], self._channel(), lines=True)
        try:
            started.start()
            pid = started.await_start(self.login.timeouts.step)
        except BaseException:
            self._kill(started)
            started.channel.close()
            raise
        if started.server is not None:
            self.servers.add(started.server)
        return SshProcess(self, command[0], started, pid)

    def put(self, content: bytes, path: str) -> None:
        whole = f"{path}.new"  # a reader of `path` gets the whole new file or the old one
        with self._sftp(path) as files:
            try:
                file = files.open(whole, "wb")
            except FileNotFoundError:
                self.do("mkdir", "-p", str(PurePosixPath(path).parent))
                file = files.open(whole, "wb")
            with file:
                file.set_pipelined(True)
                file.write(content)
            files.posix_rename(whole, path)

    def get(self, path: str) -> bytes:
        with self._sftp(path) as files, files.open(path, "rb") as file:
            content = bytes(file.read(MOST + 1))
        if len(content) > MOST:
            raise TooMuchOutput(self.name, ["cat", path])
        return content

    @property
    def losses(self) -> int:
        """How often a connection was lost, together with the processes that it had started."""
        self._forget_lost()
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
        for connection in self._connections:
            connection.client.close()
        self._connections.clear()
        self._files = None

    def _kill(self, started: SshCommand) -> None:
        """Kill a command and the processes that it started, if the machine can still be reached."""
        if started.connected and (number := started.number(self.login.timeouts.step)) is not None:
            with contextlib.suppress(PodperfError):
                self.signal("KILL", -number)  # sshd makes each command the leader of a session

    def _channel(self) -> paramiko.Channel:
        """A new channel. If every connection has as many as the server permits, make a new connection for it."""
        self._forget_lost()
        for connection in self._connections:
            if (channel := connection.open()) is not None:
                return channel
        connection = _Connection(self._log_in(), self.login.timeouts.step)
        self._connections.append(connection)
        if (channel := connection.open()) is None:
            raise PodperfError(f"the SSH server of {self.name} permits no session (MaxSessions in sshd_config(5))")
        connection.name = self._name(channel)
        self._end_orphans()
        return self._channel()

    def _forget_lost(self) -> None:
        lost = [each for each in self._connections if not each.alive]
        self._losses += len(lost)
        self._orphaned += [each.name for each in lost]
        self._connections = [each for each in self._connections if each not in lost]

    def _name(self, channel: paramiko.Channel) -> str:
        """The machine's name for the connection of this channel."""
        asked = SshCommand(self.name, ["sh", "-c", 'echo "$SSH_CONNECTION"'], channel)
        asked.start("")
        asked.wait(self.login.timeouts.step)
        channel.close()
        asked.raise_if_lost()
        return asked.said().strip()

    def _end_orphans(self) -> None:
        """Kill the processes of lost connections. If the server does not notice a loss, they go on and keep locks."""
        orphaned, self._orphaned = self._orphaned, []
        if orphaned:
            self.do("sh", "-c", _END_ALL_OF, "sh", *orphaned, check=False)

    def _log_in(self) -> paramiko.SSHClient:
        """Log in. Just after a failure say the same at once: an undo has many commands, and each would wait.

        Each time the error is a new one: contextlib makes a circle of contexts from one error that is raised twice.
        """
        if self._refused is not None and time.monotonic() - self._refused[0] < AGAIN_AFTER:
            raise PodperfError(self._refused[1])
        try:
            client = log_in(self.login)
        except PodperfError as error:
            self._refused = time.monotonic(), str(error)
            raise
        self._refused = None
        return client

    @contextmanager
    def _sftp(self, path: str) -> Iterator[paramiko.SFTPClient]:
        """The SFTP client, kept for as long as its connection lives."""
        try:
            if not self._sftp_alive():
                self._files = self._open_sftp()
            assert self._files is not None
            yield self._files
        except (paramiko.SSHException, EOFError, OSError) as error:
            if isinstance(error, OSError) and not isinstance(error, TimeoutError) and self._sftp_alive():
                raise  # the machine's own error about the file
            self._files = None
            raise ConnectionLost(f"the SSH connection to {self.name} was lost while {path} was copied") from error

    def _sftp_alive(self) -> bool:
        channel = self._files.get_channel() if self._files is not None else None
        return channel is not None and not channel.closed and channel.get_transport().is_active()

    def _open_sftp(self) -> paramiko.SFTPClient:
        channel = self._channel()
        try:
            channel.invoke_subsystem("sftp")
            channel.settimeout(self.login.timeouts.lost)
            return paramiko.SFTPClient(channel)
        except (paramiko.SSHException, EOFError) as error:
            raise PodperfError(
                f"the SSH server of {self.name} offers no SFTP ({error}): it needs `Subsystem sftp internal-sftp` in "
                "its sshd_config"
            ) from error


class _Connection:
    """One TCP connection to a server. The server permits a limited number of channels at a time."""

    def __init__(self, client: paramiko.SSHClient, timeout: float) -> None:
        self.client = client
        self._timeout = timeout  # seconds to open a channel
        self.name = ""  # client and server with their ports, as the machine sees them: the value of SSH_CONNECTION
        self._channels: list[paramiko.Channel] = []

    @property
    def alive(self) -> bool:
        """True while the server answers."""
        transport = self.client.get_transport()
        return transport is not None and transport.is_active()

    def open(self) -> paramiko.Channel | None:
        """A new channel. None if the server permits no more, or the connection was lost just now."""
        self._channels = [each for each in self._channels if not each.closed]
        transport = self.client.get_transport()
        if len(self._channels) >= SESSIONS or transport is None:
            return None
        try:
            channel = transport.open_session(timeout=self._timeout)
        except (paramiko.SSHException, EOFError, OSError):
            return None
        self._channels.append(channel)
        return channel
