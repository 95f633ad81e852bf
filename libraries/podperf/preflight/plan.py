"""A plan: the commands of a run on the hosts of a testbed. The code of a run itself makes the plan.

The hosts carry nothing out, and recording.py writes their commands down. No frame is sent.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count, groupby, islice
from pathlib import Path
from typing import AnyStr

from podperf.cpu_lists import format_cpu_list
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.errors import PodperfError
from podperf.figures import count as count_of
from podperf.hosts.base import ASSUMED_NUMBERS, WRITTEN, Answer, Completed, Host, Process, Refusal, shown
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import PREFIX
from podperf.hosts.programs import BOOT
from podperf.kernel.cpus import Cpus
from podperf.kernel.queues import USUAL_QUEUES
from podperf.model import Chain, FrameSize
from podperf.pods.base import RuntimeOfTestbed
from podperf.preflight.recording import Kind, Recording, RecordingHost, Step
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.placement import place
from podperf.testbed.scenarios import Scenario
from podperf.testbed.testbed import Testbed
from podperf.topology import SoftwareSettings, SshSettings, Topology, WorkerPortSettings, WorkerSettings

_PASS_ON = ("plan.py", "recording.py", "namespaces.py")


class PlannedHost:
    """A machine with these `files`. Files that a plan writes are read back as written."""

    def __init__(self, name: str, files: Mapping[str, bytes]) -> None:
        self.name, self.files = name, dict(files)

    def ask(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0, assumed: Answer = None
    ) -> Completed:
        if assumed is WRITTEN:
            written = [path.rpartition("/") for path in self.files]
            assumed = "\n".join(name for folder, _, name in written if folder == command[-1])
        return self.do(*command, assumed=assumed if callable(assumed) else _known(shown(command), assumed))

    def do(
        self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0, assumed: Answer = ""
    ) -> Completed:
        said = assumed() if callable(assumed) else assumed or ""
        return Completed(command, 1, "", said) if isinstance(said, Refusal) else Completed(command, 0, said, "")

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return _PlannedProcess(shown(command))

    def put(self, content: bytes, path: str) -> None:
        self.files[path] = content

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        return self.files[path] if path in self.files else _known(path, assumed)


class _PlannedProcess(Process):
    def __init__(self, command: str) -> None:
        self._command, self.pid = command, next(ASSUMED_NUMBERS)
        self._stopped = False

    def send(self, line: str) -> None:
        """Nobody reads the line."""

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        return _known(self._command, assumed)

    def alive(self, assumed: bool = True) -> bool:
        return assumed and not self._stopped

    def errors(self, assumed: str = "") -> str:
        return assumed

    def stop(self, timeout: float = 5.0) -> None:
        self._stopped = True


def _known(question: str, assumed: AnyStr | None) -> AnyStr:
    """The assumed answer. PodperfError names the question that has none, and the line that asks it."""
    if assumed is not None:
        return assumed
    asking = next(each for each in reversed(traceback.extract_stack()) if not each.filename.endswith(_PASS_ON))
    raise PodperfError(
        f"a plan has no answer to `{question}`: say beside the question what a plan assumes, by `assumed=` "
        f"({asking.filename}:{asking.lineno})"
    )


SET_UP, TEAR_DOWN = "set up", "tear down"
UNNAMED_CPUS = 8  # of a machine, if the topology names no CPUs
UNNAMED_CARD = "0000:ff:00"  # the left port is function 0 of this card, the right port function 1
USUAL_DRIVER = "i40e"
VETH = "veth"


@dataclass(frozen=True)
class Plan:
    """The steps of a run for one chain. `assumptions` are sentences about values that the topology does not give.

    `cpus` has the roles on each worker of the chain.
    """

    topology: Topology
    chain: Chain
    steps: Sequence[Step]
    assumptions: Sequence[str] = ()
    scenario: Scenario | None = None
    cpus: Sequence[CpuPlan] = ()


class _PlannedTestbed(Testbed):
    """A testbed without frames."""

    @property
    def runtime(self) -> RuntimeOfTestbed:
        return super().runtime.planned()


def plan(
    topology: Topology, chain: Chain, frame: FrameSize, worker: Cpus | None = None, scenario: Scenario | None = None
) -> Plan:
    """The steps of a run to set the chain up and to take it down. Raises PodperfError if the run would refuse that.

    `worker` has the worker's CPUs. Without `worker`, the plan assumes the CPUs that the topology names, on one NUMA
    node, or on two nodes if a scenario places switch and pods. The plan assumes that existing ports of the worker
    belong to a NIC, unless the topology gives veth as their driver.
    """
    refuse_unknown_ports(topology)
    given, topology = topology, _completed(topology)
    recording = Recording()
    apart = not topology.one_machine
    theirs = [worker or _cpus_of(each, topology, scenario) for each in topology.workers]
    ours = _cpus_with(topology.tester.cpus) if apart else theirs[0]
    tester = _host(topology.tester.ssh, ours, recording)
    workers = []
    for number, (settings, cpus) in enumerate(zip(topology.workers, theirs, strict=True)):
        host = _host(settings.ssh, cpus, recording) if apart else tester
        placement = place(topology, ours, cpus if apart else None, number=number)
        workers.append(WorkerMachine(settings, host, placement, number, shared=not apart and number > 0))
    testbed = _PlannedTestbed(topology, workers, tester)
    steps = record(testbed, chain, frame, recording, scenario)
    in_use = given.workers[: chain.workers]
    assumed_ports = dict.fromkeys(sentence for each in in_use for sentence in _assumed_ports(each))
    assumptions = [*assumed_ports, *([] if worker else [_assumed_nodes(theirs[0], workers[0])])]
    return Plan(topology, chain, steps, assumptions, scenario, _cpu_plans(testbed, chain, scenario))


def refuse_unknown_ports(topology: Topology) -> None:
    """Raises PodperfError for a testbed without a possible plan."""
    if topology.virtual:
        raise PodperfError("the ports of a virtual worker are known when it runs, so there is no plan for one")
    if topology.counts_instructions:
        raise PodperfError("a chain on a counted machine is built as on this one: plan it for topologies/local.yaml")


def record(
    testbed: Testbed, chain: Chain, frame: FrameSize, recording: Recording, scenario: Scenario | None = None
) -> Sequence[Step]:
    """The steps that set a chain up and take it down. The hosts of `testbed` write them into `recording`."""
    recording.phase = SET_UP
    with ExitStack() as undo:
        undo.callback(testbed.close)
        if scenario is None:
            undo.enter_context(testbed.build(chain, frame))
        else:
            undo.enter_context(testbed.build_placed(testbed.place_scenario(scenario, chain), chain, frame))
        recording.phase = TEAR_DOWN
    return recording.steps


def _cpu_plans(testbed: Testbed, chain: Chain, scenario: Scenario | None) -> Sequence[CpuPlan]:
    if DATA_PLANES[chain.data_plane].cabling is not Cabling.WORKER:
        return []
    return testbed.cpu_plans(chain) if scenario is None else testbed.place_scenario(scenario, chain).cpus


def _cpus_of(worker: WorkerSettings, topology: Topology, scenario: Scenario | None) -> Cpus:
    if scenario is not None:
        return _two_nodes(worker.cpus)
    return _cpus_with(worker.cpus, topology.tester.cpus)


def _completed(topology: Topology) -> Topology:
    """The topology with the engine, drivers and PCI addresses that a plan assumes where it names none."""
    workers = tuple(
        replace(worker, left=_assumed_port(worker.left, 0), right=_assumed_port(worker.right, 1))
        for worker in topology.workers
    )
    tester = topology.tester
    if isinstance(tester.kind, SoftwareSettings) and tester.kind.engine == "auto":
        tester = replace(tester, kind=SoftwareSettings("xdp"))  # otherwise frames would tell whether XDP works
    return replace(topology, workers=workers, tester=tester)


def _assumed_port(port: WorkerPortSettings | None, function: int) -> WorkerPortSettings | None:
    if port is None or port.driver == VETH:
        return port
    return replace(port, driver=port.driver or USUAL_DRIVER, pci=port.pci or f"{UNNAMED_CARD}.{function}")


def _host(ssh: SshSettings, cpus: Cpus, recording: Recording) -> Host:
    """A machine with these CPUs: this one, or the one at an address."""
    name, nodes = ssh.address or LocalHost().name, {*map(cpus.node, cpus.online)}
    lists = {"/sys/devices/system/cpu/online": [*cpus.online], "/sys/devices/system/node/online": [*nodes]}
    for node in nodes:
        lists[f"/sys/devices/system/node/node{node}/cpulist"] = [cpu for cpu in cpus.online if cpus.node(cpu) == node]
    files = {path: format_cpu_list(numbers) for path, numbers in lists.items()}
    files["/proc/self/status"] = f"Cpus_allowed_list:\t{format_cpu_list(cpus.usable)}\n"
    if ssh.address is None:
        files[BOOT] = Path(BOOT).read_text()
    return RecordingHost(PlannedHost(name, {path: text.encode() for path, text in files.items()}), recording)


def _cpus_with(*named: tuple[int, ...] | None) -> Cpus:
    numbers = tuple(range(max([UNNAMED_CPUS - 1, *(cpu for cpus in named for cpu in cpus or ())]) + 1))
    return Cpus(numbers, numbers)


def _two_nodes(named: Sequence[int] | None) -> Cpus:
    """CPUs on two NUMA nodes. CPUs that the topology names are on the NIC's node. Lower numbers are on the other node.

    Each node has at least UNNAMED_CPUS CPUs. Additional CPUs have higher numbers than all others.
    """
    near = list(named or range(UNNAMED_CPUS))
    far = [cpu for cpu in range(max(near)) if cpu not in near]
    further = count(max(near) + 1)
    near += islice(further, max(0, UNNAMED_CPUS - len(near)))
    far += islice(further, max(0, UNNAMED_CPUS - len(far)))
    numbers = tuple(sorted((*near, *far)))
    return Cpus(numbers, numbers, nodes={cpu: int(cpu in far) for cpu in numbers})


def _assumed_nodes(cpus: Cpus, worker: WorkerMachine) -> str:
    nodes = [[cpu for cpu in cpus.usable if cpus.node(cpu) == node] for node in sorted(set(cpus.nodes.values()))]
    if len(nodes) < 2:
        return "The worker is taken to have one NUMA node."
    near, far = sorted(nodes, key=lambda node: min(worker.placement.sut) not in node)
    return (
        f"The worker is taken to have two NUMA nodes: that of the NIC with CPU {format_cpu_list(near)} "
        f"({worker.settings.key}.cpus is there), another one with CPU {format_cpu_list(far)}."
    )


def _assumed_ports(worker: WorkerSettings) -> Iterator[str]:
    for function, port in enumerate((worker.left, worker.right)):
        assumed = _assumed_port(port, function)
        if port is None or assumed is None or port.driver == VETH:
            continue
        if port.pci is None:
            yield f"The PCI address of {port.interface} is not in the topology: {assumed.pci} stands for it."
        if port.driver is None:
            yield f"The driver of {port.interface} is not in the topology: it is taken to be {assumed.driver}."
        yield f"{port.interface} is taken to have {USUAL_QUEUES} queues."


# --- for people -------------------------------------------------------------------------------------------------------


def render(plan: Plan) -> str:
    """The plan as text: for each phase and host the commands in their order, and the files."""
    placed = f", placed as in {plan.scenario.name}" if plan.scenario is not None else ""
    lines = [
        f"{plan.chain}{placed}, on {plan.topology.name}: what a run would do, in this order. No host was touched.",
        "[name] is a network namespace, <name> a value that only the host knows. Commands that only ask are left out.",
        *plan.assumptions,
        *(line for number, each in enumerate(plan.cpus, start=1) for line in _roles(each, number, len(plan.cpus))),
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


def _roles(cpus: CpuPlan, number: int, workers: int) -> Iterator[str]:
    """The roles of the CPUs of one worker, and a remark on CPUs with several roles."""
    worker = f"worker {number}" if workers > 1 else "the worker"
    known = [f"{role} {format_cpu_list(each)}" for role, each in cpus.roles.items()]
    yield f"CPUs of {worker}: {', '.join(known)}."
    yield from (
        f"CPU {cpu} of {worker} has {len(roles)} roles: {', '.join(roles)}." for cpu, roles in cpus.shared.items()
    )


_VERBS = {Kind.RUN: "", Kind.START: "start: ", Kind.TELL: "tell ", Kind.WRITE: "write ", Kind.STOP: "stop "}


# A quoted script of several lines in a command line.
_SCRIPT = re.compile(r"""'(?:[^']|'"'"')*\n(?:[^']|'"'"')*'""")


def _shown(step: Step, number: int, scripts: dict[str, int]) -> Iterator[str]:
    """The lines of a step. If an earlier step has the same script, the line names that step instead."""

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
