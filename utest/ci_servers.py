"""Stand-ins for GitLab and GitHub: they run the jobs of the examples as a runner runs them."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import yaml

from ci_workspace import EXAMPLES, Workspace

GITLAB, GITHUB = EXAMPLES / "gitlab-ci.yml", EXAMPLES / "github-actions.yml"
BEFORE, AFTER = "1" * 40, "2" * 40  # commits
_STEPS = ("run", "history")  # of GitHub's job, which have outputs


def shell(script: str, workspace: Workspace, environment: dict[str, str]) -> int:
    """As both runners do it: bash, which ends at the first error."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(
        command, cwd=workspace.folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    print(done.stdout, done.stderr)
    return done.returncode


def keep(workspace: Workspace, results: str) -> None:
    """Keep the artifacts of a build."""
    if (workspace.folder / results).exists():
        shutil.copytree(workspace.folder / results, workspace.artifacts / results)


def gitlab(workspace: Workspace, environment: dict[str, str], number: int, job: str = "podperf") -> int:
    whole = yaml.safe_load(GITLAB.read_text())
    known = {
        "CI_JOB_ID": str(number),
        "CI_BUILDS_DIR": str(workspace.folder.parent),
        "CI_PROJECT_PATH": "group/project",
        "CI_JOB_NAME": job,
        "CI_COMMIT_REF_NAME": "main",
        "CI_COMMIT_SHA": AFTER,
        "CI_COMMIT_SHORT_SHA": AFTER[:8],
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": BEFORE,
    } | environment

    def filled(value: str) -> str:
        return re.sub(r"\$(\w+)", lambda found: known[found[1]], value)

    variables = {name: filled(value) for name, value in whole["variables"].items()}
    code = shell("\n".join(whole[job]["script"]), workspace, known | variables | environment)
    (results,) = map(filled, whole[job]["artifacts"]["paths"])
    keep(workspace, results)
    junit = whole[job]["artifacts"]["reports"]["junit"]
    if code in {0, 3}:
        for path in [junit] if isinstance(junit, str) else junit:
            assert (workspace.artifacts / filled(path)).exists()
    shutil.rmtree(workspace.folder / results, ignore_errors=True)  # as GIT_CLEAN_FLAGS do before the next job
    return code


def github(workspace: Workspace, environment: dict[str, str], number: int, job: str = "podperf") -> int:
    output = workspace.folder / "output"
    output.unlink(missing_ok=True)
    whole = yaml.safe_load(GITHUB.read_text())
    known = {
        "github.run_id": str(number),
        "github.run_attempt": "1",
        "github.sha": AFTER,
        "github.event.pull_request.base.sha": BEFORE,
    }

    def filled(values: dict[str, Any]) -> dict[str, str]:
        lines = output.read_text().splitlines() if output.exists() else []
        given = dict(line.split("=", 1) for line in lines)
        words = known | {f"steps.{step}.outputs.{name}": value for name, value in given.items() for step in _STEPS}
        expression = re.compile(r"\$\{\{ (.*?) \}\}")
        return {name: expression.sub(lambda found: words[found[1]], each) for name, each in values.items()}

    told = {"GITHUB_REPOSITORY": "group/project", "GITHUB_WORKFLOW": "podperf", "GITHUB_JOB": job}
    told |= {"GITHUB_REF_NAME": "main", "GITHUB_OUTPUT": str(output)}
    steps = whole["jobs"][job]["steps"]
    environment = told | filled(whole["env"]) | filled(whole["jobs"][job].get("env", {})) | environment
    ended = 0
    for step in steps:
        if ended and step.get("if") != "always()":
            continue
        if step.get("uses", "").startswith("actions/upload-artifact@"):
            keep(workspace, environment["RESULTS"])
        elif "run" in step:
            ended = shell(step["run"], workspace, environment | filled(step.get("env", {}))) or ended
    assert not list(workspace.folder.glob("results/*")), "the job takes its results away"
    return ended
