"""A plan: what podperf would do to the hosts of a testbed, found out by the very code that does it.

The hosts are imaginary (imaginary_host.py), and what they are told is written down (journal.py). Nothing is sent
anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, groupby, islice

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError
from podperf.figures import count as count_of
from podperf.hosts.base import Host
from podperf.hosts.namespaces import PREFIX
from podperf.kernel.cpus import Cpus
from podperf.model import Chain, FrameSize, Placement
from podperf.preflight.imaginary_host import QUEUES, THIS_MACHINE, VETH, Device, ImaginaryHost
from podperf.preflight.journal import Journal, Kind, RecordingHost, Step
from podperf.testbed.machines import further_workers
from podperf.testbed.placement import place
from podperf.testbed.scenarios import Placed, Scenario
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, WorkerPortSettings, WorkerSettings

SET_UP, TEAR_DOWN = "set up", "tear down"
UNNAMED_CPUS = 8  # of an imaginary machine whose topology names none
UNNAMED_CARD = "0000:ff:00"  # of which the left port is function 0, the right one 1
USUAL_DRIVER = "i40e"


@dataclass(frozen=True)
class Plan:
    """What would be done for one chain. `assumptions` are sentences on what the topology leaves open."""

    topology: Topology
    chain: Chain
    steps: Sequence[Step]
    assumptions: Sequence[str] = ()
    scenario: Scenario | None = None


class _PlannedTestbed(Testbed):
    """A testbed across which no frame is sent."""

    imaginary = True


def plan(
    topology: Topology, chain: Chain, frame: FrameSize, worker: Cpus | None = None, scenario: Scenario | None = None
) -> Plan:
    """What a run would do to set the chain up and to take it down again. PodperfError where it would refuse to.

    `worker` has the worker's CPUs; without it there are as many as the topology names, on one NUMA node, or, with a
    scenario that places switch and pods, on two. Ports of the worker that exist already are taken to be those of a NIC,
    unless the topology says that their driver is veth.
    """
    refuse_unknown_ports(topology)
    journal = Journal()
    apart = not topology.one_machine
    theirs = worker or (
        _two_nodes(topology.worker.cpus)
        if scenario is not None
        else _imaginary_cpus(topology.worker.cpus, topology.tester.cpus)
    )
    ours = _imaginary_cpus(topology.tester.cpus) if apart else theirs
    tester_ports, worker_ports = _tester_ports(topology), _worker_ports(topology.worker)
    names = [each.address or THIS_MACHINE for each in (topology.tester.ssh, topology.worker.ssh)]
    tester = RecordingHost(ImaginaryHost(names[0], ours, tester_ports | ({} if apart else worker_ports)), journal)
    there = RecordingHost(ImaginaryHost(names[1], theirs, worker_ports), journal) if apart else tester
    placement = place(topology, ours, theirs if apart else None)
    others = [_further_host(each, journal) for each in topology.further_workers]
    further = further_workers(topology, ours, others)
    steps = record(_PlannedTestbed(topology, placement, tester, there, further), chain, frame, journal, scenario)
    in_use = (topology.worker, *topology.further_workers)[: chain.workers]
    assumed_ports = dict.fromkeys(sentence for each in in_use for sentence in _assumed_ports(each))
    assumptions = [*assumed_ports, *([] if worker else [_assumed_nodes(theirs, placement)])]
    return Plan(topology, chain, steps, assumptions, scenario)


def refuse_unknown_ports(topology: Topology) -> None:
    """PodperfError for a testbed of which no plan is possible."""
    if topology.worker.connection == "virtual":
        raise PodperfError("the ports of a virtual worker are known when it runs, so there is no plan for one")
    if topology.counts_instructions:
        raise PodperfError("a chain on a counted machine is built as on this one: plan it for topologies/local.yaml")


def record(
    testbed: Testbed, chain: Chain, frame: FrameSize, journal: Journal, scenario: Scenario | None = None
) -> Sequence[Step]:
    """The steps of setting a chain up on a testbed whose hosts write this journal, and of taking it down."""
    journal.phase = SET_UP
    with ExitStack() as undo:
        undo.callback(testbed.close)
        placed = testbed.place_scenario(scenario, chain) if scenario is not None else Placed(testbed.placement)
        undo.enter_context(testbed.build_placed(placed, chain, frame))
        journal.phase = TEAR_DOWN
    return journal.steps


def _imaginary_cpus(*named: tuple[int, ...] | None) -> Cpus:
    """At least the CPUs that the topology names."""
    numbers = tuple(range(max([UNNAMED_CPUS - 1, *(cpu for cpus in named for cpu in cpus or ())]) + 1))
    return Cpus(numbers, numbers)


def _two_nodes(named: Sequence[int] | None) -> Cpus:
    """CPUs on two NUMA nodes: those that the topology names are on the NIC's, lower ones on the other.

    Each node has at least as many as a machine whose topology names none; the further ones have the numbers behind.
    """
    near = list(named or range(UNNAMED_CPUS))
    far = [cpu for cpu in range(max(near)) if cpu not in near]
    further = count(max(near) + 1)
    near += islice(further, max(0, UNNAMED_CPUS - len(near)))
    far += islice(further, max(0, UNNAMED_CPUS - len(far)))
    numbers = tuple(sorted((*near, *far)))
    return Cpus(numbers, numbers, nodes={cpu: int(cpu in far) for cpu in numbers})


def _assumed_nodes(cpus: Cpus, placement: Placement) -> str:
    nodes = [[cpu for cpu in cpus.usable if cpus.node(cpu) == node] for node in sorted(set(cpus.nodes.values()))]
    if len(nodes) < 2:
        return "The worker is taken to have one NUMA node."
    near, far = sorted(nodes, key=lambda node: placement.sut[0] not in node)
    return (
        f"The worker is taken to have two NUMA nodes: that of the NIC with CPU {format_cpu_list(near)} (worker.cpus is "
        f"there), another one with CPU {format_cpu_list(far)}."
    )


def _tester_ports(topology: Topology) -> dict[tuple[str, str], Device]:
    ports = (topology.tester.left, topology.tester.right)
    return {
        (port.namespace or "", port.interface): Device(USUAL_DRIVER) for port in ports if port.interface is not None
    }


def _further_host(worker: WorkerSettings, journal: Journal) -> Host:
    cpus = _imaginary_cpus(worker.cpus)
    return RecordingHost(ImaginaryHost(str(worker.ssh.address), cpus, _worker_ports(worker)), journal)


def _worker_ports(worker: WorkerSettings) -> dict[tuple[str, str], Device]:
    ports = enumerate((worker.left, worker.right))
    return {("", port.interface): _device(port, function) for function, port in ports if port is not None}


def _device(port: WorkerPortSettings, function: int) -> Device:
    if port.driver == VETH:
        return Device(VETH)
    return Device(port.driver or USUAL_DRIVER, port.pci or f"{UNNAMED_CARD}.{function}")


def _assumed_ports(worker: WorkerSettings) -> Iterator[str]:
    devices = _worker_ports(worker)
    for port in (worker.left, worker.right):
        if port is None or port.driver == VETH:
            continue
        device = devices["", port.interface]
        if port.pci is None:
            yield f"The PCI address of {port.interface} is not in the topology: {device.pci} stands for it."
        if port.driver is None:
            yield f"The driver of {port.interface} is not in the topology: it is taken to be {device.driver}."
        yield f"{port.interface} is taken to have {QUEUES} queues."


# --- for people -------------------------------------------------------------------------------------------------------


def render(plan: Plan) -> str:
    """The plan as an engineer reads it: for each phase and host the commands in their order, and the files."""
    placed = f", placed as in {plan.scenario.name}" if plan.scenario is not None else ""
    lines = [
        f"{plan.chain}{placed}, on {plan.topology.name}: what a run would do, in this order. No host was touched.",
        "[name] is a network namespace, <name> what only the host knows. Commands that only ask are left out.",
        *plan.assumptions,
    ]
    number = count(1)
    scripts: dict[str, int] = {}
    for phase, steps in groupby(plan.steps, key=lambda step: step.phase):
        lines += ["", phase]
        for host, together in groupby(steps, key=lambda step: step.host):
            lines.append(f"  on {host}")
            for step in together:
                lines += _shown(step, next(number), scripts)
    total = count_of(len(plan.steps), "step")
    return "\n".join([*lines, "", f"{total}; between set up and tear down test frames are sent and counted."])


_VERBS = {Kind.RUN: "", Kind.START: "start: ", Kind.TELL: "tell ", Kind.WRITE: "write ", Kind.STOP: "stop "}


# A quoted script of several lines in a command line.
_SCRIPT = re.compile(r"""'(?:[^']|'"'"')*\n(?:[^']|'"'"')*'""")


def _shown(step: Step, number: int, scripts: dict[str, int]) -> Iterator[str]:
    """The lines of a step. A script that came before is named by the step that it came in."""

    def short(found: re.Match[str]) -> str:
        first = scripts.setdefault(found[0], number)
        return found[0] if first == number else f"<script of step {first}>"

    where = f"[{step.namespace.removeprefix(PREFIX)}] " if step.namespace else ""
    said = f": {step.content}" if step.kind is Kind.TELL else ""
    first, *others = _SCRIPT.sub(short, step.text).splitlines()
    yield f"  {number:>4}  {where}{_VERBS[step.kind]}{first}{said}"
    yield from (f"          {line}" for line in others)
    if step.kind is not Kind.TELL:
        yield from (f"        | {line}" for line in step.content.splitlines())
