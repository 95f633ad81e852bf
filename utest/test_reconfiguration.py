"""Reconfiguration: the frames that a change under load costs, and the time until the rate is back."""

from __future__ import annotations

import json
import math
import time
from contextlib import ExitStack
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError, Unavailable
from podperf.methods.reconfiguration import Outage, Pair, Reconfiguration, ReconfigurationResult
from podperf.methods.trials import ChangedTrial, ValidTrials
from podperf.metrics import Measured
from podperf.model import ChangeUnderLoad, Direction, DirectionResult, Trial, TrialResult
from podperf.testers import validity
from podperf.testers.base import TesterLimits
from simulated_chain import SimulatedChain
from simulated_dut import SimulatedDut
from traffic import TRAFFIC

NDR, DURATION = 2e5, 2.0


def measured(dut: SimulatedDut, outage: float, pairs: int = 6) -> ReconfigurationResult:
    """The result on this device, which loses all frames for `outage` seconds after each change."""

    def make(undo: ExitStack) -> None:
        dut.outage = outage

    return Reconfiguration("route", ChangeUnderLoad("a route is withdrawn", make), NDR, pairs, DURATION).run(dut)


@given(outage=st.floats(0, 0.8), ndr_below=st.floats(1, 4))
def test_an_outage_of_known_length_is_measured_to_one_frame(outage: float, ndr_below: float) -> None:
    dut = SimulatedDut(NDR * ndr_below, 1e6)
    result = measured(dut, outage)
    gap, metrics = 1 / result.load, result.metrics
    assert result.load == NDR / 2
    assert metrics["blocked_time"].value == pytest.approx(outage, abs=gap)
    assert metrics["restoration_time"].value == pytest.approx(outage, abs=gap)
    assert metrics["reconfiguration_loss"].value == pytest.approx(outage * result.load, abs=1)
    assert not metrics["restoration_time"].lower_bound and not result.missing
    assert json.loads(json.dumps(result.as_record()))["change"] == "route"


@given(outage=st.floats(0, 0.5), base_loss=st.floats(0, 0.2))
def test_what_is_lost_without_a_change_is_no_loss_by_the_change(outage: float, base_loss: float) -> None:
    result = measured(SimulatedDut(NDR, 1e6, base_loss=base_loss), outage)
    lost = result.metrics["reconfiguration_loss"]
    assert lost.value == pytest.approx(math.ceil(outage * result.load), abs=1)
    if math.ceil(NDR * base_loss):
        assert "6 of 6 trials without a change lost frames, too" in result.missing["time until the rate is back"]
        assert "restoration_time" not in result.metrics


def test_without_a_change_in_effect_nothing_is_lost_because_of_it() -> None:
    result = measured(SimulatedDut(NDR, 1e6), 0.0)
    assert result.metrics == {name: Measured(0.0, 0.0, 0.0) for name in result.metrics} and len(result.metrics) == 3
    assert result.said[0].endswith("rate back after 0 (0 to 0) ms; no frame was lost because of the change")


def test_stalls_of_the_machine_do_not_move_the_figure() -> None:
    dut = SimulatedDut(NDR, 1e6, stalls_per_second=0.1, stall=0.02, seed=1)
    result = measured(dut, 0.1, pairs=20)
    assert any(pair.without.lost for pair in result.pairs)
    assert result.metrics["blocked_time"].value == pytest.approx(0.1, rel=0.05)


def test_a_trial_without_a_change_goes_before_each_trial_with_one() -> None:
    dut = SimulatedDut(NDR, 1e6)
    result = measured(dut, 0.1, pairs=3)
    assert [trial.trial.load for trial in dut.trials] == [NDR / 2] * 6
    assert [(pair.without.lost, pair.changed.lost) for pair in result.pairs] == [(0, 10_000)] * 3
    assert result.as_record()["confidence"] == 0.75


def test_a_system_that_does_not_come_back_is_a_lower_bound() -> None:
    result = measured(SimulatedDut(NDR, 1e6), 1.0)
    assert all(each.lower_bound for each in result.metrics.values()), "the trials lack the rest of the loss"


