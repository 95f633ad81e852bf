"""A plan: what podperf would do to the hosts of a testbed, found out by the very code that does it.

The hosts here are imaginary. They carry nothing out, answer what the code reads back, and have everything installed; what
is written down is what a real host would be told (podperf.journal). Nothing is sent anywhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count, groupby
from pathlib import Path

from podperf.cpus import format_cpu_list
from podperf.errors import PodperfError
from podperf.figures import count as count_of
from podperf.hosts.base import Completed, Process
from podperf.hosts.local import LocalHost
from podperf.journal import Journal, Kind, RecordingHost, Step, program, within
from podperf.model import Chain, FrameSize
from podperf.placement import Cpus, place
from podperf.testbed import Testbed
from podperf.topology import Topology

SET_UP, TEAR_DOWN = "set up", "tear down"
FIRST_PROCESS = 10_000_000  # above any number that Linux gives (kernel.pid_max)
THIS_MACHINE = LocalHost().name
UNNAMED_CPUS = 8  # of an imaginary worker whose topology names none


class ImaginaryHost:
    """A host that exists in thought only. It remembers what it was told as far as that is asked for again."""

    def __init__(self, name: str, cpus: Cpus) -> None:
        self.name, self.cpus = name, cpus
        self.namespaces: list[str] = []
        self.files: dict[str, bytes] = {}
        self.processes: dict[int, ImaginaryProcess] = {}
        self._macs: dict[tuple[str, str], str] = {}
        self._numbers = count(FIRST_PROCESS)
        self.ports = count(1)  # of the switch

    def run(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        namespace, words = within(command)
        line = " ".join(words)
        answer = next(
            (answer(Question(self, namespace, words, found, stdin or "")) for pattern, answer in _ANSWERS
             if (found := pattern.search(line))),
            "",
        )  # fmt: skip
        return Completed(tuple(command), 0, answer, "")

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        _, words = within(command)
        process = ImaginaryProcess(self.next_number(), words, tuple(cpus))
        self.processes[process.pid] = process
        return process

    def put(self, content: bytes, path: str) -> None:
        self.files[path] = content

    def get(self, path: str) -> bytes:
        if path in self.files:
            return self.files[path]
        for pattern, content in _FILES:
            if found := pattern.fullmatch(path):
                return content(self, found).encode()
        raise FileNotFoundError(path)

    def mac(self, namespace: str, interface: str) -> str:
        """The MAC of an interface: always the same one."""
        return self._macs.setdefault((namespace, interface), f"02:00:5e:00:{len(self._macs) // 256:02x}:{len(self._macs) % 256:02x}")

    def next_number(self) -> int:
        """A process or thread number that nothing has yet."""
        return next(self._numbers)


@dataclass
class ImaginaryProcess:
    """A process that runs nowhere and says what is waited for."""

    pid: int
    command: Sequence[str]
    cpus: tuple[int, ...]
    _lines: list[str] = field(default_factory=list)
    _running: bool = True

    def send(self, line: str) -> None:
        self._lines += [f"testpmd> {line}"]

    def receive(self, timeout: float) -> str:
        if self._lines:
            return self._lines.pop(0)
        return json.dumps({"ready": {"engine": "xdp"}}) if program(self.command) == "podperf-tester" else "ready"

    def alive(self) -> bool:
        return self._running

    def errors(self) -> str:
        return "entering main loop"  # DPDK's l2fwd

    def stop(self, timeout: float = 5.0) -> None:
        self._running = False


# --- what is read back ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A command that was to be run: where, its words, what its pattern found, and its standard input."""

    host: ImaginaryHost
    namespace: str
    words: Sequence[str]
    found: re.Match[str]
    stdin: str


def _link(question: Question) -> str:
    interface = question.found[1]
    mac = question.host.mac(question.namespace, interface)
    attached = {"mode": 1, "prog": {"id": 1}}  # a BPF program, once one was put there
    return json.dumps([{"ifname": interface, "ifindex": 2, "address": mac, "flags": ["UP"], "xdp": attached}])


