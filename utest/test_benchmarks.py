"""A benchmark that makes a claim exits with an error if the claim is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import history_rates
import tester_accounting
from podperf.model import BOTH_DIRECTIONS, Trial, TrialResult
from tester_accounting import TRAFFIC, TRIALS
from traffic import counted

EXACT = TrialResult(Trial(TRAFFIC, 1e5, 1.0), 0.0, tuple(counted(1000, direction=way) for way in BOTH_DIRECTIONS))


def with_a(**counts: int) -> TrialResult:
    """An exact trial, except for these counts of its second direction."""
    first, second = EXACT.directions
    return replace(EXACT, directions=(first, replace(second, **counts)))


@contextmanager
def nowhere() -> Iterator[None]:
    yield


def exit_code(monkeypatch: pytest.MonkeyPatch, *places: list[TrialResult]) -> int:
    """The exit code of tester_accounting, with these trials in its two places."""
    given = iter(places)
    monkeypatch.setattr(tester_accounting, "bare_wire", nowhere)
    monkeypatch.setattr(tester_accounting, "receive_in_the_sender", lambda _: None)
    monkeypatch.setattr(tester_accounting, "trials", lambda _: next(given))
    return tester_accounting.main()


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (with_a(received=999), "1 lost right-to-left"),
        (with_a(received=1001), "1 received but not sent right-to-left"),
        (with_a(duplicated=2), "2 duplicated right-to-left"),
        (with_a(reordered=3), "3 reordered right-to-left"),
        (with_a(corrupted=4), "4 corrupted right-to-left"),
        (replace(EXACT, stray=5), "5 stray"),
        (replace(EXACT, own_drops=6), "6 dropped by the tester"),
        (replace(EXACT, invalid="too slow"), "invalid: too slow"),
        (replace(EXACT, directions=()), "nothing was sent"),
    ],
)
@pytest.mark.parametrize("bad", [0, 1])
def test_one_inexact_trial_in_either_place_is_told_by_the_exit_code(
    result: TrialResult, said: str, bad: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    places = [[EXACT] * TRIALS, [EXACT] * TRIALS]
    places[bad][3] = result
    assert exit_code(monkeypatch, *places) == 1
    assert f"{said}\n" in capsys.readouterr().out


def test_exact_trials_in_both_places_are_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_code(monkeypatch, [EXACT] * TRIALS, [EXACT] * TRIALS) == 0


def test_the_rates_of_a_history_are_those_of_its_verdicts(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(history_rates, "DEVIATIONS", (0.005,))
    assert history_rates.main(["4"]) == 0
    found = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert found[2][-5:] == ["0.0%", "100.0%", "0.0%", "0.0%", "0.0%"]  # a drop of 10 % in one run
    monkeypatch.setattr(history_rates, "verdict", lambda _: "regression")
    assert history_rates.main(["4"]) == 1
