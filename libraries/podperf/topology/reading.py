"""Loads a topology file: reads the YAML, checks it against the schema and for disagreements, and builds the values."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from podperf.documents.schema_check import schema_problems, with_defaults
from podperf.documents.yaml_document import read_yaml
from podperf.errors import PodperfError
from podperf.metrics import METRICS, RATIO, Metric, by_quantity
from podperf.topology.building import build
from podperf.topology.disagreements import Sound, disagreements
from podperf.topology.old_keys import without_old_keys
from podperf.topology.other_packages import (
    add_packages,
    runtime_of_pods,
    tester_settings,
    type_of_tester,
    unread_settings,
)
from podperf.topology.settings import Topology
from podperf.topology.tester_types import OWN_TESTERS, RuntimeType, TesterType

SCHEMA_PATH = Path(__file__).resolve().parents[3] / "topologies" / "topology.schema.json"


class TopologyError(PodperfError):
    """A topology file that cannot be used. Each line of `problems` has file, line, key, found and allowed values."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def topology_schema(tester: TesterType | None = None, pods: RuntimeType | None = None) -> Mapping[str, Any]:
    """The JSON Schema of topology files, in which a threshold may be on any of `METRICS`.

    With `tester`, `tester.settings` are the settings of that type; with `pods`, `pods.settings` those of that runtime.
    """
    schema = _schema_with(tuple(METRICS.values()))
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


def threshold_keys(metrics: Collection[Metric]) -> Mapping[str, Mapping[str, Any]]:
    """The parts of the schema of a threshold's keys that depend on `metrics`."""
    names = [each.name for each in metrics]
    quantities = by_quantity(metrics)
    units = {unit.name: unit.meaning for each in quantities for unit in each.units}
    nouns = {bound: [each.noun for each in quantities if each.bound == bound] for bound in ("minimum", "maximum")}
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
    data_planes: Collection[str] | None = None,
    pod_runtimes: Mapping[str, RuntimeType] | None = None,
    testers: Mapping[str, TesterType] = OWN_TESTERS,
) -> Topology:
    """Read and check a topology file. Adds the parts of the packages in its `third_party`, whose code runs.

    With `data_planes`, thresholds may name only these data planes; with `pod_runtimes`, the runtime is one of these.
    `testers` has the types of testers. TopologyError lists all problems of the file.
    """
    try:
        document, outdated = without_old_keys(read_yaml(Path(path)))
    except PodperfError as error:
        raise TopologyError([str(error)]) from error
    problems = list(add_packages(document))
    tester = type_of_tester(document, testers)
    runtime = runtime_of_pods(document, pod_runtimes or {})
    schema = topology_schema(tester, runtime)
    violations = schema_problems(document, schema)
    kind, wrong = tester_settings(Sound(document, violations), tester, schema)
    sound = Sound(document, violations, kind)
    problems += [*document.problems, *violations.values(), *wrong, *unread_settings(sound, runtime)]
    problems += disagreements(sound, data_planes, pod_runtimes, testers)
    if problems or kind is None:
        ordered = sorted(problems, key=lambda each: (each.line, each.key))
        raise TopologyError([each.render(document.path) for each in ordered])
    topology = build(document, with_defaults(schema, document.data), kind)
    return replace(topology, outdated=tuple(each.render(document.path) for each in outdated))
