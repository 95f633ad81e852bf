"""A testbed as its topology file describes it, and the way from the file to these values.

The JSON Schema beside the topologies says which keys there are, what they mean and their defaults. What a schema cannot
say (one key against another, CPU lists, addresses) is checked here, in the same words.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from podperf.cpu_lists import parse_cpu_list
from podperf.documents.schema_check import schema_problems, suggestion, with_defaults
from podperf.documents.yaml_document import Document, Pointer, Problem, read_yaml
from podperf.errors import PodperfError
from podperf.model import BOTH_DIRECTIONS, Direction, FrameSize, VirtualFunctionSettings

SCHEMA_PATH = Path(__file__).resolve().parents[3] / "topologies" / "topology.schema.json"
TEST_NETWORK = ipaddress.IPv4Network("198.18.0.0/15")  # RFC 2544, appendix C.2.2

Engine = Literal["auto", "xdp", "packet-ring", "trex"]  # how a tester sends and receives
Metric = Literal["mrr", "ndr", "pdr", "latency_p50", "latency_p99"]
Unit = Literal["ratio of baseline", "Mpps", "Gbps", "us"]


@dataclass(frozen=True)
class PortSettings:
    """One tester port.

    Without an `interface` the run makes a veth pair and gives the other end to the worker. With one, the existing
    interface is used as it is, inside `namespace` where given: cabled to the worker's port of the same side where the
    worker names its ports, else to a black box.
    """

    interface: str | None = None
    namespace: str | None = None
    destination_mac: str | None = None  # where frames sent from this port go; None: the other port's MAC
    destination_address: str | None = None  # IPv4 within 198.18.0.0/15, or None for the flow's own


@dataclass(frozen=True)
class TrexServerSettings:
    """A TRex server that podperf starts on its own machine and stops again."""

    directory: str  # holds t-rex-64
    devices: tuple[str, str] | None = None  # PCI addresses of left and right; None: interfaces of the kernel
    low_end: bool | None = None  # all threads on one CPU; None: with fewer than three CPUs
    options: tuple[str, ...] = ()  # of t-rex-64


@dataclass(frozen=True)
class TrexSettings:
    """Where a TRex server is, and the client that speaks to it. Without `server` it runs already, and is left alone."""

    address: str = "127.0.0.1"
    port: int = 4501
    publisher_port: int = 4500
    client: str | None = None  # its folder on this machine; None: of the server's folder, or trex-stl-lib
    interpreter: str = "/usr/bin/python3"
    left: int = 0  # numbers of the server's ports
    right: int = 1
    server: TrexServerSettings | None = None


@dataclass(frozen=True)
class TesterSettings:
    """The tester of the testbed. `trex` says where a TRex is, if it is one."""

    type: Literal["software", "trex"]
    engine: Engine
    cpus: tuple[int, ...] | None  # None: chosen by placement
    left: PortSettings
    right: PortSettings
    trex: TrexSettings = TrexSettings()
    maximum_load: float | None = None  # frames/s and direction; None: what the tester can do

    @property
    def has_ports_of_its_own(self) -> bool:
        """True when the ports are those of a TRex and not the kernel's."""
        return self.type == "trex" and (self.trex.server is None or self.trex.server.devices is not None)


@dataclass(frozen=True)
class SshSettings:
    """How to log in on a worker. There is no password here: that comes from the environment only."""

    address: str | None = None  # a name or an IP address; None unless the connection is `ssh`
    port: int = 22
    user: str = "root"
    key: str | None = None  # path of a private key; None: an agent, or the usual keys
    known_hosts: str = "~/.ssh/known_hosts"


@dataclass(frozen=True)
class WorkerPortSettings:
    """One port of the worker: an existing interface, and the PCI address of the device behind it where given."""

    interface: str
    pci: str | None = None


