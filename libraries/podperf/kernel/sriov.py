"""SR-IOV: a port of a NIC (its physical function, PF) is divided into virtual functions (VFs).

Each VF is a PCI device that a pod can own. This module reads the features of a PF, and makes VFs for a test. The old
state comes back at the end of the test. The order matters: a VF takes its MAC from the PF when its driver starts, and
works only while the PF is up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host, json_answer, shell_script
from podperf.hosts.host_facts import interface_details
from podperf.hosts.linux import CARRIER_PATIENCE, ip, link_named
from podperf.hosts.way_back import WayBack, existing_interface, existing_path, inside
from podperf.kernel import pci
from podperf.kernel.queues import receive_queues
from podperf.model import VirtualFunctionSettings

_MAKE = shell_script("make_virtual_functions.sh", beside=__file__)
_LIST = shell_script("list_virtual_functions.sh", beside=__file__)
_REMOVE = 'echo 0 > "/sys/bus/pci/devices/$1/sriov_numvfs"'
_AWAIT_STEADY_LINKS = shell_script("await_steady_links.sh", beside=__file__)
_ASSUMED_OFFER = 256  # virtual functions of each port, in a plan; the longest chain needs 255
NO_MAC = "00:00:00:00:00:00"
LINK_STAYS = 3  # seconds; a driver looks at its link again in this time
LINK_ATTEMPTS = 3
_HAS_PORT = "cat /sys/bus/pci/devices/*/sriov_totalvfs 2>/dev/null | grep -qv '^0$'"


@dataclass(frozen=True)
class PhysicalFunction:
    """A port of a NIC: its interface, the network namespace of that, its PCI address, and its side of the worker."""

    namespace: str
    interface: str
    address: str
    side: int  # 0 left, 1 right; on the second worker of a chain 2 and 3, and so on


@dataclass(frozen=True)
class VfState:
    """The settings of a VF that its PF enforces."""

    mac: str
    vlan: int
    trust: bool
    spoof_check: bool


@dataclass(frozen=True)
class VirtualFunction:
    """A VF: its number at its port, its PCI address, and its MAC."""

    port: PhysicalFunction
    number: int
    address: str
    mac: str


def missing(host: Host) -> str | None:
    """The reason why a host offers no VFs, with the remedy, or None."""
    if host.ask("sh", "-c", _HAS_PORT, check=False, assumed="").exit_code == 0:
        return None
    return (
        f"no NIC of {host.name} offers SR-IOV virtual functions (there is no sriov_totalvfs under {pci.DEVICES}): use "
        "a worker whose NIC does, with SR-IOV switched on in its firmware, or a virtual one (topologies/virtual.yaml)"
    )


def vf_mac(side: int, number: int) -> str:
    """The MAC that podperf gives to a VF: `pod` in ASCII, the side (see PhysicalFunction), the VF's number."""
    return f"02:70:6f:64:{side:02x}:{number:02x}"


def parse_vfs(link: Mapping[str, Any]) -> dict[int, VfState]:
    """The VFs of a PF, by their number, from `ip -json link show`."""
    return {
        each["vf"]: VfState(each["address"], _vlan(each), bool(each.get("trust")), bool(each.get("spoofchk")))
        for each in link.get("vfinfo_list", [])
    }


def _vlan(vf: Mapping[str, Any]) -> int:
    tags = vf.get("vlan_list") or [vf]
    return int(tags[0].get("vlan", 0))


def changes(before: VfState, after: VfState) -> list[str]:
    """The arguments after `ip link set dev PF vf NUMBER` that change `before` into `after`; none if they are equal.

    Only settings that differ are in the list. So a driver that lacks a setting works with tests that do not need it.
    """
    words = []
    if before.mac != after.mac:
        words += ["mac", after.mac]
    if before.vlan != after.vlan:
        words += ["vlan", str(after.vlan)]
    for name, old, new in (
        ("spoofchk", before.spoof_check, after.spoof_check),
        ("trust", before.trust, after.trust),
    ):
        if old != new:
            words += [name, "on" if new else "off"]
    return words


def how_many(needed: int, settings: VirtualFunctionSettings, port: str, offered: int) -> int:
    """The number of VFs to make at a port for a chain that needs `needed`. Unavailable if the port offers too few."""
    number = settings.number or needed
    if number < needed:
        raise Unavailable(
            f"the chain needs {needed} virtual functions of {port}, and sriov.vfs of the worker in the topology allows "
            f"{number}"
        )
    if number > offered:
        raise Unavailable(f"{number} virtual functions of {port} are wanted, and it offers {offered}")
    return number


