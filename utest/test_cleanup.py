"""What a killed run left is put back in an order in which each step finds what it needs."""

from __future__ import annotations

import pytest

from podperf import cleanup
from podperf.errors import PodperfError
from podperf.hosts.run_directory import RUN_DIRECTORY
from scripted_host import ScriptedHost


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing else to put back."""
    monkeypatch.setattr(cleanup, "namespaces_named", lambda _: [])
    monkeypatch.setattr(cleanup, "give_back", lambda *_: False)


@pytest.mark.usefixtures("nothing_else")
def test_ports_that_a_programs_driver_has_are_given_back_once_they_are_the_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drivers: list[str] = []

    def ports_back(*_: object) -> list[str]:
        if not drivers:
            raise PodperfError("there is no interface ens4")
        return ["ens4"]

    def drivers_back(_: object, directory: str) -> bool:
        if directory == str(RUN_DIRECTORY):
            drivers.append("i40e")
            return True
        return False

    monkeypatch.setattr(cleanup, "give_ports_back", ports_back)
    monkeypatch.setattr(cleanup, "go_back", drivers_back)
    found = cleanup.put_back(ScriptedHost(patient=True))
    assert found[:2] == ["virtual functions and drivers of devices", "ens4 from the system under test"]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.usefixtures("nothing_else")
def test_what_cannot_be_put_back_is_said_once_unless_it_is_kept_for_the_next_time(
    keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stayed on record would keep every run from beginning."""
    host = ScriptedHost(patient=True)

    def gone(*_: object) -> list[str]:
        raise PodperfError("there is no interface v0")

    monkeypatch.setattr(cleanup, "give_ports_back", gone)
    monkeypatch.setattr(cleanup, "go_back", lambda *_: False)
    with pytest.raises(PodperfError, match=r"^there is no interface v0$"):
        cleanup.put_back(host, keep=keep)
    assert ("rm -rf /run/podperf /run/podperf-tester" in host.commands) is not keep


@pytest.mark.parametrize("stuck", ["device", "port"])
def test_what_cannot_be_put_back_does_not_keep_the_rest_from_being(stuck: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the namespaces while one of them has a port."""
    done: list[str] = []

    def broken(*_: object) -> list[str]:
        raise PodperfError("no such device")

    monkeypatch.setattr(cleanup, "free_shared_memory", broken)
    monkeypatch.setattr(cleanup, "namespaces_named", lambda _: ["podperf-tester", "podperf-worker"])
    monkeypatch.setattr(cleanup, "remove_namespace", lambda _, namespace: done.append(namespace))
    monkeypatch.setattr(cleanup, "give_ports_back", broken if stuck == "port" else lambda *_: [])
    monkeypatch.setattr(cleanup, "ports_on_record", lambda *_: stuck == "port")
    monkeypatch.setattr(cleanup, "go_back", broken if stuck == "device" else lambda *_: False)
    monkeypatch.setattr(cleanup, "give_back", lambda *_: done.append("hugepages") is None)
    with pytest.raises(PodperfError, match="no such device; no such device"):
        cleanup.put_back(ScriptedHost(patient=True))
    assert done == (["hugepages"] if stuck == "port" else ["podperf-tester", "podperf-worker", "hugepages"])