@dataclass(frozen=True)
class WorkerSettings:
    """The host that runs the system under test. Its ports are both given, or neither."""

    connection: Literal["local", "ssh", "virtual"]
    cpus: tuple[int, ...] | None  # None: chosen by placement
    switch_cpus: tuple[int, ...] | None = None  # of `cpus`, those on which a user-space switch polls; None: the first
    hugepages: bool = True  # for what can use them, where the worker has some
    ssh: SshSettings = SshSettings()
    left: WorkerPortSettings | None = None  # None: the run makes a veth pair
    right: WorkerPortSettings | None = None
    sriov: VirtualFunctionSettings = field(default_factory=VirtualFunctionSettings)


@dataclass(frozen=True)
class TrafficSettings:
    """Test traffic, unless a test says otherwise."""

    directions: tuple[Direction, ...]
    flows: int


@dataclass(frozen=True)
class MethodSettings:
    """How results are measured: the search preset, and the MRR trials."""

    search: str  # a preset of podperf.methods.presets: quick, csit, tst009, rfc2544
    mrr_trials: int
    mrr_trial_duration: float  # seconds
    patience: float = 0.0  # seconds that a test may wait for a quiet machine, and repeat trials that were disturbed


@dataclass(frozen=True)
class Threshold:
    """A bound that a result must keep to. It applies where every selector that is set matches.

    `minimum` for rates, `maximum` for latencies, in `unit`. A ratio is of the same run's `wire` result at the
    same frame size.
    """

    metric: Metric
    unit: Unit
    minimum: float | None = None
    maximum: float | None = None
    data_plane: str | None = None
    pods: int | None = None
    frame: FrameSize | None = None


