"""`podperf run` as a user types it: the script, the topology that it takes by itself, real rows, table and reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from robot_run import ROOT

pytestmark = [
    pytest.mark.usefixtures("machine_as_before"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="not set up; once: sudo ./podperf set-up"),
]


def test_a_run_measures_and_ends_with_a_table_and_the_reports(tmp_path: Path) -> None:
    results = tmp_path / "results"
    rows = [word for name in ("wire", "ptp") for word in ("--include", f"quickAND{name}")]
    command = [ROOT / "podperf", "--no-install", "run", *rows, "--outputdir", results]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "[2/2] PTP, 64 B | " in said, "which trial, while it works"
    table = said[said.index("\nTest ") :].splitlines()
    (row,) = [line for line in table if re.match(r"PTP, 64 B +\d", line)]
    assert "passed" in row and len(row) <= 80
    assert "[2/2] PTP, 64 B passed: MRR " in said, "with the word of the table"
    assert table[-1] == f"Conformance: {results}/conformance.html"
    made = {path.name for path in results.iterdir()}
    assert made >= {"conformance.html", "log.html", "output.xml", "xunit.xml", "records"}
    records = [json.loads(path.read_text()) for path in results.glob("records/*.json")]
    tests = ExecutionResult(results / "output.xml").suite.all_tests
    assert {each["test"]["name"]: each["test"]["log"] for each in records} == {
        each.name: f"log.html#{each.id}" for each in tests
    }
    assert len(records) == 2
