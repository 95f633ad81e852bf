"""The configuration parameters that draft-ietf-bmwg-containerized-infra-08 wants beside a result. Pure.

They come from the chain, its placement and the descriptions of the components. A parameter is None (*not read*) if none
of these has it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from podperf.allocation import PodLimits
from podperf.cpu_lists import format_cpu_list, parse_cpu_list
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.figures import count
from podperf.model import Chain
from podperf.pods.forwarders import IN_KERNEL, MIXED, USUAL
from podperf.testbed.system_under_test import FURTHER

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

Data = Mapping[str, Any]


@dataclass(frozen=True)
class SetUp:
    """The known facts of a chain that was set up, on one of its workers.

    `description` is the data plane's. podperf.hosts.host_facts reads `interfaces` and `environment`. `shared` are the
    CPUs among which the scheduler may move the processes of the pods.
    """

    chain: Chain | None = None
    cpus: CpuPlan | None = None
    shared: Sequence[int] = ()
    description: Data = field(default_factory=dict)
    interfaces: Mapping[str, Data] = field(default_factory=dict)
    environment: Data = field(default_factory=dict)

    @property
    def runtime(self) -> Data:
        """The description of the pod runtime."""
        return self.description.get("runtime") or {}

    @property
    def in_kernel(self) -> bool:
        """Whether the kernel forwards in the pods, and not a process."""
        return self.chain is not None and self.chain.forwarder == IN_KERNEL

    @property
    def placed(self) -> bool:
        """Whether podperf has placed the chain, and its data plane describes itself."""
        kind = DATA_PLANES.get(self.chain.data_plane) if self.chain else None
        on_worker = kind is not None and kind.cabling is Cabling.WORKER
        return on_worker and self.cpus is not None and bool(self.description)

    @property
    def switch_cpus(self) -> Sequence[int]:
        """The CPUs that switch frames between the pods. Empty if the pods are wired to each other without a switch."""
        if self.cpus is None:
            return ()
        return self.cpus.switch or (self.cpus.sut if self.in_kernel else ())

    @property
    def pod_cpus(self) -> Sequence[int]:
        """The CPUs of the pods, in the order of the pods. If the kernel forwards, all CPUs that the kernel may use."""
        if self.shared or self.cpus is None:
            return self.shared
        if self.in_kernel:
            return self.cpus.beside_switch
        return [cpu for place, first in enumerate(self.cpus.pods) for cpu in (first, *self.cpus.further_of(place))]

    @property
    def pollers(self) -> Sequence[Data]:
        """The CPUs with polling threads."""
        return [each for found in values_of("pollers", self.description) if isinstance(found, list) for each in found]

    @property
    def sockets(self) -> Sequence[Data]:
        """The AF_XDP sockets of the switch and of the pods' applications."""
        return [each for found in values_of("sockets", self.description) if isinstance(found, list) for each in found]

    @property
    def limits(self) -> Sequence[Data]:
        """The limits of the pods that have some, as they were read back."""
        return list((self.description.get("limits") or {}).values())

    @property
    def nodes(self) -> Mapping[int, int]:
        """The NUMA node of each CPU of the worker."""
        known = self.environment.get("numa_nodes") or ()
        return {cpu: each["node"] for each in known for cpu in parse_cpu_list(each["cpus"] or "")}


def on_each_worker(
    chain: Chain | None,
    cpus: Sequence[CpuPlan],
    shared: Sequence[int],
    description: Data,
    interfaces: Mapping[str, Data],
    environment: Data,
) -> dict[str, SetUp]:
    """The facts on each worker, by the words for the worker. Without words for the only worker."""
    several = chain is not None and chain.workers > 1
    beyond = description.get(FURTHER) or {} if several else {}
    elsewhere = environment.get(FURTHER) or {}
    joined = {"join": description["join"]} if "join" in description else {}
    data = [description, *({**each, **joined} for each in beyond.values())]
    machines = [environment, *(elsewhere.get(name) or {} for name in beyond)]
    prefixes = ["", *(f"{name}: " for name in beyond)]
    found = {}
    for number, (prefix, described, machine) in enumerate(zip(prefixes, data, machines, strict=True), start=1):
        others = tuple(each for each in prefixes if each and each != prefix)
        own = {
            name.removeprefix(prefix): each
            for name, each in interfaces.items()
            if name.startswith(prefix) and not name.startswith(others)
        }
        plan = cpus[number - 1] if number <= len(cpus) else None
        found[f"worker {number}" if beyond else ""] = SetUp(chain, plan, shared, described, own, machine)
    return found