def pair(
    without: int, changed: int, restored: float | None = 0.1, noisy: float | None = 0.0, *, outlasted: bool = False
) -> Pair:
    made = Outage(changed, changed / 1e5, restored, True, 60.0 if outlasted else 0.01, outlasted)
    return Pair(Outage(without, without / 1e5, noisy, True, 0.0), made)


def result_of(*pairs: Pair) -> ReconfigurationResult:
    return ReconfigurationResult("pod-added", "a pod is added", pairs, 1e5, NDR, DURATION)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=12))
def test_no_figure_is_negative_and_the_median_is_within_its_interval(losses: list[tuple[int, int]]) -> None:
    metrics = result_of(*(pair(without, changed) for without, changed in losses)).metrics
    for each in metrics.values():
        assert each.low is not None and each.high is not None
        assert 0 <= each.low <= each.value <= each.high


@pytest.mark.parametrize(
    ("pairs", "lost", "verdict"),
    [
        ([pair(0, 5), pair(1, 8), pair(0, 6)], "6 (5 to 7)", "each change cost frames"),
        ([pair(0, 0), pair(9, 5), pair(3, 3)], "0 (0 to 0)", "no frame was lost because of the change"),
        ([pair(0, 0), pair(0, 0), pair(0, 3)], "0 (0 to 3)", "no frame was lost because of the change"),
        ([pair(7, 0), pair(0, 4), pair(0, 3)], "3 (0 to 4)", "not every change cost frames"),
    ],
)
def test_the_summary_says_whether_the_loss_is_the_change_s(pairs: list[Pair], lost: str, verdict: str) -> None:
    said = result_of(*pairs).summary
    assert said.startswith(f"lost {lost} frames, time lost ") and said.endswith(f"; {verdict}")
    assert "rate back after 100 (100 to 100) ms" in said


@pytest.mark.parametrize(
    ("lost", "verdict"),
    [(0, "not judged whether changes cost frames"), (7, "each change cost frames")],
)
def test_a_change_that_outlasts_its_trial_is_not_judged_as_without_loss(lost: int, verdict: str) -> None:
    result = result_of(pair(0, lost), pair(0, lost, outlasted=True), pair(0, lost))
    assert all(each.lower_bound for each in result.metrics.values()) and len(result.metrics) == 3
    assert result.summary.startswith(f"lost >= {lost} ({lost} to {lost}) frames")
    assert result.summary.endswith(f"; {verdict}; 1 of 3 changes lasted until the end of their trials")


def test_a_tester_that_does_not_tell_the_last_lost_frame_has_no_time_until_the_rate_is_back() -> None:
    result = result_of(pair(0, 5, None), pair(0, 6))
    assert list(result.metrics) == ["reconfiguration_loss", "blocked_time"]
    assert "this tester does not tell" in result.missing["time until the rate is back"]


def changed_trial(lost: int, last_lost: int | None, began: float | None = 1.0, seconds: float = 0.01) -> ChangedTrial:
    directions = tuple(
        DirectionResult(way, 2000, 2000, 2000 - each, 0, 0, 0, 2.0, last_lost=last_lost if each else None)
        for way, each in ((Direction.LEFT_TO_RIGHT, 0), (Direction.RIGHT_TO_LEFT, lost))
    )
    return ChangedTrial(TrialResult(Trial(TRAFFIC, 1000.0, 2.0), 0.0, directions), began, seconds)


@pytest.mark.parametrize(
    ("lost", "last_lost", "restored", "ended"),
    [
        (0, None, 0.0, True),
        (5, 998, 0.0, True),  # before the change
        (5, 1000, 0.001, True),
        (200, 1199, 0.2, True),
        (200, 1950, 0.951, False),
        (5, None, None, True),
    ],
)
def test_the_last_lost_frame_of_the_worse_direction_tells_the_time(
    lost: int, last_lost: int | None, restored: float | None, ended: bool
) -> None:
    found = Outage.of(changed_trial(lost, last_lost))
    assert found == Outage(lost, lost / 1000, pytest.approx(restored) if restored else restored, ended, 0.01)


