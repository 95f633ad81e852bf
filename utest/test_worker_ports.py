"""The worker's existing ports: found again whatever happened to them, and the right device behind them."""

from __future__ import annotations

from typing import Any

import pytest

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.testbed.worker_ports import PortBefore, _name_of, _pci_address
from podperf.topology import WorkerPortSettings

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
