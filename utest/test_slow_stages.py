"""CI runs one slow stage: first those whose files have changed, then the one whose turn it is (.ci/due)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOUR = 3600
NOON = 1_795_435_200  # 2026-11-23 12:00 UTC, a day of the first of two turns
STAGES = """
slow_stages=(virtual cluster)
virtual() { name='the virtual worker' paths=(host.py 'work*'); }
cluster() { name='the cluster' paths=(cluster.py); }
"""


@pytest.fixture
def commit(tmp_path: Path) -> Callable[[int, str], None]:
    """Commits a change of a file, at a given time, to a repository with CI."""
    _git(tmp_path, "init", "--initial-branch=main")
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci/slow-stages").write_text(STAGES)

    def committed(time: int, *paths: str) -> None:
        for path in paths:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            with (tmp_path / path).open("a") as file:
                file.write("a line\n")
        _git(tmp_path, "add", "--all")
        _git(tmp_path, "commit", "--message", "a change", time=time)

    return committed


def _git(folder: Path, *arguments: str, time: int = NOON) -> None:
    moment = f"@{time} +0000"
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    nobodys = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    environment = {**os.environ, **who, **when, **nobodys}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def due(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run([ROOT / ".ci/due", *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_a_stage_comes_first_when_what_it_tests_has_changed(tmp_path: Path, commit: Callable[..., None]) -> None:
    commit(NOON - 30 * HOUR, "worker/old.py", "cluster.py")
    commit(NOON - 20 * HOUR, "page.md")
    commit(NOON, "cluster.py")
    assert due(tmp_path) == ["cluster\tcluster.py has changed in the last 24 hours", "virtual\ttoday is its turn"]
    commit(NOON + HOUR, "worker/new.py")
    assert due(tmp_path) == [
        "virtual\tworker/new.py has changed in the last 24 hours",
        "cluster\tcluster.py has changed in the last 24 hours",
    ]
    assert due(tmp_path, "HEAD~1")[0].startswith("cluster\t")


def test_else_each_stage_has_its_day(tmp_path: Path, commit: Callable[..., None]) -> None:
    commit(NOON - 30 * HOUR, "worker.py", "cluster.py")
    for day in range(4):
        commit(NOON + day * 24 * HOUR, "page.md")
        first, second = ("virtual", "cluster") if day % 2 == 0 else ("cluster", "virtual")
        assert due(tmp_path) == [f"{first}\ttoday is its turn", f"{second}\tits turn is in 1 days"]


def test_what_the_stages_test_exists() -> None:
    table = 'source .ci/slow-stages; for each in "${slow_stages[@]}"; do "$each"; printf "%s\\n" "${paths[@]}"; done'
    done = subprocess.run(["bash", "-euc", table], cwd=ROOT, check=True, capture_output=True, text=True)
    patterns = done.stdout.splitlines()
    assert len(patterns) > 15
    assert [pattern for pattern in patterns if not any(ROOT.glob(pattern))] == []