@dataclass(frozen=True)
class Topology:
    """Everything that one topology file says."""

    path: str
    name: str
    description: str
    tester: TesterSettings
    worker: WorkerSettings
    traffic: TrafficSettings
    method: MethodSettings
    thresholds: tuple[Threshold, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # free text for the record: rack, contact, firmware
    not_comparable: str = ""  # why figures of this testbed say nothing about others; empty: they may be compared

    @property
    def existing_ports(self) -> bool:
        """True when the tester's ports exist already."""
        return self.tester.left.interface is not None or self.tester.has_ports_of_its_own

    @property
    def external(self) -> bool:
        """True when the tester's ports exist already and the black box between them is measured."""
        return self.existing_ports and self.worker.left is None


class TopologyError(PodperfError):
    """A topology file that cannot be used: `problems` has one line each, with file, line, key, found and allowed."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@cache
def topology_schema() -> Mapping[str, Any]:
    """The JSON Schema of topology files."""
    schema: Mapping[str, Any] = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return schema


def load_topology(path: str | Path, data_planes: Collection[str] | None = None) -> Topology:
    """Read and check a topology file.

    With `data_planes`, the names that thresholds select must be among them. TopologyError reports everything that is
    wrong with the file at once.
    """
    try:
        document = read_yaml(Path(path))
    except PodperfError as error:
        raise TopologyError([str(error)]) from error
    violations = schema_problems(document, topology_schema())
    sound = _Sound(document, violations)
    problems = [*document.problems, *violations.values(), *_disagreements(sound, data_planes)]
    if problems:
        ordered = sorted(problems, key=lambda each: (each.line, each.key))
        raise TopologyError([each.render(document.path) for each in ordered])
    return _build(document)


class _Sound:
    """The part of a document that the schema has nothing against: what the other checks can rely on."""

    def __init__(self, document: Document, violations: Collection[Pointer]) -> None:
        self.document = document
        self._violations = violations

    def given(self, *pointer: str | int) -> bool:
        """True when the file has this key, with whatever value."""
        return pointer in self.document.lines

    def value(self, *pointer: str | int) -> Any:
        """The value here; None when it is absent or not sound."""
        value: Any = self.document.data
        for length, step in enumerate(pointer, start=1):
            if pointer[:length] in self._violations:
                return None
            value = value.get(step) if isinstance(step, str) else value[step]
            if value is None:
                return None
        return value

    def problem(self, pointer: Pointer, allowed: str, *, found: str = "") -> Problem:
        """The problem of what stands here, or of `found`."""
        return self.document.problem(
            pointer, f"found {found or self.document.shown(pointer, self.value(*pointer))}; allowed: {allowed}"
        )


def _disagreements(sound: _Sound, data_planes: Collection[str] | None) -> Iterator[Problem]:
    """What a schema cannot say."""
    for pointer in (("tester", "cpus"), ("worker", "cpus"), ("worker", "switch_cpus")):
        cpus = sound.value(*pointer)
        if cpus not in {None, "auto"}:
            try:
                parse_cpu_list(str(cpus))
            except ValueError as error:
                yield sound.problem(pointer, f"auto or a list of CPUs such as 0 or 2-5,7 ({error})")
    yield from _switch_disagreements(sound)
    yield from _port_disagreements(sound)
    yield from _trex_disagreements(sound)
    yield from _worker_disagreements(sound)
    thresholds = sound.value("thresholds")
    for position in range(len(thresholds or ())):
        yield from _threshold_disagreements(sound, ("thresholds", position), data_planes)


def _switch_disagreements(sound: _Sound) -> Iterator[Problem]:
    pointer = ("worker", "switch_cpus")
    cpus, worker = sound.value(*pointer), sound.value("worker", "cpus")
    if cpus in {None, "auto"}:
        return
    if worker in {None, "auto"}:
        yield sound.problem(pointer, "auto, unless `cpus` beside it names the worker's CPUs")
        return
    with suppress(ValueError):  # a list that is none is a problem of its own
        if not set(parse_cpu_list(str(cpus))) <= set(parse_cpu_list(str(worker))):
            yield sound.problem(pointer, f"CPUs of worker.cpus, which are {worker}")


_SIDES = ("left", "right")


def _port_disagreements(sound: _Sound) -> Iterator[Problem]:
    ports = [("tester", "ports", side) for side in _SIDES]
    existing = [sound.given(*port, "interface") for port in ports]
    for port, exists in zip(ports, existing, strict=True):
        for key in ("namespace", "destination_mac", "destination_address"):
            if sound.given(*port, key) and not any(existing) and (key == "namespace" or not _is_trex(sound)):
                yield sound.problem((*port, key), "only beside `interface`, for an existing interface")
        address = sound.value(*port, "destination_address")
        if address is not None and not _in_test_network(address):
            yield sound.problem((*port, "destination_address"), f"an IPv4 address within {TEST_NETWORK}")
        if exists and not all(existing):
            yield sound.problem(
                (*port, "interface"), "one for both ports, or for neither", found="one for this port only"
            )
    left, right = ([sound.value(*port, key) for key in ("namespace", "interface")] for port in ports)
    if left[1] is not None and left == right:
        yield sound.problem((*ports[1], "interface"), "another interface than the left port's")


def _is_trex(sound: _Sound) -> bool:
    return bool(sound.value("tester", "type") == "trex")


def _trex_disagreements(sound: _Sound) -> Iterator[Problem]:
    here = ("tester", "trex")
    if not _is_trex(sound):
        if sound.given(*here, "server"):
            yield sound.problem((*here, "server"), "only with `type: trex`", found="a server")
        return
    if sound.given("tester", "engine"):
        yield sound.problem(("tester", "engine"), "only with `type: software`")
    ports = {"left": 0, "right": 1, **(sound.value(*here, "ports") or {})}
    if ports["left"] == ports["right"]:
        yield sound.problem((*here, "ports"), "two ports", found=f"port {ports['left']} for both")
    named = next((side for side in _SIDES if sound.given("tester", "ports", side, "interface")), None)
    if named is not None and (not sound.given(*here, "server") or sound.given(*here, "server", "devices")):
        pointer = ("tester", "ports", named, "interface")
        yield sound.problem(pointer, "nothing, as this TRex has ports of its own (tester.trex.ports)")


def _worker_disagreements(sound: _Sound) -> Iterator[Problem]:
    connection = sound.value("worker", "connection") or "local"
    remote = connection == "ssh"
    address = ("worker", "ssh", "address")
    if remote and not sound.given(*address):
        yield sound.problem(address, "a host name or an IP address, as `connection: ssh` needs it", found="nothing")
    elif sound.given(*address) and not remote:
        yield sound.problem(address, "only with `connection: ssh`")

    ports = [("worker", "ports", side) for side in _SIDES]
    existing = [sound.given(*port, "interface") for port in ports]
    for port, exists in zip(ports, existing, strict=True):
        if exists and not all(existing):
            yield sound.problem(
                (*port, "interface"), "one for both ports, or for neither", found="one for this port only"
            )
        if sound.given(*port, "pci") and not exists:
            yield sound.problem((*port, "pci"), "only beside `interface`")
    for key in ("interface", "pci"):
        left, right = (sound.value(*port, key) for port in ports)
        if left is not None and left == right:
            yield sound.problem((*ports[1], key), "another one than the left port's")
    if remote and not any(existing):
        allowed = "interfaces for left and right, as a run makes no cable to another machine"
        yield sound.problem(("worker", "ports"), allowed, found="nothing")
    if all(existing):
        yield from _cable_disagreements(sound)


def _cable_disagreements(sound: _Sound) -> Iterator[Problem]:
    """The tester's side of cables whose other ends are the worker's ports."""
    for side in _SIDES:
        port = ("tester", "ports", side)
        if (sound.value("tester", "type") or "software") == "software" and not sound.given(*port, "interface"):
            allowed = f"the interface that is cabled to worker.ports.{side}"
            yield sound.problem((*port, "interface"), allowed, found="nothing")
        for key in ("destination_mac", "destination_address"):
            if sound.given(*port, key):
                yield sound.problem((*port, key), "only for a black box, without worker.ports")


def _in_test_network(address: str) -> bool:
    try:
        return ipaddress.IPv4Address(address) in TEST_NETWORK
    except ValueError:
        return False


def _threshold_disagreements(sound: _Sound, here: Pointer, data_planes: Collection[str] | None) -> Iterator[Problem]:
    metric, unit, minimum = (sound.value(*here, key) for key in ("metric", "unit", "minimum"))
    if metric is not None:
        latency = metric.startswith("latency")
        bound, unfit = ("maximum", "minimum") if latency else ("minimum", "maximum")
        units = ("us", "ratio of baseline") if latency else ("ratio of baseline", "Mpps", "Gbps")
        kind = "a latency" if latency else "a rate"
        if sound.given(*here, unfit):
            yield sound.problem((*here, unfit), f"`{bound}` for {kind}", found=f"a {unfit} for {metric}")
        elif not sound.given(*here, bound):
            yield sound.problem((*here, bound), f"a number above 0, as {kind} needs it", found="nothing")
        if unit is not None and unit not in units:
            yield sound.problem((*here, "unit"), f"{', '.join(units)} for {metric}")
        elif unit == "ratio of baseline" and not latency and minimum is not None and minimum > 1:
            yield sound.problem((*here, "minimum"), "a ratio above 0 and up to 1 (0.5 is half of the baseline)")
    frame = sound.value(*here, "frame")
    if isinstance(frame, str):
        try:
            FrameSize.parse(frame)
        except ValueError:
            yield sound.problem((*here, "frame"), "a frame size of 64 to 3000 bytes (with FCS) or IMIX")
    data_plane = sound.value(*here, "data_plane")
    if data_planes is not None and data_plane is not None and data_plane not in data_planes:
        yield sound.problem((*here, "data_plane"), ", ".join(sorted(data_planes)) + suggestion(data_plane, data_planes))


def _build(document: Document) -> Topology:
    """The values of a document that has no problems."""
    data = with_defaults(topology_schema(), document.data)
    tester, worker, traffic, method = (data[key] for key in ("tester", "worker", "traffic", "method"))
    left, right = (_port(tester["ports"][side]) for side in _SIDES)
    both = traffic["directions"] == "bidirectional"
    return Topology(
        path=document.path,
        name=data["name"],
        description=data["description"].strip(),
        tester=TesterSettings(
            tester["type"],
            tester["engine"] if tester["type"] == "software" else "trex",
            _cpus(tester["cpus"]),
            left,
            right,
            _trex(tester["trex"]),
            tester.get("maximum_load"),
        ),
        worker=WorkerSettings(
            worker["connection"],
            _cpus(worker["cpus"]),
            _cpus(worker["switch_cpus"]),
            worker["hugepages"] == "auto",
            _ssh(worker["ssh"]),
            _worker_port(worker["ports"]["left"]),
            _worker_port(worker["ports"]["right"]),
            _virtual_functions(worker["sriov"]),
        ),
        traffic=TrafficSettings(
            BOTH_DIRECTIONS if both else (Direction(traffic["directions"]),), int(traffic["flows"])
        ),
        method=MethodSettings(
            method["search"],
            int(method["mrr"]["trials"]),
            float(method["mrr"]["duration"]),
            float(method["patience"]),
        ),
        thresholds=tuple(map(_threshold, data["thresholds"])),
        labels={key: document.texts["labels", key] for key in data["labels"]},
        not_comparable=data["not_comparable"].strip(),
    )


def _port(settings: Mapping[str, str]) -> PortSettings:
    mac = settings.get("destination_mac")
    return PortSettings(
        settings.get("interface"),
        settings.get("namespace"),
        mac.lower() if mac is not None else None,
        settings.get("destination_address"),
    )


def _trex(settings: Mapping[str, Any]) -> TrexSettings:
    server = settings.get("server")
    return TrexSettings(
        settings["address"],
        int(settings["port"]),
        int(settings["publisher_port"]),
        settings.get("client"),
        settings["interpreter"],
        int(settings["ports"]["left"]),
        int(settings["ports"]["right"]),
        _trex_server(server) if server is not None else None,
    )


def _trex_server(settings: Mapping[str, Any]) -> TrexServerSettings:
    devices, low_end = settings.get("devices"), settings["low_end"]
    return TrexServerSettings(
        settings["directory"],
        (devices[0].lower(), devices[1].lower()) if devices is not None else None,
        None if low_end == "auto" else low_end == "yes",
        tuple(settings["options"]),
    )


def _ssh(settings: Mapping[str, Any]) -> SshSettings:
    return SshSettings(
        settings.get("address"), int(settings["port"]), settings["user"], settings.get("key"), settings["known_hosts"]
    )


def _worker_port(settings: Mapping[str, str]) -> WorkerPortSettings | None:
    interface, pci = settings.get("interface"), settings.get("pci")
    return WorkerPortSettings(interface, pci.lower() if pci is not None else None) if interface is not None else None


def _virtual_functions(settings: Mapping[str, Any]) -> VirtualFunctionSettings:
    number = None if settings["vfs"] == "auto" else int(settings["vfs"])
    vlan, queues = (int(settings[key]) for key in ("vlan", "queues"))
    return VirtualFunctionSettings(number, vlan, settings["trust"], settings["spoof_check"], queues)


def _cpus(setting: str | int) -> tuple[int, ...] | None:
    return None if setting == "auto" else parse_cpu_list(str(setting))


def _threshold(settings: Mapping[str, Any]) -> Threshold:
    return Threshold(
        metric=settings["metric"],
        unit=settings["unit"],
        minimum=settings.get("minimum"),
        maximum=settings.get("maximum"),
        data_plane=settings.get("data_plane"),
        pods=None if settings.get("pods") is None else int(settings["pods"]),
        frame=None if settings.get("frame") is None else FrameSize.parse(settings["frame"]),
    )
