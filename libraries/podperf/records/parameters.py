"""The configuration parameters that draft-ietf-bmwg-containerized-infra-08 wants beside a result. Pure.

They come from the chain, its placement and the descriptions of the components. A parameter is None (*not read*) if none
of these has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from podperf.allocation import PodLimits
from podperf.cpu_lists import format_cpu_list
from podperf.figures import count
from podperf.pods.forwarders import MIXED, USUAL
from podperf.records.set_ups import SetUp, values_of

SPECIAL_CAPABILITY = "special_capability"  # the key of a component that runs only for the benchmark
# The offloads that decide how many frames the CPU handles, and how often.
_OFFLOADS = (
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "rx-vlan-offload",
    "tx-vlan-offload",
    "ntuple-filters",
    "receive-hashing",
    "hw-tc-offload",
)


def _hosting(found: SetUp) -> str | None:
    kind = (found.environment.get("platform") or {}).get("virtualisation")
    return {None: None, "none": "bare metal"}.get(kind, f"virtual machine or container: {kind}")


def _distribution(found: SetUp) -> str | None:
    kernel = (found.environment.get("kernel") or {}).get("release")
    known = [found.environment.get("distribution"), f"Linux {kernel}" if kernel else None]
    return ", ".join(each for each in known if each) or None


def _orchestration(found: SetUp) -> str | None:
    kind, cluster = found.runtime.get("kind"), found.environment.get("cluster")
    if version := found.runtime.get("kubernetes"):
        return f"Kubernetes {version}"
    if cluster:
        return f"Kubernetes {cluster['version']}"
    return f"none; pods are {kind}" if kind else None


def _cni_plugin(found: SetUp) -> str | None:
    networks = found.runtime.get("cni_networks")
    if networks is None:
        return None
    kinds = dict.fromkeys(plugin["type"] for each in networks for plugin in each["plugins"])
    version = found.runtime.get("cni_plugins")
    package = f" (containernetworking-plugins {version})" if version else ""
    return ", ".join(kinds) + package if kinds else "none: podperf itself wires the pods"


def _cni_configuration(found: SetUp) -> str | None:
    networks = found.runtime.get("cni_networks")
    if networks is None:
        return None
    said = [f"{each['pod']} {each['interface']}: {json.dumps(each['plugins'])}" for each in networks]
    return "; ".join(said) or "none"


def _nic_offloads(found: SetUp) -> str | None:
    said = []
    for name, each in found.interfaces.items():
        on = [switch for switch in _OFFLOADS if (each.get("offloads") or {}).get(switch)]
        if each.get("offloads"):
            said.append(f"{name}: {', '.join(on) or 'none of the usual ones'}")
    return "; ".join(said) or None


def _cpu_isolation(found: SetUp) -> str | None:
    if not found.placed:
        return None
    isolated = (found.environment.get("cpu") or {}).get("isolated")
    both = set(found.pod_cpus) & set(found.switch_cpus)
    beside = f"pods and vSwitch share CPU {_list(both)}" if both else "pods and vSwitch have CPUs of their own"
    if not found.switch_cpus:
        beside = "no vSwitch beside the pods"
    if found.shared:
        beside = f"the scheduler may move the pods among CPU {_list(found.shared)}"
    if neighbour := found.description.get("neighbour"):
        limits = neighbour.get("limits") or {}
        memory = limits.get("memory_mib")
        limited = str(PodLimits(limits.get("cpu"), None if memory is None else round(memory))) if limits else ""
        beside += f"; a neighbour ({neighbour['kind']}) competes on CPU {', '.join(neighbour['held_to'])}"
        beside += f" with {limited}" if limited else ""
    return f"{beside}; isolated by the kernel (isolcpus): {f'CPU {isolated}' if isolated else 'none'}"


def _numa_of_pods(found: SetUp) -> str | None:
    return _nodes_of(found.pod_cpus, found.nodes) if found.placed else None


def _numa_of_switch(found: SetUp) -> str | None:
    if not found.placed:
        return None
    return _nodes_of(found.switch_cpus, found.nodes) if found.switch_cpus else "no vSwitch"


def _numa_of_nic(found: SetUp) -> str | None:
    kinds = [(name, each.get("kind"), each.get("numa_node")) for name, each in found.interfaces.items()]
    said = [
        f"{name}: {f'node {node}' if kind is None else f'no NIC ({kind})'}"
        for name, kind, node in kinds
        if kind is not None or node is not None
    ]
    return "; ".join(said) or None


def _hugepage_size(found: SetUp) -> str | None:
    sizes = dict.fromkeys(found for found in values_of("hugepages_of_mib", found.description))
    if not sizes:
        return "none: the kernel forwards" if found.in_kernel else None
    return ", ".join(f"{size} MiB" if size else "none" for size in sizes)


def _cores_of_pod(found: SetUp) -> str | None:
    if found.chain is None or found.cpus is None or not found.chain.pods or not found.placed:
        return None
    if found.in_kernel:
        return f"none of its own: the kernel forwards on CPU {_list(found.cpus.sut)}"
    if found.shared:
        return f"1 of CPU {_list(found.shared)}, which the pods share"
    cpus, each_has, pods = found.pod_cpus, found.cpus.allocation.cpus, len(found.cpus.pods)
    alone = len(set(cpus)) == len(cpus)
    times = dict.fromkeys(each["cpu"] for each in found.limits if each.get("cpu"))
    at_most = "".join(f", at most the time of {each:g} CPU" for each in times)
    if not alone:
        return f"{count(pods, 'pod')} share CPU {_list(cpus)}{at_most}"
    return f"{each_has} (CPU {_list(cpus)}{at_most})"


def _memory_of_pod(found: SetUp) -> str | None:
    if sizes := dict.fromkeys(each["memory_mib"] for each in found.limits if each.get("memory_mib")):
        return ", ".join(f"{size:g} MiB" for size in sizes)
    limit = found.runtime.get("memory_limit", "not read")
    return None if limit == "not read" else str(limit or "not limited")


def _busy_polling(found: SetUp) -> str | None:
    if not found.description:
        return None
    if not found.sockets:
        return "no AF_XDP socket"
    preferred = sum(1 for each in found.sockets if each.get("prefers_busy_polling"))
    if preferred:
        return f"preferred by {preferred} of {count(len(found.sockets), 'socket')}"
    cpus = {each["cpu"] for each in found.pollers}
    return f"off; the kernel fills the sockets and applications poll on {count(len(cpus), 'CPU')}"


def _composition(found: SetUp) -> str | None:
    if found.chain is None:
        return None
    inside = f", {_inside(found.chain.forwarder)}" if found.chain.pods and found.chain.forwarder else ""
    beside = f"{found.chain.chains} chains beside each other of " if found.chain.chains > 1 else ""
    return f"{found.chain.data_plane}, {beside}{count(found.chain.pods, 'pod')}{inside}"


def _inside(forwarder: str) -> str:
    if forwarder == MIXED:
        return f"{USUAL} forwards in the first ones, and the kernel in the others"
    return f"each forwards by {forwarder}"


def _scheduling(found: SetUp) -> str | None:
    if found.chain is None or not found.description:
        return None
    how = [f"{count(each['pollers'], 'poller')} on CPU {each['cpu']}: {each['shared']}" for each in found.pollers]
    return "; ".join([f"podperf places the pods in their order on {count(found.chain.workers, 'worker')}", *how])


def _between_nodes(found: SetUp) -> str | None:
    return "none: one worker" if found.chain is not None and found.chain.workers == 1 else None


@dataclass(frozen=True)
class Parameter:
    """A configuration parameter: its name for people, and the function that reads it."""

    label: str
    read: Callable[[SetUp], str | None]


PARAMETERS: Mapping[str, Parameter] = MappingProxyType(
    {
        "hosting": Parameter("Hosting", _hosting),
        "distribution": Parameter("Distribution and versions", _distribution),
        "orchestration": Parameter("Kubernetes distribution and version", _orchestration),
        "cni_plugin": Parameter("CNI plug-in and version", _cni_plugin),
        "cni_configuration": Parameter("CNI configuration", _cni_configuration),
        "nic_offloads": Parameter("NIC offloads that are on", _nic_offloads),
        "cpu_isolation": Parameter("CPU isolation level", _cpu_isolation),
        "numa_of_pods": Parameter("NUMA allocation of the pods", _numa_of_pods),
        "numa_of_switch": Parameter("NUMA allocation of the vSwitch", _numa_of_switch),
        "numa_of_nic": Parameter("NUMA allocation of the NIC", _numa_of_nic),
        "hugepage_size": Parameter("Hugepage size", _hugepage_size),
        "cores_of_pod": Parameter("CPU cores of a pod", _cores_of_pod),
        "memory_of_pod": Parameter("RAM of a pod", _memory_of_pod),
        "af_xdp_busy_polling": Parameter("AF_XDP busy polling", _busy_polling),
        "chain_composition": Parameter("Composition of the chain", _composition),
        "chain_scheduling": Parameter("Scheduling of the chain", _scheduling),
        "between_nodes": Parameter("Technology between nodes", _between_nodes),
    }
)


def parameters_of(set_ups: Mapping[str, SetUp]) -> dict[str, str | None]:
    """Every parameter of the chains of one test, by name. Chains with different values are listed one by one."""
    return {name: _told({of: _read(each, found) for of, found in set_ups.items()}) for name, each in PARAMETERS.items()}


def special_capabilities(description: Any) -> list[str]:
    """One sentence for each part of the system under test that runs only for the benchmark (draft section 5)."""
    return list(dict.fromkeys(map(str, values_of(SPECIAL_CAPABILITY, description))))


def _read(parameter: Parameter, found: SetUp) -> str | None:
    """The parameter. None if a component of another package describes itself in a form that podperf does not know."""
    try:
        return parameter.read(found)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _told(values: Mapping[str, str | None]) -> str | None:
    """One value if all agree, and otherwise each value with the name of its chain."""
    known = {name: value for name, value in values.items() if value is not None}
    if len(set(known.values())) <= 1 and len(known) in {0, len(values)}:
        return next(iter(known.values()), None)
    return "; ".join(f"{name}: {value or 'not read'}" for name, value in values.items())


def _nodes_of(cpus: Sequence[int], nodes: Mapping[int, int]) -> str | None:
    if not cpus or not all(cpu in nodes for cpu in cpus):
        return None
    return "; ".join(
        f"node {node}: CPU {_list(cpu for cpu in cpus if nodes[cpu] == node)}"
        for node in sorted({nodes[cpu] for cpu in cpus})
    )


def _list(cpus: Any) -> str:
    return format_cpu_list(sorted(set(cpus)))
