"""No SSH server holds a run for ever, whatever it sends, and however slowly."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from http_servers import raw_server
from podperf.errors import PodperfError
from podperf.hosts import children
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import Login, Timeouts
from ssh_server import BEGINS, ssh_server


def banner_by_single_bytes(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"S")
        time.sleep(0.05)


def keys_by_single_bytes(connection: socket.socket) -> None:
    connection.sendall(b"SSH-2.0-slow\r\n")
    while True:
        connection.sendall(b"\x00")
        time.sleep(0.05)


def many_lines(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"hello\r\n")
        time.sleep(0.15)


@pytest.mark.parametrize("serve", [banner_by_single_bytes, keys_by_single_bytes, many_lines])
def test_a_login_ends_whatever_the_server_sends(serve: Callable[[socket.socket], None], tmp_path: Path) -> None:
    with raw_server(serve) as port:
        login = Login("127.0.0.1", port, known_hosts=str(tmp_path / "none"), timeouts=Timeouts(step=0.5))
        with closing(SshHost(login)) as host, pytest.raises(PodperfError, match=r"127\.0\.0\.1"):
            host.ask("true")


def test_a_command_that_the_server_never_starts_ends(tmp_path: Path) -> None:
    with (
        ssh_server(tmp_path, run=None) as login,
        closing(SshHost(replace(login, timeouts=Timeouts(step=2.0, lost=0.5)))) as host,
        pytest.raises(PodperfError, match=r"did not end in time: its start in 1 s"),
    ):
        host.ask("true")


def test_a_machine_that_takes_no_input_ends_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_SEND_TIMEOUT", 0.5)

    def start(channel: paramiko.Channel) -> None:
        channel.sendall(BEGINS)
        channel.sendall_stderr(BEGINS)
        channel.status_event.wait(30)

    with ssh_server(tmp_path, run=start) as login, closing(SshHost(login)) as host:
        process = host.spawn("cat")
        with pytest.raises(PodperfError, match="`cat` took no input"):
            for _ in range(100):  # until the window of the channel is full
                process.send("x" * 1_000_000)
