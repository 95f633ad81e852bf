"""The machines of a run: a session takes all of them, takes them again after a lost connection, and gives them back."""

from __future__ import annotations

import io
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh import SshHost
from podperf.hosts.ssh_login import Login
from podperf.progress import Progress
from podperf.run.session import Equipment, Session
from podperf.testers import TESTERS
from podperf.topology import SCHEMA_PATH, Topology, load_topology

THERE = "192.0.2.20"


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(load_topology(SCHEMA_PATH.parent / "local.yaml"), tmp_path, Progress(io.StringIO()))


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The other machines whose lock a session has, by their names."""
    names: list[str] = []

    def lock(machine: Host, undo: ExitStack, *_: object) -> None:
        names.append(machine.name)
        undo.callback(names.remove, machine.name)

    monkeypatch.setattr("podperf.run.session.lock", lock)
    return names


@pytest.fixture
def put_back(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each time that a machine was put back: whether entries that cannot be taken back stay in the journal."""
    calls: list[bool] = []

    def recorded(_: Host, keep: bool = False) -> list[str]:
        calls.append(keep)
        return []

    monkeypatch.setattr("podperf.run.session.put_back", recorded)
    return calls


@pytest.fixture
def there(session: Session) -> SshHost:
    """Another machine, for the tester and the worker."""
    host = SshHost(Login(THERE))
    session._machines = (host, host)
    return host


def test_what_was_taken_is_given_back_when_opening_fails(
    session: Session, put_back: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Robot Framework closes no testbed that did not open."""
    given_back = []

    def refused(_topology: Topology, _here: Host, undo: ExitStack, _password: str | None) -> None:
        undo.callback(given_back.append, True)
        raise PodperfError("the worker refuses the login")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("podperf.run.session.RunLock", lambda *_: nullcontext())
    monkeypatch.setattr("podperf.run.session.machines_of", refused)
    with pytest.raises(PodperfError, match="refuses the login"):
        session.open()
    assert given_back == [True]
    assert put_back == [False, True], "this machine, too"


def test_a_run_says_what_to_write_in_place_of_an_old_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, said = tmp_path / "old.yaml", io.StringIO()
    file.write_text("version: 1\nname: old\nworker: {cpus: 0}\n")

    def refused(*_: object) -> None:
        raise PodperfError("another run measures")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("podperf.run.session.RunLock", refused)
    with pytest.raises(PodperfError, match="another run measures"):
        Session(load_topology(file), tmp_path, Progress(said)).open()
    assert f"{file}:3: worker: an old key; write this worker as the first item of the list `workers`" in said.getvalue()


def test_who_is_not_root_is_told_so_once(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """Robot Framework without the script asks nobody else."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(PodperfError, match=r"^measuring on this machine needs root"):
        session.open()


def test_a_cluster_is_measured_without_root_and_this_machine_is_left_alone(
    tmp_path: Path, put_back: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reached(*_: object) -> None:
        raise PodperfError("now the machines are taken")

    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("podperf.run.session.machines_of", reached)
    cluster = load_topology(SCHEMA_PATH.parent / "kubernetes.yaml", testers=TESTERS)
    with pytest.raises(PodperfError, match="now the machines are taken"):
        Session(cluster, tmp_path, Progress(io.StringIO())).open()
    assert put_back == []


@pytest.mark.usefixtures("there")
def test_a_machine_that_cannot_be_taken_again_is_not_held_by_us(
    session: Session, held: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each later test would say that another run is measuring there, which is this one."""

    def broken(_: Host, keep: bool = False) -> list[str]:
        if not keep:
            raise PodperfError("its port is gone")
        return []

    monkeypatch.setattr("podperf.run.session.put_back", broken)
    for _ in range(2):
        with pytest.raises(PodperfError, match="its port is gone"):
            session._take_machines()
        assert held == [THERE]
        session._give_machines_back()
        assert not held


@pytest.mark.usefixtures("there", "held")
def test_machines_behind_ssh_are_put_back_at_the_end_too(
    session: Session, put_back: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal may have prevented a test from doing this."""
    monkeypatch.setattr(Equipment, "on", lambda *_: None)
    session._take_machines()
    assert put_back == [False]
    session.close()
    assert put_back == [False, True]


@pytest.mark.usefixtures("there", "put_back")
def test_only_after_a_lost_connection_the_machines_are_taken_again_with_all_that_is_on_them(
    session: Session, held: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    logged_in: list[str] = []
    losses = [0]

    def equipment(*_: object) -> object:
        taken.append(object())
        return taken[-1]

    monkeypatch.setattr(Equipment, "on", equipment)
    monkeypatch.setattr(SshHost, "losses", property(lambda _: losses[0]))
    monkeypatch.setattr(SshHost, "log_in_again", lambda host: logged_in.append(host.name))
    session._take_machines()
    session.take_lost_machines_again()
    assert (len(taken), logged_in) == (1, [])
    losses[0] += 1
    session.take_lost_machines_again()
    assert (len(taken), logged_in, held) == (2, [THERE], [THERE])
    assert session.equipment is taken[-1]
    session.take_lost_machines_again()
    assert len(taken) == 2, "once for each loss"


def test_podperf_logs_in_on_a_machine_with_the_login_of_the_topology(session: Session) -> None:
    first, second = SshHost(Login(THERE)), SshHost(Login("192.0.2.21", port=2222))
    session._machines = (LocalHost(), first, second)
    assert session.login("worker") == first.login
    assert session.login("worker", 2) == second.login
    with pytest.raises(PodperfError, match="there is no worker 3: the testbed has 2"):
        session.login("worker", 3)
    with pytest.raises(PodperfError, match="podperf runs on this machine itself"):
        session.login("tester")
