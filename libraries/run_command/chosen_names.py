"""A pre-run modifier that reports chosen tags, tests and suites that do not exist, and proposes similar names."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from robot.model import TagPatterns
from robot.utils import Matcher

from podperf.nearness import proposal


class ChosenNames:
    """Used by `podperf run`. It changes only the name of the top suite, if `name` is not empty.

    `unknown` is true if any chosen name does not exist.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        name: str,
        tags: Sequence[str] = (),
        tests: Sequence[str] = (),
        suites: Sequence[str] = (),
    ) -> None:
        self._report = say
        self.unknown = False
        self._name = name
        self._tags, self._tests, self._suites = tags, tests, suites

    def visit_suite(self, suite: Any) -> None:
        """Robot Framework's visitor interface."""
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
        self._report(sentence)


def _matches(pattern: str, names: dict[str, str]) -> bool:
    """Whether the pattern selects one of the names or full names, by Robot Framework's rules."""
    matcher = Matcher(pattern, ignore="_")
    return any(matcher.match(name) or matcher.match(full) for name, full in names.items())


def _suites(suite: Any) -> list[Any]:
    return [suite, *(each for child in suite.suites for each in _suites(child))]


def _all(tags: Sequence[str]) -> str:
    return f"; there are:\n{textwrap.fill(', '.join(tags), 100, break_on_hyphens=False)}" if tags else ""
