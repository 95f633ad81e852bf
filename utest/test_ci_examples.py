"""The examples for GitLab CI and GitHub Actions: their steps, run as a runner runs them, on made-up results."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ci_workspace import EXAMPLES, STEADY, Workspace

GITLAB, GITHUB = EXAMPLES / "gitlab-ci.yml", EXAMPLES / "github-actions.yml"
Pipeline = Callable[[Workspace, dict[str, str], int], int]


@pytest.mark.parametrize(("file", "schema"), [(GITLAB, "gitlab-ci"), (GITHUB, "github-workflows")])
def test_an_example_fits_the_schema_of_its_server(file: Path, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    # `!reference` and the like are tags of GitLab's, which the example does not use.
    done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def shell(script: str, workspace: Workspace, environment: dict[str, str]) -> int:
    """As both runners do it: bash, which ends at the first error."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=workspace.folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    print(done.stdout, done.stderr)
    return done.returncode


def gitlab(workspace: Workspace, environment: dict[str, str], number: int) -> int:
    job = yaml.safe_load(GITLAB.read_text())["podperf"]
    known = {"CI_JOB_ID": str(number), "CI_BUILDS_DIR": str(workspace.history.parent), "CI_COMMIT_SHORT_SHA": "abc"}
    variables = {
        name: re.sub(r"\$(\w+)", lambda found: known[found[1]], value) for name, value in job["variables"].items()
    }
    return shell("\n".join(job["script"]), workspace, environment | known | variables)


def github(workspace: Workspace, environment: dict[str, str], number: int) -> int:
    output = workspace.folder / "output"
    known = {"github.run_id": str(number), "github.run_attempt": "1", "github.sha": "abc"}

    def filled(values: dict[str, Any]) -> dict[str, str]:
        given = dict(line.split("=") for line in output.read_text().splitlines()) if output.exists() else {}
        words = known | {f"steps.run.outputs.{name}": value for name, value in given.items()}
        expression = re.compile(r"\$\{\{ (.*?) \}\}")
        return {name: expression.sub(lambda found: words[found[1]], each) for name, each in values.items()}

    job = yaml.safe_load(GITHUB.read_text())["jobs"]["podperf"]
    environment |= filled(job["env"]) | {"GITHUB_OUTPUT": str(output)}
    for step in job["steps"]:
        if "run" in step and (code := shell(step["run"], workspace, environment | filled(step.get("env", {})))):
            return code
    return 0


@pytest.fixture(params=[gitlab, github])
def pipeline(request: pytest.FixtureRequest) -> Pipeline:
    return request.param  # type: ignore[no-any-return]


def test_a_run_without_a_change_passes_and_is_in_the_history(pipeline: Pipeline, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert pipeline(workspace, workspace.next_run(), 1) == 0
    assert workspace.runs_in_history() == STEADY + 1
    assert len(list(workspace.folder.glob("results/*/history/history.html"))) == 1
    assert len(list(workspace.folder.glob("results/*/podperf.prom"))) == 1


def test_one_run_that_is_worse_is_suspected_and_two_end_in_the_gate(pipeline: Pipeline, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    allowed = 5 if pipeline is gitlab else 0  # GitLab allows the job to fail with this code
    assert yaml.safe_load(GITLAB.read_text())["podperf"]["allow_failure"] == {"exit_codes": [5]}
    assert pipeline(workspace, workspace.next_run(0.8), 1) == allowed
    assert pipeline(workspace, workspace.next_run(0.8), 2) == 3


def test_a_failed_test_fails_the_job_after_its_results_are_in_the_history(pipeline: Pipeline, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert pipeline(workspace, workspace.next_run(failed=True, code=1), 1) == 4
    assert workspace.runs_in_history() == STEADY + 1


@pytest.mark.parametrize("code", [252, 253, 254, 255])
def test_a_run_that_could_not_measure_is_not_in_the_history(pipeline: Pipeline, code: int, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert pipeline(workspace, workspace.next_run(0 if code != 253 else 0.5, code=code), 1) == code
    assert workspace.runs_in_history() == STEADY


def test_a_testbed_that_cannot_measure_is_not_tried(pipeline: Pipeline, tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    assert pipeline(workspace, workspace.next_run(check=1), 1) == 1
    assert not (workspace.folder / "results").exists()
