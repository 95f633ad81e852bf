"""In whatever way a run ends, the machine is as before, and the trials are on disk."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from robot.api import ExecutionResult
from robot.result import Message

from chains import need
from podperf.model import Chain
from podperf.testbed.run_lock import CHECK, RunLock
from robot_run import SETTINGS, Robot, podperf

pytestmark = pytest.mark.usefixtures("machine_as_before")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite that measures for long, to be interrupted, beside one that is short."""
    path = tmp_path / "suite.robot"
    path.write_text(
        f"""{SETTINGS}
*** Variables ***
${{DATA_PLANE}}    linux-bridge
${{PODS}}          1

*** Test Cases ***
Forwards
    Set Up Chain    ${{DATA_PLANE}}    ${{PODS}}    64
    Measure Maximum Receive Rate
    [Teardown]    Tear Down Chain

Fails In The Middle
    Set Up Chain    docker    2    64
    Measure Maximum Receive Rate
    Fail    on purpose
    [Teardown]    Tear Down Chain

Leaves The Chain Standing
    Set Up Chain    routed    1    64
    Fail    before any tear-down
"""
    )
    return path


@pytest.fixture(params=[Chain("linux-bridge", 1), pytest.param(Chain("memif", 2), marks=pytest.mark.slow)], ids=str)
def long_run(request: pytest.FixtureRequest, tmp_path: Path, suite: Path) -> Robot:
    """A run that measures for long: with all of its chain in the kernel, and with processes that poll in each pod."""
    chain = request.param
    need(chain.data_plane)
    variables = ("--variable", f"DATA_PLANE:{chain.data_plane}", "--variable", f"PODS:{chain.pods}")
    robot = Robot(tmp_path, *variables, "--test", "Forwards", "--test", "Leaves*", str(suite), trials=100, duration=0.5)
    robot.wait_for_trials(1)
    return robot


def test_success_and_failure_leave_nothing(tmp_path: Path, suite: Path) -> None:
    robot = Robot(tmp_path, str(suite))
    assert robot.wait() == 2, robot.output.read_text()
    outcomes = {record["test"]["name"]: record["outcome"] for record in robot.records()}
    assert outcomes == {"Forwards": "passed", "Fails In The Middle": "failed", "Leaves The Chain Standing": "failed"}
    assert (robot.results / "conformance.html").exists()
    (forwards, fails, _) = ExecutionResult(robot.results / "output.xml").suite.all_tests
    assert re.match(r"MRR \d", forwards.message), "the figures of the test, in one line"
    assert re.match(r"on purpose; MRR \d", fails.message)
    shown = [each.message for each in forwards.body if isinstance(each, Message) and each.html]
    assert len(shown) == 1 and "<svg" in shown[0], "the loss curve stands in the test, and in none of its keywords"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_in_order(long_run: Robot, number: signal.Signals) -> None:
    long_run.process.send_signal(number)
    assert long_run.wait() != 0
    (record,) = long_run.records()
    assert record["outcome"] == "interrupted"
    assert record["trials"], "the trials that had ended must be in the record"
    assert "Ended early: 1 of 2 tests were not run." in long_run.output.read_text()


def test_kill_then_clean(long_run: Robot) -> None:
    long_run.kill()
    trials = next((long_run.results / "records").glob("*.trials.jsonl")).read_text().splitlines()
    assert len(trials) >= 2, "a killed run must leave its trials on disk"
    report = podperf("report", str(long_run.results))
    assert "interrupted" in report.stdout
    cleaned = podperf("clean")
    assert "podperf-worker" in cleaned.stdout
    assert "nothing" in podperf("clean").stdout


@pytest.mark.slow
def test_the_next_run_cleans_up_after_a_killed_one(long_run: Robot, tmp_path: Path, suite: Path) -> None:
    long_run.kill()
    following = Robot(tmp_path / "next", "--test", "Forwards", str(suite))
    assert following.wait() == 0, following.output.read_text()
    assert "removed what an earlier run left: podperf-" in following.output.read_text()


@pytest.mark.slow
def test_a_killed_run_is_resumed_with_what_it_has_not_measured(tmp_path: Path, suite: Path) -> None:
    tests = ("--test", "Forwards", "--test", "Fails*", str(suite))
    killed = Robot(tmp_path, *tests, trials=4, duration=0.5)
    killed.wait_for("Fails In The Middle | set-up")
    left = killed.results / "records"
    killed.wait_until(lambda: any(left.glob("*.trials.jsonl")), "a record that began")
    killed.kill()
    modifier = f"run_command.chosen_names.RemainingTests:{killed.results}"
    rest = Robot(tmp_path / "rest", "--prerunmodifier", modifier, *tests)
    assert rest.wait() == 1, rest.output.read_text()
    (record,) = rest.records()
    assert (record["test"]["name"], record["outcome"]) == ("Fails In The Middle", "failed")
    podperf("report", str(killed.results), str(rest.results), "--output", str(tmp_path / "both"))
    assert (tmp_path / "both" / "conformance.html").exists()


