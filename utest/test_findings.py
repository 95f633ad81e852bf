"""Findings: a wrong `confirmed` is rare on a machine as unsteady as a shared VM, and a clear difference is found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.methods.comparison import Comparison
from podperf.metrics import Measured
from podperf.model import DRAFT, Chain, Direction, DirectionResult, FrameSize, TrafficProfile, Trial, TrialResult
from podperf.noise import Noise, Speed
from podperf.testers.base import UNPACED
from podperf.verdicts.claims import CLAIMS, Claim, claim_named
from podperf.verdicts.findings import judge
from podperf.verdicts.ratio_interval import CONFIDENCE, ratio_interval

A, B, C = Chain("macvlan", 1), Chain("linux-bridge", 1), Chain("linux-bridge", 4)
CLAIM = Claim("made-up", ("4.1.1",), "A is faster than B", (A, B))
TRAFFIC = TrafficProfile(FrameSize.parse(64))


def measured(*rates: float) -> list[Measured]:
    return [Measured(each) for each in rates]


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
    claim = Claim("order", ("4.2.4",), "A, then B, then C", (A, B, C))
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
    found = judge(CLAIMS["vpp-memif-over-ovs-dpdk"], [measured(*[2e5] * 10), measured(*[1e5] * 10)], noisy_trials=3)
    assert "noisy in 3 of 20 trials" in found.detail
    assert "their figures: 59.96" in found.detail


@pytest.mark.parametrize("ratio", [2.0, 0.5])
def test_what_a_doubtful_tester_measured_confirms_and_refutes_nothing(ratio: float) -> None:
    found = judge(CLAIM, [measured(*[ratio * 1e5] * 10), measured(*[1e5] * 10)], doubt="the tester loses frames")
    assert found.verdict == "inconclusive"
    assert found.detail.startswith("the tester loses frames; macvlan, 1 pod forwards ")


def test_claims_are_found_by_name() -> None:
    assert all(claim_named(name).name == name for name in CLAIMS)
    with pytest.raises(PodperfError, match="no claim 'macvlan'; choose one of: macvlan-over-bridge"):
        claim_named("macvlan")
    with pytest.raises(ValueError, match="two or more different chains"):
        Claim("one", (), "", (A, A))


def test_a_claim_says_who_makes_it_and_a_finding_tells() -> None:
    sources = {name: claim.source for name, claim in CLAIMS.items()}
    assert sources["macvlan-over-bridge"] is None, "section 4.1 and 4.1.1 state no order between them"
    assert "hackathon" in str(sources["shorter-chains-over-longer"])
    assert sources["xdp-redirect-over-bridge"] == f"{DRAFT}, section 4.1.1"
    found = judge(CLAIMS["ovs-dpdk-over-bridge"], [measured(*[2e5] * 10), measured(*[1e5] * 10)])
    assert found.source == f"{DRAFT}, section 4.1.2"


# --- measured on a machine as unsteady as a shared VM -----------------------------------------------------------------


@dataclass
class UnsteadyMachine:
    """A machine in simulated time whose speed flips between 1 and `slow`, in blocks of random length, and drifts.

    `drift` is the relative change of speed a second. `set_up` seconds go by whenever a chain is set up.
    """

    capacities: Mapping[str, float]
    slow: float
    blocks: tuple[float, float]  # the shortest and the longest, s
    drift: float
    seed: int
    set_up: float = 0.35
    jitter: float = 0.02
    now: float = 0.0
    maximum_load: float = 5e6
    _ends: float = 0.0
    _speed: float = 1.0
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        self._random, self.speeds = Random(self.seed), (1.0, self.slow)

    def work(self, seconds: float) -> float:
        """Let time go by; returns the mean speed of that time."""
        done, end = 0.0, self.now + seconds
        while self.now < end:
            if self.now >= self._ends:
                self._ends = self.now + self._random.uniform(*self.blocks)
                self._speed = self._random.choice(self.speeds)
            step = min(end, self._ends) - self.now
            done += step * self._speed * math.exp(self.drift * self.now)
            self.now += step
        return done / seconds

    @contextmanager
    def standing(self, name: str) -> Iterator[Source]:
        self.work(self.set_up)
        yield Source(self, self.capacities[name])

    def verdict(self) -> str:
        names = [str(each) for each in CLAIM.chains]
        result = Comparison().run({each: partial(self.standing, each) for each in names}, seed=self.seed)
        return judge(CLAIM, [result.rates(each) for each in names]).verdict


@dataclass
class Source:
    """The trials of one chain that stands."""

    machine: UnsteadyMachine
    capacity: float

    @property
    def maximum_load(self) -> float:
        return self.machine.maximum_load

    def measure(self, load: float, duration: float) -> TrialResult:
        assert load == UNPACED
        speed = self.machine.work(duration + 0.05)
        rate = self.capacity * speed * math.exp(self.machine._random.gauss(0, self.machine.jitter))
        sent, received = int(self.maximum_load * duration), int(rate * duration)
        direction = DirectionResult(Direction.LEFT_TO_RIGHT, sent, sent, received, 0, 0, 0, duration)
        noise = Noise((0, 1), duration, 0.0, {}, 0, 0, 0.01, Speed(speed))
        return TrialResult(Trial(TRAFFIC, load, duration), self.machine.now, (direction,), noise=noise)


SIMULATIONS = 400
machines = {
    "slow": st.floats(0.3, 1.0),
    "blocks": st.sampled_from([(0.5, 10.0), (0.5, 1.0), (5.0, 10.0), (0.01, 0.1), (30.0, 90.0)]),
    "drift": st.floats(-0.01, 0.01),
}


def share(verdict: str, ratio: float, machine: Callable[..., UnsteadyMachine]) -> float:
    """How often `A is faster than B` gets this verdict when A's capacity is `ratio` times B's."""
    capacities = {str(A): 3e5 * ratio, str(B): 3e5}
    return sum(machine(capacities, seed=seed).verdict() == verdict for seed in range(SIMULATIONS)) / SIMULATIONS


@settings(max_examples=8, deadline=None, derandomize=True)
@given(**machines)
def test_false_verdicts_are_rarer_than_five_per_cent(slow: float, blocks: tuple[float, float], drift: float) -> None:
    """Also where the difference is just too small to count, the worst case: any smaller one is confirmed less often."""
    machine = partial(UnsteadyMachine, slow=slow, blocks=blocks, drift=drift)
    assert share("confirmed", 1 + CLAIM.relevant_difference, machine) < 0.05
    assert share("refuted", 1 / (1 + CLAIM.relevant_difference), machine) < 0.05


def test_equal_chains_are_hardly_ever_told_apart() -> None:
    machine = partial(UnsteadyMachine, slow=0.5, blocks=(0.5, 10.0), drift=0.0)
    assert share("confirmed", 1.0, machine) + share("refuted", 1.0, machine) < 0.05


def test_a_clear_difference_is_found_on_such_a_machine() -> None:
    machine = partial(UnsteadyMachine, slow=0.5, blocks=(0.5, 10.0), drift=0.0)
    assert share("confirmed", 2.0, machine) > 0.95
    assert share("refuted", 0.5, machine) > 0.95
    steady = partial(UnsteadyMachine, slow=1.0, blocks=(1.0, 1.0), drift=0.0)
    assert share("confirmed", 1.1, steady) > 0.95


def test_rounds_measure_every_chain_once_in_an_order_drawn_by_lot() -> None:
    machine = UnsteadyMachine({str(A): 2e5, str(B): 1e5, str(C): 5e4}, 1.0, (1.0, 1.0), 0.0, seed=3)
    contenders = {name: partial(machine.standing, name) for name in machine.capacities}
    result = Comparison(rounds=40).run(contenders, seed=7)
    assert result.as_record()["orders"] == Comparison(rounds=40).run(contenders, seed=7).as_record()["orders"]
    assert len({each.order for each in result.rounds}) == 6
    assert all(sorted(each.order) == sorted(machine.capacities) for each in result.rounds)
    assert not any(each.lower_bound for each in result.rates(str(A)))
    machine.maximum_load = 1e5
    limited = Comparison(rounds=6).run(contenders, seed=7)
    assert all(each.lower_bound for each in limited.rates(str(A)))
    assert not any(each.lower_bound for each in limited.rates(str(C)))


@pytest.mark.parametrize(("speed", "noisy"), [(1.0, 0), (0.5, 12)])
def test_noisy_trials_are_counted(speed: float, noisy: int) -> None:
    machine = UnsteadyMachine({str(A): 2e5, str(B): 1e5}, speed, (1.0, 1.0), 0.0, seed=0)
    machine.speeds = (speed,)
    result = Comparison(rounds=6).run({name: partial(machine.standing, name) for name in machine.capacities}, seed=1)
    assert result.noisy_trials == noisy
