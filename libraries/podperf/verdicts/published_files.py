"""Reads the files of published results (resources/published) into podperf.verdicts.published.Table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from podperf.documents.schema_check import schema_problems, suggestion, with_defaults
from podperf.documents.yaml_document import Document, Pointer, Problem, read_yaml
from podperf.errors import PodperfError
from podperf.model import Chain, FrameSize
from podperf.testbed.scenarios import SCENARIOS
from podperf.verdicts.published import PublishedRow, PublishedSetUp, Statement, Table
from podperf.verdicts.published_quantity import PublishedQuantity

FOLDER = Path(__file__).resolve().parents[3] / "resources" / "published"
TOPOLOGIES = Path(__file__).resolve().parents[3] / "topologies"


def published_table(name: str) -> Table:
    """The table of this name: a file of resources/published without .yaml, `Hackathon 113` for hackathon_113."""
    path = FOLDER / f"{name.lower().replace(' ', '_')}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in FOLDER.glob("*.yaml")))
        raise PodperfError(f"there is no table {name!r} in {FOLDER}; there are: {known}")
    return load_table(path)


def load_table(path: Path) -> Table:
    """Read and check a file of published results. PodperfError has a line for each problem, with file, line and key."""
    document = read_yaml(path)
    violations = schema_problems(document, _schema())
    problems = [*document.problems, *violations.values(), *([] if violations else _disagreements(document))]
    if problems:
        ordered = sorted(problems, key=lambda each: (each.line, each.key))
        raise PodperfError("\n".join(each.render(document.path) for each in ordered))
    data = with_defaults(_schema(), document.data)
    source = data["source"]
    return Table(
        path=document.path,
        document=source["document"],
        section=source["section"],
        title=source["table"],
        testbed=data["testbed"],
        quantity=PublishedQuantity(
            data["quantity"],
            data.get("unit"),
            FrameSize.parse(data["frame"]) if "frame" in data else None,
            data.get("loss_ratio"),
        ),
        rows=tuple(map(_row, data["rows"])),
        statements=tuple(
            Statement(each["name"], each["text"].strip(), float(each["relevant_difference"]))
            for each in data["statements"]
        ),
    )


@cache
def _schema() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = json.loads((FOLDER / "published.schema.json").read_text(encoding="utf-8"))
    return schema


def _row(data: Mapping[str, Any]) -> PublishedRow:
    figure, set_up = data.get("figure"), data.get("set_up")
    return PublishedRow(
        data["name"], None if figure is None else float(figure), None if set_up is None else _set_up(set_up)
    )


def _set_up(data: Mapping[str, Any]) -> PublishedSetUp:
    chain = Chain(data["data_plane"], int(data["pods"]), workers=int(data["nodes"]))
    return PublishedSetUp(chain, data.get("scenario"))


def _disagreements(document: Document) -> Iterator[Problem]:
    """The problems that a schema cannot find."""
    data = document.data
    if not (TOPOLOGIES / f"{data['testbed']}.yaml").is_file():
        known = sorted(each.stem for each in TOPOLOGIES.glob("*.yaml"))
        yield _problem(document, ("testbed",), ", ".join(known) + suggestion(data["testbed"], known))
    for key in ("rows", "statements"):
        first: dict[str, int] = {}
        for number, each in enumerate(data.get(key, ())):
            line = document.line((key, number))
            if each["name"] in first:
                yield _problem(document, (key, number, "name"), f"a name that line {first[each['name']]} has not got")
            first.setdefault(each["name"], line)
    for number, row in enumerate(data["rows"]):
        if "figure" in row and "unit" not in data:
            yield _problem(document, ("rows", number, "figure"), "figures in a table whose `unit` is given")
        scenario = row.get("set_up", {}).get("scenario")
        if scenario is not None and scenario not in SCENARIOS:
            pointer = ("rows", number, "set_up", "scenario")
            yield _problem(document, pointer, ", ".join(SCENARIOS) + suggestion(scenario, SCENARIOS))


def _problem(document: Document, pointer: Pointer, allowed: str) -> Problem:
    value: Any = document.data
    for step in pointer:
        value = value[step]
    return document.problem(pointer, f"found {document.shown(pointer, value)}; allowed: {allowed}")
