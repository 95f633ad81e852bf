"""What a killed run left is put back in an order in which each step finds what it needs."""

from __future__ import annotations

import pytest

from podperf import cleanup
from podperf.errors import PodperfError
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.testbed.cabled import TESTER_DIRECTORY
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
    assert found[:2] == ["ens4 from the system under test", "virtual functions and drivers of devices"]


@pytest.mark.usefixtures("nothing_else")
def test_a_port_that_is_gone_for_good_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ScriptedHost({"/run/podperf/ports-before": "[]"}, patient=True)

    def gone(*_: object) -> list[str]:
        raise PodperfError("there is no interface v0")

    monkeypatch.setattr(cleanup, "give_ports_back", gone)
    monkeypatch.setattr(cleanup, "go_back", lambda *_: False)
    with pytest.raises(PodperfError, match="no interface v0"):
        cleanup.put_back(host)
    assert "rm -f /run/podperf/ports-before" in host.commands


def test_what_cannot_be_put_back_does_not_keep_the_rest_from_being(monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []

    def gone(_: object, directory: str) -> bool:
        if directory == str(TESTER_DIRECTORY):
            raise PodperfError("segmentation offload of right (no such device)")
        return False

    monkeypatch.setattr(cleanup, "namespaces_named", lambda _: ["podperf-tester", "podperf-worker"])
    monkeypatch.setattr(cleanup, "remove_namespace", lambda _, namespace: removed.append(namespace))
    monkeypatch.setattr(cleanup, "give_ports_back", lambda *_: [])
    monkeypatch.setattr(cleanup, "go_back", gone)
    monkeypatch.setattr(cleanup, "give_back", lambda *_: removed.append("hugepages") is None)
    with pytest.raises(PodperfError, match="no such device"):
        cleanup.put_back(ScriptedHost(patient=True))
    assert removed == ["podperf-tester", "podperf-worker", "hugepages"]
