"""Commands whose output nobody takes: a full disk, a reader that has ended, a closed stream."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import podperf
from podperf.errors import ExitCode

LIBRARIES = Path(podperf.__path__[0]).parent


@pytest.fixture(params=["", "1"], ids=["buffered", "not buffered"])
def called(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Runs a command of the shell, in which `podperf` is the package. Returns its errors, with the exit code."""
    known = {**os.environ, "PYTHONPATH": str(LIBRARIES), "PYTHONUNBUFFERED": request.param}

    def run(command: str) -> str:
        command = f"{shlex.quote(sys.executable)} -m {command}; echo $? >&2"
        return subprocess.run(["bash", "-c", command], env=known, capture_output=True, text=True, check=False).stderr

    return run


@pytest.mark.parametrize("words", ["check --help", "run --help", "compare -?"])
def test_a_full_disk_behind_standard_output_is_one_line(words: str, called: Callable[[str], str]) -> None:
    full = "standard output cannot be written: No space left on device"
    assert called(f"podperf {words} >/dev/full") == f"podperf: {full}\n255\n"


def test_a_run_goes_on_where_standard_error_is_full(called: Callable[[str], str]) -> None:
    assert called("podperf run --nonsense 2>/dev/full") == "252\n"


def test_a_closed_standard_output_is_one_line(called: Callable[[str], str]) -> None:
    closed = "podperf: standard output is closed: name a file for it, or /dev/null\n255\n"
    assert called("podperf check --help >&-") == closed


def test_a_reader_that_has_ended_is_no_error(called: Callable[[str], str]) -> None:
    assert called("podperf check --help | true") == "0\n"


def test_the_page_has_the_exit_codes_of_the_code() -> None:
    page = (LIBRARIES.parent / "docs" / "ci.md").read_text()
    table = page[page.index("## Exit codes") : page.index("`test` ends with")]
    assert set(map(int, re.findall(r"^\| (\d+) ", table, re.MULTILINE))) == {1, *ExitCode}
