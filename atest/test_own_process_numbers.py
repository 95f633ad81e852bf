"""A container with its own process numbers hides the kernel's threads. A run must pin these threads to CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from robot_run import ROOT

pytestmark = pytest.mark.usefixtures("machine_as_before")
INSIDE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable)
REMEDY = "run podperf with those of the host (docker run --pid=host; hostPID: true in a Kubernetes pod)"


def inside(*arguments: str) -> str:
    """The output of a Python program in such a container. The program must fail."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    done = subprocess.run(
        [*INSIDE, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )
    assert done.returncode
    return done.stdout


def test_check_says_that_the_quick_run_cannot_be_measured_and_what_to_do() -> None:
    said = inside("-m", "podperf", "check")
    assert said.splitlines()[-1] == "The quick run cannot be measured here. In the way: receive threads."
    assert REMEDY in said


def test_a_run_fails_once_at_its_start(tmp_path: Path) -> None:
    said = inside("-m", "robot", "--console", "none", "--outputdir", str(tmp_path), "--include", "quick", "tests")
    assert said.count(REMEDY) == 1, said
    assert len(said.splitlines()) == 1, said
    assert not list(tmp_path.glob("records/*"))