def _plugin_result(question: Question) -> str:
    settings = dict(word.split("=", 1) for word in question.words[1:] if "=" in word)
    configuration = json.loads(question.stdin)
    namespace, interface = settings["CNI_NETNS"].rsplit("/", 1)[-1], settings["CNI_IFNAME"]
    sandbox = {"name": interface, "sandbox": settings["CNI_NETNS"], "mac": question.host.mac(namespace, interface)}
    end = f"veth-{namespace}-{interface}"
    addresses = configuration.get("ipam", {}).get("addresses", [])
    return json.dumps(
        {
            "interfaces": [{"name": end, "mac": question.host.mac("", end)}, sandbox],
            "ips": [each | {"interface": 1} for each in addresses] or [{"address": "192.0.2.1/32", "interface": 1}],
        }
    )


def _threads(question: Question) -> str:
    """One thread, or as many as a switch has pollers."""
    host, prefix = question.host, question.found[1]
    process = host.processes.get(int(question.found[2] or 0))
    if not prefix or process is None:
        return str(host.next_number()) if prefix else ""
    if prefix == "vpp_wk":
        return "\n".join(str(host.next_number()) for _ in process.cpus[1:])
    if prefix == "pmd-c":
        mask = int(host.files.get("pmd-cpu-mask", b"0x1"), 16)
        threads = {host.next_number(): cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1}
        for thread, cpu in threads.items():
            host.files[f"/proc/{process.pid}/task/{thread}/comm"] = f"pmd-c{cpu:02}/id:{thread}".encode()
        return "\n".join(map(str, threads))
    return str(host.next_number())


def _remember_mask(question: Question) -> str:
    question.host.files["pmd-cpu-mask"] = question.found[1].encode()
    return ""


def _switch_port(question: Question) -> str:
    return json.dumps({"headings": ["ofport", "error"], "data": [[next(question.host.ports), ["set", []]]]})


def _add_namespace(question: Question) -> str:
    question.host.namespaces.append(question.found[1])
    return ""


def _set_pages(question: Question) -> str:
    folder = question.found[1]
    question.host.files |= {f"{folder}/{name}": question.stdin.encode() for name in ("nr_hugepages", "free_hugepages")}
    return ""


def _remove_file(question: Question) -> str:
    question.host.files.pop(question.found[1], None)
    return ""


def _page_folders(question: Question) -> str:
    nodes = sorted({question.host.cpus.node(cpu) for cpu in question.host.cpus.usable})
    return "\n".join(f"{question.found[1]}/node{node}{question.found[2]}" for node in nodes)


def _digest(question: Question) -> str:
    """This machine has podperf's own programs; another one gets a copy."""
    path = Path(question.found[1])
    if question.host.name != THIS_MACHINE or not path.is_file():
        return ""
    return f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path}\n"


Answer = Callable[[Question], str]

_ANSWERS: Sequence[tuple[re.Pattern[str], Answer]] = [
    (re.compile(pattern), answer)
    for pattern, answer in (
        (r"^ip netns add (\S+)$", _add_namespace),
        (r"^ip netns list$", lambda question: "\n".join(question.host.namespaces)),
        (r"^ip -json .*\blink show dev (\S+)$", _link),
        (r"^env CNI_COMMAND=ADD ", _plugin_result),
        (r"^sh -c for t in .* sh (\S*) ?/proc(?:/(\d+)/task)?$", _threads),
        (r"^ovs-vsctl .*pmd-cpu-mask=\"(0x[0-9a-f]+)\"", _remember_mask),
        (r"^ovs-vsctl .*--format=json list Interface ", _switch_port),
        (r"^tc -json filter show ", lambda _: '[{"options": {"prog": {"id": 1}}}]'),
        (r"^bpftool --json prog show ", lambda _: '{"map_ids": [1]}'),
        (r"^tee (/sys/\S+)/nr_hugepages$", _set_pages),
        (r"^rm (?:-f )?(\S+)$", _remove_file),
        (r"^ls /sys/kernel/iommu_groups$", lambda _: "0"),
        (r"^sh -c ls -d (/sys/devices/system/node)/node\S+(/hugepages/\S+)$", _page_folders),
        (r"ldd .*ovs-vswitchd", lambda _: "libxdp.so.1"),
        (r"^sha256sum -- (\S+) ", _digest),
    )
]

