"""Before and after: the arithmetic of the verdicts, and the rule by which a comparison ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compare_rates
from podperf.errors import PodperfError
from podperf.experiments.before_after import Difference, VariantVerdict, fewest_rounds, judge, judge_exact, looks
from podperf.experiments.ratio_interval import CONFIDENCE, least_error, ratio_estimate, ratio_interval, real_error
from podperf.experiments.rounds import RoundsSoFar, measure_variants
from podperf.metrics import METRICS, Measured

MRR, COST, P99 = METRICS["mrr"], METRICS["cost"], METRICS["latency_p99"]
RELEVANT, ERROR = 0.05, 1 - CONFIDENCE


def measured(*values: float) -> list[Measured]:
    return [Measured(value) for value in values]


def around(middle: float, spread: float, number: int = 12, seed: int = 1) -> list[Measured]:
    chance = Random(seed)
    return measured(*(middle * math.exp(chance.uniform(-spread, spread)) for _ in range(number)))


# --- the rule by which a comparison ends ------------------------------------------------------------------------------


@given(st.integers(1, 200), st.integers(1, 7))
def test_the_errors_of_all_looks_at_all_variants_add_up_to_no_more_than_the_confidence_allows(
    most: int, comparisons: int
) -> None:
    planned = looks(most, comparisons)
    spent = sum(real_error(each.rounds, each.error) for each in planned)
    assert spent * comparisons <= ERROR * (1 + 1e-9)
    assert [each.rounds for each in planned] == sorted({each.rounds for each in planned})
    assert bool(planned) == (most >= fewest_rounds(comparisons))
    assert not planned or planned[-1].rounds == most, "else the last rounds would be in vain"


def test_looks_at_the_default_rounds() -> None:
    assert [look.rounds for look in looks(40)] == [8, 12, 18, 27, 40]
    assert [look.rounds for look in looks(40, 2)] == [12, 18, 27, 40], "two variants leave too little for a first look"
    assert [fewest_rounds(each) for each in (1, 2, 4)] == [6, 7, 8]


@given(st.integers(2, 40), st.floats(1e-4, 0.5))
def test_an_interval_uses_no_more_error_than_it_may(pairs: int, error: float) -> None:
    if least_error(pairs) > error:
        with pytest.raises(PodperfError, match="cannot give"):
            real_error(pairs, error)
    else:
        assert least_error(pairs) <= real_error(pairs, error) <= error * (1 + 1e-9)


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.sampled_from(compare_rates.MACHINES), st.integers(0, 10_000))
def test_intervals_of_a_whole_comparison_hold_together(kind: compare_rates.Kind, seed: int) -> None:
    """Also in the worst case, a change that is just too small to count: the most rounds, and looks at all of them."""
    number = 150
    outcomes = [compare_rates.compare(kind, -compare_rates.RELEVANT, seed * number + each) for each in range(number)]
    missed = sum(not outcome.covered for outcome in outcomes)
    assert missed <= 16, "5 % of 150 are 7.5; more than 16 come by chance once in 400 times"
    assert sum(outcome.verdict in {VariantVerdict.SLOWER, VariantVerdict.FASTER} for outcome in outcomes) <= 10


def test_equal_variants_are_not_told_apart_and_a_clear_change_is_found_early() -> None:
    steady = compare_rates.Kind("steady", 0.02)
    equal = [compare_rates.compare(steady, 0.0, seed) for seed in range(60)]
    assert {each.verdict for each in equal} == {VariantVerdict.NO_DIFFERENCE}
    slower = [compare_rates.compare(steady, -0.2, seed) for seed in range(60)]
    assert {each.verdict for each in slower} == {VariantVerdict.SLOWER}
    assert all(each.rounds == 8 for each in slower), "nothing is measured that the verdict does not need"


def rounds(values: dict[str, Sequence[float]], most: int = 40, seed: int = 3) -> tuple[RoundsSoFar, list[RoundsSoFar]]:
    """A comparison of variants with these figures, again and again; and its state after each round."""
    counters = dict.fromkeys(values, 0)

    def measure(name: str) -> Measured:
        counters[name] += 1
        return Measured(values[name][(counters[name] - 1) % len(values[name])])

    states: list[RoundsSoFar] = []
    measures = {name: (lambda name=name: measure(name)) for name in values}
    return measure_variants(MRR, RELEVANT, most, measures, seed, on_round=states.append), states


def test_a_variant_that_is_decided_is_not_measured_any_more() -> None:
    found, states = rounds({"first": [100, 101], "clear": [50, 51], "open": [92, 103, 88, 107]})
    assert found.judgement("clear").verdict is VariantVerdict.SLOWER
    assert found.judgement("open").verdict is VariantVerdict.UNDECIDED
    assert len(found.figures("clear")) == 12 and len(found.figures("open")) == len(found.rounds) == 40
    assert not found.decided and found.open == ()
    assert states[11].open == ("first", "open")
    assert [len(state.rounds) for state in states] == list(range(1, 41))


def test_the_order_within_a_round_is_drawn_by_lot() -> None:
    found, _ = rounds({"first": [100], "other": [92, 108, 90, 111]})
    orders = [tuple(each) for each in found.rounds]
    assert set(orders) == {("first", "other"), ("other", "first")}
    assert orders == [tuple(each) for each in rounds({"first": [100], "other": [92, 108, 90, 111]})[0].rounds]


def test_before_the_first_look_there_is_an_estimate_and_no_interval() -> None:
    _, states = rounds({"first": [100.0], "other": [80.0]})
    assert states[0].estimate("other") == pytest.approx(-0.2)
    assert states[0].judgement("other").change is None
    assert states[0].judgement("other").words == "undecided"


def test_a_doubt_about_the_tester_decides_nothing() -> None:
    measures = {"first": lambda: Measured(100.0), "other": lambda: Measured(50.0)}
    found = measure_variants(MRR, RELEVANT, 40, measures, 1, lambda: "the tester loses frames")
    assert len(found.rounds) == 8, "more rounds would decide nothing, either"
    judged = found.judgement("other")
    assert judged.verdict is VariantVerdict.UNDECIDED
    assert judged.sentence.endswith("8 rounds; the tester loses frames")


# --- the verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "spread", "verdict", "words"),
    [
        (0.90, 0.01, VariantVerdict.SLOWER, "slower: "),
        (1.10, 0.01, VariantVerdict.FASTER, "faster: "),
        (1.00, 0.01, VariantVerdict.NO_DIFFERENCE, "no difference larger than "),
        (0.98, 0.01, VariantVerdict.NO_DIFFERENCE, "no difference larger than "),
        (0.95, 0.04, VariantVerdict.UNDECIDED, "slower, but perhaps by less than the 5 % that count"),
        (1.05, 0.04, VariantVerdict.UNDECIDED, "faster, but perhaps by less than the 5 % that count"),
        (1.00, 0.40, VariantVerdict.UNDECIDED, "the rounds differ too much among themselves"),
    ],
)
def test_verdicts(ratio: float, spread: float, verdict: VariantVerdict, words: str) -> None:
    judged = judge(MRR, measured(*[1e5] * 12), around(1e5 * ratio, spread), RELEVANT, ERROR)
    assert judged.verdict is verdict, judged.sentence
    assert words in judged.sentence


def test_more_latency_is_slower() -> None:
    first, more = measured(*[100.0] * 12), around(120.0, 0.01)
    assert judge(P99, first, more, RELEVANT, ERROR).verdict is VariantVerdict.SLOWER
    assert judge(P99, more, first, RELEVANT, ERROR).verdict is VariantVerdict.FASTER


rates = st.lists(st.tuples(st.floats(1, 1e6), st.floats(1, 1e6)), min_size=6, max_size=14)


@given(rates)
def test_what_is_slower_one_way_is_faster_the_other_way(pairs: list[tuple[float, float]]) -> None:
    """With a hair's breadth between the two: 5 % less is 5.26 % more the other way."""
    first, other = (measured(*column) for column in zip(*pairs, strict=True))
    if judge(MRR, first, other, RELEVANT, ERROR).verdict is VariantVerdict.SLOWER:
        assert judge(MRR, other, first, RELEVANT, ERROR).verdict is VariantVerdict.FASTER


