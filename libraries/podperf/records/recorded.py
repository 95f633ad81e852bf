"""A record as reports and histories read it. A value that its version lacks, or that nobody knew, has a default."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cache, cached_property
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from podperf.experiments.claim import Finding
from podperf.figures import percent, phase_words, short
from podperf.kernel.full_tables import FullTable
from podperf.kubernetes.pod_network import PodNetwork
from podperf.metrics import METRICS, Measured
from podperf.model import Chain, Direction, TrafficProfile
from podperf.testers.base import TesterLimits
from podperf.thresholds import ThresholdVerdict

Data = Mapping[str, Any]  # a part of the document, as the schema describes it
Kind = TypeVar("Kind")
TRIALS_SUFFIX = ".trials.jsonl"


@dataclass(frozen=True)
class Figure(Measured):
    """The figure of a metric. A rate has its bit rates, and its share of the line rate if the link has a speed."""

    l1_bits_per_second: float = 0.0
    l2_bits_per_second: float = 0.0
    percent_of_line_rate: float | None = None


@dataclass(frozen=True)
class RecordedLatency:
    """Latency in ns, of the trial that `of` names."""

    of: str
    minimum_ns: float
    mean_ns: float
    p50_ns: float
    p90_ns: float
    p99_ns: float
    p99_9_ns: float
    maximum_ns: float


@dataclass(frozen=True)
class RecordedNoise:
    """Whether other work disturbed the measuring CPUs, and how."""

    noisy: bool
    reason: str | None = None


@dataclass(frozen=True)
class RecordedPlacement:
    """The CPUs of tester and system under test on the first worker. `hugepages_of_mib` is None if it is not known."""

    tester: Sequence[int]
    sut: Sequence[int]
    shared: Sequence[int]
    hugepages_of_mib: int | None = None
    apart: bool | None = None


@dataclass(frozen=True)
class RecordedThreshold:
    """A threshold of the topology. `frame` is a name."""

    metric: str
    unit: str
    minimum: float | None
    maximum: float | None
    data_plane: str | None
    pods: int | None
    frame: str | None


@dataclass(frozen=True)
class RecordedDirection:
    """The frames of a trial in one direction."""

    direction: Direction
    sent: int
    received: int
    duplicated: int
    reordered: int
    corrupted: int
    duration: float
    late: int


@dataclass(frozen=True)
class RecordedTrial:
    """One trial. `load` is None if the tester sent as fast as it could."""

    phase: str
    load: float | None
    duration: float
    elapsed: float
    invalid: str | None
    stray: int
    loss_ratio: float
    achieved_load: float
    directions: Sequence[RecordedDirection]
    noise: RecordedNoise | None = None
    loop: Data | None = None
    frames: int | None = None
    overload: Data | None = None

    @property
    def of_one_load(self) -> bool:
        """Whether the trial had one load. A closed loop and a burst have none, and an overload comes before another."""
        return not (self.loop or self.frames or self.overload)


@dataclass(frozen=True)
class RecordedTest:
    """A test of a suite. `log` is its place in Robot Framework's log."""

    name: str
    suite: str
    tags: Sequence[str]
    sections: Sequence[str]
    log: str | None = None


