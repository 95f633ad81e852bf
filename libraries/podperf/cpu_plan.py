"""The CPU plan: the CPUs of each role while a chain is set up on a worker, and what each pod gets there. No I/O.

podperf.testbed.placement and podperf.testbed.scenarios choose the CPUs of the system under test. The roles are given
here. Drivers and records read a role by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from podperf.allocation import USUAL_ALLOCATION, PodAllocation
from podperf.model import Placement


@dataclass(frozen=True)
class CpuPlan:
    """The CPUs of each role on one worker. Numbers are the kernel's.

    Switch, pods and control have separate CPUs if there are enough. The receive threads of the worker's ports share
    CPUs with pollers, and take turns with them. `shared` has every CPU with several roles.
    """

    tester: tuple[int, ...]
    sut: tuple[int, ...]  # all CPUs that the data plane and its pods may use
    receives_left: int  # the kernel's work for frames that arrive at the worker's left port
    receives_right: int
    switch: tuple[int, ...]  # pollers of a user-space switch, from left to right; empty without such a switch
    pods: tuple[int, ...]  # for each pod, from left to right; with too few CPUs, the next pod has the first one again
    control: tuple[int, ...]  # threads of a switch that do not poll; no poller has these CPUs if there are enough
    main: int  # the main thread of a switch: one of `control`
    neighbour: tuple[int, ...] = ()  # work that competes on purpose: CPUs that neither tester nor system under test has
    # Whether pollers and receive threads go before other processes. If not, the scheduler divides the CPUs' time among
    # all of them, as it does where nobody manages CPUs.
    precedence: bool = True
    apart: bool = False  # the tester's CPUs belong to another machine than the worker's
    allocation: PodAllocation = USUAL_ALLOCATION  # the limits, queues and buffers of each pod
    further: tuple[tuple[int, ...], ...] = ()  # for each pod the CPUs on which it also polls; empty: none

    @property
    def beside_switch(self) -> tuple[int, ...]:
        """The CPUs of pods and control: all CPUs that the switch does not use."""
        return tuple(dict.fromkeys((*self.pods, *(cpu for each in self.further for cpu in each), *self.control)))

    def further_of(self, pod: int) -> tuple[int, ...]:
        """The CPUs on which a pod also polls. Pods are counted from 0."""
        return self.further[pod] if pod < len(self.further) else ()

    def with_own(self, own: Sequence[Sequence[int]]) -> CpuPlan:
        """This plan, where each pod has its `own` CPUs, if any: those that its runtime gave to it alone.

        A pod polls on the number of CPUs that its allocation has.
        """
        given = [tuple(each)[: self.allocation.cpus] for each in own][: len(self.pods)]
        if not any(given):
            return self
        own_or_planned = [
            (given[place] if place < len(given) else ()) or (cpu, *self.further_of(place))
            for place, cpu in enumerate(self.pods)
        ]
        return replace(
            self, pods=tuple(each[0] for each in own_or_planned), further=tuple(each[1:] for each in own_or_planned)
        )

    def pollers_of(self, ports: int) -> list[int]:
        """The CPU of the switch that polls each of the ports along the chain, from left to right.

        Neighbouring ports share a poller. With two CPUs, one polls the left half of the chain, and one the right half.
        """
        return [self.switch[place * len(self.switch) // ports] for place in range(ports)]

    @property
    def main_and_workers(self) -> tuple[int, tuple[int, ...]]:
        """The CPU of a main thread that shares its CPU with no worker thread, and the CPUs of the worker threads.

        If the switch leaves no other CPU, the main thread has the switch's first CPU. With a single CPU there is no
        worker thread, and the main thread polls.
        """
        main, *workers = self.switch if self.main in self.switch else (self.main, *self.switch)
        return main, tuple(workers)

    @property
    def roles(self) -> Mapping[str, tuple[int, ...]]:
        """The CPUs of each role on the worker's machine, by the name of the role. A role without CPUs is left out."""
        pods = {f"pod {place + 1}": (cpu, *self.further_of(place)) for place, cpu in enumerate(self.pods)}
        known = {
            "tester": () if self.apart else self.tester,
            "receives left": (self.receives_left,),
            "receives right": (self.receives_right,),
            "switch": self.switch,
            "control": self.control if self.switch else (),
            **pods,
            "neighbour": self.neighbour,
        }
        return {role: cpus for role, cpus in known.items() if cpus}

    @property
    def shared(self) -> Mapping[int, Sequence[str]]:
        """The CPUs of the worker's machine with several roles, and these roles."""
        by_cpu: dict[int, list[str]] = {}
        for role, cpus in self.roles.items():
            for cpu in cpus:
                by_cpu.setdefault(cpu, []).append(role)
        return {cpu: roles for cpu, roles in sorted(by_cpu.items()) if len(roles) > 1}


def roles_as_record(plans: Iterable[CpuPlan]) -> list[dict[str, list[int]]]:
    """The CPUs of each role on each worker, from left to right, in the form of records."""
    return [{role: list(cpus) for role, cpus in plan.roles.items()} for plan in plans]


def plan_cpus(placement: Placement, pods: int, *, with_switch: bool) -> CpuPlan:
    """The roles of a chain of `pods` pods in the usual placement, from the lowest CPU of the worker to the highest.

    A switch polls on the CPUs that the topology names, or by default on the first one. Pods and control have the other
    CPUs. If there are no others, they share the CPUs of the switch.
    """
    sut = tuple(sorted(placement.sut))
    switch = (tuple(sorted(placement.named_switch)) or sut[:1]) if with_switch else ()
    beside = tuple(cpu for cpu in sut if cpu not in switch) or sut
    return give_roles(placement, pods, receives=(sut[0], sut[-1]), switch=switch, beside=beside)


def give_roles(
    placement: Placement, pods: int, *, receives: tuple[int, int], switch: tuple[int, ...], beside: tuple[int, ...]
) -> CpuPlan:
    """The roles of a chain. `switch` has its switch's CPUs, if any. `beside` has the CPUs of pods and control.

    The pods have the first CPUs of `beside`. Control has the other ones. If none is left, it shares the CPUs of the
    pods. `receives` has the CPU of the left and of the right port.
    """
    left, right = receives
    return CpuPlan(
        placement.tester,
        placement.sut,
        receives_left=left,
        receives_right=right,
        switch=switch,
        pods=tuple(islice(cycle(beside), pods)),
        control=beside[pods:] or beside,
        main=beside[-1],
        neighbour=placement.neighbour,
        apart=placement.apart,
    )
