"""CI runs a slow stage if files that it tests have changed, or if it is its turn. CI gives the reason (.ci/due)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOUR = 3600
NOON = 1_795_435_200  # 2026-11-23 12:00 UTC, a day of the first of two turns
NOT_DUE = "not due: nothing that it tests has changed in the last 24 hours; its turn is on 2026-11-24\n"


@pytest.fixture
def commit(tmp_path: Path) -> Callable[[int, str], None]:
    """Commits a change of a file, at a given time, to a repository with CI."""
    _git(tmp_path, "init", "--initial-branch=main")

    def committed(time: int, *paths: str, message: str = "a change") -> None:
        for path in paths:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            with (tmp_path / path).open("a") as file:
                file.write("a line\n")
        _git(tmp_path, "add", "--all")
        _git(tmp_path, "commit", "--message", message, time=time)

    return committed


def _git(folder: Path, *arguments: str, time: int = NOON) -> None:
    moment = f"@{time} +0000"
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
    nobodys = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    environment = {**os.environ, **who, **when, **nobodys}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def due(folder: Path, turn: int, *paths: str, stages: int = 2) -> str:
    command = [ROOT / ".ci" / "due", str(turn), str(stages), *paths]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_stage_is_due_when_what_it_tests_has_changed(tmp_path: Path, commit: Callable[..., None]) -> None:
    commit(NOON - 30 * HOUR, "worker/old.py", "host.py")
    commit(NOON - 20 * HOUR, "worker/new.py")
    commit(NOON, "docs/page.md")
    assert due(tmp_path, 1, "host.py", "worker") == "due: worker/new.py has changed in the last 24 hours\n"
    assert due(tmp_path, 1, "work*") == "due: worker/new.py has changed in the last 24 hours\n"
    assert due(tmp_path, 1, "host.py", "worker/old.py") == NOT_DUE


def test_else_each_stage_has_its_day(tmp_path: Path, commit: Callable[..., None]) -> None:
    commit(NOON - 30 * HOUR, "worker.py")
    for day in range(4):
        commit(NOON + day * 24 * HOUR, "page.md")
        found = [due(tmp_path, turn, "worker.py").startswith("due: today is its turn") for turn in range(2)]
        assert found == [day % 2 == 0, day % 2 == 1]
    last = NOON + 3 * 24 * HOUR
    of_three = [due(tmp_path, turn, "worker.py", stages=3) for turn in range(3)]
    assert [each.startswith("due:") for each in of_three] == [turn == last // 86400 % 3 for turn in range(3)]
    assert {each[-11:-1] for each in of_three if each.startswith("not")} == {"2026-11-27", "2026-11-28"}


def test_a_merge_is_a_change_of_its_own_day(tmp_path: Path, commit: Callable[..., None]) -> None:
    commit(NOON - 60 * HOUR, "page.md")
    _git(tmp_path, "checkout", "-b", "branch")
    commit(NOON - 50 * HOUR, "worker.py")
    _git(tmp_path, "checkout", "main")
    commit(NOON - 40 * HOUR, "page.md")
    assert due(tmp_path, 1, "worker.py").startswith("not due:")
    _git(tmp_path, "merge", "--no-ff", "branch", time=NOON)
    assert due(tmp_path, 1, "worker.py") == "due: worker.py has changed in the last 24 hours\n"


def test_what_the_stages_test_exists() -> None:
    table = 'source .ci/slow-stages; for each in "${slow_stages[@]}"; do "$each"; printf "%s\\n" "${paths[@]}"; done'
    done = subprocess.run(["bash", "-euc", table], cwd=ROOT, check=True, capture_output=True, text=True)
    patterns = done.stdout.splitlines()
    assert len(patterns) > 15
    assert [each for each in patterns if not any(ROOT.glob(each))] == []
