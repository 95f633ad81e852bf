"""Loads a topology file: reads the YAML, checks it against the schema and for disagreements, and builds the values."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

from podperf.cpu_lists import parse_cpu_list
from podperf.documents.schema_check import schema_problems, with_defaults
from podperf.documents.settings import schema_of, settings_of
from podperf.documents.yaml_document import Document, Pointer, Problem, read_yaml
from podperf.errors import PodperfError
from podperf.frames import TAG_TYPES, AddressFamily, Headers, Varying, Vlan
from podperf.metrics import METRICS, RATIO, Metric, by_quantity
from podperf.model import BOTH_DIRECTIONS, Direction, FrameSize, VirtualFunctionSettings
from podperf.third_party import add_package
from podperf.topology.disagreements import Sound, disagreements
from podperf.topology.old_keys import without_old_keys
from podperf.topology.settings import (
    OWN_TESTERS,
    CountedSettings,
    DataPlaneType,
    FileSettings,
    Hook,
    KernelSettings,
    KindSettings,
    MethodSettings,
    Place,
    PodSettings,
    PortSettings,
    RuntimeType,
    SshSettings,
    TesterSettings,
    TesterType,
    Threshold,
    Topology,
    TrafficSettings,
    WorkerPortSettings,
    WorkerSettings,
    WrongSetting,
)

_SETTINGS: Pointer = ("tester", "settings")
_OF_PODS: Pointer = ("pods", "settings")
_OF_DATA_PLANES = "data_planes"
Kind = TypeVar("Kind")


def add_packages(document: Document) -> Iterator[Problem]:
    """Add the parts of the packages whose folders the topology names. Returns the problems of packages without parts.

    A relative path begins at the folder of the topology file.
    """
    folders = document.data.get("third_party")
    for number, folder in enumerate(folders if isinstance(folders, list) else ()):
        if not isinstance(folder, str) or not folder:
            continue  # the schema refuses it
        try:
            add_package(Path(document.path).parent / Path(folder).expanduser())
        except (PodperfError, ValueError) as error:
            allowed = f"the folder of a Python package with parts of podperf ({error})"
            pointer = ("third_party", number)
            yield document.problem(pointer, f"found {document.shown(pointer, folder)}; allowed: {allowed}")


def _named(document: Document, part: str, key: str, kinds: Mapping[str, Kind], usual: str) -> Kind | None:
    """The kind that the topology names by a key of a part, or the usual one. None if there is no such kind."""
    keys = document.data.get(part)
    name = keys.get(key, usual) if isinstance(keys, dict) else usual
    return kinds.get(name) if isinstance(name, str) else None


def unread_settings(sound: Sound, runtime: RuntimeType | None) -> Iterator[Problem]:
    """The settings of a pod runtime that has none."""
    if runtime is not None and runtime.settings_schema is None and sound.value(*_OF_PODS):
        name = sound.value("pods", "runtime")
        yield sound.problem(_OF_PODS, f"nothing, as pods of the runtime {name} have no `settings`")


def tester_settings(
    sound: Sound, tester: TesterType | None, schema: Mapping[str, Any]
) -> tuple[KindSettings | None, list[Problem]]:
    """The settings that only this type of tester has, and their problems. None if they have problems.

    The schema refuses wrong values first.
    """
    if tester is None or not sound.whole("tester"):
        return None, []
    given = with_defaults(schema["properties"]["tester"], sound.document.data.get("tester", {}), schema)
    if sound.value(*_SETTINGS) and tester.settings_schema is None:
        return None, [sound.problem(_SETTINGS, f"nothing, as a tester of the type {given['type']} has no `settings`")]
    try:
        kind = tester.read_settings(given)
        said = kind.type
    except WrongSetting as error:
        return None, [sound.problem((*_SETTINGS, *error.key), error.allowed)]
    except Exception as error:  # foreign code may raise any exception
        text = f"the tester {given['type']} cannot read its settings: {type(error).__name__}: {error}"
        return None, [sound.document.problem(_SETTINGS, text)]
    if said != given["type"]:
        text = f"the tester {given['type']} says that its type is {said!r}"
        return None, [sound.document.problem(_SETTINGS, text)]
    return kind, []


def data_plane_settings(
    sound: Sound, data_planes: Mapping[str, DataPlaneType], schema: Mapping[str, Any]
) -> tuple[Mapping[str, Any], list[Problem]]:
    """The settings of data planes by their names, and the problems that the schema cannot find."""
    found: dict[str, Any] = {}
    problems: list[Problem] = []
    if not sound.whole(_OF_DATA_PLANES):
        return found, problems
    given = with_defaults(schema["properties"][_OF_DATA_PLANES], sound.value(_OF_DATA_PLANES) or {}, schema)
    for name, values in given.items():
        if (kind := data_planes[name].settings if name in data_planes else None) is not None:
            try:
                found[name] = settings_of(kind, values, Path(sound.document.path).parent)
            except WrongSetting as error:
                problems.append(sound.problem((_OF_DATA_PLANES, name, *error.key), error.allowed))
    return found, problems


def build(document: Document, data: Mapping[str, Any], kind: KindSettings, data_planes: Mapping[str, Any]) -> Topology:
    """The topology of a document without problems. `data` has the document's content and the schema's defaults.

    `kind` has the settings that only the tester's type has, and `data_planes` those of data planes.
    """
    tester, method = data["tester"], data["method"]
    left, right = (_port(tester["ports"][side]) for side in ("left", "right"))
    return Topology(
        path=document.path,
        name=data["name"],
        description=data["description"].strip(),
        tester=TesterSettings(
            kind,
            _cpus(tester["cpus"]),
            left,
            right,
            tester.get("maximum_load"),
            SshSettings(**tester["ssh"]),
        ),
        workers=tuple(_worker(document, each, number) for number, each in enumerate(data["workers"])),
        traffic=_traffic(data["traffic"]),
        method=MethodSettings(
            method["search"],
            method["mrr"]["trials"],
            float(method["mrr"]["duration"]),
            float(method["patience"]),
            method.get("loss_ratio"),
        ),
        thresholds=tuple(map(_threshold, data["thresholds"])),
        pods=PodSettings(data["pods"]["runtime"], data["pods"]["settings"]),
        labels={key: document.texts["labels", key] for key in data["labels"]},
        data_planes=data_planes,
        black_box=tuple(data.get("black_box", {}).get("programs", ())),
        not_comparable=data["not_comparable"].strip(),
        results_server=data["results"].get("server"),
    )


def _port(settings: Mapping[str, str]) -> PortSettings:
    return PortSettings(**_lower(settings, "destination_mac"))


def _lower(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return {**settings, key: settings[key].lower()} if key in settings else settings


def _worker(document: Document, settings: Mapping[str, Any], number: int) -> WorkerSettings:
    here = ("workers", number)
    return WorkerSettings(
        settings["connection"],
        _cpus(settings["cpus"]),
        _cpus(settings["switch_cpus"]),
        settings["hugepages"] == "auto",
        SshSettings(**settings["ssh"]),
        _worker_port(settings["ports"]["left"]),
        _worker_port(settings["ports"]["right"]),
        _virtual_functions(**settings["sriov"]),
        document.key(here),
        _counted(document, (*here, "counted"), settings["counted"]),
    )


def _counted(document: Document, here: Pointer, settings: Mapping[str, Any]) -> CountedSettings:
    kernel = settings["kernel"]
    return CountedSettings(
        int(settings["seed"]),
        KernelSettings(
            kernel["package"],
            _path(document, kernel.get("image")),
            _path(document, kernel.get("modules")),
            kernel["words"],
        ),
        tuple(settings["packages"]),
        tuple(FileSettings(_beside(document, file["from"]), file["to"]) for file in settings["files"]),
        {
            cast(Place, place): {name: document.texts[*here, "sysctls", place, name] for name in values}
            for place, values in settings["sysctls"].items()
            if values
        },
        {
            cast(Place, place): tuple(_beside(document, file) for file in files)
            for place, files in settings["nftables"].items()
            if files
        },
        tuple(
            Hook(hook.get("run", ""), place=hook["in"], program=_path(document, hook.get("program")))
            for hook in settings["hooks"]
        ),
        settings["detail"],
    )


def _path(document: Document, path: str | None) -> str | None:
    return None if path is None else _beside(document, path)


def _beside(document: Document, path: str) -> str:
    """A path of the file: relative ones begin at the folder of the file."""
    return str(Path(document.path).parent / Path(path).expanduser())


def _worker_port(settings: Mapping[str, str]) -> WorkerPortSettings | None:
    return WorkerPortSettings(**_lower(settings, "pci")) if settings else None


def _virtual_functions(vfs: str | int, vlan: int | Mapping[str, int], **others: Any) -> VirtualFunctionSettings:
    vlans = (vlan, vlan) if isinstance(vlan, int) else (vlan["left"], vlan["right"])
    return VirtualFunctionSettings(None if vfs == "auto" else int(vfs), vlans, **others)


def _cpus(setting: str | int) -> tuple[int, ...] | None:
    return None if setting == "auto" else parse_cpu_list(str(setting))


def _traffic_problems(sound: Sound, schema: Mapping[str, Any]) -> Iterator[Problem]:
    """What no test frame can have."""
    if sound.whole("traffic"):
        try:
            given = with_defaults(schema["properties"]["traffic"], sound.value("traffic") or {}, schema)
            _traffic(given).profile(FrameSize.parse(1518))
        except ValueError as error:
            yield sound.problem(("traffic",), str(error))


def _traffic(traffic: Mapping[str, Any]) -> TrafficSettings:
    left, right = (_tags(traffic["vlans"].get(side, ())) for side in ("left", "right"))
    headers = Headers(
        family=AddressFamily(traffic["family"]),
        left=left,
        right=right,
        dscp=traffic["dscp"],
        hop_limit=traffic["hop_limit"],
        dont_fragment=traffic["dont_fragment"] == "yes",
        udp_checksum=traffic["udp_checksum"] == "yes",
        varying=tuple(each for each in Varying if each in traffic["varying"]),
        random=traffic["order"] == "random",
    )
    both = traffic["directions"] == "bidirectional"
    directions = BOTH_DIRECTIONS if both else (Direction(traffic["directions"]),)
    return TrafficSettings(directions, traffic["flows"], headers)


def _tags(tags: Sequence[int | Mapping[str, Any]]) -> tuple[Vlan, ...]:
    """The tags with these VLAN IDs. The outer one of two is a service tag (IEEE 802.1ad) if the tag says nothing."""
    found = []
    for left, tag in zip(reversed(range(len(tags))), tags, strict=True):
        settings = tag if isinstance(tag, Mapping) else {"id": tag}
        kind = str(settings.get("type", "802.1ad" if left else "802.1Q"))
        found.append(Vlan(settings["id"], settings.get("priority", 0), TAG_TYPES[kind]))
    return tuple(found)


def _threshold(settings: Mapping[str, Any]) -> Threshold:
    frame = settings.get("frame")
    return Threshold(**{**settings, "frame": None if frame is None else FrameSize.parse(frame)})


SCHEMA_PATH = Path(__file__).resolve().parents[3] / "topologies" / "topology.schema.json"


class TopologyError(PodperfError):
    """A topology file that cannot be used. Each line of `problems` has file, line, key, found and allowed values."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def topology_schema(
    tester: TesterType | None = None,
    pods: RuntimeType | None = None,
    data_planes: Mapping[str, DataPlaneType] | None = None,
) -> Mapping[str, Any]:
    """The JSON Schema of topology files, in which a threshold may be on any of `METRICS`.

    With `tester`, `tester.settings` are the settings of that type; with `pods`, `pods.settings` those of that runtime;
    with `data_planes`, `data_planes` are their settings.
    """
    schema = _schema_with(tuple(METRICS.values()))
    if data_planes is not None:
        keys = {**schema["properties"]["data_planes"], "properties": schemas_of_data_planes(data_planes)}
        schema = {**schema, "properties": {**schema["properties"], "data_planes": keys}}
    for part, kind in (("tester", tester), ("pods", pods)):
        if kind is not None and kind.settings_schema is not None:
            keys = schema["properties"][part]
            settings = {**keys["properties"]["settings"], **kind.settings_schema}
            keys = {**keys, "properties": {**keys["properties"], "settings": settings}}
            schema = {**schema, "properties": {**schema["properties"], part: keys}}
    return schema


