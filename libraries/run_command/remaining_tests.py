"""A pre-run modifier that leaves out what interrupted runs have measured already: how such a run is resumed."""

from pathlib import Path
from typing import Any

from podperf.report.results import read_run


class RemainingTests:
    """Used by `podperf run --resume FOLDER`. Folders are results folders of interrupted runs.

    A test that failed or was skipped has ended, too. One that was interrupted, or whose record cannot be read, is
    measured again.
    """

    def __init__(self, *folders: str) -> None:
        records = [record for folder in folders for record in read_run(Path(folder)).records]
        tests = ((record["test"], record["outcome"]) for record in records)
        self._ended = {(test["suite"], test["name"]) for test, outcome in tests if outcome != "interrupted"}

    def visit_suite(self, suite: Any) -> None:
        """Robot Framework's visitor interface. Suites of which nothing remains go, with what they set up."""
        suite.tests = [test for test in suite.tests if (suite.full_name, test.name) not in self._ended]
        for each in suite.suites:
            self.visit_suite(each)
        suite.suites = [each for each in suite.suites if each.test_count]
