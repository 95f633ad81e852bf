"""The example for Jenkins, run with the Groovy that Jenkins has: stages, steps and shell scripts, on made-up results.

There is no Jenkins among the packages that these tests can get: Maven Central has neither its war nor its plugins. So
`jenkins/RunPipeline.groovy` stands for it. It refuses a directive, a step or an argument that it does not know.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ci_workspace import EXAMPLES, STEADY, Workspace
from robot_run import ROOT

pytestmark = pytest.mark.slow
JENKINSFILE = EXAMPLES / "Jenkinsfile"
GROOVY = "org.codehaus.groovy:groovy-all:2.4.21"  # the version of Jenkins 2
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


def build(
    groovy: Path, workspace: Workspace, environment: dict[str, str], number: int, file: Path = JENKINSFILE
) -> str:
    """The output of the build."""
    environment = environment | {"BUILD_NUMBER": str(number)}
    command = ["java", "-cp", groovy, "groovy.ui.GroovyMain", STAND_IN, file, workspace.folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_a_run_without_a_change_is_published_archived_and_kept(groovy: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    said = build(groovy, workspace, workspace.next_run(), 7)
    assert said.endswith("result: SUCCESS\n"), said
    assert [line for line in said.splitlines() if line.startswith("stage: ")] == [
        f"stage: {each}" for each in ("Check", "Run", "History", "Gate")
    ]
    assert "publishHTML: history/history.html\n" in said  # the made-up run has no other page
    assert (workspace.history / "7" / "records").is_dir() and workspace.runs_in_history() == STEADY + 1
    archived = [path for path in (workspace.folder / "results" / "7").rglob("*") if path.is_file()]
    assert f"archiveArtifacts: {len(archived)} files\n" in said and len(archived) >= 5


def test_one_run_that_is_worse_is_unstable_and_the_next_one_is_a_failure(groovy: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    said = build(groovy, workspace, workspace.next_run(0.8), 1)
    assert said.endswith("result: UNSTABLE\n") and "unstable: suspected" in said, said
    said = build(groovy, workspace, workspace.next_run(0.8), 2)
    assert said.endswith("result: FAILURE\n") and "failed: regression: " in said, said
    assert "publishHTML: history/history.html\n" in said


def test_failed_tests_make_the_build_unstable(groovy: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    said = build(groovy, workspace, workspace.next_run(failed=True, code=1), 1)
    assert said.endswith("result: UNSTABLE\n") and "junit: 1 failed" in said, said
    assert workspace.runs_in_history() == STEADY + 1


@pytest.mark.parametrize("code", [252, 254])
def test_a_run_that_could_not_measure_fails_and_leaves_the_history_alone(
    groovy: Path, code: int, tmp_path: Path
) -> None:
    workspace = Workspace(tmp_path)
    said = build(groovy, workspace, workspace.next_run(0, code=code), 1)
    assert said.endswith("result: FAILURE\n") and f"exit code {code}" in said, said
    assert "stage: History" not in said and workspace.runs_in_history() == STEADY


def test_a_testbed_that_cannot_measure_is_not_tried(groovy: Path, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    said = build(groovy, workspace, workspace.next_run(check=1), 1)
    assert said.endswith("result: FAILURE\n") and "stage: Run" not in said, said


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("allowEmptyResults", "allowEmptyResult"),
        ("publishHTML target", "publishHtml target"),
        ("agent {", "agents {"),
        ("stage('Gate') {\n            steps {", "stage('Gate') {\n            script {"),
        ("script {", "scripts {"),
    ],
)
def test_the_stand_in_refuses_what_jenkins_does_not_know(groovy: Path, good: str, bad: str, tmp_path: Path) -> None:
    text = JENKINSFILE.read_text()
    assert good in text
    (tmp_path / "Jenkinsfile").write_text(text.replace(good, bad, 1))
    workspace = Workspace(tmp_path)
    said = build(groovy, workspace, workspace.next_run(), 1, tmp_path / "Jenkinsfile")
    assert "result: SUCCESS" not in said
    assert "Refused" in said or "MultipleCompilationErrors" in said, said
