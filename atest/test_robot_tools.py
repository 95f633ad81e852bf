"""Robot Framework's own tools on results of podperf: `rebot --merge`, `--rerunfailed`, `--dryrun`, and pabot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from robot_run import ROOT, Robot, mrr_suite, podperf

TEARDOWN = "    [Teardown]"
FAILS = "    Should Not Be Equal    ${TEST NAME}    ${FAILS}"
ROWS = {"Bridge": "linux-bridge    1    64", "PTP": "ptp    1    64"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")
@pytest.mark.usefixtures("machine_as_before")
@pytest.mark.slow
def test_failed_tests_are_run_again_and_both_runs_are_one_report(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    suite = Path(mrr_suite(tmp_path, **ROWS))
    suite.write_text(suite.read_text().replace(TEARDOWN, f"{FAILS}\n{TEARDOWN}"))
    run = Robot(first, "--variable", "FAILS:PTP", str(suite))
    assert run.wait() == 1, run.messages()
    chosen = ["--rerunfailed", str(run.results / "output.xml")]
    again = Robot(second, "--variable", "FAILS:none", *chosen, str(suite))
    assert again.wait() == 0, again.messages()
    assert [record["test"]["name"] for record in again.records()] == ["PTP"]

    merge = [sys.executable, "-m", "robot.rebot", "--merge", "--outputdir", str(tmp_path / "merged")]
    merge += ["--output", "output.xml"]
    merge += [str(each.results / "output.xml") for each in (run, again)]
    assert subprocess.run(merge, capture_output=True, check=False).returncode == 0
    merged = ExecutionResult(tmp_path / "merged" / "output.xml").suite.all_tests
    assert {each.name: each.status for each in merged} == {"Bridge": "PASS", "PTP": "PASS"}

    alone = podperf("report", str(tmp_path / "merged"), check=False)
    assert alone.returncode == 254
    assert f"{tmp_path}/merged: no records in it" in alone.stderr

    podperf("report", str(run.results), str(again.results), "--output", str(tmp_path / "report"))
    report = json.loads((tmp_path / "report" / "conformance.json").read_text())
    assert [each["tests"] for each in report["runs"]] == [2, 1]


def test_pabot_is_told_that_a_machine_measures_one_test_at_a_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        mrr_suite(tmp_path / name, **{name: "linux-bridge    1    64"})
    command = [sys.executable, "-m", "pabot.pabot", "--processes", "2", "--outputdir", str(tmp_path / "out")]
    command += ["--pythonpath", str(ROOT / "libraries"), "--variable", f"TOPOLOGY:{ROOT}/topologies/local.yaml"]
    done = subprocess.run(
        [*command, str(tmp_path / "one"), str(tmp_path / "two")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    sentence = "pabot starts 2 runs at once, and a machine measures one test at a time"
    failed = [test.message for test in ExecutionResult(tmp_path / "out" / "output.xml").suite.all_tests]
    assert failed == [f"Parent suite setup failed:\n{sentence}: use robot, or pabot --processes 1"] * 2
    assert not list(tmp_path.glob("**/records"))


def test_a_dry_run_of_robot_itself_opens_no_testbed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "robot", "--dryrun", "--outputdir", str(tmp_path), "--include", "quick"]
    command += ["--pythonpath", str(ROOT / "libraries"), "--variable", "TOPOLOGY:no-such-file.yaml"]
    done = subprocess.run([*command, str(ROOT / "tests")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(ExecutionResult(tmp_path / "output.xml").suite.all_tests)) > 20
    assert not (tmp_path / "records").exists()
