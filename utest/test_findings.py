"""Findings: a wrong `confirmed` is rare on a machine as unsteady as a shared VM, and a clear difference is found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compare_rates import Kind, Machine
from finding_rows import claims
from podperf.errors import PodperfError
from podperf.experiments.claim import Claim, judge
from podperf.experiments.claims import Words, claim_of
from podperf.experiments.contender import Contender
from podperf.experiments.ratio_interval import CONFIDENCE, ratio_interval
from podperf.experiments.rounds import ClaimRounds, SetUp
from podperf.metrics import Measured
from podperf.model import DRAFT, Chain, Trial, TrialResult
from podperf.noise import Noise, Speed
from podperf.testers.base import UNPACED
from traffic import TRAFFIC, counted

A, B, C = Chain("macvlan", 1), Chain("linux-bridge", 1), Chain("linux-bridge", 4)


def ordered(*chains: Chain) -> Claim:
    """The claim that each chain forwards more than the next one."""
    return Claim("made-up", "A is faster than B", tuple(Contender(str(chain), chain) for chain in chains))


CLAIM = ordered(A, B)


def measured(*rates: float) -> list[Measured]:
    return [Measured(rate) for rate in rates]


# --- the interval ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pairs", "critical"), [(6, 0), (8, 3), (10, 8), (12, 13), (20, 52)])
def test_interval_leaves_out_what_the_tables_of_the_signed_rank_test_say(pairs: int, critical: int) -> None:
    """Two-sided 5 % critical values as in any statistics book: as many averages are left out on each side."""
    logs = [Random(1).gauss(0, 1) for _ in range(pairs)]
    averages = sorted((one + other) / 2 for one, other in itertools.combinations_with_replacement(logs, 2))
    found = ratio_interval(measured(*map(math.exp, logs)), measured(*[1.0] * pairs))
    assert found.low == pytest.approx(math.exp(averages[critical]))
    assert found.high == pytest.approx(math.exp(averages[-1 - critical]))
    assert found.estimate == pytest.approx(math.exp(median(averages)))
    assert CONFIDENCE <= found.confidence < 0.97


def test_too_few_pairs_are_refused() -> None:
    with pytest.raises(PodperfError, match="5 pairs of trials cannot give 95 % confidence: 6 can"):
        ratio_interval(measured(*[2.0] * 5), measured(*[1.0] * 5))


def test_a_rate_of_nothing_has_no_ratio() -> None:
    with pytest.raises(PodperfError, match="forwarded nothing"):
        ratio_interval(measured(*[1.0] * 9, 0.0), measured(*[1.0] * 10))


rates = st.lists(st.tuples(st.floats(1, 1e9), st.floats(1, 1e9)), min_size=6, max_size=14)


@given(rates, st.floats(0.1, 10))
def test_interval_follows_the_units_and_the_order(pairs: list[tuple[float, float]], factor: float) -> None:
    one, other = (measured(*column) for column in zip(*pairs, strict=True))
    found = ratio_interval(one, other)
    assert found.low <= found.estimate * (1 + 1e-9)
    assert found.estimate <= found.high * (1 + 1e-9)
    scaled = ratio_interval(measured(*(each.value * factor for each in one)), other)
    assert (scaled.low, scaled.high) == pytest.approx((found.low * factor, found.high * factor))
    swapped = ratio_interval(other, one)
    assert (swapped.low, swapped.high) == pytest.approx((1 / found.high, 1 / found.low))


# --- the verdict ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "spread", "verdict", "words"),
    [
        (2.0, 1.01, "confirmed", "2 times as much as linux-bridge, 1 pod (95 % interval"),
        (0.5, 1.01, "refuted", "the other way round"),
        (1.0, 1.01, "inconclusive", "no relevant difference"),
        (1.04, 1.03, "inconclusive", "may be too small to count"),
        (1.0, 2.0, "inconclusive", "differ too much among themselves"),
    ],
)
def test_verdicts(ratio: float, spread: float, verdict: str, words: str) -> None:
    one = measured(*(1e5 * ratio * (spread if index % 2 else 1 / spread) for index in range(10)))
    found = judge(CLAIM, [one, measured(*[1e5] * 10)])
    assert found.verdict == verdict
    assert words in found.detail
    assert "10 interleaved rounds of 64B frames; more than 5 % counts" in found.detail


def test_every_step_of_an_order_must_hold() -> None:
    claim = ordered(A, B, C)
    fast, middle, slow = (measured(*[rate] * 10) for rate in (4e5, 2e5, 1e5))
    assert judge(claim, [fast, middle, slow]).verdict == "confirmed"
    assert judge(claim, [fast, middle, middle]).verdict == "inconclusive"
    assert judge(claim, [fast, slow, middle]).verdict == "refuted"


def test_a_rate_that_the_tester_limits_opens_the_interval() -> None:
    limited = [Measured(2e5, lower_bound=True)] * 10
    plain = measured(*[1e5] * 10)
    assert judge(CLAIM, [limited, plain]).verdict == "confirmed"
    assert "2 to open, as far as the tester reaches" in judge(CLAIM, [limited, plain]).detail
    assert judge(CLAIM, [plain, limited]).verdict == "refuted"
    assert judge(CLAIM, [[Measured(1e5, lower_bound=True)] * 10, measured(*[2e5] * 10)]).verdict == "inconclusive"


def test_noise_and_the_figures_of_the_draft_are_said() -> None:
    claim = claims()["VPP with memif over OVS-DPDK"]
    found = judge(claim, [measured(*[2e5] * 10), measured(*[1e5] * 10)], noisy_trials=3)
    assert "noisy in 3 of 20 trials" in found.detail
    assert "their figures: 59.96" in found.detail


@pytest.mark.parametrize("ratio", [2.0, 0.5])
def test_what_a_doubtful_tester_measured_confirms_and_refutes_nothing(ratio: float) -> None:
    found = judge(CLAIM, [measured(*[ratio * 1e5] * 10), measured(*[1e5] * 10)], doubt="the tester loses frames")
    assert found.verdict == "inconclusive"
    assert found.detail.startswith("the tester loses frames; macvlan, 1 pod forwards ")


def test_a_claim_that_cannot_be_made_says_why() -> None:
    with pytest.raises(PodperfError, match="no kind of claim 'chain'; choose one of: chains, lengths, joins, "):
        claim_of("chain", "macvlan")
    with pytest.raises(PodperfError, match=r"chains: .* missing 3 required positional arguments"):
        claim_of("chains", "macvlan")
    with pytest.raises(PodperfError, match="chains: frame size 'vast' is neither"):
        claim_of("chains", "macvlan", "ptp", "1", "vast")
    with pytest.raises(PodperfError, match="two or more different contenders"):
        claim_of("chains", "macvlan", "macvlan", "1", "64")


def test_a_row_says_who_makes_its_claim_and_a_finding_tells() -> None:
    sources = {name: claim.source for name, claim in claims().items()}
    assert sources["MACVLAN over Linux bridge"] is None, "section 4.1 and 4.1.1 state no order between them"
    assert "hackathon" in str(sources["Shorter chains over longer ones"])
    assert sources["XDP redirect over Linux bridge"] == f"{DRAFT}, section 4.1.1"
    found = judge(claims()["OVS-DPDK over Linux bridge"], [measured(*[2e5] * 10), measured(*[1e5] * 10)])
    assert found.source == f"{DRAFT}, section 4.1.2"


def test_the_documentation_of_a_row_has_the_words_of_its_claim() -> None:
    text = "A is\nfaster  Source: the draft, 4.1 Their figures: 2 to 1, see C.5 Caveat: A: a switch"
    assert Words.parse(text) == Words("A is faster", f"{DRAFT}, 4.1", "2 to 1, see C.5", "A: a switch")
    assert Words.parse("") == Words()


# --- measured on a machine as unsteady as a shared VM -----------------------------------------------------------------


@dataclass
class Chains:
    """Chains of these capacities, in frames/s, on a simulated machine."""

    capacities: Mapping[str, float]
    kind: Kind
    seed: int
    maximum_load: float = 5e6

    def rounds(self, claim: Claim, most: int = 12) -> ClaimRounds:
        found = ClaimRounds(claim, self.seed, most)
        found.run(self.set_ups(claim))
        return found

    def set_ups(self, claim: Claim) -> Mapping[str, SetUp]:
        machine = Machine(self.kind, self.seed)
        return {
            contender.name: partial(self._standing, machine, self.capacities[contender.name])
            for contender in claim.contenders
        }

    @contextmanager
    def _standing(self, machine: Machine, capacity: float) -> Iterator[Trials]:
        machine.work(0.35)
        yield Trials(machine, capacity, self.maximum_load)


@dataclass
class Trials:
    """The trials of one chain that stands."""

    machine: Machine
    capacity: float
    maximum_load: float

    def measure(self, load: float, duration: float) -> TrialResult:
        assert load == UNPACED
        received = int(self.machine.rate(self.capacity, duration + 0.05) * duration)
        found = counted(int(self.maximum_load * duration), received, duration=duration)
        return TrialResult(Trial(TRAFFIC, load, duration), self.machine.now, (found,))


SIMULATIONS = 400
UNSTEADY = Kind("unsteady", 0.02, 0.5, (0.5, 10.0))
kinds = st.builds(
    Kind,
    name=st.just("unsteady"),
    jitter=st.just(0.02),
    slow=st.floats(0.3, 1.0),
    blocks=st.sampled_from([(0.5, 10.0), (0.5, 1.0), (5.0, 10.0), (0.01, 0.1), (30.0, 90.0)]),
    drift=st.floats(-0.01, 0.01),
)


def share(verdict: str, ratio: float, kind: Kind) -> float:
    """How often `A is faster than B` gets this verdict when A's capacity is `ratio` times B's."""
    capacities = {str(A): 3e5 * ratio, str(B): 3e5}
    found = (Chains(capacities, kind, seed).rounds(CLAIM).judged("").verdict for seed in range(SIMULATIONS))
    return sum(each == verdict for each in found) / SIMULATIONS


@settings(max_examples=8, deadline=None, derandomize=True)
@given(kinds)
def test_false_verdicts_are_rarer_than_five_per_cent(kind: Kind) -> None:
    """Also where the difference is just too small to count, the worst case: any smaller one is confirmed less often."""
    assert share("confirmed", 1 + CLAIM.relevant_difference, kind) < 0.05
    assert share("refuted", 1 / (1 + CLAIM.relevant_difference), kind) < 0.05


def test_a_clear_difference_is_found_on_such_a_machine() -> None:
    assert share("confirmed", 2.0, UNSTEADY) > 0.95
    assert share("refuted", 0.5, UNSTEADY) > 0.95
    assert share("confirmed", 1.1, Kind("steady", 0.02)) > 0.95


def test_rounds_measure_every_chain_once_in_an_order_drawn_by_lot() -> None:
    """Chains that do not differ are measured in all rounds."""
    chains = Chains({str(A): 2e5, str(B): 1e5, str(C): 1e5}, Kind("of large jitter", 0.5), seed=3)
    found, again = (chains.rounds(ordered(A, B, C), 40) for _ in range(2))
    orders = [tuple(each) for each in found.rounds]
    assert orders == [tuple(each) for each in again.rounds] and len(orders) == 40
    assert len(set(orders)) == 6 and all(sorted(order) == sorted(chains.capacities) for order in orders)
    assert found.as_record()["orders"] == list(map(list, orders))
    assert not any(rate.lower_bound for rate in found.rates(str(A)))
    limited = replace(chains, kind=Kind("steady", 0.02), maximum_load=1e5).rounds(ordered(A, C), 6)
    assert all(rate.lower_bound for rate in limited.rates(str(A)))


def test_rounds_end_when_each_pair_is_decided_and_at_a_doubt() -> None:
    steady = Chains({str(A): 2e5, str(B): 1e5, str(C): 1e5}, Kind("steady", 0.02), seed=3)
    assert len(steady.rounds(ordered(A, B)).rounds) == 8, "a clear difference"
    assert len(steady.rounds(ordered(B, C)).rounds) == 8, "clearly no difference that counts"
    jittery = replace(steady, kind=Kind("of large jitter", 0.5))
    assert len(jittery.rounds(ordered(B, C)).rounds) == 12
    doubted = ClaimRounds(ordered(B, C), 1)
    finding = doubted.run(jittery.set_ups(doubted.claim), lambda: "it loses frames")
    assert len(doubted.rounds) == 8 and finding.verdict == "inconclusive"


def test_noisy_trials_are_counted() -> None:
    quiet, slow = (Noise((0, 1), 0.5, 0.0, {}, 0, 0, 0.01, Speed(speed)) for speed in (1.0, 0.5))
    trial = Trials(Machine(UNSTEADY, 1), 1e5, 5e6).measure(UNPACED, 0.5)
    found = ClaimRounds(CLAIM, 1, trials={str(A): [replace(trial, noise=each) for each in (quiet, slow, None)]})
    assert found.noisy_trials == 1
