"""Finds mistakes in a lab before a measurement. These mistakes cost performance or frames without an error message.

Each check is a pure function of values that were read. Its observation is a warning if the lab has the mistake. All
mistakes are from published guides of labs that followed the draft.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.base import Host, json_answer
from podperf.kernel.cpus import Cpus
from podperf.kernel.full_tables import connections_limit
from podperf.kernel.sriov import parse_vfs
from podperf.model import Chain, FrameSize, Placement
from podperf.observation import Observation, State
from podperf.preflight.plan import plan
from podperf.testbed.placement import device_of, nic_node
from podperf.topology import Topology, WorkerSettings

# Versions of TRex that drop frames on virtual functions, each with a version that does not.
TREX_DROPS_ON_VFS = {"2.92": "2.73"}

OvsSettings = Mapping[str, str]
"""`other_config` of the table Open_vSwitch (ovs-vswitchd.conf.db(5))."""


def socket_memory(settings: OvsSettings, node: int) -> Observation:
    """OVS-DPDK needs hugepage memory on the NIC's NUMA node, where DMA and PMD have their buffers."""
    given = settings.get("dpdk-socket-mem")
    if given is None:
        return _sound("socket memory", "dpdk-socket-mem is not set: memory is taken on every node as it is needed")
    amounts = [int(each or 0) for each in given.split(",")]
    if node < len(amounts) and amounts[node]:
        return _sound("socket memory", f"dpdk-socket-mem={given} has {amounts[node]} MiB on node {node}, the NIC's")
    better = [*amounts, *[0] * (node + 1 - len(amounts))]
    better[node] = max(amounts)
    remedy = f"ovs-vsctl set Open_vSwitch . other_config:dpdk-socket-mem={','.join(map(str, better))}"
    return _mistake("socket memory", f"dpdk-socket-mem={given} has nothing on NUMA node {node}, the NIC's", remedy)


def overlapping_masks(settings: OvsSettings) -> Observation:
    """The control threads of OVS-DPDK must not run on the CPUs of its pollers."""
    lcores, pollers = (_cpus(settings.get(key, "0")) for key in ("dpdk-lcore-mask", "pmd-cpu-mask"))
    shared = lcores & pollers
    if not shared:
        return _sound("CPU masks", "dpdk-lcore-mask and pmd-cpu-mask have no CPU in common")
    detail = (
        f"CPU {format_cpu_list(shared)} is in dpdk-lcore-mask={settings['dpdk-lcore-mask']} and in "
        f"pmd-cpu-mask={settings['pmd-cpu-mask']}: control threads take time from the poller there"
    )
    remedy = "a dpdk-lcore-mask of other CPUs; with podperf's own switch, more `cpus` than `switch_cpus` of the worker"
    return _mistake("CPU masks", detail, remedy)


def switch_beside_nic(switch: Sequence[int], cpus: Cpus, node: int) -> Observation:
    """The CPUs on which a switch polls must be on the NUMA node of the NIC."""
    away = [cpu for cpu in switch if cpus.node(cpu) != node]
    if not away:
        return _sound("switch CPUs", f"CPU {format_cpu_list(switch)} is on NUMA node {node}, as the NIC is")
    near = [cpu for cpu in cpus.usable if cpus.node(cpu) == node]
    remedy = f"switch_cpus of {format_cpu_list(near)}" if near else "a NIC in a slot of the other socket"
    elsewhere = format_cpu_list({cpus.node(cpu) for cpu in away})
    detail = f"the switch polls on CPU {format_cpu_list(away)} of NUMA node {elsewhere}, and the NIC is on node {node}"
    return _mistake("switch CPUs", detail, remedy)


Vlans = Mapping[str, Mapping[int, int]]
"""The VLAN of virtual functions (0: no VLAN), by port and by the function's number on the port."""


def vlans_of_some(vlans: Vlans) -> Observation:
    """All virtual functions must have a VLAN, or none of them, because a chain crosses functions of both ports."""
    tagged, plain = (
        {port: [number for number, vlan in each.items() if bool(vlan) is wanted] for port, each in vlans.items()}
        for wanted in (True, False)
    )
    if not any(tagged.values()) or not any(plain.values()):
        said = "all have a VLAN" if any(tagged.values()) else "no virtual function has a VLAN"
        return _sound("VLANs", said)
    vlan = next(vlan for each in vlans.values() for vlan in each.values() if vlan)
    port, numbers = next((port, numbers) for port, numbers in plain.items() if numbers)
    detail = f"virtual function {_of_ports(tagged)} has a VLAN and {_of_ports(plain)} has none: no frame crosses both"
    return _mistake("VLANs", detail, f"ip link set dev {port} vf {numbers[0]} vlan {vlan}, or vlan 0 for all")


def _of_ports(functions: Mapping[str, Sequence[int]]) -> str:
    """`0-1 of ens4, 0 of ens5`."""
    return ", ".join(f"{format_cpu_list(numbers)} of {port}" for port, numbers in functions.items() if numbers)


CONNECTIONS_OF_A_FLOW = 2  # on the worker: before the chain, and behind it


def tracked_connections(flows: int, limit: int | None) -> Observation:
    """The kernel must be able to track all flows as connections: with a full table it drops frames, and is slow.

    `flows` are those of all directions. `limit` is the most connections of the worker; None: it tracks none yet.
    """
    needed = CONNECTIONS_OF_A_FLOW * flows
    if limit is None or needed <= limit:
        said = f"{flows} flows are up to {needed} tracked connections"
        return _sound("connections", f"{said}, of at most {limit}" if limit else said)
    detail = (
        f"{flows} flows are {needed} connections where a data plane tracks them, and the kernel tracks at most {limit} "
        "(net.netfilter.nf_conntrack_max): it then drops frames and evicts connections"
    )
    return _mistake("connections", detail, f"sysctl -w net.netfilter.nf_conntrack_max={2 * needed}, or fewer flows")


