"""Loads a comparison file: reads the YAML, checks it against the schema and for disagreements, builds the values."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from podperf.cpu_lists import parse_cpu_list
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.documents.schema_check import schema_problems, with_defaults
from podperf.documents.yaml_document import Document, Pointer, Problem, read_yaml
from podperf.errors import PodperfError
from podperf.experiments.before_after import fewest_rounds
from podperf.experiments.comparison import VariantComparison
from podperf.experiments.contender import Contender, WantedPlacement
from podperf.figures import count
from podperf.frames import AddressFamily
from podperf.metrics import METRICS
from podperf.model import BOTH_DIRECTIONS, CABLE, Chain, Direction, End, Ends, FrameSize
from podperf.testbed.access import read_topology
from podperf.testbed.scenarios import PLACEMENTS
from podperf.topology import Hook, Moment, TopologyError
from podperf.topology.disagreements import Sound

COMPARISON_SCHEMA = Path(__file__).resolve().parents[3] / "comparisons" / "comparison.schema.json"


class ComparisonError(PodperfError):
    """A comparison file that cannot be used. Each line of `problems` has file, line, key, found and allowed values."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def comparison_schema() -> Mapping[str, Any]:
    """The JSON Schema of comparison files, with every metric, data plane and scenario of this podperf."""
    return _schema_with(tuple(METRICS), tuple(DATA_PLANES), tuple(PLACEMENTS))


