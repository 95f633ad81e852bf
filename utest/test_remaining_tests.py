"""A resumed run has exactly the tests without a record of their end."""

from __future__ import annotations

from pathlib import Path

from robot.running import TestSuite

import made_up
from podperf.records import RecordWriter, TestRecord
from run_command.chosen_names import RemainingTests

SUITE = """*** Test Cases ***
Measured
    No Operation
Failed
    No Operation
Interrupted
    No Operation
Not Begun
    No Operation
"""


def test_what_has_ended_is_left_out(tmp_path: Path) -> None:
    for name, outcome in (("Measured", "passed"), ("Failed", "failed")):
        made_up.write(tmp_path, TestRecord(name, name, "Whole.Part", (), 0, 1, outcome))  # type: ignore[arg-type]
    RecordWriter(tmp_path / "records", TestRecord("killed", "Interrupted", "Whole.Part"))  # the state after kill -9
    made_up.write(tmp_path, TestRecord("other", "Not Begun", "Another.Part", (), 0, 1, "passed"))
    whole = TestSuite("Whole")
    for name in ("Part", "Another Part"):
        whole.suites.append(TestSuite.from_string(SUITE)).name = name
    whole.visit(RemainingTests(str(tmp_path)))
    part, another = whole.suites
    assert [test.name for test in part.tests] == ["Interrupted", "Not Begun"]
    assert len(another.tests) == 4


def test_a_suite_of_which_nothing_remains_is_left_out_with_its_set_up(tmp_path: Path) -> None:
    made_up.write(tmp_path, TestRecord("one", "One", "Whole.Part", (), 0, 1, "skipped"))
    whole = TestSuite("Whole")
    whole.suites.append(TestSuite.from_string("*** Test Cases ***\nOne\n    No Operation\n")).name = "Part"
    whole.visit(RemainingTests(str(tmp_path)))
    assert not whole.suites
