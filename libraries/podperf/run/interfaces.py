"""The interfaces on the path of the test frames, as the record shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podperf.hosts.host_facts import interface_details
from podperf.testbed.system_under_test import SystemUnderTest


def interfaces_of(sut: SystemUnderTest) -> dict[str, dict[str, Any]]:
    """The interfaces at both ends of a chain that is set up, and at the other ends of their cables, by name.

    DPDK takes the worker's interfaces away from the kernel. The tester's interfaces stay, and show the link's speed.
    """
    ends = {
        name: interface_details(port.host, port.interface) | {"received_by": port.received_by}
        for name, port in sut.ports.items()
    }
    return ends | {f"tester {name}": interface_details(host, name) for name, host in sut.tester_ports.items()}


def link_speed(interfaces: Mapping[str, Mapping[str, Any]]) -> float | None:
    """The speed of the slowest port, in bit/s. None if no port has a speed, for example veth."""
    speeds = [each.get("speed_bits_per_second") for each in interfaces.values()]
    return min((float(each) for each in speeds if each), default=None)
