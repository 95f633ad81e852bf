"""Results that others published, as data, and the orders that they claim, for comparison with a measurement.

Absolute figures of another lab say nothing about this one. Their order can be compared: if one of two set-ups forwarded
clearly more there, does it forward more here?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path

from podperf.errors import PodperfError, Unavailable
from podperf.figures import short
from podperf.model import Chain, FrameSize
from podperf.testbed.scenarios import SCENARIOS
from podperf.verdicts.findings import Contender
from podperf.verdicts.published_quantity import PublishedQuantity

# Two published figures have an order only if they differ by more than this share, because no document says how well the
# figures repeat.
CLEAR_DIFFERENCE = 0.1
RELEVANT_DIFFERENCE = 0.05  # of rates measured here


@dataclass(frozen=True)
class PublishedSetUp:
    """The chain that podperf sets up for a row. `scenario` names one of SCENARIOS; None: the usual placement."""

    chain: Chain
    scenario: str | None = None


@dataclass(frozen=True)
class PublishedRow:
    """A row of a table. Without `figure` the document has none. Without `set_up` podperf cannot measure the row."""

    name: str
    figure: float | None = None
    set_up: PublishedSetUp | None = None


@dataclass(frozen=True)
class Statement:
    """A statement of a document. A difference counts if rates differ by more than `relevant_difference`."""

    name: str
    text: str
    relevant_difference: float


@dataclass(frozen=True)
class PublishedOrder:
    """Rows of a table in an order (see podperf.verdicts.findings.Order)."""

    name: str
    text: str
    contenders: tuple[Contender, ...]
    pairs: tuple[tuple[int, int], ...]
    source: str | None
    relevant_difference: float = RELEVANT_DIFFERENCE
    their_figures: str = ""
    caveat: str = ""
    expects_difference: bool = True


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

    def order_of_figures(self, frame: FrameSize, *names: str) -> PublishedOrder:
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
        return PublishedOrder(
            self._name("order", *names),
            f"{self.title}: {' > '.join(row.name for row in rows)}",
            tuple(self._contender(row, frame) for row in rows),
            tuple(pairs),
            self._source,
            their_figures=f"{shown} ({self.quantity.unit}, {self.quantity.name}{at})",
        )

    def order_of_statement(self, statement: str, frame: FrameSize, *names: str) -> PublishedOrder:
        """The rows of these names, the fastest first, as a statement orders them."""
        found = next((each for each in self.statements if each.name == statement), None)
        if found is None:
            known = ", ".join(each.name for each in self.statements) or "none"
            raise PodperfError(f"{self.path}: there is no statement {statement!r}; there are: {known}")
        contenders = tuple(self._contender(row, frame) for row in self._rows(names))
        pairs = tuple(pairwise(range(len(contenders))))
        name = self._name(statement, *names)
        return PublishedOrder(name, found.text, contenders, pairs, self._source, found.relevant_difference)

    def order_of_sizes(self, name: str, *frames: FrameSize) -> PublishedOrder:
        """One row at several frame sizes: the larger the frames, the more bits it forwards."""
        (row,) = self._rows([name])
        sizes = sorted(frames, key=lambda each: -each.mean_bytes)
        contenders = tuple(self._contender(row, frame, f"{row.name}, {frame.name}") for frame in sizes)
        return PublishedOrder(
            self._name("sizes", name),
            f"{self.title}: frames of several sizes; what a frame costs hardly depends on its size, so larger ones "
            "carry more bits, up to line rate",
            contenders,
            tuple(pairwise(range(len(contenders)))),
            None,
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
        if row.set_up is None:
            raise Unavailable(f"{self.document}, {self.section}, does not say how {row.name!r} was set up")
        scenario = SCENARIOS[row.set_up.scenario] if row.set_up.scenario else None
        return Contender(row.set_up.chain, frame, scenario, label or row.name, row.figure, quantity=self.quantity)
