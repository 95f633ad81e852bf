"""The worker's existing ports: found again whatever happened to them, and the right device behind them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import pytest

from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost, NetworkNamespace
from podperf.kernel.queues import receive_queues, set_receive_queues
from podperf.testbed.worker_ports import (
    PortBefore,
    WorkerPorts,
    _name_of,
    _pci_address,
    _refuse_another_driver,
    give_back,
)
from podperf.topology import WorkerPortSettings
from scripted_host import ScriptedHost

MAC = "52:54:00:00:00:01"


def link(name: str, mac: str = MAC, kind: str | None = None) -> dict[str, Any]:
    return {"ifname": name, "address": mac, **({"linkinfo": {"info_kind": kind}} if kind else {})}


@pytest.mark.parametrize(
    ("kind", "links", "found"),
    [
        (None, [link("lo", "00:00:00:00:00:00"), link("ens4")], "ens4"),
        (None, [link("br0", kind="bridge"), link("net1")], "net1"),  # a bridge takes the MAC of a port of its own
        (None, [link("ipvl0", kind="ipvlan"), link("br0", kind="bridge")], None),
        (None, [link("ens4", "52:54:00:00:00:02")], None),  # another one took the name
        ("veth", [link("br0", kind="bridge"), link("ens4", kind="veth")], "ens4"),
        ("veth", [link("ens4")], None),
    ],
)
def test_a_port_is_known_by_its_mac_and_kind(kind: str | None, links: list[dict[str, Any]], found: str | None) -> None:
    assert _name_of(PortBefore("ens4", MAC, kind, 1500, True, True, 0), links) == found


def test_the_device_is_the_one_that_the_topology_says() -> None:
    named = WorkerPortSettings("ens4", "0000:81:00.0")
    assert _pci_address(named, {"bus-info": "0000:81:00.0"}, LocalHost()) == "0000:81:00.0"
    assert _pci_address(WorkerPortSettings("ens4"), {"bus-info": "0000:81:00.1"}, LocalHost()) == "0000:81:00.1"
    assert _pci_address(WorkerPortSettings("v"), {"bus-info": ""}, LocalHost()) is None
    assert _pci_address(WorkerPortSettings("u"), {"bus-info": "usb-0000:00:14.0-1"}, LocalHost()) is None
    with pytest.raises(
        PodperfError, match=r"ens4 of this machine is the PCI device 0000:81:00\.1, not 0000:81:00\.0 as"
    ):
        _pci_address(named, {"bus-info": "0000:81:00.1"}, LocalHost())
    with pytest.raises(PodperfError, match="of no address, not"):
        _pci_address(named, {}, LocalHost())


CHANNELS = """Channel parameters for ens4:
Pre-set maximums:
RX:		n/a
TX:		n/a
Combined:	64
Current hardware settings:
RX:		n/a
TX:		n/a
Combined:	8
"""


def test_a_card_has_one_queue_where_that_is_wanted_and_gets_its_own_back() -> None:
    card = ScriptedHost(answers={"ethtool -l ens4": CHANNELS}, patient=True)
    assert receive_queues(card, "ens4") == {"combined": 8}
    set_receive_queues(card, "ens4", {"combined": 1})
    assert card.commands[-1] == "ethtool -L ens4 combined 1"
    set_receive_queues(card, "ens4", {"combined": 8})
    assert card.commands[-1] == "ethtool -l ens4", "it has as many"
    without = ScriptedHost(patient=True)
    assert receive_queues(without, "tap0") == {}
    set_receive_queues(without, "tap0", {})
    assert without.commands == ["ethtool -l tap0"]


def test_a_port_that_cannot_be_given_back_keeps_no_other_and_stays_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [PortBefore(name, MAC, None, 1500, True, True, 0) for name in ("ens4", "ens5", "ens6")]
    host = ScriptedHost({"/run/x/ports-before": json.dumps([asdict(each) for each in ports])}, patient=True)
    given_back = []

    def one(_: object, port: PortBefore) -> bool:
        if port.interface == "ens5":
            raise PodperfError("ens5 is gone")
        given_back.append(port.interface)
        return True

    monkeypatch.setattr("podperf.testbed.worker_ports._give_back", one)
    with pytest.raises(PodperfError, match="ens5 is gone"):
        give_back(host, "/run/x")
    assert given_back == ["ens4", "ens6"]
    assert [each["interface"] for each in json.loads(host.get("/run/x/ports-before"))] == ["ens5"]
    assert not any(each.startswith("rm") for each in host.commands)


def test_what_an_earlier_set_up_could_not_give_back_is_given_back_before_more_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = PortBefore("ens5", MAC, None, 1500, True, True, 0)
    host = ScriptedHost({"/run/x/ports-before": json.dumps([asdict(port)])}, patient=True)
    given_back: list[str] = []
    monkeypatch.setattr("podperf.testbed.worker_ports._give_back", lambda _, port: given_back.append(port.interface))
    WorkerPorts(host, NetworkNamespace("podperf-worker", host), "/run/x", ExitStack())
    assert given_back == ["ens5"]


class Card(LocalHost):
    """A machine whose PCI devices have the driver mlx4_core."""

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        assert command == ("readlink", "/sys/bus/pci/devices/0000:81:00.0/driver")
        return Completed(command, 0, "../../../bus/pci/drivers/mlx4_core\n", "")


def test_the_driver_is_the_one_that_the_topology_says() -> None:
    said = {"driver": "mlx4_en", "bus-info": "0000:81:00.0"}
    for right in (None, "mlx4_core"):
        _refuse_another_driver(WorkerPortSettings("ens4", driver=right), said, "0000:81:00.0", Card())
    with pytest.raises(PodperfError, match="ens4 of this machine has the driver mlx4_core, not i40e as"):
        _refuse_another_driver(WorkerPortSettings("ens4", driver="i40e"), said, "0000:81:00.0", Card())
    _refuse_another_driver(WorkerPortSettings("v", driver="veth"), {"driver": "veth"}, None, LocalHost())
    with pytest.raises(PodperfError, match="v of this machine has the driver veth, not i40e"):
        _refuse_another_driver(WorkerPortSettings("v", driver="i40e"), {"driver": "veth"}, None, LocalHost())


@pytest.mark.parametrize(("kind", "gone"), [("veth", True), (None, False)])
def test_a_virtual_port_that_somebody_has_removed_needs_no_giving_back(kind: str | None, gone: bool) -> None:
    port = PortBefore("ens5", MAC, kind, 1500, True, True, 0)
    answers = {"ip -json": "[]", "ip netns list": ""}
    host = ScriptedHost({"/run/x/ports-before": json.dumps([asdict(port)])}, answers, patient=True)
    if gone:
        assert give_back(host, "/run/x") == []
        assert host.commands[-1] == "rm -f /run/x/ports-before"
    else:
        with pytest.raises(PodperfError, match="scripted host has lost its interface ens5"):
            give_back(host, "/run/x")
