"""The end of a test, for the console and for Robot's log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from podperf.errors import PodperfError
from podperf.records import NotWritten, Record
from podperf.report.fragment import embed_html
from podperf.report.results import verdict_word
from podperf.report.summary import figures_line


@dataclass(frozen=True)
class Ended:
    """`verdict` is the word in the table, `figures` is the row's figures in a line, and `html` shows them with every
    trial."""

    verdict: str
    figures: str = ""
    html: str = ""
    problems: tuple[str, ...] = ()  # errors at the end of the test, a sentence each
    lost: bool = False  # whether the record is missing in the run's folder

    @classmethod
    def of(cls, document: Record, problems: Sequence[PodperfError]) -> Self:
        """The end of the test with this record, and the problems that came after it."""
        lost = any(isinstance(each, NotWritten) for each in problems)
        return cls(
            # Without the record, the table has only the trials of the test, which do not show that the test has ended.
            verdict="interrupted" if lost else verdict_word(document),
            figures=figures_line(document),
            html=embed_html(document) if document["trials"] else "",
            problems=tuple(map(str, problems)),
            lost=lost,
        )
