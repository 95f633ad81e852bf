"""Loads the results that others published (resources/published), and makes claims of their orders.

Absolute figures of another lab say nothing about this one. Only their order can be compared: a claim is that the set-up
that forwarded clearly more there forwards more here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from podperf.documents.schema_check import schema_problems, suggestion, with_defaults
from podperf.documents.yaml_document import Document, Pointer, Problem, read_yaml
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import Claim
from podperf.experiments.contender import Contender, PublishedQuantity
from podperf.figures import short
from podperf.model import Chain, FrameSize
from podperf.testbed.scenarios import SCENARIOS

# Two published figures have an order only if they differ by more than this share, because no document says how well the
# figures repeat.
CLEAR_DIFFERENCE = 0.1


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table. Without `figure` the document has none. Without `chain` podperf cannot measure the row.

    `scenario` names one of SCENARIOS; None: the usual placement.
    """

    name: str
    figure: float | None = None
    chain: Chain | None = None
    scenario: str | None = None


@dataclass(frozen=True)
class Statement:
    """A statement of a document. A difference counts if rates differ by more than `relevant_difference`."""

    name: str
    text: str
    relevant_difference: float


@dataclass(frozen=True)
class Table:
    """A published result table, with its source. `quantity` is what its figures are."""

    path: str
    document: str
    section: str
    title: str
    testbed: str  # the topology in topologies/, without .yaml
    quantity: PublishedQuantity
    rows: tuple[PublishedRow, ...]
    statements: tuple[Statement, ...]

    def order_of_figures(self, frame: FrameSize, *names: str) -> Claim:
        """The rows with these names. Each pair with clearly different figures is ordered."""
        rows = self._rows(names)
        unpublished = [row.name for row in rows if row.figure is None]
        if unpublished:
            raise PodperfError(f"{self.path}: no figure was published for {', '.join(unpublished)}")
        rows.sort(key=lambda row: -(row.figure or 0))
        figures = [row.figure or 0 for row in rows]
        pairs = [
            (i, j) for i, j in combinations(range(len(rows)), 2) if figures[i] > figures[j] * (1 + CLEAR_DIFFERENCE)
        ]
        if not pairs:
            raise PodperfError(f"{self.path}: no two of {', '.join(row.name for row in rows)} clearly differ")
        shown = ", ".join(f"{row.name} {short(row.figure or 0)}" for row in rows)
        theirs = self.quantity.frame
        at = "" if theirs == frame else f", published for {theirs.name if theirs else 'an unnamed size'}"
        return Claim(
            self._name("order", *names),
            f"{self.title}: {' > '.join(row.name for row in rows)}",
            tuple(self._contender(row, frame) for row in rows),
            self._source,
            claimed_pairs=tuple(pairs),
            their_figures=f"{shown} ({self.quantity.unit}, {self.quantity.name}{at})",
        )

    def order_of_statement(self, statement: str, frame: FrameSize, *names: str) -> Claim:
        """The rows of these names, the fastest first, as a statement orders them."""
        found = next((each for each in self.statements if each.name == statement), None)
        if found is None:
            known = ", ".join(each.name for each in self.statements) or "none"
            raise PodperfError(f"{self.path}: there is no statement {statement!r}; there are: {known}")
        contenders = tuple(self._contender(row, frame) for row in self._rows(names))
        name = self._name(statement, *names)
        return Claim(name, found.text, contenders, self._source, found.relevant_difference)

    def order_of_sizes(self, name: str, *frames: FrameSize) -> Claim:
        """One row at several frame sizes: the larger the frames, the more bits it forwards."""
        (row,) = self._rows([name])
        sizes = sorted(frames, key=lambda each: -each.mean_bytes)
        contenders = tuple(self._contender(row, frame, f"{row.name}, {frame.name}") for frame in sizes)
        return Claim(
            self._name("sizes", name),
            f"{self.title}: frames of several sizes; what a frame costs hardly depends on its size, so larger ones "
            "carry more bits, up to line rate",
            contenders,
            caveat="rates are compared in bits per second on the wire",
        )

    @property
    def _source(self) -> str:
        return f"{self.document}, {self.section}"

    def _name(self, *words: str) -> str:
        return "-".join([Path(self.path).stem, *words])

    def _rows(self, names: Sequence[str]) -> list[PublishedRow]:
        found: list[PublishedRow] = []
        for name in names:
            row = next((each for each in self.rows if each.name == name), None)
            if row is None:
                known = ", ".join(each.name for each in self.rows)
                raise PodperfError(f"{self.path}: there is no row {name!r}; there are: {known}")
            found.append(row)
        return found

    def _contender(self, row: PublishedRow, frame: FrameSize, label: str = "") -> Contender:
        if row.chain is None:
            raise Unavailable(f"{self.document}, {self.section}, does not say how {row.name!r} was set up")
        scenario = SCENARIOS[row.scenario] if row.scenario else None
        found = Contender.in_scenario(label or row.name, row.chain, scenario, frame)
        return replace(found, figure=row.figure, quantity=self.quantity)


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
            Statement(statement["name"], statement["text"].strip(), float(statement["relevant_difference"]))
            for statement in data["statements"]
        ),
    )


@cache
def _schema() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = json.loads((FOLDER / "published.schema.json").read_text(encoding="utf-8"))
    return schema


def _row(data: Mapping[str, Any]) -> PublishedRow:
    figure, set_up = data.get("figure"), data.get("set_up")
    figure = None if figure is None else float(figure)
    if set_up is None:
        return PublishedRow(data["name"], figure)
    chain = Chain(set_up["data_plane"], int(set_up["pods"]), workers=int(set_up["nodes"]))
    return PublishedRow(data["name"], figure, chain, set_up.get("scenario"))


def _disagreements(document: Document) -> Iterator[Problem]:
    """The problems that a schema cannot find."""
    data = document.data
    known = sorted(each.stem for each in TOPOLOGIES.glob("*.yaml"))
    if data["testbed"] not in known:
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
