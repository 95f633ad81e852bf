"""The search finds the true rate of simulated devices. If there is no such rate, the search says so."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podperf import errors
from podperf.methods.ndrpdr import GoalResult, NdrPdr, SearchResult
from podperf.methods.presets import PRESETS
from podperf.model import TrialResult
from simulated_dut import SimulatedDut

CEILING = 4.5e6


def search(dut: SimulatedDut, preset: str = "quick") -> SearchResult:
    """A search on simulated time."""
    return NdrPdr(PRESETS[preset], clock=dut.clock).run(dut)


def goal(result: SearchResult, name: str) -> GoalResult:
    """The result of a goal that the preset has."""
    found = result.goal(name)
    assert found is not None
    return found


@given(
    capacity=st.floats(min_value=1500, max_value=0.94 * CEILING),
    preset=st.sampled_from(sorted(PRESETS)),
    directions=st.integers(1, 2),
    congestion=st.floats(0, 0.5),
)
@settings(max_examples=60, deadline=None)
def test_the_truth_lies_between_the_bounds(capacity: float, preset: str, directions: int, congestion: float) -> None:
    dut = SimulatedDut(capacity, CEILING, directions=directions, congestion=congestion)
    result = search(dut, preset)
    assert result.incomplete is None
    assert result.trials == len(dut.trials)
    assert result.seconds == pytest.approx(dut.now)
    for each in result.goals:
        assert each.lower is not None and each.upper is not None and each.rate is not None
        # A lossless trial may carry one frame more than the capacity; with a loss ratio allowed, that much more.
        frame = 2 / (capacity * each.goal.initial_trial_duration)
        most = capacity * (1 + frame) / (1 - each.goal.loss_ratio)
        assert each.lower.load <= most
        assert each.upper.load >= capacity * (1 - frame)
        assert each.lower.load >= each.upper.load * (1 - each.goal.relative_width) * 0.999999
        assert (1 - each.goal.loss_ratio) * each.lower.load * 0.999999 <= each.rate <= each.lower.load
        assert each.complete and not each.tester_limited


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_rare_stalls_move_the_result_by_less_than_ten_per_cent(seed: int) -> None:
    dut = SimulatedDut(250_000, CEILING, buffer=256, stalls_per_second=0.5, stall=0.002, drift=0.01, seed=seed)
    pdr = goal(search(dut), "PDR")
    assert pdr.rate == pytest.approx(250_000, rel=0.1)


def test_a_device_that_always_loses_has_no_lower_bound() -> None:
    result = search(SimulatedDut(1e6, CEILING, base_loss=0.02))
    assert result.incomplete is None
    for each in result.goals:
        assert each.lower is None and each.rate is None and each.latency is None
        assert each.upper is not None and each.upper.load == result.minimum_load == 1000
        assert each.statement == f"{each.goal.name} below 1,000 frames/s"
    assert json.loads(json.dumps(result.as_record()))["goals"]["NDR"]["regular"] is False


def test_a_little_loss_everywhere_spares_the_pdr() -> None:
    result = search(SimulatedDut(1e6, CEILING, base_loss=0.001))
    assert goal(result, "NDR").lower is None
    assert goal(result, "PDR").rate == pytest.approx(1e6, rel=0.05)


@pytest.mark.parametrize("capacity", [CEILING * 1.5, CEILING, CEILING * 0.99])
def test_a_device_as_fast_as_the_tester_gives_a_lower_bound(capacity: float) -> None:
    result = search(SimulatedDut(capacity, CEILING))
    for each in result.goals:
        assert each.tester_limited
        assert "at least" in each.statement
    if capacity >= CEILING:
        ndr = goal(result, "NDR")
        assert ndr.upper is None and ndr.lower is not None and ndr.lower.load == CEILING


def test_a_slow_tester_leaves_a_range_to_search() -> None:
    result = search(SimulatedDut(400, maximum_load=1200))
    assert result.minimum_load == 120
    assert goal(result, "NDR").rate == pytest.approx(400, rel=0.06)


def test_frames_that_the_tester_did_not_send_are_no_loss() -> None:
    class Short(SimulatedDut):
        def measure(self, load: float, duration: float) -> TrialResult:
            result = super().measure(load, duration)
            return replace(
                result, directions=tuple(replace(each, intended=each.intended + 3) for each in result.directions)
            )

    assert goal(search(Short(1e7, CEILING)), "NDR").rate == CEILING


class Weakened(SimulatedDut):
    """With a tester that cannot deliver this load and above."""

    limit = 3e6

    def measure(self, load: float, duration: float) -> TrialResult:
        if load >= self.limit:
            raise errors.TrialNotDelivered(f"{load:.0f} is too much")
        return super().measure(load, duration)


def test_a_tester_that_is_weaker_than_when_calibrated_gets_a_lower_range() -> None:
    result = search(Weakened(1e6, 4e6))
    assert result.maximum_load == pytest.approx(2.8e6)
    assert goal(result, "NDR").rate == pytest.approx(1e6, rel=0.05)
    assert all(each.tester_limited for each in search(Weakened(2.75e6, 4e6)).goals)


class Flagging(SimulatedDut):
    """A tester that delivers its maximum load four times. Then it needs `patience` seconds to say that it cannot."""

    patience = 60.0

    def measure(self, load: float, duration: float) -> TrialResult:
        if load == CEILING and len(self.trials) >= 4:
            self.now += self.patience
            raise errors.TrialNotDelivered(f"{load:.0f} is too much now")
        return super().measure(load, duration)


@pytest.mark.parametrize("patience", [1.0, 60.0])
def test_a_tester_that_flags_at_its_maximum_load_leaves_what_was_found(patience: float) -> None:
    """The search tries lower ranges of loads while there is time. If they give no result, that of the first range
    counts."""
    dut = Flagging(1e7, CEILING)
    dut.patience = patience
    result = NdrPdr(PRESETS["quick"], clock=dut.clock).run(dut)
    pdr = goal(result, "PDR")
    assert pdr.lower is not None
    assert pdr.lower.load == (CEILING if patience == 60.0 else 0.7 * CEILING)
    assert (result.incomplete is None) == (patience == 1.0)


def test_a_tester_that_delivers_next_to_nothing_is_an_error() -> None:
    dut = Weakened(1e6, 4e6)
    dut.limit = 5e5
    with pytest.raises(errors.TrialNotDelivered, match="960400 is too much"):
        search(dut)


def test_the_next_range_is_below_what_the_tester_sent_instead() -> None:
    class Telling(Weakened):
        limit = 1.3e5
        tried: list[float]

        def measure(self, load: float, duration: float) -> TrialResult:
            self.tried.append(load)
            if load >= self.limit:
                raise errors.TrialNotDelivered("the tester sent less", delivered=self.limit)
            return SimulatedDut.measure(self, load, duration)

    dut = Telling(1e5, 2.61e5)
    dut.tried = []
    result = search(dut)
    assert dut.tried[:2] == [2.61e5, pytest.approx(0.95 * 1.3e5)], "one range in vain, not two"
    assert goal(result, "NDR").rate == pytest.approx(1e5, rel=0.05)
    assert not result.missing


def test_a_figure_that_is_missing_has_its_reason_beside_it() -> None:
    dut = SimulatedDut(1e6, CEILING)
    out_of_time = NdrPdr(replace(PRESETS["quick"], search_duration_max=-1.0), clock=dut.clock).run(dut)
    reason = "not found: not finished within -1 s, the limit of preset quick"
    assert out_of_time.missing == {"NDR": reason, "PDR": reason}
    assert out_of_time.as_record()["missing"] == out_of_time.missing


def test_a_goal_that_is_withheld_is_not_searched_for() -> None:
    dut = SimulatedDut(1e6, CEILING, base_loss=0.001)
    result = NdrPdr(PRESETS["quick"], clock=dut.clock, withheld={"NDR": "the tester loses frames"}).run(dut)
    assert result.missing == {"NDR": "not judged: the tester loses frames"}
    assert result.goal("NDR") is None and goal(result, "PDR").rate == pytest.approx(1e6, rel=0.05)
    assert min(each.trial.load for each in dut.trials) > 5e5, "no time is spent on loads that it loses frames at, too"


def test_without_any_goal_left_nothing_is_sent() -> None:
    dut = SimulatedDut(1e6, CEILING)
    result = NdrPdr(PRESETS["rfc2544"], clock=dut.clock, withheld={"NDR": "it loses"}).run(dut)
    assert not dut.trials and result.missing == {"NDR": "not judged: it loses"}
    json.dumps(result.as_record())


@pytest.mark.parametrize("limit", [0.1, 2.0, 5.0, 20.0, 35.0])
def test_a_search_out_of_time_returns_what_it_has(limit: float) -> None:
    dut = SimulatedDut(1e6, CEILING, congestion=0.3)
    result = NdrPdr(replace(PRESETS["csit"], search_duration_max=limit), clock=dut.clock).run(dut)
    assert result.incomplete is not None and "preset csit" in result.incomplete
    assert result.seconds <= limit + 1.2
    ndr = goal(result, "NDR")
    unfinished = [each for each in result.goals if not each.complete]
    assert unfinished and all("not finished" in each.statement for each in unfinished)
    if ndr.lower is not None:
        assert ndr.lower.load <= 1e6 * 1.001
    if limit == 35.0:
        assert ndr.lower is not None and ndr.upper is not None  # the bounds that the search had when its time was over
        assert ndr.lower.load < 1e6 < ndr.upper.load * 1.001
    json.dumps(result.as_record())


class Stopped(SimulatedDut):
    """A tester that ends with `error` after `after` trials."""

    error: BaseException = KeyboardInterrupt()
    after = 5

    def measure(self, load: float, duration: float) -> TrialResult:
        if len(self.trials) == self.after:
            raise self.error
        return super().measure(load, duration)


def test_an_interrupt_passes_through() -> None:
    dut = Stopped(1e6, CEILING)
    with pytest.raises(KeyboardInterrupt):
        search(dut)
    assert len(dut.trials) == dut.after


def test_a_tester_that_fails_on_the_way_leaves_what_was_found() -> None:
    dut = Stopped(1e6, CEILING)
    dut.error, dut.after = errors.TrialNotDelivered("the tester is too slow"), 8
    result = search(dut)
    assert result.incomplete == "the tester is too slow; the bounds are the best so far"
    ndr = goal(result, "NDR")
    assert not ndr.complete and ndr.lower is not None and ndr.upper is not None
    assert ndr.lower.load <= 1e6 <= ndr.upper.load


def test_wherever_a_search_is_cut_short_a_stall_of_the_machine_proves_nothing() -> None:
    """Each stall disturbs one trial. A single disturbed trial must not make the device look slower."""
    coarse = 0
    for seed in range(5):
        for after in range(2, 50):
            dut = Stopped(1e6, CEILING, stalls_per_second=0.6, stall=0.02, seed=seed)
            dut.error, dut.after = errors.TrialNotDelivered("too slow"), after
            for each in search(dut).goals:
                if (found := each.measured) is not None and found.unfinished:
                    assert found.least <= 1.001e6 and found.most >= 0.999e6, (seed, after, each)
                coarse += any(bound is not None and bound.coarse for bound in (each.lower, each.upper))
    assert coarse, "none of these searches ended before the final trials"


def test_a_tester_that_fails_at_once_is_an_error() -> None:
    dut = Stopped(1e6, CEILING)
    dut.error, dut.after = errors.TrialNotDelivered("the tester is too slow"), 0
    with pytest.raises(errors.TrialNotDelivered, match="too slow"):
        search(dut)


def test_the_record_holds_every_attribute_and_the_latency_at_the_bound() -> None:
    record = json.loads(json.dumps(search(SimulatedDut(1e6, CEILING)).as_record()))
    attributes = record["goals"]["PDR"]["goal"]
    assert attributes["loss_ratio"] == 0.005 and attributes["exceed_ratio"] == 0.5
    assert set(attributes) > {"relative_width", "initial_trial_duration", "final_trial_duration", "duration_sum"}
    assert record["goals"]["NDR"]["latency"]["p99"] == 1000
    bound = record["goals"]["NDR"]["relevant_lower_bound"]
    assert bound["good_seconds"] > bound["bad_seconds"] and bound["trials"] >= 1
    assert record["noise"] is None