@pytest.mark.slow
def test_a_second_run_says_so_and_leaves(tmp_path: Path, suite: Path) -> None:
    first = Robot(tmp_path, "--test", "Forwards", str(suite), trials=100, duration=0.5)
    first.wait_for_trials(1)
    second = Robot(tmp_path / "second", "--test", "Forwards", str(suite))
    assert second.wait() != 0
    assert f"another podperf run is measuring on this machine (process {first.process.pid})" in second.messages()
    assert "another podperf run is measuring" in second.output.read_text(), "it must be seen on the console, too"
    assert first.process.poll() is None, "the first run must go on"
    cleaned = podperf("clean", check=False)
    assert cleaned.returncode != 0 and str(first.process.pid) in cleaned.stderr, "cleaning must not disturb a run"
    first.process.send_signal(signal.SIGINT)
    first.wait()


def test_a_full_disk_takes_no_record_and_the_last_line_says_where_it_is(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, elsewhere = tmp_path / "results", tmp_path / "elsewhere"
    for folder in (results, elsewhere):
        folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    # This is enough for the beginning of a record and a trial, and too little for the record with all trials.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", results], check=True)
    try:
        no_output = ("--output", "NONE", "--log", "NONE", "--report", "NONE")
        robot = Robot(tmp_path, *no_output, "--test", "Forwards", str(suite), trials=8, duration=0.1)
        assert robot.wait() == 0, robot.output.read_text()
    finally:
        subprocess.run(["umount", results], check=True)
    said = robot.output.read_text()
    (saved,) = elsewhere.glob("podperf-record-*/*.json")
    assert json.loads(saved.read_text())["outcome"] == "passed", "it was measured"
    assert "Forwards interrupted: MRR" in said and "\n1 test: 1 interrupted\n" in said
    assert str(saved.parent) in said.strip().splitlines()[-1]


def test_a_run_waits_for_a_check_and_says_so(tmp_path: Path, suite: Path) -> None:
    with RunLock(CHECK):
        robot = Robot(tmp_path, "--test", "Forwards", str(suite))
        robot.wait_for(f"`podperf check` is looking at this machine (process {os.getpid()}); waiting for it to end")
    assert robot.wait() == 0, robot.output.read_text()


def _tester_of(robot: int) -> int:
    """The process number of the tester of a run."""
    return int(subprocess.check_output(["pgrep", "--exact", "--parent", str(robot), "podperf-tester"]))


@pytest.mark.slow
def test_a_trial_in_which_a_signal_stopped_the_run_is_repeated(tmp_path: Path, suite: Path) -> None:
    """For longer than the run waits for an answer of its tester."""
    robot = Robot(tmp_path, "--test", "Forwards", str(suite), trials=2, duration=5.0)
    robot.wait_for_trials(1)
    cpu_time = ~_tester_of(robot.process.pid) << 3 | 2  # the clock of another process's CPU time
    sent = time.clock_gettime(cpu_time)
    robot.wait_until(lambda: time.clock_gettime(cpu_time) > sent + 0.5, "trial that runs")
    robot.process.send_signal(signal.SIGSTOP)
    time.sleep(20)
    robot.process.send_signal(signal.SIGCONT)
    (record,) = robot.measured()
    invalid = [trial["invalid"] for trial in record["trials"]]  # of others, too, if the machine was busy
    still = re.compile("the run stood still for (1[5-9]|2[0-9]) s: a signal stopped it, .*")
    assert len([each for each in invalid if each and still.fullmatch(each)]) == 1
    assert (invalid.count(None), invalid[-1]) == (2, None)


@pytest.mark.slow
def test_a_tester_killed_in_mid_trial_fails_one_test_only(tmp_path: Path, suite: Path) -> None:
    robot = Robot(tmp_path, "--test", "Forwards", "--test", "Leaves*", str(suite), trials=20, duration=0.5)
    robot.wait_for_trials(1)
    os.kill(_tester_of(robot.process.pid), signal.SIGKILL)
    assert robot.wait() == 2
    messages = {record["test"]["name"]: record["reason"] for record in robot.records()}
    assert "podperf-tester" in messages["Forwards"]
    assert "before any tear-down" in messages["Leaves The Chain Standing"]
