"""Runs the project's suites as a user does: Robot Framework in a child process, its result model checked afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from robot.api import ExecutionResult

ROOT = Path(__file__).parents[1]
SETTINGS = f"""*** Settings ***
Resource    {ROOT}/resources/networking_model.resource
Suite Setup    Open Testbed    ${{TOPOLOGY}}
Suite Teardown    Close Testbed
"""  # of a suite written for a test
SHORT = """
version: 1
name: short
method: {search: quick, mrr: {trials: %d, duration: %s}}
"""


def mrr_suite(folder: Path, **rows: str) -> str:
    """A suite whose tests only measure MRR. A search would take ten seconds more.

    The name of a row is the name of its test. The value is the arguments of `Set Up Chain`.
    """
    measures = "    Measure Maximum Receive Rate\n    [Teardown]    Tear Down Chain\n\n"
    tests = "".join(f"{name}\n    Set Up Chain    {arguments}\n{measures}" for name, arguments in rows.items())
    path = folder / "mrr.robot"
    path.write_text(f"{SETTINGS}\n*** Test Cases ***\n{tests}")
    return str(path)


def trials_on_disk(results: Path) -> int:
    """Count the trials that a running test has on disk. If several tests run, the largest number counts."""
    number = 0
    for path in results.glob("records/*.trials.jsonl"):
        with suppress(FileNotFoundError):  # the test has ended after the look in the folder
            number = max(number, len(path.read_text().splitlines()) - 1)  # the first line is the record
    return number


class Robot:
    """Robot Framework in a child process, on the project's own suites or on a suite of a test.

    It has the machine's lock. So it is ended in order, as by a user, when its test ends or the test runner is killed.
    """

    running: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        trials: int = 1,
        duration: float = 0.2,
        topology: str | None = None,
        whole_calibration: bool = False,
        few_rounds: bool = False,
        short_search: bool = False,
    ) -> None:
        """Start Robot Framework. `topology` is the text of a topology file. By default: a local one with these MRR
        trials.

        The tester's calibration is short, unless `whole_calibration` is set. With `few_rounds`, a comparison has fewer
        rounds. With `short_search`, a search and a latency trial take a second or two, and may find nothing.
        """
        folder.mkdir(exist_ok=True)
        self.results = folder / "results"
        path = folder / "topology.yaml"
        path.write_text(topology or SHORT % (trials, duration))
        self.output = folder / "console.txt"
        ended_with_us = ["setpriv", "--pdeathsig", "TERM"]
        command = [sys.executable, "-m", "robot", "--console", "quiet", "--outputdir", str(self.results)]
        command += ["--pythonpath", str(ROOT / "libraries")]
        listeners = {
            "short_calibration": not whole_calibration,
            "few_rounds": few_rounds,
            "short_search": short_search,
        }
        for name in (name for name, wanted in listeners.items() if wanted):
            command += ["--listener", str(Path(__file__).with_name(f"{name}.py"))]
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [*ended_with_us, *command, "--variable", f"TOPOLOGY:{path}", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
            )
        self.running.append(self.process)

    @classmethod
    def end_all(cls) -> None:
        """The processes that still run."""
        while cls.running:
            process = cls.running.pop()
            if process.poll() is None:
                process.terminate()
                process.wait(60)

    def wait_for(self, text: str, timeout: float = 120) -> None:
        self.wait_until(lambda: text in self.output.read_text(), repr(text), timeout)

    def wait_until(self, there: Callable[[], object], name: str, timeout: float = 120) -> None:
        """Wait until this is true. `name` is what it looks for."""
        deadline = time.monotonic() + timeout
        while not there():
            assert self.process.poll() is None, f"robot ended before {name}: {self.said()}"
            assert time.monotonic() < deadline, f"no {name} in {timeout} s: {self.said()}"
            time.sleep(0.05)

    def wait_for_trials(self, number: int, timeout: float = 120) -> None:
        """Wait until a test that still runs has this many trials on disk."""
        self.wait_until(lambda: trials_on_disk(self.results) >= number, f"{number} trials", timeout)

    def kill(self, after: int = 0) -> None:
        """Kill the run when a test has this many trials on disk."""
        self.wait_for_trials(after)
        self.process.kill()
        self.wait()

    def wait(self, timeout: float = 600) -> int:
        """Wait for the end; returns the exit code. Without its listener, a run would be slow, so that is an error."""
        code = self.process.wait(timeout)
        assert "Taking listener" not in (said := self.output.read_text()), said
        return code

    def measured(self) -> list[dict[str, Any]]:
        """The records of a run, which must end with exit code 0."""
        assert self.wait() == 0, self.said()
        return self.records()

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(path.read_text()) for path in sorted((self.results / "records").glob("*.json"))]

    def said(self) -> str:
        """The console's text, and the messages of the tests if the run has ended."""
        ended = self.process.poll() is not None and (self.results / "output.xml").exists()
        return self.output.read_text() + (self.messages() if ended else "")

    def messages(self) -> str:
        """The message of every test, a line each."""
        suite = ExecutionResult(self.results / "output.xml").suite
        return "\n".join(f"{test.name}: {test.status}: {test.message}" for test in suite.all_tests)


def podperf(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command line, without the script's set-up. With `check` it must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "podperf", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "libraries")},
    )
    assert not (check and done.returncode), f"exit code {done.returncode}: {done.stdout}{done.stderr}"
    return done
