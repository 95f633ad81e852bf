"""The example for Jenkins, run with the Groovy that Jenkins has: stages, steps and shell scripts, on made-up results.

There is no Jenkins among the packages that these tests can get: Maven Central has neither its war nor its plugins. So
`jenkins/RunPipeline.groovy` stands for it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ci_workspace import EXAMPLES, Workspace
from robot_run import ROOT

pytestmark = pytest.mark.slow
JENKINSFILE = EXAMPLES / "Jenkinsfile"
GROOVY = "org.codehaus.groovy:groovy-all:2.4.21"  # the version of Jenkins 2
AFTER = "2" * 40  # the commit of a merge request
STAND_IN = Path(__file__).parent / "jenkins" / "RunPipeline.groovy"


@pytest.fixture(scope="module")
def groovy() -> Path:
    """The jar of Groovy. Skips, with the reason, where it cannot be had."""
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed, which the test of the Jenkinsfile needs (default-jre, maven)")
    folder = ROOT / "build" / "groovy"
    jar = folder / "groovy-all-2.4.21.jar"
    if not jar.exists():
        fetch = ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={GROOVY}"]
        fetch.append(f"-DoutputDirectory={folder}")
        done = subprocess.run(fetch, capture_output=True, text=True, check=False, cwd=ROOT / "build")
        if done.returncode or not jar.exists():
            pytest.skip(f"Groovy cannot be had here: {(done.stdout + done.stderr).strip()[-200:]}")
    return jar


SERIES = f"podperf/origin%2Fmain/topologies%2Flocal.yaml@{os.uname().nodename}"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, SERIES)


def build(groovy: Path, workspace: Workspace, environment: dict[str, str], number: int) -> str:
    """The output of the build."""
    told = {"BUILD_NUMBER": str(number), "JOB_NAME": "podperf", "GIT_BRANCH": "origin/main", "GIT_COMMIT": AFTER}
    command = ["java", "-cp", groovy, "groovy.ui.GroovyMain", STAND_IN, JENKINSFILE, workspace.folder]
    done = subprocess.run(command, env=told | environment, capture_output=True, text=True, check=False, timeout=120)
    assert not list(workspace.folder.glob("results/*")), "the build takes its results away"
    return done.stdout + done.stderr


def test_a_run_without_a_change_is_published_archived_and_kept(groovy: Path, workspace: Workspace) -> None:
    said = build(groovy, workspace, workspace.next_run(INSTALL=str(workspace.installer), VERSION_UNDER_TEST="v7"), 7)
    assert said.endswith("result: SUCCESS\n"), said
    assert [line for line in said.splitlines() if line.startswith("stage: ")] == [
        f"stage: {each}" for each in ("Install", "Check", "Run", "Gate")
    ]
    assert workspace.installed.read_text() == "v7\n"
    assert "publishHTML: history/history.html\n" in said  # the made-up run has no other page
    (run,) = workspace.new_runs()
    assert run.parent == workspace.history and run.name.endswith("-7")
    assert workspace.artifact("xunit.xml").parent.name == "7" and workspace.artifact("history.xml").exists()


def test_a_build_of_the_same_number_and_another_branch_have_folders_of_their_own(
    groovy: Path, workspace: Workspace
) -> None:
    for variables in ({}, {"BRANCH_NAME": "feature/a"}, {}):
        said = build(groovy, workspace, workspace.next_run(**variables), 5)
        assert said.endswith("result: SUCCESS\n"), said
    assert [run.parent.parent.name for run in workspace.new_runs()] == [
        "origin%2Fmain",
        "feature%2Fa",
        "origin%2Fmain",
    ]


def test_one_run_that_is_worse_is_unstable_and_the_next_one_is_a_failure(groovy: Path, workspace: Workspace) -> None:
    said = build(groovy, workspace, workspace.next_run(0.8), 1)
    assert said.endswith("result: UNSTABLE\n") and "unstable: suspected" in said, said
    said = build(groovy, workspace, workspace.next_run(0.8), 2)
    assert said.endswith("result: FAILURE\n") and "failed: regression: " in said, said
    assert "publishHTML: history/history.html\n" in said
    assert re.search("junit: [1-9]\\d* failed", said)


def test_failed_tests_make_the_build_unstable(groovy: Path, workspace: Workspace) -> None:
    said = build(groovy, workspace, workspace.next_run(failed=True, code=1), 1)
    assert said.endswith("result: UNSTABLE\n") and "junit: 1 failed" in said, said
    assert len(workspace.new_runs()) == 1


@pytest.mark.parametrize("code", [252, 254])
def test_a_run_that_could_not_measure_fails_and_leaves_the_history_alone(
    groovy: Path, code: int, workspace: Workspace
) -> None:
    said = build(groovy, workspace, workspace.next_run(0, code=code), 1)
    assert said.endswith("result: FAILURE\n") and f"exit code {code}" in said, said
    assert "stage: Gate" not in said and not workspace.new_runs()


def test_a_testbed_that_cannot_measure_is_not_tried(groovy: Path, workspace: Workspace) -> None:
    said = build(groovy, workspace, workspace.next_run(check=1), 1)
    assert said.endswith("result: FAILURE\n") and "stage: Run" not in said, said


@pytest.mark.parametrize(("code", "result"), [(0, "SUCCESS"), (3, "FAILURE"), (5, "UNSTABLE"), (254, "FAILURE")])
def test_a_merge_request_is_compared_with_the_target_branch(
    groovy: Path, workspace: Workspace, code: int, result: str
) -> None:
    def git(*words: str) -> str:
        command = ["git", "-C", workspace.folder, "-c", "user.name=a", "-c", "user.email=a@example.org", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init")
    git("commit", "--allow-empty", "--message", "before")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    before = git("rev-parse", "HEAD")
    given = workspace.next_run(
        check=code, INSTALL=str(workspace.installer), CHANGE_ID="1", CHANGE_TARGET="main", BRANCH_NAME="PR-1"
    )
    said = build(groovy, workspace, given, 1)
    assert said.endswith(f"result: {result}\n"), said
    assert [line for line in said.splitlines() if line.startswith("stage: ")] == ["stage: Merge request"]
    assert workspace.installed.read_text() == f"{before}\n"
    assert (workspace.hook().run, workspace.hook().undo) == (
        f"'{workspace.installer}' '{AFTER}'",
        f"'{workspace.installer}' '{before}'",
    )
    assert not workspace.new_runs()
