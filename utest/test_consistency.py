"""The trials of a search agree with its bounds, or contradict them; and frames that are lost at every load."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from podperf.methods.consistency import (
    CHANCE,
    LOOKS,
    Counted,
    Seen,
    chance_of_majority,
    constant_loss,
    contradiction,
    depends_on_trial_length,
)
from podperf.noise import Noise, Speed

# A real search with the preset quick on a shared machine: memory was slow while the NDR was searched, and fast while
# the PDR was. The frames lost of 10 000, and the speed of memory in per cent of its best, of each trial by its load.
REAL: Mapping[int, Sequence[tuple[float, int]]] = {
    429282: [(0, 72), (0, 72), (0, 72), (5, 72), (0, 75), (0, 70), (25, 75), (74, 74), (0, 74)],
    447107: [(43, 71), (63, 71), (0, 70), (0, 72), (0, 73), (22, 75), (23, 75), (0, 70), (0, 72), (16, 71)],
    465673: [(27, 75)],
    485010: [(26, 76), (0, 73), (32, 71), (53, 81), (0, 90), (0, 92), (0, 88)],
    505150: [(50.08, 75), (0, 90), (0, 89), (0, 83), (0, 86), (0, 85), (0, 89)],
    547973: [(551, 72), (0, 88), (0, 86), (55, 82), (0, 83), (0, 90), (0, 85), (0, 89)],
    644817: [(0, 81), (0, 82), (46, 88), (0, 87), (75, 85), (0, 85), (0, 78)],
    671593: [(0, 84), (0, 86), (77, 85), (0, 85), (0, 86), (0, 81), (125, 86), (0, 87)],
    699480: [(0, 86), (17, 88), (250, 86), (78, 89), (80, 85), (194, 84), (109, 89)],
    758777: [(989, 85), (1004, 86), (975, 83), (1005, 85), (846, 85)],
    892877: [(2237, 86), (2427, 85), (2378, 85), (2152, 88), (2224, 88)],
}


def noise(memory: float) -> Noise:
    return Noise((0, 1), 0.2, 0.0, {}, 9, 1, 0.01, Speed(0.95, memory))


def real(loss_ratio: float) -> list[Seen]:
    """The trials of the real search, judged by a goal with this loss ratio."""
    return [
        Seen(load, lost / 10_000 <= loss_ratio, noise=noise(memory / 100))
        for load, trials in REAL.items()
        for lost, memory in trials
    ]


def test_a_real_search_that_contradicts_its_ndr() -> None:
    found = contradiction(real(0.0), 429282, 447107)
    assert found is not None and found.faster and found.chance < CHANCE
    assert (found.against, found.trials) == (27, 38)
    assert found.in_words(real(0.0)) == (
        "the upper bound is 447 kpps, but 27 of 38 trials at 466 to 672 kpps were good; "
        "memory was at 72% of its best speed at the bound, and at 84% in these trials"
    )
    assert contradiction(real(0.005), 671593, 699480) is None, "the PDR of the same search holds"


def test_a_machine_of_steady_speed_leaves_the_system_under_test_as_the_cause() -> None:
    seen = [Seen(100, good=False), *[Seen(150, good=True) for _ in range(LOOKS)]]
    found = contradiction(seen, 90, 100)
    assert found is not None
    assert found.in_words(seen).endswith("; the system under test became faster during the search")


def test_a_slow_worker_is_a_slow_machine() -> None:
    def on(worker: float, load: float, good: bool) -> Seen:
        tester = Noise((0,), 0.2, 0.0, {}, 9, 1, 0.01, Speed(1.0, 1.0), (noise(worker),))
        return Seen(load, good, noise=tester)

    seen = [on(0.9, 100, good=True), *[on(0.6, 90, good=False) for _ in range(LOOKS)]]
    found = contradiction(seen, 100, 110)
    assert found is not None and not found.faster
    assert found.in_words(seen).endswith("memory was at 90% of its best speed at the bound, and at 60% in these trials")


LOADS = st.lists(st.tuples(st.floats(1, 1000), st.integers(1, 9)), max_size=12)


@given(LOADS, st.floats(1, 1000), st.floats(1, 1000))
def test_trials_that_get_worse_with_the_load_contradict_nothing(
    loads: list[tuple[float, int]], capacity: float, bound: float
) -> None:
    seen = [Seen(load, load <= capacity) for load, trials in loads for _ in range(trials)]
    lower, upper = min(bound, capacity), max(bound, capacity)
    assert contradiction(seen, lower, upper) is None


@given(LOADS, st.data(), st.floats(1, 1000), st.floats(1, 1000))
def test_faster_and_slower_are_mirror_images(
    loads: list[tuple[float, int]], data: st.DataObject, one: float, other: float
) -> None:
    seen = [Seen(load, data.draw(st.booleans())) for load, trials in loads for _ in range(trials)]
    lower, upper = sorted((one, other))
    found = contradiction(seen, lower, upper)
    mirrored = contradiction([Seen(-each.load, not each.good) for each in seen], -upper, -lower)
    assert (found is None) == (mirrored is None)
    if found is not None and mirrored is not None:
        assert found.chance == mirrored.chance <= CHANCE
        assert 2 * found.against > found.trials
        assert contradiction(reversed(seen), lower, upper) == found, "the order of the trials does not matter"


@given(st.integers(1, 60), st.data())
def test_the_chance_of_a_majority_is_that_of_a_fair_coin(trials: int, data: st.DataObject) -> None:
    against = data.draw(st.integers(0, trials))
    assert chance_of_majority(against, trials) + chance_of_majority(trials - against + 1, trials) == pytest.approx(1)
    assert chance_of_majority(0, trials) == 1
    assert chance_of_majority(LOOKS, LOOKS) <= CHANCE < chance_of_majority(LOOKS - 1, LOOKS - 1)


def test_only_a_second_look_counts_at_a_bound() -> None:
    seen = [Seen(100, good=True) for _ in range(20)]
    assert contradiction(seen, 90, 100) is None
    again = [Seen(100, good=True, again=True) for _ in range(LOOKS)]
    assert contradiction([*seen, *again[1:]], 90, 100) is None
    found = contradiction([*seen, *again], 90, 100)
    assert found is not None and found.trials == LOOKS
    assert found.in_words([*seen, *again]).startswith("the upper bound is 0.1 kpps, but 5 of 5 trials at 0.1 kpps")


def lossy(ratio: float, loads: Sequence[int], trials: int, chance: random.Random) -> list[Counted]:
    """Trials of 1 s of a device that loses each frame with this probability."""

    def lost(load: int) -> int:
        return max(0, round(chance.gauss(load * ratio, (load * ratio) ** 0.5)))

    return [Counted(load, load, lost(load)) for load in loads for _ in range(trials)]


@given(st.floats(0.005, 0.1), st.integers(0, 10_000))
def test_frames_lost_at_random_are_a_constant_loss(ratio: float, seed: int) -> None:
    assert constant_loss(lossy(ratio, [5000, 20_000, 80_000], 4, random.Random(seed))) == pytest.approx(ratio, rel=0.8)


@given(st.integers(0, 10_000), st.floats(1.1, 100.0))
def test_a_queue_that_overflows_is_none(lost: int, factor: float) -> None:
    """It loses nothing below a load, and more with each load above."""
    low = [Counted(1000, 10_000, 0) for _ in range(9)]
    high = [Counted(1000 * factor, 10_000, lost) for _ in range(9)]
    assert constant_loss([*low, *high]) is None


@given(st.lists(st.booleans(), min_size=8, max_size=8), st.integers(20, 500))
def test_stalls_of_the_machine_are_none(stalls: list[bool], lost: int) -> None:
    assume(not all(stalls))
    loads = [1000, 2000, 4000, 8000]
    assert constant_loss(Counted(loads[at % 4], 10_000, lost * stall) for at, stall in enumerate(stalls)) is None


def test_loads_that_are_too_near_each_other_say_nothing_about_every_load() -> None:
    assert constant_loss(lossy(0.01, [1000, 1500, 1900], 9, random.Random(1))) is None
    assert constant_loss([]) is None
    assert constant_loss([Counted(1000, 0, 0)]) is None


def test_the_words_have_as_many_digits_as_the_ratio_is_exact_to() -> None:
    assert depends_on_trial_length(0.00197, "NDR").startswith("frames are lost at every load (0.2 %): longer trials")
