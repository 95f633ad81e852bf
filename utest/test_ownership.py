"""Results belong to the caller of sudo. After a killed run, `podperf clean` gives the results to the caller."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from podperf.ownership import NOTE, Owner, hand_over, hand_over_killed, note_caller

CALLER, ANOTHER = Owner(12345, 12345), Owner(23456, 23456)
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results folder of a run that is still going on."""
    (folder := tmp_path / "results" / "first").mkdir(parents=True)
    (folder / "records").mkdir()
    (folder / "records" / "one.json").touch()
    (folder / "link").symlink_to(tmp_path)
    note_caller(folder, CALLER)
    return folder


@pytest.fixture
def killed(results: Path) -> Path:
    """The results folder of a run after kill -9."""
    with subprocess.Popen(["true"]) as ended:
        pass
    (results / NOTE).write_text(f"12345 12345 {ended.pid}\n")
    return results


def owners(folder: Path) -> set[Owner]:
    return {Owner.of(path) for path in (folder, *folder.rglob("*"))}


def test_without_sudo_nobody_is_the_caller() -> None:
    assert Owner.caller({}) is None
    assert Owner.caller({"SUDO_UID": "12345", "SUDO_GID": "12345"}) == CALLER


def test_a_run_that_ends_gives_its_results_away(results: Path, tmp_path: Path) -> None:
    hand_over(results, CALLER)
    assert owners(results) == {CALLER}
    assert Owner.of(tmp_path) != CALLER, "a link is given away, not what it points at"
    assert not (results / NOTE).exists()
    assert hand_over_killed(results.parent) == []


@pytest.mark.parametrize("swapped", ["", "records", "records/deep"])
def test_a_folder_that_becomes_a_link_on_the_way_gives_away_nothing_else(
    swapped: str, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of the folder can put a link there at any moment, also between two steps of podperf."""
    victim = tmp_path / "victim"
    for folder in (results / "records" / "deep", victim / "deep", victim / "records" / "deep"):
        folder.mkdir(parents=True)
        (folder / "one.json").touch()
    (victim / "one.json").touch()
    real_chown = os.chown

    def swap_first(*arguments: Any, **named: Any) -> None:
        monkeypatch.setattr(os, "chown", real_chown)
        (results / swapped).rename(tmp_path / "moved")
        (results / swapped).symlink_to(victim)
        real_chown(*arguments, **named)

    monkeypatch.setattr(os, "chown", swap_first)
    with contextlib.suppress(OSError):
        hand_over(results, CALLER)
    assert owners(victim) == {Owner(0, 0)}


@pytest.mark.parametrize("noted", ["", "12345", "12345 12345 x", "a b c"])
def test_a_note_that_a_full_disk_has_cut_keeps_nothing_from_being_put_back(noted: str, killed: Path) -> None:
    other = killed.parent / "other"
    other.mkdir()
    (other / NOTE).write_text(noted)
    assert hand_over_killed(killed.parent) == [str(killed)]
    assert owners(other) == {Owner(0, 0)}


def test_the_results_of_a_killed_run_go_to_its_caller(killed: Path) -> None:
    others = killed.parent / "second"
    others.mkdir()
    assert hand_over_killed(killed.parent) == [str(killed)]
    assert owners(killed) == {CALLER}
    assert Owner.of(others) == Owner.of(killed.parent) == Owner(0, 0)
    assert hand_over_killed(killed.parent) == []


def test_those_of_a_run_that_works_stay(results: Path) -> None:
    assert hand_over_killed(results.parent) == []
    assert owners(results) == {Owner(0, 0)}


def test_what_others_put_there_is_left_alone(killed: Path) -> None:
    planted = killed.parent / "planted"
    planted.mkdir()
    (planted / NOTE).write_text((killed / NOTE).read_text())
    ANOTHER.take(planted, planted / NOTE)
    (killed.parent / "latest").symlink_to(killed)
    (killed.parent / "linked").mkdir()
    (killed.parent / "linked" / NOTE).symlink_to(killed / NOTE)
    assert hand_over_killed(killed.parent) == [str(killed)]
    assert owners(planted) == {ANOTHER}
