"""A pre-run modifier that resumes interrupted runs: it leaves out the tests that they have measured."""

from pathlib import Path
from typing import Any

from podperf.report.results import read_run


class RemainingTests:
    """Used by `podperf run --resume FOLDER`. Each of `folders` is the results folder of an interrupted run.

    A failed or skipped test has ended, too, and is left out. A test is measured again if it was interrupted or its
    record cannot be read.
    """

    def __init__(self, *folders: str) -> None:
        records = [record for folder in folders for record in read_run(Path(folder)).records]
        tests = ((record["test"], record["outcome"]) for record in records)
        self._ended = {(test["suite"], test["name"]) for test, outcome in tests if outcome != "interrupted"}

    def visit_suite(self, suite: Any) -> None:
        """Robot Framework's visitor interface. Removes suites without remaining tests, together with their set-up."""
        suite.tests = [test for test in suite.tests if (suite.full_name, test.name) not in self._ended]
        for each in suite.suites:
            self.visit_suite(each)
        suite.suites = [each for each in suite.suites if each.test_count]
