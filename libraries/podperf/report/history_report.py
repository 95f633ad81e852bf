"""The content of a history's report, in any form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from podperf.history.judgement import Judgement
from podperf.history.runs import History
from podperf.history.trends import Row, testbeds


@dataclass(frozen=True)
class HistoryReport:
    """The runs, the verdict on each figure of the newest, and `remarks` about acknowledgements."""

    history: History
    judgements: Sequence[Judgement]
    remarks: Sequence[str] = ()

    @cached_property
    def rows(self) -> Sequence[tuple[Row, Sequence[Judgement]]]:
        """Every test with its judgements, in the order of the history."""
        found: dict[int, tuple[Row, list[Judgement]]] = {}
        for each in self.judgements:
            found.setdefault(id(each.row), (each.row, []))[1].append(each)
        return list(found.values())

    def name_of(self, row: Row) -> str:
        """The test's name, with its testbed if there are several testbeds."""
        return f"{row.name} ({row.testbed})" if self._several_testbeds and row.testbed else row.name

    @cached_property
    def beginnings(self) -> Mapping[str, Sequence[str]]:
        """The places where series of the newest run began, and the reasons, with the names of the tests."""
        found: dict[str, dict[str, None]] = {}
        for each in self.judgements:
            if each.beginning:
                found.setdefault(each.beginning, {})[self.name_of(each.row)] = None
        return {words: list(names) for words, names in found.items()}

    def anchor(self, row: Row) -> str:
        """The id of the test's place on the page."""
        return f"test-{self._numbers[id(row)]}"

    @cached_property
    def _several_testbeds(self) -> bool:
        return len(testbeds(self.history.runs)) > 1

    @cached_property
    def _numbers(self) -> Mapping[int, int]:
        return {id(row): number for number, (row, _) in enumerate(self.rows, 1)}
