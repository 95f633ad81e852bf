"""Between method and tester: invalid trials are seen, repeated, and never counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from podperf import errors
from podperf.methods.trials import Clocks, Patience, ValidTrials
from podperf.model import Direction, DirectionResult, Trial, TrialResult
from podperf.noise import Noise, Speed
from podperf.quietness.watch import Quietness
from podperf.testers import base
from traffic import TRAFFIC

LIMITS = base.TesterLimits(1e6, 0.0, "calibration on the bare path")


class ScriptedTester:
    """Gives back one trial after the other with these reasons for being invalid."""

    shortest_trial = 0.0
    broken = False

    def __init__(self, *invalid: str | None, elapsed: float = 0.0) -> None:
        self.invalid, self.elapsed = list(invalid), elapsed

    def measure(self, trial: Trial) -> TrialResult:
        count = round(trial.load * trial.duration)
        counted = DirectionResult(Direction.LEFT_TO_RIGHT, count, count, count, 0, 0, 0, trial.duration)
        return TrialResult(trial, 0.0, (counted,), invalid=self.invalid.pop(0), elapsed=self.elapsed)

    def describe(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        pass


def test_an_invalid_trial_is_seen_and_repeated() -> None:
    seen: list[TrialResult] = []
    source = ValidTrials(ScriptedTester("late", "own drops", None), TRAFFIC, LIMITS, seen.append)
    result = source.measure(1000, 0.5)
    assert [each.invalid for each in seen] == ["late", "own drops", None]
    assert result is seen[-1] and result.trial == Trial(TRAFFIC, 1000, 0.5)
    assert source.maximum_load == 1e6


@pytest.mark.parametrize(
    ("took", "still"),
    [
        (Clocks(0.6, 0.6), 0),
        (Clocks(3.4, 3.4), 0),  # a slow machine
        (Clocks(20.6, 20.6), 20),  # a signal stopped the run
        (Clocks(0.6, 20.6), 0),  # the machine was suspended: the time limit of a search did not go on either
    ],
)
def test_a_trial_that_stood_still_is_repeated(monkeypatch: pytest.MonkeyPatch, took: Clocks, still: float) -> None:
    zero = Clocks(0.0, 0.0)
    moments = iter([zero, took, zero, Clocks(0.6, 0.6)])
    monkeypatch.setattr(Clocks, "now", lambda: next(moments))
    seen: list[TrialResult] = []
    patience = Patience()
    ValidTrials(ScriptedTester(None, None), TRAFFIC, LIMITS, seen.append, patience=patience).measure(1000, 0.5)
    why = "the run stood still for 20 s: a signal stopped it, or the machine was suspended"
    assert [each.invalid for each in seen] == ([why, None] if took.on_any_clock > 20 else [None])
    assert patience.stood_still == pytest.approx(still, abs=0.2)


def test_a_trial_is_at_least_as_long_as_the_tester_needs() -> None:
    tester = ScriptedTester(None, None)
    tester.shortest_trial = 0.5
    source = ValidTrials(tester, TRAFFIC, LIMITS)
    assert [source.measure(1000, duration).trial.duration for duration in (0.2, 1.0)] == [0.5, 1.0]


def test_three_repeats_and_no_more() -> None:
    seen: list[TrialResult] = []
    source = ValidTrials(ScriptedTester("a", "b", "c", "achieved 90 %", None), TRAFFIC, LIMITS, seen.append)
    with pytest.raises(
        errors.TrialNotDelivered,
        match=r"0\.5 s at 250,000 frames/s, however often it was repeated; the last time: achieved 90 %",
    ) as raised:
        source.measure(250_000, 0.5)
    assert len(seen) == 4
    assert raised.value.delivered == 250_000, "what was sent, for the search to go on from"


def test_each_trial_carries_the_noise_around_it() -> None:
    texts = iter(
        [
            "cpu0 0 0 0 0 0 0 0 0 0 0\nctxt 10\nprocs_running 1\n",
            "cpu0 0 0 0 0 0 0 0 50 0 0\nctxt 30\nprocs_running 2\n",
        ]
    )
    quietness = Quietness([0], own=[], read=lambda: next(texts), ticks_per_second=100)
    result = ValidTrials(ScriptedTester(None), TRAFFIC, LIMITS, quietness=quietness).measure(1000, 0.1)
    assert result.noise is not None
    assert (result.noise.stolen, result.noise.context_switches, result.noise.run_queue) == (0.5, 20, 1)
    assert result.noise.noisy


class ScriptedQuietness:
    """The machine's speed around each trial, and the seconds that the trial waited for it."""

    def __init__(self, speeds: list[float], waits: list[float] | None = None) -> None:
        self.speeds, self.waits, self.asked = speeds, waits or [], 0

    def await_speed(self, patience: float, waiting: Callable[[Speed], None]) -> float:
        self.asked += 1
        waiting(Speed(0.5))
        return min(patience, self.waits.pop(0) if self.waits else 0.0)

    def start(self) -> None:
        pass

    def stop(self) -> Noise:
        return Noise((0, 1), 1.0, 0.0, {}, 10, 1, 0.01, Speed(self.speeds.pop(0)))


