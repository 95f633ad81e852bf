"""The chains of one test, a part on each worker, with the facts that a record knows of each part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podperf.cpu_lists import parse_cpu_list
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.model import Chain
from podperf.pods.forwarders import IN_KERNEL
from podperf.testbed.by_worker import FURTHER

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
    data = [description, *beyond.values()]
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
