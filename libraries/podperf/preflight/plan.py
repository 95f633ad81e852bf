"""A plan: what podperf would do to the hosts of a testbed, found out by the very code that does it.

The hosts are imaginary (imaginary_host.py), and what they are told is written down (journal.py). Nothing is sent
anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count, groupby

from podperf.errors import PodperfError
from podperf.figures import count as count_of
from podperf.hosts.namespaces import PREFIX
from podperf.kernel.cpus import Cpus
from podperf.model import Chain, FrameSize
from podperf.preflight.imaginary_host import THIS_MACHINE, VETH, Device, ImaginaryHost
from podperf.preflight.journal import Journal, Kind, RecordingHost, Step
from podperf.testbed.placement import place
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, WorkerPortSettings

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


class _PlannedTestbed(Testbed):
    """A testbed across which no frame is sent."""

    imaginary = True


def plan(topology: Topology, chain: Chain, frame: FrameSize, worker: Cpus | None = None) -> Plan:
    """What a run would do to set the chain up and to take it down again. PodperfError where it would refuse to.

    `worker` has the worker's CPUs; without it there are as many as the topology names, on one NUMA node. Ports of the
    worker that exist already are taken to be those of a NIC, unless the topology says that their driver is veth.
    """
    if topology.worker.connection == "virtual":
        raise PodperfError("the ports of a virtual worker are known when it runs, so there is no plan for one")
    journal = Journal()
    apart = topology.worker.connection == "ssh"
    theirs = worker or _imaginary_cpus(topology.worker.cpus, topology.tester.cpus)
    ours = _imaginary_cpus(topology.tester.cpus) if apart else theirs
    tester_ports, worker_ports = _tester_ports(topology), _worker_ports(topology)
    assumptions = [*_assumed_ports(topology), *(["The worker is taken to have one NUMA node."] if apart else [])]
    here = RecordingHost(ImaginaryHost(THIS_MACHINE, ours, tester_ports | ({} if apart else worker_ports)), journal)
    address = topology.worker.ssh.address or THIS_MACHINE
    there = RecordingHost(ImaginaryHost(address, theirs, worker_ports), journal) if apart else here
    placement = place(topology, ours, theirs if apart else None)
    steps = record(_PlannedTestbed(topology, placement, here, there), chain, frame, journal)
    return Plan(topology, chain, steps, assumptions)


def record(testbed: Testbed, chain: Chain, frame: FrameSize, journal: Journal) -> Sequence[Step]:
    """The steps of setting a chain up on a testbed whose hosts write this journal, and of taking it down."""
    journal.phase = SET_UP
    with ExitStack() as undo:
        undo.callback(testbed.close)
        undo.enter_context(testbed.build(chain, frame))
        journal.phase = TEAR_DOWN
    return journal.steps


def _imaginary_cpus(*named: tuple[int, ...] | None) -> Cpus:
    """At least the CPUs that the topology names."""
    numbers = tuple(range(max([UNNAMED_CPUS - 1, *(cpu for cpus in named for cpu in cpus or ())]) + 1))
    return Cpus(numbers, numbers)


def _tester_ports(topology: Topology) -> dict[tuple[str, str], Device]:
    ports = (topology.tester.left, topology.tester.right)
    return {
        (port.namespace or "", port.interface): Device(USUAL_DRIVER) for port in ports if port.interface is not None
    }


def _worker_ports(topology: Topology) -> dict[tuple[str, str], Device]:
    ports = enumerate((topology.worker.left, topology.worker.right))
    return {("", port.interface): _device(port, function) for function, port in ports if port is not None}


def _device(port: WorkerPortSettings, function: int) -> Device:
    if port.driver == VETH:
        return Device(VETH)
    return Device(port.driver or USUAL_DRIVER, port.pci or f"{UNNAMED_CARD}.{function}")


def _assumed_ports(topology: Topology) -> Iterator[str]:
    devices = _worker_ports(topology)
    for port in (topology.worker.left, topology.worker.right):
        if port is None or port.driver == VETH:
            continue
        device = devices["", port.interface]
        if port.pci is None:
            yield f"The PCI address of {port.interface} is not in the topology: {device.pci} stands for it."
        if port.driver is None:
            yield f"The driver of {port.interface} is not in the topology: it is taken to be {device.driver}."


# --- for people -------------------------------------------------------------------------------------------------------


def render(plan: Plan) -> str:
    """The plan as an engineer reads it: for each phase and host the commands in their order, and the files."""
    lines = [
        f"{plan.chain}, on {plan.topology.name}: what a run would do, in this order. No host was touched.",
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