def virtual_functions(
    host: Host, port: PhysicalFunction, needed: int, settings: VirtualFunctionSettings, way_back: WayBack
) -> list[VirtualFunction]:
    """`needed` VFs of a port with these `settings`, ready for a driver. Unavailable if the port offers too few."""
    interface = port.interface
    offered = int(pci.attribute(host, port.address, "sriov_totalvfs", assumed=str(_ASSUMED_OFFER)) or 0)
    wanted = how_many(needed, settings, interface, offered)
    before = int(pci.attribute(host, port.address, "sriov_numvfs", assumed="0") or 0)
    ip(host, "link", "set", "dev", interface, "up")
    if not before:
        _make(host, port, wanted, way_back)
    elif before < wanted:
        raise PodperfError(
            f"{interface} of {host.name} has {before} virtual functions, and {wanted} are needed. podperf makes them "
            f"where there are none: echo 0 > {pci.DEVICES}/{port.address}/sriov_numvfs"
        )
    functions = [
        VirtualFunction(port, number, _vf_address(host, port, number), vf_mac(port.side, number))
        for number in range(wanted)
    ]
    if before:
        for vf in functions:
            _refuse_in_use(host, vf)
    _prepare(host, port, functions, settings, way_back if before else None)
    return functions[:needed]


def given_functions(
    host: Host,
    port: PhysicalFunction,
    addresses: Sequence[str],
    settings: VirtualFunctionSettings,
    way_back: WayBack,
) -> list[VirtualFunction]:
    """The VFs of a port at these addresses, with these `settings`, ready for a driver. A cluster gave them to pods.

    PodperfError if the device at an address is no VF of this port, or if two pods have it.
    """
    ip(host, "link", "set", "dev", port.interface, "up")
    there = functions_there(host, port.address)
    for address in addresses:
        if address not in there or addresses.count(address) > 1:
            what = "which another pod has, too" if address in there else "which is no virtual function"
            raise PodperfError(
                f"the cluster gave a pod {address} for {port.interface} ({port.address}) of {host.name}, {what}"
            )
    numbers = map(there.index, addresses)
    found = [VirtualFunction(port, number, there[number], vf_mac(port.side, number)) for number in numbers]
    _prepare(host, port, found, settings, way_back)
    return found


def functions_there(host: Host, port: str) -> list[str]:
    """The PCI addresses of the VFs that the port at this address has, in the order of their numbers."""

    def assumed() -> str:
        return "\n".join(_assumed_address(port, number) for number in range(_ASSUMED_OFFER))

    return host.ask("sh", "-c", _LIST, "sh", port, assumed=assumed).stdout.split()


def _assumed_address(port: str, number: int) -> str:
    """The PCI address of a virtual function that a plan assumes. As on many cards, it follows the address of its port.

    Each further 64 functions are in the next PCI domain. So two ports of a card never have the same function.
    """
    domain, bus, device, function = re.split("[:.]", port)
    further, place = divmod(number, 64)
    first = int(device, 16) + 2 + 8 * int(function)
    return f"{int(domain, 16) + further:04x}:{bus}:{first + place // 8:02x}.{place % 8}"


def _prepare(
    host: Host,
    port: PhysicalFunction,
    functions: Sequence[VirtualFunction],
    settings: VirtualFunctionSettings,
    way_back: WayBack | None,
) -> None:
    """Give VFs of a port their MACs and these settings. Without a way back, they end with the set-up."""
    states = vf_states(host, port, [vf.number for vf in functions])
    for vf in functions:
        if way_back is not None:
            driver = pci.link(host, vf.address, "driver", assumed=pci.FOR_USER_SPACE)
            pci.remember(host, vf.address, driver or "", way_back)
        state = VfState(vf.mac, settings.vlans[port.side % 2], settings.trust, settings.spoof_check)
        _set(host, vf, states[vf.number], state, way_back)


def vf_states(host: Host, port: PhysicalFunction, assumed: Iterable[int] = ()) -> dict[int, VfState]:
    """The present settings of each VF of a PF. A plan assumes VFs of these numbers without settings."""
    new = {"address": NO_MAC, "trust": False, "spoofchk": True}
    return parse_vfs(link_named(host, port.interface, vfinfo_list=[{"vf": number, **new} for number in assumed]))


def _make(host: Host, port: PhysicalFunction, number: int, way_back: WayBack) -> None:
    there = existing_path(f"{pci.DEVICES}/{port.address}")
    way_back.note(f"the virtual functions of {port.interface}", "sh", "-ec", _REMOVE, "sh", port.address, of=there)
    done = host.do("sh", "-ec", _MAKE, "sh", port.address, str(number), check=False, timeout=60)
    if done.exit_code:
        raise PodperfError(
            f"{port.interface} of {host.name} made no {number} virtual functions ({done.stderr.strip()}); the kernel's "
            "log says why: often SR-IOV is off in the firmware, or there is no address space for so many (pci=realloc)"
        )


def _vf_address(host: Host, port: PhysicalFunction, number: int) -> str:
    found = pci.link(host, port.address, f"virtfn{number}", assumed=_assumed_address(port.address, number))
    if found is None:
        raise PodperfError(f"virtual function {number} of {port.interface} is not there on {host.name}")
    return found