def interrupt_balancer(running: bool) -> Observation:
    """irqbalance must not run. After seconds it moves the ports' interrupts away from the CPUs that the run has set."""
    if not running:
        return _sound("interrupts", "irqbalance does not run")
    detail = "irqbalance runs, and moves the ports' interrupts away from the CPUs that a run gives them"
    return _mistake("interrupts", detail, "systemctl stop irqbalance, for as long as you measure")


def trex_on_vfs(version: str, virtual_functions: bool) -> Observation:
    """Some versions of TRex drop frames on virtual functions."""
    found = version.lower().removeprefix("v")
    better = TREX_DROPS_ON_VFS.get(found)
    if better is None or not virtual_functions:
        return _sound("TRex", f"{found}: no problem is known")
    detail = f"TRex {found} drops frames on SR-IOV virtual functions, which would count as the worker's loss"
    return _mistake("TRex", detail, f"TRex {better}, with which the same lab works")


def _sound(subject: str, detail: str) -> Observation:
    return Observation("mistakes", subject, State.OK, detail)


def _mistake(subject: str, detail: str, remedy: str) -> Observation:
    return Observation("mistakes", subject, State.WARNING, detail, remedy)


def _cpus(mask: str) -> set[int]:
    number = int(mask, 16)
    return {cpu for cpu in range(number.bit_length()) if number >> cpu & 1}


# --- reading the values that the checks are functions of --------------------------------------------------------------


def look_for_mistakes(topology: Topology, placement: Placement, cpus: Cpus, host: Host) -> Iterator[Observation]:
    """The observations of all checks that apply to the only worker of this topology."""
    (worker,) = topology.workers
    node = nic_node(host, worker)
    if node is not None:
        yield switch_beside_nic(plan_cpus(placement, 1, with_switch=True).switch, cpus, node)
    # With a single CPU, all work shares it, and the placement says so.
    if len(placement.sut) > 1 and not topology.external:
        yield from (
            replace(each, subject=f"{each.subject}, planned") for each in _in_switch(planned(topology, cpus), node)
        )
    yield from _in_switch(read_ovs_settings(host), node)
    ports = [port.interface for port in (worker.left, worker.right) if port is not None]
    if ports:
        yield interrupt_balancer(host.ask("pgrep", "--exact", "irqbalance", check=False).exit_code == 0)
    functions = {port: vlans for port in ports if (vlans := read_vlans(host, port))}
    if functions:
        yield vlans_of_some(functions)
    if not topology.external and any(each.tracks_connections for each in DATA_PLANES.values()):
        traffic = topology.traffic
        yield tracked_connections(traffic.flows * len(traffic.directions), connections_limit(host))
    if "trex" in topology.labels:
        found = trex_on_vfs(topology.labels["trex"], offers_virtual_functions(host, worker))
        yield replace(found, subject=f"{found.subject}, by label")


def _in_switch(settings: OvsSettings, node: int | None) -> Iterator[Observation]:
    if settings.get("dpdk-init") != "true":
        return
    try:
        if "pmd-cpu-mask" in settings:
            yield overlapping_masks(settings)
        if node is not None:
            yield socket_memory(settings, node)
    except ValueError as error:
        yield Observation("mistakes", "Open vSwitch", State.UNCHECKED, f"its other_config has no such number: {error}")


def planned(topology: Topology, cpus: Cpus) -> OvsSettings:
    """The configuration that podperf gives Open vSwitch with DPDK on this worker."""
    steps = plan(topology, Chain("ovs-dpdk", 1), FrameSize.parse(64), cpus).steps
    found = (re.findall(r'other_config:([\w-]+)="([^"]*)"', step.text) for step in steps)
    return {key: value for each in found for key, value in each}


def read_ovs_settings(host: Host) -> OvsSettings:
    """The `other_config` of the host's own Open vSwitch. Empty without one."""
    if host.ask("which", "ovs-vsctl", check=False).exit_code:
        return {}
    question = ("ovs-vsctl", "--no-wait", "--timeout=3", "--format=json", "list", "Open_vSwitch", ".")
    done = host.ask(*question, check=False)
    return json_answer(host, " ".join(question), done.stdout, parse_ovs_settings) if done.exit_code == 0 else {}


def parse_ovs_settings(table: Mapping[str, Any]) -> OvsSettings:
    """The `other_config` in the answer of `ovs-vsctl --format=json list Open_vSwitch .` (RFC 7047, section 5.1)."""
    row = dict(zip(table["headings"], table["data"][0], strict=True))
    return {key: str(value) for key, value in row["other_config"][1]}


def read_vlans(host: Host, port: str) -> dict[int, int]:
    """The VLAN of each virtual function of a port. Empty without virtual functions."""
    question = ("ip", "-json", "link", "show", "dev", port)
    done = host.ask(*question, check=False)
    return json_answer(host, " ".join(question), done.stdout, _vlans) if done.stdout else {}


def _vlans(links: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    return {number: vf.vlan for number, vf in parse_vfs(links[0]).items()}


def offers_virtual_functions(host: Host, worker: WorkerSettings) -> bool:
    """Whether a port of the worker can have virtual functions. It may have none yet, because a run makes its own."""
    return any(
        port is not None and _total_functions(host, device_of(host, port)) for port in (worker.left, worker.right)
    )


def _total_functions(host: Host, device: str) -> int:
    try:
        return int(host.get(f"{device}/sriov_totalvfs"))
    except (OSError, ValueError):  # there is no such device, or it is no physical function
        return 0
