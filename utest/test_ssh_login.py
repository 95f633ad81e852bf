"""The password of a login: its source, and who gets it. Logins on servers that take no connection."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from podperf.environment import PASSWORD_VARIABLE, take_password
from podperf.errors import PodperfError
from podperf.hosts import ssh_connection, ssh_login
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import Login, Timeouts
from podperf.preflight.checks import check
from ssh_server import BEGINS, ssh_server

PASSWORD = "swordfish-42"


def test_the_password_is_on_no_command_line() -> None:
    login = Login("worker", password=PASSWORD)
    assert not any(PASSWORD in word for word in login.client_command("/tmp/control"))
    assert PASSWORD not in repr(login)


@pytest.mark.parametrize(
    ("prompt", "client", "answer"),
    [
        ("root@192.0.2.20's password: ", "$$", PASSWORD),
        ("(root@192.0.2.20) Password: ", "$$", PASSWORD),
        ("Enter passphrase for key '/root/.ssh/id_rsa': ", "$$", ""),
        ("root@jump's password: ", "1", ""),  # asked by a client that the first one started
    ],
)
def test_the_password_is_told_to_the_client_of_the_machine_alone(prompt: str, client: str, answer: str) -> None:
    environment = Login("worker", password=PASSWORD).client_environment(ssh_login.ASK_PASSWORD)
    ask = f'PODPERF_SSH_CLIENT={client} "$SSH_ASKPASS" "$1"; :'
    asked = subprocess.run(["sh", "-c", ask, "sh", prompt], env=environment, capture_output=True, text=True, check=True)
    assert asked.stdout.strip() == answer


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs podperf for another user")
def test_the_client_of_the_caller_of_sudo_gets_the_password(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    only_for_root = shutil.copy(ssh_login.ASK_PASSWORD, tmp_path)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(ssh_connection, "ASK_PASSWORD", Path(only_for_root))
    monkeypatch.setenv("SUDO_USER", "daemon")

    def run(channel: paramiko.Channel) -> None:
        channel.sendall(BEGINS + b"in\n")
        channel.sendall_stderr(BEGINS)
        channel.send_exit_status(0)
        channel.close()

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with ssh_server(Path(folder), run=run) as login, closing(SshHost(replace(login, key=None))) as host:
            assert host.ask("true").stdout == "in\n"


def test_the_password_is_read_once_and_children_do_not_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    assert take_password() == PASSWORD
    assert take_password() == PASSWORD, "a second login has it as well"
    assert PASSWORD not in LocalHost().ask("env").stdout
    process = LocalHost().spawn("env")
    with pytest.raises(Exception, match="ended with exit code 0"):
        while True:
            assert PASSWORD not in process.receive(5)


def test_children_of_check_do_not_have_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands on this machine are run before any machine is logged in on."""

    class Watched(LocalHost):
        def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
            assert PASSWORD_VARIABLE not in os.environ
            return super()._run(*command, stdin=stdin, check=check, timeout=timeout)

    monkeypatch.setenv(PASSWORD_VARIABLE, PASSWORD)
    file = tmp_path / "t.yaml"
    file.write_text("version: 1\nname: t\n")
    assert check(str(file), Watched(), root=False)


def test_a_key_that_is_not_there_is_named_also_under_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "daemon")
    with pytest.raises(
        PodperfError, match=r"there is no private key /nowhere to log in on worker: correct worker\.ssh"
    ):
        SshHost(Login("worker", key="/nowhere")).ask("true")


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Login]:
    """The login to a server behind a UNIX socket that takes no connection, as QEMU does while it has one."""
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as server, ExitStack() as held:
        server.bind(str(path))
        server.listen(0)
        connection = held.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(str(path))
        timeouts = Timeouts(step=0.3)
        yield Login("worker", socket=str(path), timeouts=timeouts)


def test_a_server_that_takes_no_connection_is_not_waited_for(busy: Login) -> None:
    with pytest.raises(PodperfError, match="worker"):
        SshHost(busy).ask("true")


def test_the_errors_of_an_undo_make_no_circle(busy: Login) -> None:
    """Robot Framework follows the contexts of an error to their end."""
    host = SshHost(busy)
    with pytest.raises(PodperfError) as caught, ExitStack() as undo:
        for _ in range(3):
            undo.callback(host.do, "true")
        raise PodperfError("the set-up fails")
    seen: list[BaseException] = []
    error: BaseException | None = caught.value
    while error is not None and len(seen) < 50:
        assert error not in seen
        seen.append(error)
        error = error.__context__
