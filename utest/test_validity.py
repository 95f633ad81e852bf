"""One judge of trials for all testers: their accounts differ, and the verdicts do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podperf.model import BOTH_DIRECTIONS, Direction, DirectionResult, Latency, Trial, TrialResult
from podperf.noise import Noise, Speed
from podperf.testers.base import UNPACED
from podperf.testers.validity import Account, disturbance, judged
from traffic import traffic_of

TRIAL = Trial(traffic_of(64, BOTH_DIRECTIONS), 1000.0, 1.0)
SOUND = DirectionResult(Direction.LEFT_TO_RIGHT, 1000, 1000, 900, 0, 0, 0, 1.0)
VIRTUAL = Account(took=1.0)  # of a tester whose time is virtual


def counted(load: float = 1000.0, own_drops: int = 0, **changes: Any) -> TrialResult:
    """A trial that is sound from right to left, with these changes from left to right."""
    other = replace(SOUND, direction=Direction.RIGHT_TO_LEFT)
    ways = (replace(SOUND, **changes), other)
    return TrialResult(replace(TRIAL, load=load), 0.0, ways, own_drops=own_drops)


@pytest.mark.parametrize("account", [Account(), VIRTUAL], ids=["exact", "virtual"])
@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (counted(), None),
        (counted(received=0), None),
        (counted(sent=990), None),
        (counted(sent=989), "the tester sent only 98.9% of the intended load left-to-right"),
        (counted(UNPACED, sent=500, duration=2.0), None),
        (counted(own_drops=3), "the tester itself lost 3 frames: the ring was full"),
        (counted(UNPACED, own_drops=3), "the tester itself lost 3 frames: the ring was full"),
    ],
)
def test_all_testers_are_held_to_the_same(result: TrialResult, reason: str | None, account: Account) -> None:
    assert judged(result, replace(account, own_drops="the ring was full")).invalid == reason


def test_trouble_that_a_tester_tells_of_comes_before_all_else() -> None:
    assert judged(counted(own_drops=3), Account("a port is down", "the ring was full")).invalid == "a port is down"


def test_a_rate_that_is_too_low_counts_where_the_duration_is_exact() -> None:
    slow = counted(duration=1.015)
    assert judged(slow, Account()).invalid == "the tester sent only 98.5% of the intended load left-to-right"
    assert judged(slow, Account(took=1.015)).invalid is None, "an estimate may be 2 % off"
    assert "the tester took 1.030 s to send what was planned for 1.000 s" in str(
        judged(slow, Account(took=1.03)).invalid
    )


def latency_of(longest: float) -> Latency:
    return Latency(400, 500.0, round(longest * 1e9), {1: 900})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"latency": latency_of(1e-6)}, None),
        ({"latency": latency_of(1.2)}, None),
        (
            {"latency": latency_of(57_778.9)},
            "a frame left-to-right was on its way for 5.78e+04 s, and the trial took 1.2 s",
        ),
        ({"latency": latency_of(1e-6), "negative_latencies": 10}, None),
        (
            {"latency": latency_of(1e-6), "negative_latencies": 100},
            "1 % of the frames left-to-right arrived before they were sent",
        ),
        ({"negative_latencies": 10_000}, "100 % of the frames left-to-right arrived before they were sent"),
    ],
)
def test_impossible_latencies_are_taken_out_and_the_counts_stay(changes: dict[str, Any], said: str | None) -> None:
    trial = replace(counted(**{"received": 10_000, "sent": 10_000, **changes}), elapsed=1.2)
    result = judged(trial, Account())
    assert (result.received, result.invalid) == (trial.received, None)
    if said is None:
        assert result == trial
    else:
        assert result.impossible_latency == f"by the tester's stamps, {said}"
        assert result.latency is None


def test_a_disturbed_trial_has_a_reason_to_be_repeated_unless_it_is_invalid_already() -> None:
    noise = Noise((0,), 1.0, 0.0, {}, 10, 1, 0.01, Speed(0.5))
    noisy = replace(counted(), noise=noise)
    assert str(disturbance(noisy)).startswith("repeated, as the machine was noisy: CPU 0: the slowest ran at 50%")
    assert disturbance(replace(noisy, invalid="a port is down")) is None
    assert disturbance(counted()) is None
    assert disturbance(replace(counted(), noise=replace(noise, speed=None))) is None