@dataclass(frozen=True)
class RecordedTestbed:
    """A topology file. `not_comparable` says why figures must not be compared with those of other testbeds."""

    name: str
    path: str
    sha256: str | None
    labels: Mapping[str, str]
    not_comparable: str | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """One test. The fields are those of record.schema.json, which says what each of them means.

    `document` is the whole record in JSON types, without its trials. `figures` has the results by the names of metrics.
    """

    document: Data = field(repr=False)
    id: str
    test: RecordedTest
    started: str
    ended: str | None
    outcome: str
    reason: str
    version_under_test: str = ""
    testbed: RecordedTestbed | None = None
    chain: Chain | None = None
    networking_model: str | None = None
    traffic: TrafficProfile | None = None
    placement: RecordedPlacement | None = None
    roles: Sequence[Mapping[str, Sequence[int]]] = ()  # of each worker
    data_plane: Data = field(default_factory=dict)
    tester: Data = field(default_factory=dict)
    tester_limits: TesterLimits | None = None
    link_bits_per_second: float | None = None
    special_capabilities: Sequence[str] = ()
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    environment: Data = field(default_factory=dict)
    interfaces: Data = field(default_factory=dict)
    methods: Mapping[str, Data] = field(default_factory=dict)
    latency: RecordedLatency | None = None
    quietness: RecordedNoise | None = None
    waited_for_quietness: float = 0.0
    full_tables: Sequence[FullTable] = ()
    thresholds: Sequence[RecordedThreshold] = ()
    verdict: ThresholdVerdict | None = None
    findings: Sequence[Finding] = ()
    trials: Sequence[RecordedTrial] = ()

    @classmethod
    def of(cls, document: Data) -> Record:
        """The record in this document, which fits the schema.

        Values that contradict each other, such as bounds without a load, end in one of Python's errors.
        """
        return _typed(cls, {**document, "document": {**document, "trials": []}})

    def method(self, name: str) -> Data:
        """The part of this method. Empty if the test did not have the method."""
        return self.methods.get(name) or {}

    @property
    def cluster(self) -> Data:
        """The description of the cluster in which the tester's pods are. Empty if they are in none."""
        found = self.tester.get("cluster")
        return found if isinstance(found, Mapping) else {}

    @property
    def pod_network(self) -> str:
        """The network of this cluster's pods in one line. Empty if nobody knows it."""
        found = self.cluster.get("network")
        return PodNetwork.described(found).words if isinstance(found, Mapping) else ""

    @property
    def sender_forwards(self) -> bool:
        """Whether the sender's CPU does the work of the network under test, as in pods without rights. The highest rate
        of the sender is then the rate of sending through this network, and no lower bound of another one."""
        return bool(self.cluster) and not self.tester.get("receive_threads")

    @property
    def programs_at_ends(self) -> bool:
        """Whether programs of the pods at the ends carry frames, so that rates are lower bounds of the data plane's."""
        return any(end.get("program") for end in (self.data_plane.get("ends") or {}).values())

    @property
    def limit(self) -> str:
        """The words for the cause that made a rate of this record a lower bound."""
        if self.programs_at_ends:
            return "the rate includes the work of programs in the pods at the ends"
        if self.sender_forwards:
            return "the CPU of the sending pod was the limit, which does the network's work"
        return "the tester was the limit"

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """The figure of each metric, by its name."""
        return {name: _figure(each, METRICS[name].quantity.key) for name, each in self.document["results"].items()}

    @property
    def file_name(self) -> str:
        """The name of the record's file, or of the file of its trials if the test never ended."""
        return f"{self.id}{TRIALS_SUFFIX if self.outcome == 'interrupted' and self.ended is None else '.json'}"

    @property
    def testbed_name(self) -> str:
        """The name of the testbed. Empty if it is not known."""
        return self.testbed.name if self.testbed else ""


def trials_of(documents: Iterable[Data]) -> list[RecordedTrial]:
    """Trials as records have them."""
    return [_typed(RecordedTrial, document) for document in documents]


def _figure(found: Data, key: str) -> Figure:
    names = ("l1_bits_per_second", "l2_bits_per_second", "percent_of_line_rate")
    of_a_rate = {name: found[name] for name in names if name in found}
    figure: Figure = Figure.recorded(found, key)
    return replace(figure, aggregate=found.get(f"aggregate_{key}"), **of_a_rate)


def _typed(kind: Callable[..., Kind], data: Data) -> Kind:
    """A dataclass with the values of its fields' names.

    A field gets its default where its value is missing, or null although it is never None. An end of an interval that
    is null is infinite.
    """
    found = {}
    for name, (made, optional, needed) in _fields(kind).items():
        value = data.get(name)
        if value is not None:
            found[name] = made(value)
        elif needed and name in data:
            found[name] = None if optional else math.inf
    return kind(**found)


