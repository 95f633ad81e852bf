"""How a test ended, for those who watch the run and those who read its log."""

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
    """`verdict` is the word for it in the table, `figures` are those of the table in a line, `html` shows them with
    every trial."""

    verdict: str
    figures: str = ""
    html: str = ""
    problems: tuple[str, ...] = ()  # what went wrong at the end, in a sentence each
    lost: bool = False  # its record is not among those of the run

    @classmethod
    def of(cls, document: Record, problems: Sequence[PodperfError]) -> Self:
        """The end of the test that has this record, after which these problems arose."""
        lost = any(isinstance(each, NotWritten) for each in problems)
        return cls(
            # Without its record the table finds but the trials of the test, and they do not say that it has ended.
            verdict="interrupted" if lost else verdict_word(document),
            figures=figures_line(document),
            html=embed_html(document) if document["trials"] else "",
            problems=tuple(map(str, problems)),
            lost=lost,
        )