def test_figures_that_the_tester_limits_decide_nothing_about_themselves() -> None:
    limited = [Measured(1e6, lower_bound=True)] * 12
    judged = judge(MRR, limited, limited, RELEVANT, ERROR)
    assert judged.verdict is VariantVerdict.UNDECIDED and "the tester was the limit" in judged.sentence
    assert "open to open" in judged.sentence
    slow = judge(MRR, limited, measured(*[5e5] * 12), RELEVANT, ERROR)
    assert slow.verdict is VariantVerdict.SLOWER, "it is slower than what is at least twice as fast"
    assert slow.change == Difference(-1.0, pytest.approx(-0.5), pytest.approx(-0.5))


def test_bounds_of_a_search_open_the_interval_on_their_side() -> None:
    plain = measured(*[100.0] * 8)
    below = [Measured(50.0, upper_bound=True)] * 8
    assert ratio_interval(below, plain).low == 0 and ratio_interval(below, plain).high == pytest.approx(0.5)
    assert ratio_interval(plain, below).high == math.inf
    unfinished = [Measured(90.0, 80.0, 120.0, unfinished=True)] * 8
    found = ratio_interval(unfinished, plain)
    assert (found.low, found.estimate, found.high) == pytest.approx((0.9, 0.9, 1.2))
    assert ratio_estimate(below, plain) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("first", "other", "verdict", "words"),
    [
        (9936.375, 9936.375, VariantVerdict.NO_DIFFERENCE, "no difference: 0 %"),
        (9936.375, 9936.391, VariantVerdict.NO_DIFFERENCE, "no difference larger than 0.000161 %: +0.000161 %"),
        (10145.375, 10214.375, VariantVerdict.SLOWER, "slower: +0.68 %"),
        (10214.375, 10145.375, VariantVerdict.FASTER, "faster: -0.676 %"),
    ],
)
def test_exact_figures_need_no_interval(first: float, other: float, verdict: VariantVerdict, words: str) -> None:
    judged = judge_exact(COST, first, other, 0.0001)
    assert judged.verdict is verdict
    assert judged.sentence == words