_FILES: Sequence[tuple[re.Pattern[str], Callable[[ImaginaryHost, re.Match[str]], str]]] = [
    (re.compile(pattern), content)
    for pattern, content in (
        (r"/sys/devices/system/cpu/online", lambda host, _: format_cpu_list(host.cpus.online)),
        (r"/proc/self/status", lambda host, _: f"Cpus_allowed_list:\t{format_cpu_list(host.cpus.usable)}\n"),
        (r"/sys/.*/(nr|free|surplus)_hugepages", lambda *_: "0"),
    )
]


# --- the plan ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What would be done for one chain."""

    topology: Topology
    chain: Chain
    steps: Sequence[Step]


def plan(topology: Topology, chain: Chain, frame: FrameSize, cpus: Cpus | None = None) -> Plan:
    """What a run would do to set the chain up and to take it down again. PodperfError where it would refuse to.

    `cpus` are the worker's; without them it has so many as the topology names, on one NUMA node.
    """
    journal = Journal()
    cpus = cpus or imaginary_cpus(topology)
    host = RecordingHost(ImaginaryHost(worker_name(topology), cpus), journal)
    return Plan(topology, chain, record(Testbed(topology, place(topology, cpus), host), chain, frame, journal))


def record(testbed: Testbed, chain: Chain, frame: FrameSize, journal: Journal) -> Sequence[Step]:
    """The steps of setting a chain up on a testbed whose hosts write this journal, and of taking it down."""
    journal.phase = SET_UP
    with ExitStack() as undo:
        undo.enter_context(testbed.build(chain, frame))
        journal.phase = TEAR_DOWN
    return journal.steps


def worker_name(topology: Topology) -> str:
    """What the plan calls the worker."""
    return topology.worker.ssh.address or THIS_MACHINE


def imaginary_cpus(topology: Topology) -> Cpus:
    """CPUs of an imaginary worker: at least those that the topology names."""
    named = (*(topology.tester.cpus or ()), *(topology.worker.cpus or ()))
    numbers = tuple(range(max([UNNAMED_CPUS - 1, *named]) + 1))
    return Cpus(numbers, numbers)


def render(plan: Plan) -> str:
    """The plan as an engineer reads it: for each phase and host the commands in their order, and the files."""
    lines = [
        f"{plan.chain}, on {plan.topology.name}: what a run would do, in this order. Nothing was done, and no host was asked;",
        "names in <> are what only the host knows. Commands that only ask are left out.",
    ]
    number = count(1)
    for phase, steps in groupby(plan.steps, key=lambda step: step.phase):
        lines += ["", phase]
        for host, together in groupby(steps, key=lambda step: step.host):
            lines.append(f"  on {host}")
            for step in together:
                lines += [f"  {line}" for line in _shown(step, next(number))]
    total = count_of(len(plan.steps), "step")
    return "\n".join([*lines, "", f"{total}; between the two phases test frames are sent and counted."])


_VERBS = {Kind.RUN: "", Kind.START: "start: ", Kind.TELL: "tell ", Kind.WRITE: "write ", Kind.STOP: "stop "}


def _shown(step: Step, number: int) -> Iterator[str]:
    where = f"[{step.namespace}] " if step.namespace else ""
    text = f"{step.text}: {step.content}" if step.kind is Kind.TELL else step.text
    yield f"{number:>4}  {where}{_VERBS[step.kind]}{text}"
    if step.kind is not Kind.TELL:
        yield from (f"      | {line}" for line in step.content.splitlines())