@cache
def _schema_with(metrics: tuple[Metric, ...]) -> Mapping[str, Any]:
    schema: Mapping[str, Any] = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    keys = schema["properties"]["thresholds"]["items"]["properties"]
    for key, words in threshold_keys(metrics).items():
        keys[key].update(words)
    return schema


def schemas_of_data_planes(data_planes: Mapping[str, DataPlaneType]) -> Mapping[str, Any]:
    """The schemas of the settings of those data planes that have some, by their names."""
    return {name: schema_of(each.settings) for name, each in data_planes.items() if each.settings is not None}


def threshold_keys(metrics: Collection[Metric]) -> Mapping[str, Mapping[str, Any]]:
    """The parts of the schema of a threshold's keys that depend on `metrics`."""
    names = [metric.name for metric in metrics]
    quantities = by_quantity(metrics)
    units = {unit.name: unit.meaning for quantity in quantities for unit in quantity.units}
    nouns = {
        bound: [quantity.noun for quantity in quantities if quantity.bound == bound] for bound in ("minimum", "maximum")
    }
    ratio = f"{RATIO}: of the same run's result on the bare path (wire) at the same frame size"
    return {
        "metric": {"enum": names},
        "unit": {
            "description": ". ".join([ratio, *(f"{name}: {meaning}" for name, meaning in units.items())]) + ".",
            "enum": [RATIO, *units],
        },
        "minimum": {"title": f"Lower bound of a {' or a '.join(nouns['minimum'])}"},
        "maximum": {"title": f"Upper bound of a {' or a '.join(nouns['maximum'])}"},
    }


