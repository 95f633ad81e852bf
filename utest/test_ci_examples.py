"""The examples for GitLab CI and GitHub Actions: their steps, run as a runner runs them, on made-up results."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import pytest
import yaml

import made_up_history
from ci_servers import AFTER, BEFORE, GITHUB, GITLAB, github, gitlab
from ci_workspace import BRIDGE, EXAMPLES, Workspace
from podperf.report.history_page import assess_history

Pipeline = Callable[..., int]


@pytest.mark.parametrize(("file", "schema"), [(GITLAB, "gitlab-ci"), (GITHUB, "github-workflows")])
def test_an_example_fits_the_schema_of_its_server(file: Path, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    # `!reference` and the like are tags of GitLab's, which the example does not use.
    done = subprocess.run([*command, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


HISTORIES = {
    gitlab: "group%2Fproject podperf/main",
    github: "group%2Fproject podperf podperf/main",
}
BRANCH = {gitlab: "CI_COMMIT_REF_NAME", github: "GITHUB_REF_NAME"}


@pytest.fixture(params=[gitlab, github])
def pipeline(request: pytest.FixtureRequest) -> Pipeline:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def workspace(pipeline: Pipeline, tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, f"{HISTORIES[pipeline]}/topologies%2Flocal.yaml@{os.uname().nodename}")


def test_a_run_without_a_change_passes_and_is_in_the_history(pipeline: Pipeline, workspace: Workspace) -> None:
    assert pipeline(workspace, workspace.next_run(), 1) == 0
    (run,) = workspace.new_runs()
    assert run.parent == workspace.history
    assert workspace.artifact("history.html").exists() and workspace.artifact("podperf.prom").exists()


def test_one_run_that_is_worse_is_suspected_and_two_end_in_the_gate(pipeline: Pipeline, workspace: Workspace) -> None:
    allowed = 5 if pipeline is gitlab else 0  # GitLab allows the job to fail with this code
    assert yaml.safe_load(GITLAB.read_text())["podperf"]["allow_failure"] == {"exit_codes": [5]}
    assert pipeline(workspace, workspace.next_run(0.8), 1) == allowed
    assert b"<failure" not in workspace.artifact("history.xml").read_bytes()
    assert pipeline(workspace, workspace.next_run(0.8), 2) == 3
    assert b'<failure message="regression: -' in workspace.artifact("history.xml").read_bytes()


def test_a_failed_test_fails_the_job_after_its_results_are_in_the_history(
    pipeline: Pipeline, workspace: Workspace
) -> None:
    assert pipeline(workspace, workspace.next_run(failed=True, code=1), 1) == 4
    assert len(workspace.new_runs()) == 1


@pytest.mark.parametrize("code", [252, 253, 254, 255])
def test_a_run_that_could_not_measure_is_not_in_the_history(
    pipeline: Pipeline, workspace: Workspace, code: int
) -> None:
    assert pipeline(workspace, workspace.next_run(0 if code != 253 else 0.5, code=code), 1) == code
    assert not workspace.new_runs()


def test_a_testbed_that_cannot_measure_is_not_tried(pipeline: Pipeline, workspace: Workspace) -> None:
    assert pipeline(workspace, workspace.next_run(check=1), 1) == 1
    assert not workspace.artifacts.exists()


def test_histories_of_branches_jobs_and_testbeds_do_not_mix(pipeline: Pipeline, workspace: Workspace) -> None:
    """The number of the build is the same each time. Half the rate is no regression where a history begins."""
    assert pipeline(workspace, workspace.next_run(), 5) == 0
    shutil.rmtree(workspace.artifacts)
    for variables in ({BRANCH[pipeline]: "feature"}, {BRANCH[pipeline]: "feature/a"}, {"TOPOLOGY": "my-lab.yaml"}):
        for _ in range(2):
            assert pipeline(workspace, workspace.next_run(0.5, **variables), 5) == 0
            shutil.rmtree(workspace.artifacts)
            time.sleep(1)  # a folder's name has the second
    runs = workspace.new_runs()
    assert [len(list(each)) for _, each in groupby(runs, lambda run: run.parent)] == [2, 2, 2, 1]
    assert len({next(run.glob("records/*.json")).read_text() for run in runs}) == 7
    assert not any(a != b and b.is_relative_to(a) for a in (run.parent for run in runs) for b in runs if b.parent != a)


def test_what_is_under_test_is_installed_first(pipeline: Pipeline, workspace: Workspace) -> None:
    install = {"INSTALL": str(workspace.installer)}
    assert pipeline(workspace, workspace.next_run(**install, VERSION_UNDER_TEST="v6.18"), 1) == 0
    assert workspace.installed.read_text() == "v6.18\n"
    assert pipeline(workspace, workspace.next_run(**install, VERSION_UNDER_TEST="broken"), 2) == 1
    assert len(workspace.new_runs()) == 1, "no run measures another version"


@pytest.mark.parametrize("code", [0, 3, 5, 254])
def test_a_merge_request_is_compared_with_the_target_branch(
    pipeline: Pipeline, workspace: Workspace, code: int
) -> None:
    job = {gitlab: "merge-request", github: "pull-request"}[pipeline]
    given = workspace.next_run(check=code, INSTALL=str(workspace.installer))
    assert pipeline(workspace, given, 1, job) == (0 if code == 5 and pipeline is github else code)
    assert workspace.installed.read_text() == f"{BEFORE}\n"
    hook = workspace.hook()
    for command, version in ((hook.run, AFTER), (hook.undo or "", BEFORE)):
        subprocess.run(["sh", "-e", "-c", command], check=True)
        assert workspace.installed.read_text().splitlines()[-1] == version
    assert not workspace.new_runs()


def test_old_runs_are_cleared_and_no_verdict_changes(tmp_path: Path) -> None:
    """More than 200 runs, of which the last ones are worse."""
    runs, results = 203, tmp_path / "results"
    for run in range(runs):
        made_up_history.write(tmp_path / "all", run, made_up_history.record(BRIDGE, run, 1.0 if run < 198 else 0.9))
    made_up_history.write(results, runs, made_up_history.record(BRIDGE, runs, 0.9))
    (made,) = results.iterdir()
    name = ("job", "main", f"lab.yaml@{os.uname().nodename}")
    shutil.copytree(tmp_path / "all", tmp_path.joinpath("histories", *name))
    keep_sh = [EXAMPLES / "keep.sh", made, tmp_path / "histories", "7", "job", "main", "lab.yaml"]
    done = subprocess.run(keep_sh, capture_output=True, text=True, check=True)
    shutil.copytree(made, tmp_path / "all" / made.name)
    kept = assess_history(Path(done.stdout.rstrip("\n")))
    whole = assess_history(tmp_path / "all")
    assert (len(kept.history.runs), len(whole.history.runs)) == (200, 204)
    verdicts, others = ([(each.verdict, each.sentence) for each in one.judgements] for one in (kept, whole))
    assert verdicts == others and ("regression" in {verdict for verdict, _ in verdicts})
