"""A listener for the last messages of a run: the tests of a dry run, why nothing was measured, how to resume."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podperf.figures import count
from podperf.records import record_files
from run_command.results_folder import measured

LONGEST_LIST = 60  # tests; a dry run lists so many by name; with more, it prints only their number in each suite
SIGNAL = "Execution terminated by signal"  # Robot Framework's words for the test that a signal ends
SET_UP_FAILED = "Parent suite setup failed"  # the keyword that opens the testbed has said why


class LastWords:
    """Used by `podperf run`, because Robot Framework's console prints no tests there.

    `interrupted` is true if a signal ended the run. Robot Framework's exit code does not tell: it counts failed tests.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, say: Callable[[str], None], results: Path, resume: str, *, dry_run: bool = False) -> None:
        """`resume` is the command that measures the rest of an interrupted run."""
        self._say = say
        self._results = results
        self._resume = resume
        self._dry_run = dry_run
        self._outcomes: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self.interrupted = False

    def start_suite(self, data: Any, result: Any) -> None:
        """Robot Framework's listener interface."""
        if self._dry_run and data.parent is None:
            self._say(f"podperf: a dry run, which measures nothing: a run would have {count(data.test_count, 'test')}")
            self._list(data)

    def _list(self, whole: Any) -> None:
        suites: dict[str, list[str]] = {}
        for test in whole.all_tests:
            suites.setdefault(test.parent.name, []).append(test.name)
        for suite, tests in suites.items():
            if whole.test_count <= LONGEST_LIST:
                self._say("\n    ".join([f"  {suite}", *tests]))
            else:
                self._say(f"  {suite}: {count(len(tests), 'test')}")

    def end_test(self, data: Any, result: Any) -> None:
        """Robot Framework's listener interface."""
        self._outcomes[result.status.lower()] += 1
        self.interrupted |= SIGNAL in result.message
        if result.failed and not result.message.startswith(SET_UP_FAILED):
            self._failures[result.message] += 1

    @property
    def nothing_measured(self) -> bool:
        """Whether there were tests, and each was skipped, or failed because the testbed could not be opened."""
        return bool(self._outcomes) and not self._outcomes["pass"] and not self._failures

    def close(self) -> None:
        """Robot Framework's listener interface. Called last, after the table and the reports."""
        can_be_resumed = self.interrupted and bool(record_files(self._results / "records"))
        if can_be_resumed:
            self._say(f"podperf: to measure the rest: {self._resume}")
        if can_be_resumed or not self._outcomes or measured(self._results):
            return
        for message, times in self._failures.items():
            self._say(f"podperf: {count(times, 'test')} failed: {message}")
        if not self._dry_run:
            outcomes = ", ".join(f"{number} {_words[outcome]}" for outcome, number in self._outcomes.items())
            self._say(f"podperf: no test was measured: {outcomes}; see {self._results}/log.html")


_words = {"pass": "passed", "fail": "failed", "skip": "skipped", "not run": "not run"}
