"""A real SSH server in a thread, for the tests of what podperf does when a server is slow, or silent."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import paramiko

from podperf.hosts.ssh_login import Login

Serve = Callable[[paramiko.Channel], None]
BEGINS = b"podperf begins here 4711 4710 192.0.2.1 1 192.0.2.2 22\n"


class _Answers(paramiko.ServerInterface):
    """Lets everybody in."""

    def __init__(self, run: Serve | None) -> None:
        self._run = run
        self._ended = threading.Event()

    def get_allowed_auths(self, username: str) -> str:
        return "password"

    def check_auth_password(self, username: str, password: str) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self._run is None:  # no answer to the request
            self._ended.wait(30)
            return False
        self._start(self._run, channel)
        return True

    @staticmethod
    def _start(serve: Serve, channel: paramiko.Channel) -> None:
        def work() -> None:
            time.sleep(0.05)  # the server first answers that the request is granted
            with suppress(OSError, EOFError):
                serve(channel)

        threading.Thread(target=work, daemon=True).start()


@contextmanager
def ssh_server(folder: Path, *, run: Serve | None) -> Iterator[Login]:
    """A server that runs commands in this way. Yields a login there. `run` None: it is silent."""
    key = paramiko.ECDSAKey.generate()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    known_hosts = folder / "known_hosts"
    known_hosts.write_text(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
    transports: list[paramiko.Transport] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                transport = paramiko.Transport(listening.accept()[0])
                transports.append(transport)
                transport.add_server_key(key)
                with suppress(paramiko.SSHException, EOFError):
                    transport.start_server(server=_Answers(run))

    threading.Thread(target=accept, daemon=True).start()
    (folder / "no_key").write_text("none")
    try:
        yield Login(
            "127.0.0.1",
            port,
            key=str(folder / "no_key"),
            known_hosts=str(known_hosts),
            password="swordfish",
        )
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for each in transports:
            each.close()
