"""Sets up the contenders of an experiment: each on its CPUs, with its hooks. The record describes each one once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES, with_forwarder
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.contender import Contender
from podperf.hosts.way_back import WayBack, existing_namespace, inside, keeps_journal
from podperf.kernel.memory import MappedPages
from podperf.methods.trials import ValidTrials
from podperf.model import AddressedTraffic, TrafficProfile
from podperf.pods.base import Pod
from podperf.run.limits import KnownLimits
from podperf.run.measurement import interfaces_of, link_speed
from podperf.run.session import Equipment
from podperf.run.test import TestInProgress
from podperf.testbed.hooks import chosen, in_shell, run_command, run_hook
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import SystemUnderTest, WorkerSite, addressed, memory_of, refuse_other_pages
from podperf.testbed.testbed import Testbed, pods_with_cpus
from podperf.testers.base import TesterLimits
from podperf.topology import Hook, Moment


@dataclass
class Contenders:
    """The contenders of one test with their traffic, and the tester's limits with each of them, by their names.

    Without `known`, the limits stay unknown: on a counted machine, no rate is judged.
    """

    test: TestInProgress
    equipment: Equipment
    traffics: Mapping[str, TrafficProfile]
    known: KnownLimits | None
    placed: dict[str, Placed] = field(default_factory=dict)
    limits: dict[str, TesterLimits] = field(default_factory=dict)
    # The CPUs and limits that neighbour and pods of a contender took, each time that the chain stood.
    cpus_of_neighbours: dict[str, list[float]] = field(default_factory=dict)  # the number of busy CPUs
    limits_of_pods: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    limits_of_neighbours: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    # The pages of each process that handles frames, read when the chain stood for the first time.
    memory: dict[str, Mapping[str, MappedPages]] = field(default_factory=dict)
    links: dict[str, float | None] = field(default_factory=dict)  # bit/s of the slowest port; None: no port has a speed
    shortest_trial: float = 0.0  # seconds of the shortest trial that the tester can do well
    _described: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _testbeds: dict[str, Testbed] = field(default_factory=dict)
    _testers: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # those of contenders' own testbeds, described

    @property
    def doubt(self) -> str:
        """The reasons not to believe rates of the tester, in the order of their appearance."""
        return "; ".join(dict.fromkeys(filter(None, (limit.doubt_of_rates for limit in self.limits.values()))))

    def prepare(self, contenders: Sequence[Contender]) -> None:
        """Place these contenders, and watch their CPUs. Unavailable if the testbed cannot set one of them up."""
        for contender in contenders:
            if contender.chain.data_plane not in DATA_PLANES:
                raise Unavailable(f"this version of podperf has no data plane {contender.chain.data_plane!r}")
            self._testbeds[contender.name] = self.equipment.testbed.with_pods(contender.tester)
            self._testbeds[contender.name].demand(contender.chain)
        record = self.test.record
        self.placed |= {contender.name: self._place(contender) for contender in contenders}
        known = {
            contender.name: (with_forwarder(contender.chain), self.placed[contender.name]) for contender in contenders
        }
        record.contenders = {**record.contenders, **known}
        placed = [each.suts for each in self.placed.values()]
        suts = [set().union(*each) for each in zip_longest(*placed, fillvalue=set[int]())]
        self.test.quietness = self.equipment.watch(suts, self.test.undo)

    @contextmanager
    def standing(self, contender: Contender) -> Iterator[SystemUnderTest]:
        """This contender, with its hooks, while the context lasts. Frames of its traffic have crossed it.

        Raises Unavailable if its memory should be in pages of a size, and is in others.
        """
        name, chain, traffic = contender.name, contender.chain, self.traffics[contender.name]
        testbed, placed = self._testbeds[contender.name], self.placed[contender.name]
        machines = testbed.workers[: chain.workers]
        first = partial(run_before, contender, machines)
        with (
            testbed.build_placed(placed, chain, traffic.frame, traffic.directions, first, traffic.headers) as sut,
            ExitStack() as undo,
        ):
            run_after(contender, sut, machines, undo)
            there = addressed(traffic, sut)
            sut.probe(there)
            if name not in self._described:
                self._describe(name, sut)
                if placed.pages is not None:
                    refuse_other_pages(
                        self.memory[name], [application.name for application in sut.applications], placed.pages
                    )
            yield sut
            if sut.neighbour is not None:
                self.cpus_of_neighbours.setdefault(name, []).append(sut.neighbour.cpus_taken())
                if taken := sut.neighbour.read_limits():
                    self.limits_of_neighbours.setdefault(name, []).append(taken)
            if taken := sut.read_limits():
                self.limits_of_pods.setdefault(name, []).append(taken)

    @contextmanager
    def trials(self, contender: Contender) -> Iterator[ValidTrials]:
        """Trials across this contender, which is set up while the context lasts."""
        name = contender.name
        with self.standing(contender) as sut:
            yield self.test.trials(sut, name, addressed(self.traffics[name], sut), self.limits[name])

    def describe_only(self, name: str) -> None:
        """Describe this contender in the record as if it had been measured alone. It is no pods of the topology."""
        record = self.test.record
        record.data_plane, record.limits = self._described[name], self.limits[name]
        record.tester = {**self._testers[name], "variants": self._testers}

    def _describe(self, name: str, sut: SystemUnderTest) -> None:
        record = self.test.record
        self._described[name] = sut.describe()
        self.memory[name] = memory_of(sut)
        record.data_plane, record.tester = self._described, sut.tester.describe()
        if self._testbeds[name] is not self.equipment.testbed:
            self._testers[name] = record.tester
            record.tester = {**record.tester, "variants": self._testers}
        interfaces = interfaces_of(sut)
        self.links[name], self.shortest_trial = link_speed(interfaces), sut.tester.shortest_trial
        named = {f"{name}: {interface}": each for interface, each in interfaces.items()}
        record.interfaces = {**record.interfaces, **named}
        if self.known is not None:
            traffic = AddressedTraffic(self.traffics[name])
            engine, testbed = sut.tester.facts.engine, self._testbeds[name]
            self.limits[name] = self.known.on_link(self.links[name], traffic, engine, testbed, sut.chain.ends)

    def _place(self, contender: Contender) -> Placed:
        wanted, testbed, usual = contender.placement, self.equipment.testbed, self.equipment.placement
        chain, name = contender.chain, contender.name
        if wanted.pages is not None:
            testbed.demand_pages(chain, wanted.pages)
        if wanted.scenario is not None:
            return replace(testbed.place_scenario(wanted.scenario, chain), pages=wanted.pages)
        if wanted.cpus is None:
            return Placed(usual, testbed.cpu_plans(chain), pages=wanted.pages)
        taken = () if usual.apart else usual.tester
        allowed = [cpu for cpu in self.equipment.cpus[0].usable if cpu not in taken]
        if chain.workers > 1:
            raise Unavailable(f"variant {name!r} names CPUs of one worker, and its chain is on several")
        if wrong := set(wanted.cpus) - set(allowed):
            raise Unavailable(
                f"variant {name!r} cannot have CPU {format_cpu_list(wrong)}; allowed for the system under test: "
                f"{format_cpu_list(allowed) or 'none'}"
            )
        neighbour = tuple(cpu for cpu in allowed if cpu not in wanted.cpus)
        placement = replace(usual, sut=wanted.cpus, named_switch=wanted.switch_cpus or (), neighbour=neighbour)
        with_switch = DATA_PLANES[chain.data_plane].switch_has_cpus
        return Placed(placement, [plan_cpus(placement, pods_with_cpus(chain), with_switch=with_switch)])


def run_before(variant: Contender, machines: Iterable[WorkerMachine], undo: ExitStack) -> None:
    """Run the hooks before the set-up, on the machines of the chain's workers. Their undo commands run at `undo`."""
    for hook in _at(variant, Moment.BEFORE):
        _run_on_machines(variant, hook, machines, undo)


