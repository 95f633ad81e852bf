"""Pre-run modifiers of `podperf run`."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from robot.model import TagPatterns
from robot.utils import Matcher

from podperf.nearness import proposal
from podperf.report.results import read_run
from podperf.terminal import say


class ChosenNames:
    """Reports chosen tags, tests and suites that do not exist, and proposes similar names.

    It changes only the name of the top suite, if `name` is not empty. `unknown`: whether a chosen name does not exist.
    """

    def __init__(
        self,
        *,
        name: str,
        tags: Sequence[str] = (),
        tests: Sequence[str] = (),
        suites: Sequence[str] = (),
    ) -> None:
        self.unknown = False
        self._name = name
        self._tags, self._tests, self._suites = tags, tests, suites

    def visit_suite(self, suite: Any) -> None:
        suite.name = self._name or suite.name  # full names of tests begin with it
        tests = list(suite.all_tests)
        known_tags = sorted({str(tag) for test in tests for tag in test.tags})
        for pattern in self._tags:
            if not any(TagPatterns([pattern]).match(test.tags) for test in tests):
                self._say(f"no test has the tag {pattern}{proposal(pattern, known_tags) or _all(known_tags)}")
        names = {test.name: test.full_name for test in tests}
        for pattern in self._tests:
            if not _matches(pattern, names):
                self._say(f'no test is called "{pattern}"{proposal(pattern, names)}')
        suites = {each.name: each.full_name for each in _suites(suite)}
        for pattern in self._suites:
            if not _matches(pattern, suites):
                self._say(f'no suite is called "{pattern}"{proposal(pattern, suites)}')

    def _say(self, sentence: str) -> None:
        self.unknown = True
        say(sentence)


def _matches(pattern: str, names: dict[str, str]) -> bool:
    """Whether the pattern selects one of the names or full names, by Robot Framework's rules."""
    matcher = Matcher(pattern, ignore="_")
    return any(matcher.match(name) or matcher.match(full) for name, full in names.items())


def _suites(suite: Any) -> list[Any]:
    return [suite, *(each for child in suite.suites for each in _suites(child))]


def _all(tags: Sequence[str]) -> str:
    return f"; there are:\n{textwrap.fill(', '.join(tags), 100, break_on_hyphens=False)}" if tags else ""


class RemainingTests:
    """Used by `podperf run --resume FOLDER`. Each of `folders` is the results folder of an interrupted run.

    A failed or skipped test has ended, too, and is left out. A test is measured again if it was interrupted or its
    record cannot be read.
    """

    def __init__(self, *folders: str) -> None:
        records = [record for folder in folders for record in read_run(Path(folder)).records]
        tests = ((record.test, record.outcome) for record in records)
        self._ended = {(test.suite, test.name) for test, outcome in tests if outcome != "interrupted"}

    def visit_suite(self, suite: Any) -> None:
        """Robot Framework's visitor interface. Removes suites without remaining tests, together with their set-up."""
        suite.tests = [test for test in suite.tests if (suite.full_name, test.name) not in self._ended]
        for each in suite.suites:
            self.visit_suite(each)
        suite.suites = [each for each in suite.suites if each.test_count]
