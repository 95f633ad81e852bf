"""A connection of OpenSSH's client (ssh) to a machine. podperf asks the client's control socket for sessions.

The protocol of this socket is in the file PROTOCOL.mux of OpenSSH. A process `ssh` for each session would take twice
the time (docs/adr/0018-ssh-is-the-users-own.md).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shlex
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, TooMuchOutput, shell_script, shown
from podperf.hosts.children import ready
from podperf.hosts.output import MOST_ERRORS, Latest, as_text
from podperf.hosts.ssh_login import ASK_PASSWORD, Login, why_not

SESSIONS = 8  # of one connection; sshd permits 10 by default (MaxSessions, sshd_config(5))
_KEEP_CLIENT = shell_script("keep_ssh_client.sh", beside=__file__)
_LOOK_AGAIN = 0.01  # seconds
_MOST_TOLD = 300  # characters that a login shell printed
# `sh -c` runs this with a command as its arguments. The command keeps the shell's process number. The shell's parent is
# the SSH server's process for the connection. When that process ends, the kernel kills the command (PR_SET_PDEATHSIG,
# prctl(2)). The umask lets nobody else write to the files that the command makes, also if the login has another one.
# A login shell may print to both outputs before. So the beginning of the command's own output is marked on both.
_TIED_TO_THE_CONNECTION = (
    'PATH=$PATH:/usr/sbin:/sbin; umask go-w; begins="podperf begins here $$ $PPID $SSH_CONNECTION"; echo "$begins"; '
    'echo "$begins" >&2; exec setpriv --pdeathsig KILL -- "$@"'
)
_BEGINS = re.compile(rb"podperf begins here (\d+) (\d+) (.*)\n")  # a greeting may have no line end
NOT_INSTALLED = "setpriv: failed to execute"
# Kinds of messages of the control socket.
_HELLO, _NEW_SESSION, _EXITED, _OPENED = 0x1, 0x10000002, 0x80000004, 0x80000006
_VERSION = 4
_NO_ESCAPE_CHARACTER = 0xFFFFFFFF


class ConnectionLost(PodperfError):
    """The machine no longer answers. Its commands have ended, or end when its SSH server notices the loss."""


class Connection:
    """One SSH client, whose connection has up to `SESSIONS` sessions at a time.

    Its control socket is in a folder of its own, which no other user can open. The client and the folder are gone when
    the connection is closed, and when this program ends, however it ends.
    """

    def __init__(self, login: Login) -> None:
        """Log in. Raises PodperfError with the reason if that fails."""
        self.name = ""  # client and server with their ports, as the machine sees them: the value of SSH_CONNECTION
        self.sessions: list[SshCommand] = []
        self.login = login
        self.ended = False  # True once `alive` found the connection ended
        folder = tempfile.mkdtemp(prefix="podperf-ssh-", dir="/tmp")  # a socket's path has 104 bytes at most
        self._control = f"{folder}/control"
        ask_password = ASK_PASSWORD
        try:
            if (owner := login.client_user) is not None:
                ask_password = Path(shutil.copy(ASK_PASSWORD, folder))  # podperf's own folder may be for root only
                for each in (folder, ask_password):
                    os.chown(each, owner.pw_uid, owner.pw_gid)
            self._client = subprocess.Popen(
                ["sh", "-c", _KEEP_CLIENT, "sh", folder, *login.client_command(self._control)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=login.client_environment(ask_password),
                start_new_session=True,
            )
        except BaseException:
            shutil.rmtree(folder)
            raise
        self._said = Latest()
        self._listening = threading.Thread(target=self._listen, daemon=True, name=f"ssh to {login.address}")
        self._listening.start()
        try:
            self._await_login()
        except BaseException:
            self.close()
            raise

    def _listen(self) -> None:
        assert self._client.stderr is not None
        with contextlib.suppress(ValueError, OSError):
            while chunk := os.read(self._client.stderr.fileno(), 65536):
                self._said.add(chunk)

    def _await_login(self) -> None:
        deadline = time.monotonic() + self.login.timeouts.login
        while not Path(self._control).exists():
            if self._client.poll() is not None:
                self._listening.join(1)
                raise PodperfError(why_not(self.login, self._said.text()))
            if time.monotonic() > deadline:
                seconds = f"{self.login.timeouts.login:g} s"
                raise PodperfError(
                    f"{self.login.address} did not finish the login in {seconds}: is it an SSH server, and is the "
                    "machine overloaded?"
                )
            time.sleep(_LOOK_AGAIN)

    @property
    def alive(self) -> bool:
        """True while the client has its connection."""
        if not self.ended:
            try:
                self.at_control_socket().close()
            except (OSError, EOFError):
                self.ended = True
        return not self.ended

    @property
    def busy(self) -> bool:
        """True if the connection has as many sessions as a server permits."""
        self.sessions = [session for session in self.sessions if session.poll() is None]
        return len(self.sessions) >= SESSIONS

    def at_control_socket(self) -> socket.socket:
        control = socket.socket(socket.AF_UNIX)
        try:
            control.settimeout(self.login.timeouts.step)
            control.connect(self._control)
            _tell(control, _HELLO, struct.pack(">I", _VERSION))
            _hear(control)
        except BaseException:
            control.close()
            raise
        return control

    def close(self) -> None:
        assert self._client.stdin is not None
        self._client.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._client.wait(5)


def _tell(control: socket.socket, kind: int, *parts: bytes) -> None:
    message = struct.pack(">I", kind) + b"".join(parts)
    control.sendall(struct.pack(">I", len(message)) + message)


def _hear(control: socket.socket) -> tuple[int, bytes]:
    """The kind and the content of the next message. Raises EOFError if there is none."""
    (length,) = struct.unpack(">I", _exactly(control, 4))
    message = _exactly(control, length)
    return struct.unpack(">I", message[:4])[0], message[4:]


def _exactly(control: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        if not (part := control.recv(length - len(found))):
            raise EOFError
        found += part
    return found


def _text(content: str) -> bytes:
    return struct.pack(">I", len(content.encode())) + content.encode()


class SshCommand:
    """A command on the machine (see Child). It ends with its connection."""

    def __init__(
        self, host: str, command: Sequence[str], connection: Connection, signal: Callable[[str, int], None]
    ) -> None:
        """A session that is not started. `signal` sends a signal to a process of the machine.

        Raises OSError or EOFError if the connection has ended.
        """
        self.pid = 0  # of the command; 0: not known yet
        self.server = 0  # the SSH server's process, the parent of the command
        self._host, self._command, self._connection, self._signal = host, tuple(command), connection, signal
        self._exit_code: int | None = None
        self._lost = False
        self._ending = threading.Lock()
        self._control = connection.at_control_socket()
        (given, stdin), (stdout, said), (stderr, complained) = os.pipe(), os.pipe(), os.pipe()
        self._theirs = given, said, complained
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb", 0)
        self.stdout: IO[bytes] | None = os.fdopen(stdout, "rb", 0)
        self.stderr: IO[bytes] | None = os.fdopen(stderr, "rb", 0)
        self._greetings = {stdout: bytearray(), stderr: bytearray()}  # text of the login shell
        connection.sessions.append(self)

    def start(self, timeout: float) -> bool:
        """Start the command. False if the server permits no more sessions.

        Raises ConnectionLost, or CommandFailed if the server does not answer within `timeout` seconds.
        """
        line = "exec " + shlex.join(["sh", "-c", _TIED_TO_THE_CONNECTION, "sh", *self._command])
        no_terminal = struct.pack(">5I", 0, 0, 0, 0, _NO_ESCAPE_CHARACTER)
        self._control.settimeout(timeout)
        try:
            _tell(self._control, _NEW_SESSION, struct.pack(">I", 0), _text(""), no_terminal, _text(""), _text(line))
            for their in self._theirs:
                socket.send_fds(self._control, [b"\0"], [their])
            kind, _ = _hear(self._control)
        except TimeoutError as error:
            raise self._not_started(timeout) from error
        except (OSError, EOFError) as error:
            raise self._lost_error() from error
        finally:
            for their in self._theirs:
                os.close(their)
        return kind == _OPENED

    def await_begin(self, timeout: float) -> None:
        """Wait until the command runs, so that its process number is known.

        Raises ConnectionLost, CommandFailed after `timeout` seconds, or PodperfError if the login shell ran nothing.
        """
        deadline = time.monotonic() + timeout
        for stream, greeting in self._greetings.items():
            while not (found := _BEGINS.search(greeting, max(0, len(greeting) - _MOST_TOLD))):
                if not ready(stream, select.POLLIN, deadline - time.monotonic()):
                    raise self._not_started(timeout)
                if not (byte := os.read(stream, 1)):  # by single bytes: the rest is the command's output
                    raise self._lost_error() if not self._connection.alive else self._no_command()
                greeting.extend(byte)
                if len(greeting) > MOST_ERRORS:
                    raise TooMuchOutput(self._host, self._command)
            self.pid, self.server, self._connection.name = int(found[1]), int(found[2]), found[3].decode()

    def _not_started(self, timeout: float) -> CommandFailed:
        return CommandFailed(self._host, self._command, None, f"its start in {timeout:.0f} s")

    def _no_command(self) -> PodperfError:
        _, stderr = self._greetings
        while ready(stderr, select.POLLIN, 1) and (chunk := os.read(stderr, _MOST_TOLD)):
            self._greetings[stderr] += chunk
        printed = as_text(b"".join(self._greetings.values())).strip()
        login = self._connection.login
        return PodperfError(
            f"the login shell of {login.user} on {self._host} ran no command, and printed {printed[:_MOST_TOLD]!r}: "
            f"give this user a shell that runs commands (`{login.by_hand}`)"
        )

    def _lost_error(self) -> ConnectionLost:
        return ConnectionLost(
            f"the SSH connection to {self._host} was lost while `{shown(self._command)}` ran there: the machine, "
            "its SSH server or the link went down"
        )

    def poll(self) -> int | None:
        """The exit code; -1 after a signal, or if the connection was lost. None while the command runs."""
        with self._ending:
            while self._exit_code is None and ready(self._control.fileno(), select.POLLIN, 0):
                try:
                    kind, content = _hear(self._control)
                except (OSError, EOFError):
                    self._exit_code, self._lost = -1, not self._connection.alive
                else:
                    if kind == _EXITED:
                        _, self._exit_code = struct.unpack(">2I", content)
            if self._exit_code is None and self._connection.ended:
                self._exit_code, self._lost = -1, True
            return self._exit_code

    def wait(self, timeout: float) -> int:
        """The exit code. Raises subprocess.TimeoutExpired after `timeout` seconds, and ConnectionLost."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if not ready(self._control.fileno(), select.POLLIN, deadline - time.monotonic()):
                raise subprocess.TimeoutExpired(self._command, timeout)
        if self._lost:
            raise self._lost_error()
        return code

    def terminate(self) -> None:
        self._signal("TERM", self.pid)

    def kill(self) -> None:
        self._signal("KILL", self.pid)

    def hang_up(self) -> None:
        """End the session. The command's output also ends, if one of its children still has it open."""
        with self._ending:
            self._exit_code = -1 if self._exit_code is None else self._exit_code
            self._control.close()