def run_after(variant: Contender, sut: SystemUnderTest, machines: Iterable[WorkerMachine], undo: ExitStack) -> None:
    """Run the hooks after the set-up, in the networks of the chain's workers and pods. The same of their undo.

    A path that is on no worker, such as a black box, has no such network. Its hooks run on the `machines` themselves.
    """
    sites = [part.site for part in sut.parts if part.site is not None]
    for hook in _at(variant, Moment.AFTER):
        if hook.place == "worker":
            for site in sites:
                _run_on_worker(variant, hook, site, undo)
            if not sites:
                _run_on_machines(variant, hook, machines, undo)
        else:
            for pod in _pods(variant, hook, sites):
                if hook.undo is not None:
                    name = _name(variant, hook, of_undo=True)
                    undo.callback(run_command, name, hook.undo, pod.host, list(pod.interfaces))
                run_hook(_name(variant, hook), hook, pod.host, list(pod.interfaces))


def _at(variant: Contender, moment: Moment) -> Iterator[Hook]:
    return (hook for hook in variant.hooks if hook.moment is moment)


def _run_on_machines(variant: Contender, hook: Hook, machines: Iterable[WorkerMachine], undo: ExitStack) -> None:
    for machine in machines:
        ports = [port.interface for port in (machine.settings.left, machine.settings.right) if port is not None]
        if hook.undo is not None and keeps_journal(machine.host):
            WayBack(machine.host, undo).note(_name(variant, hook), *in_shell(hook.undo, ports))
        elif hook.undo is not None:
            undo.callback(run_command, _name(variant, hook, of_undo=True), hook.undo, machine.host, ports)
        run_hook(_name(variant, hook), hook, machine.host, ports)


def _run_on_worker(variant: Contender, hook: Hook, site: WorkerSite, undo: ExitStack) -> None:
    if hook.undo is not None:
        namespace = site.worker.namespace
        command = inside(namespace, *in_shell(hook.undo, site.ports))
        WayBack(site.machine, undo).note(_name(variant, hook), *command, of=existing_namespace(namespace))
    run_hook(_name(variant, hook), hook, site.worker.host, site.ports)


def _pods(variant: Contender, hook: Hook, sites: Iterable[WorkerSite]) -> Sequence[Pod]:
    """The pods in which the hook runs. PodperfError if the chain has no pod of its number."""
    found = chosen(hook, [pod for site in sites for pod in site.pods])
    if hook.pod is not None and not found:
        raise PodperfError(f"{_name(variant, hook)}: the chain {variant.chain} has no pod of this number")
    return found


def _name(variant: Contender, hook: Hook, *, of_undo: bool = False) -> str:
    """The hook in messages: its variant, its place in the file, and its moment."""
    undo = "the undo of " if of_undo else ""
    return f"{undo}hook {variant.hooks.index(hook) + 1} of variant {variant.name!r} ({hook.moment}, in {hook.place})"