def _refuse_in_use(host: Host, vf: VirtualFunction) -> None:
    """PodperfError if another user has a VF that existed before. A VF that a program has open cannot be recognized."""
    if pci.link(host, vf.address, "driver") in {None, pci.FOR_USER_SPACE}:
        return
    names = host.ask("ls", f"{pci.DEVICES}/{vf.address}/net", check=False).stdout.split()
    where = "in another network namespace"
    for name in names:
        question = (*pci.FIRST_NAMESPACE, "ip", "-json", "link", "show", "dev", name)
        is_up = json_answer(
            host, " ".join(question), host.ask(*question).stdout, lambda links: "UP" in links[0]["flags"]
        )
        where = f"as {name}, which is up" if is_up else ""
    if where:
        raise PodperfError(f"virtual function {vf.number} of {vf.port.interface} is in use {where}: free it first")


def _set(host: Host, vf: VirtualFunction, before: VfState, after: VfState, way_back: WayBack | None) -> None:
    words = changes(before, after)
    if not words:
        return
    command = ("ip", "link", "set", "dev", vf.port.interface, "vf", str(vf.number))
    if way_back is not None:
        back = inside(vf.port.namespace, *command, *changes(after, before))
        there = inside(vf.port.namespace, *existing_interface(vf.port.interface))
        way_back.note(f"virtual function {vf.number} of {vf.port.interface}", *back, of=there)
    done = host.do(*command, *words, check=False)
    if done.exit_code:
        raise PodperfError(
            f"the driver of {vf.port.interface} on {host.name} refuses `vf {vf.number} {' '.join(words)}` "
            f"({done.stderr.strip()}); see sriov of the worker in the topology"
        )


def set_queues(host: Host, interface: str, queues: int) -> None:
    """Give an interface this number of queues. Unavailable if its driver has another number and offers no choice."""
    now = receive_queues(host, interface, assumed=1).get("combined", 1)
    if now == queues:
        return
    done = host.do("ethtool", "-L", interface, "combined", str(queues), check=False)
    if done.exit_code:
        raise Unavailable(
            f"{queues} queues of a virtual function are wanted, and {interface} has {now} ({done.stderr.strip()})"
        )


def await_links(host: Host, links: Mapping[str, VirtualFunction]) -> None:
    """Wait until the links of VFs stay up. PodperfError if they do not.

    `links` has the VFs of a pod by the names of their interfaces, which are up. `host` is the pod's host.

    The driver igbvf waits 0.1 s for an answer of the PF. On a busy machine the answer may come too late. The driver
    then takes the link down at its next look, for ten seconds or for good. It starts again when the interface is set
    down and up.
    """
    patience = CARRIER_PATIENCE + LINK_STAYS
    wait = ("timeout", str(patience), "sh", "-c", _AWAIT_STEADY_LINKS, "sh", str(LINK_STAYS))
    for _ in range(LINK_ATTEMPTS):
        if host.ask(*wait, *links, check=False, timeout=patience + 5, assumed="").exit_code == 0:
            return
        down = {interface: vf for interface, vf in links.items() if not _has_link(host, interface)}
        for interface in down:
            for state in ("down", "up"):
                ip(host, "link", "set", "dev", interface, state)
    reasons = (
        f"{interface} of {host.name} has no carrier {CARRIER_PATIENCE} s after it was brought up: it is virtual "
        f"function {vf.number} of {vf.port.interface}; is that still up, and does it let the function have a link (ip "
        f"link set dev {vf.port.interface} vf {vf.number} state auto)?"
        for interface, vf in down.items()
    )
    raise PodperfError("; ".join(reasons) or f"links of virtual functions of {host.name} come and go")


def _has_link(host: Host, interface: str) -> bool:
    return "LOWER_UP" in link_named(host, interface)["flags"]


def describe_port(host: Host, port: PhysicalFunction) -> dict[str, Any]:
    """A PF as the kernel reports it: its features, and the settings of each of its VFs."""
    details = interface_details(host, port.interface)
    number, offered = (pci.attribute(host, port.address, name) for name in ("sriov_numvfs", "sriov_totalvfs"))
    offloads = details["offloads"] or {}  # only those that the driver has
    states = {True: "on", False: "off", None: "not offered"}
    return {
        **pci.describe_device(host, port.address),
        "interface": port.interface,
        "firmware": details["firmware"],
        "driver_version": details["driver_version"],
        "virtual_functions_offered": int(offered or 0),
        "virtual_functions": int(number or 0),
        "ntuple_filters": states[offloads.get("ntuple-filters")],
        "hw_tc_offload": states[offloads.get("hw-tc-offload")],
        "settings": {str(number): vars(state) for number, state in vf_states(host, port).items()},
    }