@cache
def _fields(kind: Callable[..., Any]) -> Mapping[str, tuple[Callable[[Any], Any], bool, bool]]:
    """By the name of a field: what makes its value, whether the value may be None, and whether it has no default."""
    hints = get_type_hints(kind)
    return {
        each.name: (
            _maker(hints[each.name]),
            NoneType in get_args(hints[each.name]),
            each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)  # type: ignore[arg-type]
    }


def _maker(hint: Any) -> Callable[[Any], Any]:
    """The function that makes a value of this type from one of JSON."""
    inner = [each for each in get_args(hint) if each not in {NoneType, Ellipsis}]
    if get_origin(hint) in {Sequence, tuple}:
        each_made = _maker(inner[0])
        return lambda value: tuple(map(each_made, value))
    if get_origin(hint) is Mapping:
        key_made, value_made = map(_maker, inner)
        return lambda value: {key_made(key): value_made(each) for key, each in value.items()}
    if len(inner) == 1:  # or None
        return _maker(inner[0])
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda value: _typed(hint, value)
    return hint if isinstance(hint, type) and issubclass(hint, Enum) else lambda value: value


# RFC 2544 section 10 wants duplicate and reordered frames reported beside the lost ones.
KINDS = ("corrupted", "duplicated", "reordered")  # of frames that arrived, and not as they must
_WORDS = {"corrupted": "corrupted", "duplicated": "a second time", "reordered": "after a later one"}


@dataclass(frozen=True)
class Counts:
    """The frames of valid trials. `received` counts each intact frame once.

    `late` frames left more than 1 ms after they were due. They are the tester's. `paced` are all frames of trials with
    a load. No other frame can be late. `stray` frames came from another sender, or are the rests of test frames.
    """

    sent: int = 0
    received: int = 0
    corrupted: int = 0
    duplicated: int = 0
    reordered: int = 0
    late: int = 0
    paced: int = 0
    stray: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def arrived(self) -> int:
        """All test frames that arrived, the corrupted ones and the copies too."""
        return self.received + self.corrupted + self.duplicated

    def said(self, kinds: Iterable[str]) -> list[str]:
        """One sentence for each of these kinds whose number is not zero."""
        return [
            f"{short(found)} of {short(self.arrived)} frames arrived {_WORDS[kind]} ({percent(found / self.arrived)})"
            for kind in kinds
            if (found := getattr(self, kind))
        ]


def counts_by_phase(trials: Iterable[RecordedTrial]) -> Mapping[tuple[str, str], Counts]:
    """The counts of each phase and direction. `trials` are those of a record. Stray frames have no direction."""
    found: dict[tuple[str, str], Counts] = {}
    for trial in (each for each in trials if each.invalid is None):
        ways: dict[tuple[str, str], Counts] = {
            (trial.phase, direction.direction): _counts(direction, trial.load is not None)
            for direction in trial.directions
        }
        if trial.stray:
            ways[trial.phase, ""] = Counts(stray=trial.stray)
        for key, counts in ways.items():
            found[key] = found.get(key, Counts()) + counts
    return found


def _counts(way: RecordedDirection, paced: bool) -> Counts:
    names = ("sent", "received", *KINDS, "late")
    return Counts(**{name: getattr(way, name) for name in names}, paced=way.sent if paced else 0)


def badly_delivered(trials: Iterable[RecordedTrial], flows: int, most: float) -> str:
    """Says that more than the share `most` of the frames arrived corrupted, twice or, in one flow, reordered.

    Empty if no phase of the test has more of them in any direction. The loss ratio of a goal contains only the
    corrupted ones. Frames of different flows may overtake each other.
    """
    kinds = KINDS if flows == 1 else KINDS[:2]
    shares = {
        key: (sum(getattr(counts, kind) for kind in kinds) / counts.arrived, counts)
        for key, counts in counts_by_phase(trials).items()
        if counts.arrived
    }
    if not shares:
        return ""
    phase, way = max(shares, key=lambda key: shares[key][0])
    share, counts = shares[phase, way]
    if share <= most:
        return ""
    said = " and ".join(counts.said(kinds))
    return f"{phase_words(phase)}, {way}: {said}; the goals of the search allow {percent(most)}"