def values_of(key: str, data: Any) -> Iterator[Any]:
    """The values under this key, at any depth."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            if name == key:
                yield value
            else:
                yield from values_of(key, value)
    elif isinstance(data, list | tuple):
        for each in data:
            yield from values_of(key, each)


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


def _network_of_cluster(found: SetUp) -> Data:
    """The network that connects the tester's pods. Empty if they are not in a cluster, or it was not recognised."""
    return (found.environment.get("cluster") or {}).get("network") or {}


def _cni_plugin(found: SetUp) -> str | None:
    networks = found.runtime.get("cni_networks")
    if networks is None:
        network = _network_of_cluster(found)
        return " ".join(filter(None, (network.get("name"), network.get("version")))) or None
    kinds = dict.fromkeys(plugin["type"] for network in networks for plugin in network["plugins"])
    version = found.runtime.get("cni_plugins")
    package = f" (containernetworking-plugins {version})" if version else ""
    return ", ".join(kinds) + package if kinds else "none: podperf itself wires the pods"


def _cni_configuration(found: SetUp) -> str | None:
    networks = found.runtime.get("cni_networks")
    if networks is None:
        network = _network_of_cluster(found)
        keys = ("mode", "encapsulation", "data_plane", "service_proxy", "service_proxy_mode")
        return "; ".join(f"{key.replace('_', ' ')}: {network[key]}" for key in keys if network.get(key)) or None
    said = [f"{network['pod']} {network['interface']}: {json.dumps(network['plugins'])}" for network in networks]
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


def _numa_of(found: SetUp, cpus: Sequence[int], otherwise: str | None = None) -> str | None:
    """The NUMA nodes of these CPUs. `otherwise` if there are none."""
    nodes = found.nodes
    if not found.placed or not all(cpu in nodes for cpu in cpus):
        return None
    by_node = {node: [cpu for cpu in cpus if nodes[cpu] == node] for node in sorted({nodes[cpu] for cpu in cpus})}
    return "; ".join(f"node {node}: CPU {_list(own)}" for node, own in by_node.items()) or otherwise


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
    times = dict.fromkeys(limit["cpu"] for limit in found.limits if limit.get("cpu"))
    at_most = "".join(f", at most the time of {time:g} CPU" for time in times)
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
    preferred = sum(1 for socket in found.sockets if socket.get("prefers_busy_polling"))
    if preferred:
        return f"preferred by {preferred} of {count(len(found.sockets), 'socket')}"
    cpus = {poller["cpu"] for poller in found.pollers}
    return f"off; the kernel fills the sockets and applications poll on {count(len(cpus), 'CPU')}"


def _composition(found: SetUp) -> str | None:
    if found.chain is None:
        return None
    mixed = f"{USUAL} forwards in the first ones, and the kernel in the others"
    inside = mixed if found.chain.forwarder == MIXED else f"each forwards by {found.chain.forwarder}"
    inside = f", {inside}" if found.chain.pods and found.chain.forwarder else ""
    beside = f"{found.chain.chains} chains beside each other of " if found.chain.chains > 1 else ""
    ends = f", {found.chain.ends}" if found.chain.ends.in_pods else ""
    return f"{found.chain.data_plane}, {beside}{count(found.chain.pods, 'pod')}{inside}{ends}"


def _between_nodes(found: SetUp) -> str | None:
    if found.chain is None or found.chain.workers == 1:
        return None if found.chain is None else "none: one worker"
    join = found.description.get("join")
    if join is None:
        return found.chain.join if found.description else None
    return f"{join['name']} ({join['source']}), {join['overhead_bytes']} bytes of each frame on the cable"


def _scheduling(found: SetUp) -> str | None:
    if found.chain is None or not found.description:
        return None
    how = [
        f"{count(poller['pollers'], 'poller')} on CPU {poller['cpu']}: {poller['shared']}" for poller in found.pollers
    ]
    return "; ".join([f"podperf places the pods in their order on {count(found.chain.workers, 'worker')}", *how])


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
        "numa_of_pods": Parameter("NUMA allocation of the pods", lambda found: _numa_of(found, found.pod_cpus)),
        "numa_of_switch": Parameter(
            "NUMA allocation of the vSwitch", lambda found: _numa_of(found, found.switch_cpus, "no vSwitch")
        ),
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


def _list(cpus: Any) -> str:
    return format_cpu_list(sorted(set(cpus)))
