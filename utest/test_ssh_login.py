"""The trusted host keys, and the sources of the password."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import PASSWORD_VARIABLE, Login, Timeouts, _known_hosts, take_password
from podperf.preflight.checks import check

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"  # RFC 8709, appendix
LINE = f"192.0.2.20,worker {KEY} remark"


@pytest.mark.parametrize(
    ("text", "trusted", "revoked"),
    [
        (LINE, 1, 0),
        (f"  {LINE}  ", 1, 0),
        (f"# {LINE}\n\n{LINE}", 1, 0),
        (LINE.replace(" ", "\t"), 1, 0),
        (f"@cert-authority *.example.net {KEY}", 0, 0),
        (f"@cert-authority *.example.net {KEY}\n{LINE}", 1, 0),
        (f"@revoked * {KEY}", 0, 1),
        (f"{LINE}\n@revoked\t* {KEY}", 0, 1),
        (f"@something-new * {KEY}\n@revoked\n@", 0, 0),
        ("host ssh-ed25519 AAAA", 0, 0),
        ("host ssh-ed25519 x", 0, 0),
        ("host", 0, 0),
    ],
)
def test_lines_say_which_keys_are_trusted(text: str, trusted: int, revoked: int, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(text)
    known = _known_hosts(file)
    assert (len(known.keys), len(known.revoked)) == (trusted, revoked)
    assert all(names == ["192.0.2.20", "worker"] for names, _ in known.keys)
    assert known.names_authorities == ("@cert-authority" in text)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(
        st.sampled_from([*KEY.split(), "@revoked", "@cert-authority", "host", "|1|x|y", "ssh-rsa", "AAAA", "\xff"])
    )
)
def test_no_line_is_an_error(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_bytes(" ".join(words).encode("latin-1"))
    _known_hosts(file)


def test_the_password_is_read_once_and_children_do_not_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, "swordfish-42")
    assert take_password() == "swordfish-42"
    assert take_password() == "swordfish-42", "a second login has it as well"
    assert "swordfish-42" not in LocalHost().ask("env").stdout
    process = LocalHost().spawn("env")
    with pytest.raises(Exception, match="ended with exit code 0"):
        while True:
            assert "swordfish-42" not in process.receive(5)


def test_children_of_check_do_not_have_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands on this machine are run before any machine is logged in on."""

    class Watched(LocalHost):
        def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
            assert PASSWORD_VARIABLE not in os.environ
            return super()._run(*command, stdin=stdin, check=check, timeout=timeout)

    monkeypatch.setenv(PASSWORD_VARIABLE, "swordfish-42")
    file = tmp_path / "t.yaml"
    file.write_text("version: 1\nname: t\n")
    assert check(str(file), Watched(), root=False)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Login]:
    """The login to a server behind a UNIX socket that takes no connection, as QEMU does while it has one."""
    path = tmp_path / "socket"
    (tmp_path / "known_hosts").write_text(LINE)
    with socket.socket(socket.AF_UNIX) as server, ExitStack() as held:
        server.bind(str(path))
        server.listen(0)
        connection = held.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(str(path))
        timeouts = Timeouts(step=0.3)
        known = str(tmp_path / "known_hosts")
        yield Login("worker", known_hosts=known, socket=str(path), timeouts=timeouts)


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
