"""Between method and tester: invalid trials are seen, repeated, and never counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from podperf import errors
from podperf.methods.trials import ValidTrials
from podperf.model import Direction, DirectionResult, FrameSize, Traffic, Trial, TrialResult
from podperf.quietness import Quietness
from podperf.testers import base

TRAFFIC = Traffic(FrameSize.parse(64))
LIMITS = base.TesterLimits(1e6, 0.0, "calibration on the bare path")


class ScriptedTester:
    """Gives back one trial after the other with these reasons for being invalid."""

    def __init__(self, *invalid: str | None) -> None:
        self.invalid = list(invalid)

    def measure(self, trial: Trial) -> TrialResult:
        count = round(trial.load * trial.duration)
        counted = DirectionResult(Direction.LEFT_TO_RIGHT, count, count, count, 0, 0, 0, trial.duration)
        return TrialResult(trial, 0.0, (counted,), invalid=self.invalid.pop(0))

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


def test_three_repeats_and_no_more() -> None:
    seen: list[TrialResult] = []
    source = ValidTrials(ScriptedTester("a", "b", "c", "achieved 90 %", None), TRAFFIC, LIMITS, seen.append)
    with pytest.raises(
        errors.TesterLimit, match=r"0\.5 s at 250,000 frames/s in 4 attempts; the last time: achieved 90 %"
    ):
        source.measure(250_000, 0.5)
    assert len(seen) == 4


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
