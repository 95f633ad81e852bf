"""Known regressions: a file in which people list them, each with a reason and a last day."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from podperf.documents.schema_check import schema_problems
from podperf.documents.yaml_document import read_yaml
from podperf.errors import PodperfError
from podperf.history.judgement import Judgement, Verdict, judge
from podperf.history.trends import Row
from podperf.metrics import METRICS, Metric

FILE = "acknowledged.yaml"  # in the history's folder

_TEXT = {"type": "string", "minLength": 1, "title": "a text"}


def _schema() -> Mapping[str, Any]:
    one = {
        "type": "object",
        "required": ["test", "at_most_percent", "reason", "until"],
        "properties": {
            "test": {
                **_TEXT,
                "maxLength": 1000,  # the time to read wildcards grows with the square of the length
                "title": "the name of a test, in which * and ? are wildcards, at most 1000 characters",
            },
            "testbed": {**_TEXT, "title": "the name of a testbed"},
            "metric": {"type": "string", "enum": list(METRICS)},
            "at_most_percent": {"type": "number", "exclusiveMinimum": 0},
            "reason": _TEXT,
            "until": {"type": "string", "pattern": r"\d{4}-\d{2}-\d{2}", "title": "a date such as 2026-12-31"},
        },
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "required": ["acknowledged"],
        "properties": {"acknowledged": {"type": "array", "items": one}},
        "additionalProperties": False,
    }


@dataclass(frozen=True)
class Acknowledgement:
    """A known regression of a test. Without a metric or a testbed, it is for all metrics or all testbeds.

    A change of more than `at_most` (a share) is a new regression. `until` is the last day.
    """

    test: str
    at_most: float
    reason: str
    until: date
    metric: str | None = None
    testbed: str | None = None

    def covers(self, judgement: Judgement) -> bool:
        """Whether the acknowledgement is about this change. The date does not matter here."""
        change = judgement.change
        return change is not None and judgement.worse and self.knows(judgement.row, judgement.metric, abs(change.share))

    def knows(self, row: Row, metric: Metric, share: float) -> bool:
        """Whether it is about changes of this figure, and about one as large as this share."""
        return (
            fnmatchcase(row.name, self.test)
            and self.metric in (None, metric.name)
            and self.testbed in (None, row.testbed)
            and share <= self.at_most
        )


def read_acknowledgements(path: Path) -> list[Acknowledgement]:
    """Read the file. Raises PodperfError, with a line for each problem, if the file has another form."""
    document = read_yaml(path)
    problems = [*document.problems, *schema_problems(document, _schema()).values()]
    found = []
    for index, each in enumerate([] if problems else document.data["acknowledged"]):
        try:
            until = date.fromisoformat(each["until"])
        except ValueError:
            problems.append(document.problem(("acknowledged", index, "until"), f"there is no day {each['until']}"))
            continue
        found.append(
            Acknowledgement(
                each["test"],
                each["at_most_percent"] / 100,
                each["reason"],
                until,
                each.get("metric"),
                each.get("testbed"),
            )
        )
    if problems:
        raise PodperfError("\n".join(problem.render(str(path)) for problem in problems))
    return found


def acknowledge(
    judgements: Iterable[Judgement], known: Sequence[Acknowledgement], today: date
) -> tuple[list[Judgement], list[str]]:
    """The judgements, with known regressions marked. Also a sentence for each acknowledgement that has ended or has no
    use. A counted figure is judged beside the step that was acknowledged last."""
    found, used, ended = [], set[int](), set[int]()
    for judgement in judgements:
        accepts = partial(_accept, judgement, known, today, used)
        counted = judgement.metric.quantity.resolution is not None
        each = judge(judgement.row, judgement.metric, accepts) if counted and known else judgement
        covering = [one for one in known if one.covers(each)]
        valid = [one for one in covering if today <= one.until]
        used |= {known.index(one) for one in valid}
        ended |= {known.index(one) for one in covering if today > one.until}
        found.append(_acknowledged(each, valid[0]) if valid else each)
    remarks = []
    for index, each_known in enumerate(known):
        if index in ended:
            remarks.append(
                f"the acknowledgement of {_name(each_known)} ended on {each_known.until}: {each_known.reason}"
            )
        elif index not in used:
            remarks.append(f"the acknowledgement of {_name(each_known)} is about no regression of the newest run")
    return found, remarks


def _accept(judgement: Judgement, known: Sequence[Acknowledgement], today: date, used: set[int], share: float) -> bool:
    """Whether an acknowledgement accepts an earlier step of this figure. Its number is then among the used ones."""
    numbers = {
        number
        for number, each in enumerate(known)
        if today <= each.until and each.knows(judgement.row, judgement.metric, share)
    }
    used |= numbers
    return bool(numbers)


def _acknowledged(judgement: Judgement, known: Acknowledgement) -> Judgement:
    words = f"known until {known.until}: {known.reason}"
    return replace(judgement, verdict=Verdict.ACKNOWLEDGED, known=words)


def _name(known: Acknowledgement) -> str:
    return ", ".join(filter(None, (known.test, known.metric, known.testbed)))