@cache
def _schema_with(metrics: tuple[str, ...], planes: tuple[str, ...], scenarios: tuple[str, ...]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = json.loads(COMPARISON_SCHEMA.read_text(encoding="utf-8"))
    for place, names in choices(schema, metrics, planes, scenarios):
        place["enum"] = list(names)
    return schema


def choices(
    schema: Mapping[str, Any], metrics: Collection[str], planes: Collection[str], scenarios: Collection[str]
) -> Iterator[tuple[dict[str, Any], Collection[str]]]:
    """The parts of the schema that allow only names of tables, with these names."""
    variant = schema["properties"]["variants"]["items"]["properties"]
    yield schema["properties"]["metric"], metrics
    yield schema["$defs"]["chain"]["properties"]["data_plane"], planes
    yield variant["placement"]["properties"]["scenario"], scenarios


def load_comparison(path: str | Path) -> VariantComparison:
    """Read and check a comparison file, and topologies of its variants. ComparisonError lists all problems."""
    try:
        document = read_yaml(Path(path))
    except PodperfError as error:
        raise ComparisonError([str(error)]) from error
    violations = schema_problems(document, comparison_schema())
    sound = Sound(document, violations)
    problems = [*document.problems, *violations.values(), *_disagreements(sound)]
    if problems:
        ordered = sorted(problems, key=lambda each: (each.line, each.key))
        raise ComparisonError([each.render(document.path) for each in ordered])
    return _build(document, with_defaults(comparison_schema(), document.data))


def _disagreements(sound: Sound) -> Iterator[Problem]:
    names: dict[str, int] = {}
    number = len(sound.value("variants") or ())
    for index in range(number):
        here: Pointer = ("variants", index)
        name = sound.value(*here, "name")
        if name in names:
            first = sound.document.line(("variants", names[name], "name"))
            yield sound.problem((*here, "name"), f"a name of its own (the variant in line {first} has this one)")
        elif name is not None:
            names[name] = index
        yield from _chain_disagreements(sound, here)
        yield from _placement_disagreements(sound, (*here, "placement"))
        yield from _hook_disagreements(sound, here)
        yield from _topology_disagreements(sound, (*here, "topology"))
    needed, rounds = fewest_rounds(max(1, number - 1)), sound.value("rounds")
    if rounds is not None and rounds < needed:
        told = f"{needed} or more: with {count(number, 'variant')}, fewer rounds cannot give the confidence"
        yield sound.problem(("rounds",), told)


def _key_of_chain(sound: Sound, here: Pointer, key: str) -> Any:
    own = sound.value(*here, "chain", key)
    return own if own is not None else sound.value("chain", key)


def _chain_disagreements(sound: Sound, here: Pointer) -> Iterator[Problem]:
    """Unknown forwarders, and too few pods. A key may stand in the variant or for all variants."""
    name = _key_of_chain(sound, here, "data_plane")
    kind = DATA_PLANES.get(name)
    if kind is None:
        if not (sound.given(*here, "chain", "data_plane") or sound.given("chain", "data_plane")):
            known = ", ".join(DATA_PLANES)
            yield sound.document.problem((*here, "chain", "data_plane"), f"found nothing; allowed: {known}")
        return
    forwarder, pods, ends = (_key_of_chain(sound, here, key) for key in ("forwarder", "pods", "ends"))
    least = 0 if any(end != End.PORT for end in (ends or {}).values()) else kind.least_pods
    for key, wrong, allowed in (
        ("forwarder", forwarder is not None and forwarder not in kind.forwarders, ", ".join(kind.forwarders)),
        ("pods", pods is not None and pods < least, f"{least} or more"),
    ):
        if wrong:
            own = sound.given(*here, "chain", key)
            yield sound.problem((*(here if own else ()), "chain", key), f"{allowed} (data plane {name})")
    if pods is None and least > 1:
        text = f"found nothing, which means 1; allowed: {least} or more (data plane {name})"
        yield sound.document.problem((*here, "chain", "pods"), text)


def _placement_disagreements(sound: Sound, here: Pointer) -> Iterator[Problem]:
    found = {}
    for key in ("cpus", "switch_cpus"):
        if sound.value(*here, key) is None:
            continue
        try:
            found[key] = sound.cpus(*here, key) or ()
        except ValueError as error:
            yield sound.problem((*here, key), f"a list of CPUs such as 1 or 2-5,7, not a mask ({error})")
        if sound.given(*here, "scenario"):
            yield sound.problem((*here, key), "no such key beside `scenario`, which chooses the CPUs")
    if sound.given(*here, "switch_cpus") and not sound.given(*here, "cpus"):
        yield sound.problem((*here, "switch_cpus"), "this key only beside `cpus`")
    elif not set(found.get("switch_cpus", ())) <= set(found.get("cpus", found.get("switch_cpus", ()))):
        yield sound.problem((*here, "switch_cpus"), "a part of `cpus`")


def _topology_disagreements(sound: Sound, here: Pointer) -> Iterator[Problem]:
    """A topology of a variant is that of a counted machine: only there, figures of two machines can be compared."""
    path = sound.value(*here)
    if path is None:
        return
    try:
        topology = read_topology(_beside(Path(sound.document.path), path))
    except TopologyError as error:
        yield sound.problem(here, f"a topology file without mistakes ({error.problems[0]})")
        return
    if not topology.counts_instructions:
        yield sound.problem(here, "a topology of a counted machine (workers: [{connection: counted}])")


def _hook_disagreements(sound: Sound, here: Pointer) -> Iterator[Problem]:
    pods, kind = _key_of_chain(sound, here, "pods"), DATA_PLANES.get(_key_of_chain(sound, here, "data_plane"))
    if kind is not None and kind.cabling is not Cabling.WORKER:
        pods = 0  # of podperf's own; those behind a black box are not known
    for number in range(len(sound.value(*here, "hooks") or ())):
        hook = (*here, "hooks", number)
        place = sound.value(*hook, "in")
        if place is None or place == "worker":
            continue
        if sound.value(*hook, "when") == Moment.BEFORE:
            yield sound.problem((*hook, "in"), "worker: before the set-up there is no pod")
        named = Hook("", place=place).pod
        there = 1 if pods is None else pods
        if there == 0 or (named is not None and named > there):
            yield sound.problem((*hook, "in"), f"worker{f', pods, or pod 1 to pod {there}' if there else ''}")


def _build(document: Document, data: Mapping[str, Any]) -> VariantComparison:
    path, frame = Path(document.path), FrameSize.parse(data["frame"])
    ways = data.get("directions")
    return VariantComparison(
        path=path,
        name=data["name"],
        description=data["description"].strip(),
        variants=tuple(_contender(variant, data, path, frame) for variant in data["variants"]),
        frame=frame,
        flows=data.get("flows"),
        directions=None if ways is None else BOTH_DIRECTIONS if ways == "bidirectional" else (Direction(ways),),
        topology=_beside(path, data["topology"]) if "topology" in data else None,
        metric=METRICS[data["metric"]] if "metric" in data else None,
        relevant=data["relevant_percent"] / 100 if "relevant_percent" in data else None,
        rounds=data["rounds"],
        trial_seconds=float(data["trial_seconds"]),
    )


def _contender(data: Mapping[str, Any], common: Mapping[str, Any], path: Path, frame: FrameSize) -> Contender:
    chain, traffic = ({**common[key], **data[key]} for key in ("chain", "traffic"))
    placement = data["placement"]
    return Contender(
        data["name"],
        Chain(
            chain["data_plane"],
            chain.get("pods", 1),
            chain.get("forwarder"),
            chain.get("workers", 1),
            join=chain.get("join", CABLE),
            ends=_ends(chain),
        ),
        placement=WantedPlacement(
            PLACEMENTS.get(placement.get("scenario", "")),
            _cpus(placement.get("cpus")),
            _cpus(placement.get("switch_cpus")),
        ),
        hooks=tuple(Hook(hook["run"], hook.get("undo"), Moment(hook["when"]), hook["in"]) for hook in data["hooks"]),
        topology=_beside(path, data["topology"]) if "topology" in data else None,
        frame=frame,
        flows=common.get("flows"),
        family=AddressFamily(traffic["family"]) if "family" in traffic else None,
        vlan=traffic.get("vlan"),
        tester={**common["tester"], **data["tester"]},
    )


def _ends(chain: Mapping[str, Any]) -> Ends:
    return Ends(**{side: End(each) for side, each in chain.get("ends", {}).items()})


def _cpus(given: str | int | None) -> tuple[int, ...] | None:
    return None if given is None else parse_cpu_list(str(given))


def _beside(path: Path, other: str) -> Path:
    """The path of another file, which this one names relative to itself."""
    return path.parent / other
