"""The worker's existing ports: podperf finds them again after any change, and the right device is behind them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.hosts.way_back import changes, go_back
from podperf.kernel.queues import receive_queues, set_receive_queues
from podperf.testbed.worker_ports import PortBefore, WorkerPorts, _driver, _name_of, _pci_address
from podperf.topology import WorkerPortSettings
from scripted_host import ScriptedHost

MAC = "52:54:00:00:00:01"
PORTS = ("ens4", "ens5", "ens6")


def link(name: str, mac: str = MAC, kind: str | None = None) -> dict[str, Any]:
    return {"ifname": name, "address": mac, **({"linkinfo": {"info_kind": kind}} if kind else {})}


@pytest.mark.parametrize(
    ("kind", "links", "found"),
    [
        (None, [link("lo", "00:00:00:00:00:00"), link("ens4")], "ens4"),
        (None, [link("br0", kind="bridge"), link("net1")], "net1"),  # a bridge takes the MAC of one of its ports
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


def killed(*ports: PortBefore) -> dict[str, str]:
    """The journal of a run that took these ports and was killed."""
    host = ScriptedHost(patient=True)
    way_back = WorkerPorts(host, NetworkNamespace("podperf-worker", host), ExitStack())
    for port in ports:
        way_back._remember(port)
    return host.files


def test_a_port_that_cannot_be_given_back_keeps_no_other_and_stays_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    host = ScriptedHost(killed(*(PortBefore(name, MAC, None, 1500, True, True, 0) for name in PORTS)), patient=True)
    given_back = []

    def one(_: object, interface: str, **__: object) -> None:
        if interface == "ens5":
            raise PodperfError("ens5 is gone")
        given_back.append(interface)

    monkeypatch.setattr("podperf.testbed.worker_ports.give_back", one)
    with pytest.raises(PodperfError, match="ens5 is gone"):
        go_back(host)
    assert given_back == ["ens6", "ens4"]
    (left,) = changes(host)
    assert left.arguments["interface"] == "ens5"
    assert left.in_namespace, "a virtual one would end with its namespace"


def test_what_is_learnt_of_a_port_later_is_in_its_one_entry() -> None:
    """Some drivers ask for their interrupts when the port is set up."""
    before = PortBefore("ens4", MAC, None, 1500, True, True, 0)
    host = ScriptedHost(killed(before, replace(before, interrupts={"17": "0-7"})), patient=True)
    (change,) = changes(host)
    assert PortBefore(**change.arguments).interrupts == {"17": "0-7"}


class Card(LocalHost):
    """A machine whose PCI devices have the driver mlx4_core."""

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        assert command == ("readlink", "/sys/bus/pci/devices/0000:81:00.0/driver")
        return Completed(command, 0, "../../../bus/pci/drivers/mlx4_core\n", "")


def test_the_driver_is_the_one_that_the_topology_says() -> None:
    said = {"driver": "mlx4_en", "bus-info": "0000:81:00.0"}
    for right in (None, "mlx4_core"):
        assert _driver(WorkerPortSettings("ens4", driver=right), said, "0000:81:00.0", Card()) == "mlx4_core"
    with pytest.raises(PodperfError, match="ens4 of this machine has the driver mlx4_core, not i40e as"):
        _driver(WorkerPortSettings("ens4", driver="i40e"), said, "0000:81:00.0", Card())
    assert _driver(WorkerPortSettings("v", driver="veth"), {"driver": "veth"}, None, LocalHost()) == "veth"
    with pytest.raises(PodperfError, match="v of this machine has the driver veth, not i40e"):
        _driver(WorkerPortSettings("v", driver="i40e"), {"driver": "veth"}, None, LocalHost())


@pytest.mark.parametrize(("kind", "gone"), [("veth", True), (None, False)])
def test_a_virtual_port_that_somebody_has_removed_needs_no_giving_back(kind: str | None, gone: bool) -> None:
    port = PortBefore("ens5", MAC, kind, 1500, True, True, 0)
    host = ScriptedHost(killed(port), {"ip -json": "[]", "ip netns list": ""}, patient=True)
    if gone:
        assert go_back(host) == ["ens5 from the system under test"]
        assert host.files == {}
    else:
        with pytest.raises(PodperfError, match="scripted host has lost its interface ens5"):
            go_back(host)
        assert len(changes(host)) == 1


def test_a_port_that_was_not_taken_yet_keeps_its_settings() -> None:
    """A kill between the entry and the move: the port is in the machine's own network."""
    port = PortBefore("ens4", MAC, None, 1500, True, True, 0)
    host = ScriptedHost(killed(port), {"ip -json": json.dumps([link("ens4")]), "ip netns list": ""}, patient=True)
    go_back(host)
    assert "ip link set dev ens4 mtu 1500 alias  promisc off up" in host.commands
    assert not any(
        " netns " in command or " name " in command for command in host.commands if command.startswith("ip link set")
    )