@pytest.mark.parametrize("began", [1.0, None])
@pytest.mark.parametrize(("seconds", "outlasted"), [(0.89, False), (0.91, True), (60.0, True)])
def test_the_end_of_a_trial_must_lie_behind_the_change(began: float | None, seconds: float, outlasted: bool) -> None:
    assert Outage.of(changed_trial(0, None, began, seconds)).outlasted is outlasted


def test_without_the_moment_of_the_first_frame_there_is_no_time() -> None:
    assert Outage.of(changed_trial(200, 1199, None)).restored is None


def test_a_chain_without_this_change_is_a_reason_to_skip() -> None:
    chain = SimulatedChain(SimulatedDut(NDR, 1e6), {"ndr": Measured(NDR)})
    with pytest.raises(Unavailable, match=r"linux-bridge, 1 pod does not offer the change 'x' .*: route-withdrawn"):
        Reconfiguration.on(chain, change="x")
    chain = SimulatedChain(SimulatedDut(NDR, 1e6), {"ndr": Measured(NDR)}, sut_differs={"changes": {}})
    with pytest.raises(Unavailable, match=r"does not offer a change while frames cross$"):
        Reconfiguration.on(chain)
    assert not chain.dut.trials


def test_a_change_that_cannot_be_made_here_is_a_reason_to_skip() -> None:
    refused = ChangeUnderLoad("an agent is restarted", lambda undo: None, refused="not on this cluster")
    offered = {"agent-restarted": refused}
    chain = SimulatedChain(SimulatedDut(NDR, 1e6), {"ndr": Measured(NDR)}, sut_differs={"changes": offered})
    with pytest.raises(Unavailable, match="not on this cluster"):
        Reconfiguration.on(chain, change="agent-restarted")
    with pytest.raises(Unavailable, match="does not offer a change while frames cross; it offers: agent-restarted"):
        Reconfiguration.on(chain)


def test_no_pairs_are_refused_and_a_search_without_a_load_gives_no_result() -> None:
    chain = SimulatedChain(SimulatedDut(NDR, 1e6), {})
    with pytest.raises(PodperfError, match="1 or more pairs of trials, not 0"):
        Reconfiguration.on(chain, 0)
    assert Reconfiguration.on(chain) is None


class Slow:
    """A tester that takes the time of its trials. Its first frame leaves after PREPARATION seconds."""

    PREPARATION: ClassVar[float] = 0.02
    shortest_trial = 0.0

    def __init__(self, *invalid: str | None) -> None:
        self.invalid = list(invalid)

    def measure(self, trial: Trial) -> TrialResult:
        time.sleep(self.PREPARATION + trial.duration)
        reason = self.invalid.pop(0) if self.invalid else None
        return TrialResult(trial, 0.0, changed_trial(0, None).result.directions, invalid=reason, preparation=0.02)


def source(tester: Any) -> ValidTrials:
    return ValidTrials(tester, TRAFFIC, TesterLimits(1e6, 0.0, "calibration on the bare path"))


def test_the_change_is_made_in_mid_trial_and_undone_behind_it() -> None:
    said: list[str] = []

    def make(undo: ExitStack) -> None:
        said.append("made")
        undo.callback(said.append, "undone")

    changed = source(Slow("a stall")).during(make, 1000.0, 0.4)
    assert said == ["made", "undone"] * 2, "an invalid trial is repeated, with the change"
    assert changed.result.invalid is None
    assert changed.began is not None and 0.18 <= changed.began < 10


def test_a_change_and_its_undo_that_take_longer_than_the_trial_are_no_standstill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(validity, "STANDSTILL", 1.0)

    def make(undo: ExitStack) -> None:
        undo.callback(time.sleep, 0.8)
        time.sleep(0.8)

    changed = source(Slow()).during(make, 1000.0, 0.4)
    assert changed.result.invalid is None and Outage.of(changed).outlasted


def test_a_change_that_fails_ends_the_trial_and_is_undone() -> None:
    said: list[str] = []

    def make(undo: ExitStack) -> None:
        undo.callback(said.append, "undone")
        raise PodperfError("nft is gone")

    with pytest.raises(PodperfError, match="nft is gone"):
        source(Slow()).during(make, 1000.0, 0.1)
    assert said == ["undone"]