def patient(
    quietness: ScriptedQuietness, patience: Patience, *invalid: str | None, seen: list[TrialResult]
) -> ValidTrials:
    tester = ScriptedTester(*invalid, elapsed=1.0)
    return ValidTrials(tester, TRAFFIC, LIMITS, seen.append, quietness, patience)  # type: ignore[arg-type]


def test_a_disturbed_trial_is_repeated_while_there_is_patience() -> None:
    seen: list[TrialResult] = []
    patience = Patience(2.5)
    source = patient(ScriptedQuietness([0.5, 0.6, 0.7]), patience, None, None, None, seen=seen)
    result = source.measure(1000, 1)
    assert [bool(each.invalid) for each in seen] == [True, True, False]
    assert "repeated, as the machine was noisy: CPU 0, 1: the slowest ran at 50%" in (seen[0].invalid or "")
    assert result.noise is not None and result.noise.noisy, "patience is spent, and the result says what it is"
    assert (patience.left, patience.spent) == (0, 2.5)


def test_disturbed_trials_are_no_failures_of_the_tester() -> None:
    seen: list[TrialResult] = []
    source = patient(ScriptedQuietness([0.5] * 6 + [1.0]), Patience(60), *[None] * 7, seen=seen)
    assert source.measure(1000, 1) is seen[-1]
    assert len(seen) == 7


def test_a_tester_that_a_noisy_machine_holds_up_has_ten_seconds_more() -> None:
    seen: list[TrialResult] = []
    source = patient(ScriptedQuietness([0.5] * 9), Patience(0), *["sent only 80 %"] * 8, None, seen=seen)
    assert source.measure(1000, 1) is seen[8]
    seen.clear()
    source = patient(ScriptedQuietness([0.5] * 20), Patience(0), *["sent only 80 %"] * 20, seen=seen)
    with pytest.raises(errors.TrialNotDelivered, match="sent only 80 %"):
        source.measure(1000, 1)
    assert len(seen) == 14


def test_waiting_takes_from_the_same_patience() -> None:
    seen: list[TrialResult] = []
    quietness, patience = ScriptedQuietness([0.5, 0.5, 0.5], waits=[1.5, 0.0, 3.0]), Patience(3)
    source = patient(quietness, patience, None, None, None, seen=seen)
    source.measure(1000, 1)
    assert [bool(each.invalid) for each in seen] == [True, False], "1.5 s of waiting and 1 s of trial leave too little"
    source.measure(1000, 1)
    assert quietness.asked == 2, "who has no patience left does not look"


def test_without_patience_nothing_is_waited_for_or_repeated() -> None:
    seen: list[TrialResult] = []
    quietness = ScriptedQuietness([0.3])
    assert patient(quietness, Patience(0), None, seen=seen).measure(1000, 1).invalid is None
    assert quietness.asked == 0


def test_what_a_test_waits_does_not_count_against_the_time_of_its_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 100.0)
    patience = Patience(30)
    before = patience.clock()
    patience.spend(20)
    monkeypatch.setattr("time.monotonic", lambda: 121.0)
    assert patience.clock() - before == 1
