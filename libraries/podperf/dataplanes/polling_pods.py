"""Pods whose applications poll: how they get their CPUs and memory, and how they share a CPU with other pollers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Any

from podperf.cpu_plan import CpuPlan
from podperf.dataplanes.base import Perishable, RunningDataPlane, Worker
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.kernel.poller_sharing import take_turns
from podperf.kernel.thread_time import CpuUser
from podperf.kernel.threads import threads_named
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.base import Pod
from podperf.pods.forwarders import FORWARDERS, USUAL, forwarder_of
from podperf.pods.forwarders.base import POD_MEMORY, Application, Forwarder, Share

Pollers = Mapping[int, Sequence[int]]
"""Threads that poll, by the number of their CPU."""


def _describe(application: Application) -> Mapping[str, Any]:
    return application.describe()


class PollingPods:
    """The applications of a chain's pods, from left to right. Each polls on the CPU that the plan gives to its pod."""

    def __init__(self, worker: Worker, chain: Chain, undo: ExitStack, *, switch_memory: int = 0) -> None:
        """Reserve hugepages for all pods, and `switch_memory` MiB for the switch between them."""
        self.in_hugepages = worker.reserve_hugepages(memories(switch_memory, chain), undo)
        self.applications: list[Application] = []
        self._worker, self._undo = worker, undo
        self._own: list[Sequence[int]] = []  # for each pod the CPUs that its runtime gave to it alone, if any

    def launch(self, forwarder: Forwarder, pod: Pod, devices: Sequence[str]) -> Application:
        """Start the application of the next pod; do not wait until it is up."""
        place = len(self.applications)
        self._own.append(pod.own_cpus)
        cpus = self._cpus
        if 0 < len(pod.own_cpus) < cpus.allocation.cpus:
            raise Unavailable(
                f"{pod.name} has {len(pod.own_cpus)} CPUs alone, and is to poll on {cpus.allocation.cpus}: "
                "pods.settings.cpus of the topology gives it more"
            )
        share = Share(cpus.pods[place], self.in_hugepages, cpus.allocation, cpus.further_of(place), self._worker.mtu)
        application = forwarder.launch(pod, devices, share, self._undo)
        self.applications.append(application)
        return application

    def start(self, forwarder: Forwarder, pod: Pod, devices: Sequence[str]) -> None:
        """Start the application of the next pod, and wait until it forwards."""
        self.launch(forwarder, pod, devices).begin()

    def begin(self) -> None:
        """Wait until all applications are up, and let them forward."""
        for application in self.applications:
            application.begin()

    def pollers(self) -> list[Pollers]:
        cpus = self._cpus
        return [
            _by_cpu((cpu, *cpus.further_of(place)), each.pollers())
            for place, (cpu, each) in enumerate(zip(cpus.pods, self.applications, strict=False))
        ]

    @property
    def _cpus(self) -> CpuPlan:
        return self._worker.cpus.with_own(self._own)

    def running(
        self,
        pollers: Pollers,
        describe: Callable[[], Mapping[str, Any]],
        *,
        entries: Mapping[Direction, Entry] = MappingProxyType({}),
        ports: Mapping[str, Host],
        switch: Sequence[Perishable] = (),
        describe_application: Callable[[Application], Mapping[str, Any]] = _describe,
        not_in_force: Callable[[], str | None] = lambda: None,
        second_model: NetworkingModel | None = None,
        beside_pods: Sequence[CpuUser] = (),
        further_entries: Sequence[Mapping[Direction, Entry]] = (),
    ) -> RunningDataPlane:
        """Let `pollers`, those of the pods included, take turns. Returns the data plane of pods and `switch`.

        Without `entries`, pods and switch forward frames unchanged. `further_entries` are those of further chains
        beside the first. `beside_pods` has the other threads that take CPU time for frames.
        """
        turns = take_turns(self._worker.host, pollers, self._undo, precedence=self._worker.cpus.precedence)

        def description() -> Mapping[str, Any]:
            applications = {application.name: describe_application(application) for application in self.applications}
            return {**describe(), "applications": applications, "pollers": turns.describe()}

        parts: list[Perishable] = [*switch, *self.applications, turns]
        of_pods = [cpu_user(self._worker.host, application) for application in self.applications]
        users = [turns.told(each) for each in (*beside_pods, *of_pods)]
        return RunningDataPlane(
            entries, ports, description, parts, self.applications, not_in_force, second_model, users, further_entries
        )


def forwarder_in(worker: Worker, chain: Chain, pod: Pod) -> Forwarder:
    """The program that forwards in a pod of the chain, or carries frames unchanged in a pod at its end."""
    at_end = any(pod is each for _, each in worker.ports_to_ends.values())
    return FORWARDERS[USUAL] if at_end else forwarder_of(chain)


def memories(switch_memory: int, chain: Chain) -> list[int]:
    """MiB that each process of a chain on one worker has in hugepages, at most: the switch (0: none), and each pod."""
    return [*([switch_memory] if switch_memory else []), *[POD_MEMORY] * (chain.all_pods + chain.ends.number_in_pods)]


def _by_cpu(cpus: Sequence[int], threads: Sequence[int]) -> Pollers:
    """The polling threads of one application, which has as many CPUs, in the order of their numbers."""
    if len(cpus) == 1:
        return {cpus[0]: threads}
    return {cpu: [thread] for cpu, thread in zip(cpus, sorted(threads), strict=True)}


def cpu_user(host: Host, application: Application) -> CpuUser:
    return CpuUser(application.name, host, application.pollers, polls=True, cycles=application.cycles)


def together(*groups: Pollers) -> dict[int, list[int]]:
    """All pollers of these groups. On each CPU they take turns in the order of the groups."""
    found: dict[int, list[int]] = {}
    for group in groups:
        for cpu, threads in group.items():
            found.setdefault(cpu, []).extend(threads)
    return found


def receive_threads(host: Host, interface: str, *cpus: int, assumed: int = 1) -> Pollers:
    """The kernel's threads that receive from an interface and fill a program's sockets or rings.

    They are on these CPUs as `dedicate_receive_processing` divides them.
    """
    threads = sorted(threads_named(host, f"napi/{interface}-", assumed=assumed))
    return {cpu: threads[place :: len(cpus)] for place, cpu in enumerate(cpus)}
