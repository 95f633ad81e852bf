"""Verdicts: the judgement of a threshold on a figure, and the cases without a judgement."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.metrics import Measured, Metrics
from podperf.model import IMIX, Chain, FrameSize
from podperf.thresholds import Status, applicable, in_unit, judge
from podperf.topology import Threshold

CHAIN, FRAME = Chain("linux-bridge", 1), FrameSize.parse(64)
BASELINE: Metrics = {"mrr": Measured(4_310_000.0, lower_bound=True), "latency_p99": Measured(2_000.0)}
FLOOR = Threshold("mrr", "ratio of baseline", minimum=0.05)
CEILING = Threshold("latency_p99", "us", maximum=500)
NOT_KNOWN = "not known (the search for the MRR of `wire` %s)"
CUT_SHORT_AT_ONCE: Metrics = {"ndr": Measured(5e6, upper_bound=True, unfinished=True)}


def status(threshold: Threshold, metrics: Metrics, baseline: Metrics | None = None) -> Status:
    return judge([threshold], FRAME, metrics, baseline).status


@pytest.mark.parametrize(
    ("threshold", "metrics", "expected"),
    [
        (FLOOR, {"mrr": Measured(281_000.0)}, "passed"),
        (FLOOR, {"mrr": Measured(28_100.0)}, "failed"),
        (CEILING, {"latency_p99": Measured(499_999.0)}, "passed"),
        (CEILING, {"latency_p99": Measured(500_001.0)}, "failed"),
        (Threshold("ndr", "Mpps", minimum=1.0), {"ndr": Measured(1e6)}, "passed"),
        (Threshold("ndr", "Gbps", minimum=1.0), {"ndr": Measured(1_488_000.0)}, "failed"),
        (Threshold("ndr", "Gbps", minimum=1.0), {"ndr": Measured(1_488_096.0)}, "passed"),
        (Threshold("latency_p99", "ratio of baseline", maximum=10), {"latency_p99": Measured(30_000.0)}, "failed"),
        # A lower bound proves one side only.
        (Threshold("ndr", "Mpps", minimum=1.0), {"ndr": Measured(2e6, lower_bound=True)}, "passed"),
        (Threshold("ndr", "Mpps", minimum=3.0), {"ndr": Measured(2e6, lower_bound=True)}, "inconclusive"),
        (Threshold("ndr", "Mpps", maximum=1.0), {"ndr": Measured(2e6, lower_bound=True)}, "failed"),
        (Threshold("ndr", "Mpps", maximum=3.0), {"ndr": Measured(2e6, lower_bound=True)}, "inconclusive"),
        # So does an upper bound.
        (Threshold("ndr", "Mpps", minimum=3.0), {"ndr": Measured(1e3, upper_bound=True)}, "failed"),
        (Threshold("ndr", "Mpps", minimum=0.0005), {"ndr": Measured(1e3, upper_bound=True)}, "inconclusive"),
        (Threshold("ndr", "Mpps", maximum=3.0), {"ndr": Measured(1e3, upper_bound=True)}, "passed"),
        # The figure of an unfinished search lies between its bounds.
        (Threshold("ndr", "Mpps", minimum=2.0), {"ndr": Measured(2e6, 2e6, 5e6, unfinished=True)}, "passed"),
        (Threshold("ndr", "Mpps", minimum=3.0), {"ndr": Measured(2e6, 2e6, 5e6, unfinished=True)}, "inconclusive"),
        (Threshold("ndr", "Mpps", minimum=6.0), {"ndr": Measured(2e6, 2e6, 5e6, unfinished=True)}, "failed"),
        (Threshold("ndr", "Mpps", minimum=6.0), {"ndr": Measured(2e6, 2e6, unfinished=True)}, "inconclusive"),
        (Threshold("ndr", "Mpps", maximum=6.0), {"ndr": Measured(2e6, 2e6, 5e6, unfinished=True)}, "passed"),
        (Threshold("ndr", "Mpps", maximum=3.0), {"ndr": Measured(2e6, 2e6, 5e6, unfinished=True)}, "inconclusive"),
        (Threshold("ndr", "Mpps", maximum=1.0), {"ndr": Measured(2e6, 2e6, 5e6, unfinished=True)}, "failed"),
        (
            Threshold("ndr", "Mpps", minimum=1.0),
            {"ndr": Measured(5e6, high=5e6, upper_bound=True, unfinished=True)},
            "inconclusive",
        ),
        # A bound of a preceding target does not count: a single short trial may have decided it.
        (Threshold("ndr", "Mpps", minimum=2.0), {"ndr": Measured(2e6, None, 5e6, unfinished=True)}, "inconclusive"),
        (Threshold("ndr", "Mpps", minimum=6.0), {"ndr": Measured(2e6, None, 5e6, unfinished=True)}, "failed"),
        (Threshold("ndr", "Mpps", minimum=6.0), CUT_SHORT_AT_ONCE, "inconclusive"),
        # Nothing to judge by.
        (Threshold("pdr", "Mpps", minimum=1.0), {"ndr": Measured(2e6)}, "not judged"),
        (Threshold("ndr", "ratio of baseline", minimum=0.5), {"ndr": Measured(2e6)}, "not judged"),
    ],
)
def test_one_threshold(threshold: Threshold, metrics: Metrics, expected: str) -> None:
    assert status(threshold, metrics, BASELINE) == expected


@pytest.mark.parametrize(
    ("baseline", "why"),
    [
        (None, "missing (no MRR of `wire` at 64B in this run)"),
        ({}, "missing (no MRR of `wire` at 64B in this run)"),
        ({"mrr": Measured(0.0)}, "missing (no MRR of `wire` at 64B in this run)"),
        ({"mrr": Measured(1000.0, upper_bound=True)}, NOT_KNOWN % "found no load that passes"),
        ({"mrr": Measured(4e6, 4e6, 5e6, unfinished=True)}, NOT_KNOWN % "was not finished"),
        ({"mrr": Measured(4e6, doubt="drifted: so")}, NOT_KNOWN % "has a doubtful result"),
    ],
)
def test_what_is_no_baseline_is_said_and_never_passes(baseline: Metrics | None, why: str) -> None:
    verdict = judge([FLOOR], FRAME, {"mrr": Measured(281_000.0)}, baseline)
    assert verdict.status is Status.NOT_JUDGED
    assert verdict.sentence == f"MRR not judged: baseline {why}"


def test_a_search_that_was_cut_short_is_the_reason_why_nothing_can_be_said() -> None:
    threshold = Threshold("ndr", "Mpps", minimum=3.0)
    for figure, shown in (
        (Measured(2e6, 2e6, 5e6, unfinished=True), "2 Mpps"),
        (Measured(5e6, high=5e6, upper_bound=True, unfinished=True), "< 5 Mpps"),
    ):
        verdict = judge([threshold], FRAME, {"ndr": figure}, None)
        asked = "at least 3 Mpps was asked for"
        assert verdict.sentence == f"NDR {shown}, {asked}: inconclusive, the search was not finished"


def test_what_could_not_be_judged_is_told_beside_what_passed() -> None:
    verdict = judge([FLOOR, CEILING], FRAME, {"mrr": Measured(1.0), "latency_p99": Measured(1.0)}, None)
    assert verdict.status == "passed"
    assert "latency p99 0.001 us, at most 500 us was asked for: passed" in verdict.sentence
    assert "MRR not judged: baseline missing" in verdict.sentence


@pytest.mark.parametrize("value", [1.0, 281_000.0])
def test_a_figure_in_doubt_is_never_judged_and_the_doubt_is_told(value: float) -> None:
    drifted: Metrics = {
        "mrr": Measured(value, doubt="drifted: the upper bound is 447 kpps"),
        "latency_p99": Measured(1.0),
    }
    found = judge([FLOOR], FRAME, drifted, BASELINE)
    assert found.status is Status.NOT_JUDGED
    assert found.sentence == "MRR not judged: drifted: the upper bound is 447 kpps"
    assert judge([FLOOR, CEILING], FRAME, drifted, BASELINE).status is Status.PASSED


def test_one_failure_decides_and_the_noise_is_told() -> None:
    metrics: Metrics = {"mrr": Measured(1000.0), "latency_p99": Measured(100.0)}
    verdict = judge([CEILING, FLOOR], FRAME, metrics, BASELINE, noise="CPU 1: 23 % went to stress-ng")
    assert verdict.failed
    assert verdict.sentence == (
        "MRR 0.0232 % of the baseline, at least 5 % of the baseline was asked for: failed "
        "(the machine was noisy: CPU 1: 23 % went to stress-ng)"
    )


def test_without_a_threshold_nothing_is_claimed() -> None:
    verdict = judge([], FRAME, {"mrr": Measured(1.0)}, BASELINE)
    assert verdict.status == "no threshold"
    assert not verdict.failed


@given(
    st.builds(
        Threshold,
        metric=st.just("mrr"),
        unit=st.just("Mpps"),
        data_plane=st.sampled_from([None, "linux-bridge", "macvlan"]),
        pods=st.sampled_from([None, 1, 2]),
        frame=st.sampled_from([None, FRAME, FrameSize("64 B, other name", (64,)), IMIX]),
    )
)
def test_a_threshold_applies_where_every_selector_matches(threshold: Threshold) -> None:
    matches = (
        threshold.data_plane in (None, "linux-bridge") and threshold.pods in (None, 1) and threshold.frame is not IMIX
    )
    assert applicable([threshold], CHAIN, FRAME) == ((threshold,) if matches else ())


@given(st.floats(1, 1e9), st.floats(1e-3, 1e3), st.sampled_from(["Mpps", "Gbps", "ratio of baseline"]))
def test_verdicts_agree_with_the_units(value: float, limit: float, unit: str) -> None:
    baseline: Metrics = {"mrr": Measured(1e6)}
    threshold = Threshold("mrr", unit, minimum=limit)  # type: ignore[arg-type]
    expected = in_unit(value, threshold, FRAME, baseline["mrr"]) >= limit
    assert (status(threshold, {"mrr": Measured(value)}, baseline) == "passed") is expected


def test_nothing_is_held_against_a_figure_that_is_the_testers() -> None:
    thresholds = [Threshold("mrr", "Mpps", minimum=1.0), Threshold("ndr", "Mpps", minimum=1.0), CEILING]
    metrics: Metrics = {"mrr": Measured(9e6), "latency_p99": Measured(1e3)}
    doubts: dict[str, str] = {"mrr": "the tester counts twice", "ndr": "the tester counts twice"}
    verdict = judge(thresholds, FRAME, metrics, None, doubts=doubts)
    assert [outcome.status for outcome in verdict.outcomes] == [Status.NOT_JUDGED, Status.NOT_JUDGED, Status.PASSED]
    assert verdict.status is Status.PASSED
    assert verdict.sentence.endswith("; MRR, NDR not judged: the tester counts twice"), "the reason once"
    assert judge(thresholds[:2], FRAME, metrics, None, doubts=doubts).status is Status.NOT_JUDGED