def load_topology(
    path: str | Path,
    data_planes: Mapping[str, DataPlaneType] | None = None,
    pod_runtimes: Mapping[str, RuntimeType] | None = None,
    testers: Mapping[str, TesterType] = OWN_TESTERS,
) -> Topology:
    """Read and check a topology file. Adds the parts of the packages in its `third_party`, whose code runs.

    With `data_planes`, thresholds may name only these data planes, and the topology has their settings; with
    `pod_runtimes`, the runtime is one of these.
    `testers` has the types of testers. TopologyError lists all problems of the file.
    """
    try:
        document, outdated = without_old_keys(read_yaml(Path(path)))
    except PodperfError as error:
        raise TopologyError([str(error)]) from error
    problems = list(add_packages(document))
    tester = _named(document, "tester", "type", testers, "software")
    runtime = _named(document, "pods", "runtime", pod_runtimes or {}, "")
    schema = topology_schema(tester, runtime, data_planes)
    violations = schema_problems(document, schema)
    kind, wrong = tester_settings(Sound(document, violations), tester, schema)
    sound = Sound(document, violations, kind)
    settings, unusable = data_plane_settings(sound, data_planes or {}, schema)
    problems += unusable
    problems += _traffic_problems(sound, schema)
    problems += [*document.problems, *violations.values(), *wrong, *unread_settings(sound, runtime)]
    problems += disagreements(sound, data_planes, pod_runtimes, testers)
    if problems or kind is None:
        ordered = sorted(problems, key=lambda each: (each.line, each.key))
        raise TopologyError([each.render(document.path) for each in ordered])
    topology = build(document, with_defaults(schema, document.data), kind, settings)
    return replace(topology, outdated=tuple(each.render(document.path) for each in outdated))
