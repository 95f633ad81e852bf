"""A record knows where Robot Framework's log will show its test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from robot.api import ExecutionResult

LIBRARIES = Path(__file__).parents[1] / "libraries"
ASKING = """
from robot.api.deco import keyword
from robot.libraries.BuiltIn import BuiltIn
from Testbed import running_test

@keyword
def ask():
    BuiltIn().set_test_message(str(running_test().log))
"""
SUITE = """*** Settings ***
Library    Testbed
Library    Asking.py
*** Test Cases ***
First
    Ask
Second
    Ask
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "log.html#{}"),
        (("--log", "NONE"), "None"),
        (("--log", "below/log.html"), "None"),
    ],
)
def test_the_place_is_the_one_that_the_log_gets(options: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    (tmp_path / "suites" / "inner").mkdir(parents=True)
    for place in ("suites/one.robot", "suites/inner/two.robot"):
        (tmp_path / place).write_text(SUITE)
    for folder in ("suites", "suites/inner"):
        (tmp_path / folder / "Asking.py").write_text(ASKING)
    results = tmp_path / "results"
    command = [sys.executable, "-m", "robot", "--pythonpath", str(LIBRARIES), "--outputdir", str(results)]
    subprocess.run([*command, *options, str(tmp_path / "suites")], check=True, capture_output=True, cwd=tmp_path)
    tests = list(ExecutionResult(results / "output.xml").suite.all_tests)
    assert len({test.id for test in tests}) == 4
    assert [test.message for test in tests] == [expected.format(test.id) for test in tests]
