"""Cost: the chain is built until the least figure is known, and the bare path is taken off."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from podperf.errors import TrialNotDelivered
from podperf.methods.cost import BURSTS, ENOUGH_ALIKE, MOST_BUILDS, AllBuilds, Builds, Cost, CostResult, LoopSource
from podperf.model import FrameSize, Loop, TrafficProfile, Trial, TrialResult

TRAFFIC = TrafficProfile(FrameSize.parse(64))


def closed_loop(loop: Loop, frame: float) -> TrialResult:
    """A trial in which each frame takes `frame` instructions. One window has a tick of the clock in it."""
    windows = [int(frame * Loop.WINDOW)] * loop.windows
    windows[3] += 40_000
    return TrialResult(Trial(TRAFFIC, 0.0, 10.0, loop), 0.0, (), windows=tuple(windows))


def measured(figure: Callable[[int, int], float]) -> tuple[AllBuilds, dict[int, str]]:
    """The builds of a chain whose frames take `figure(build, burst)` instructions."""
    built = 0

    @contextmanager
    def build() -> Iterator[LoopSource]:
        nonlocal built
        number, built = built, built + 1
        yield lambda loop: closed_loop(loop, figure(number, loop.burst))

    found, missing = Cost().run(build)
    return found, dict(missing)


def test_a_chain_that_costs_the_same_in_each_build_is_built_no_oftener_than_shows_that() -> None:
    found, missing = measured(lambda build, burst: 5000 + burst)
    assert {burst: each.figures for burst, each in found.items()} == {1: (5001,) * 4, 32: (5032,) * 4}
    assert ENOUGH_ALIKE == 4 and not missing


def test_a_tick_of_the_clock_and_half_an_instruction_make_no_difference() -> None:
    found, _ = measured(lambda build, burst: 9936 + build / 64)
    assert len(found[1].figures) == ENOUGH_ALIKE and found[1].least == 9936


def test_of_builds_with_collisions_in_a_hash_table_the_least_counts() -> None:
    found, _ = measured(lambda build, burst: 10_584 + 28 * (build * 7 % 4 + 1 if build != 9 else 0))
    assert len(found[1].figures) == MOST_BUILDS
    assert found[1].least == 10_584 and found[1].alike == 1


def test_a_chain_that_no_burst_crosses_in_order_has_the_figure_of_single_frames_only() -> None:
    def figure(build: int, burst: int) -> float:
        if burst > 1 and build == 1:
            raise TrialNotDelivered("5 bursts began before the one before had arrived")
        return 39_116

    found, missing = measured(figure)
    assert set(found) == {1} and missing == {32: "5 bursts began before the one before had arrived"}
    result = CostResult(found, {}, missing)
    assert set(result.metrics) == {"cost"}
    assert json.loads(json.dumps(result.as_record()))["missing"] == {"32": missing[32]}


def test_a_chain_that_loses_single_frames_has_no_figure() -> None:
    def figure(build: int, burst: int) -> float:
        raise TrialNotDelivered("3 of 2049 frames of a closed loop were lost")

    with pytest.raises(TrialNotDelivered, match="3 of 2049"):
        measured(figure)


def test_the_bare_path_is_taken_off() -> None:
    chain = {1: Builds((7751.5, 7749.5)), 32: Builds((5241.0, 5240.0))}
    bare = {1: Builds((2380.0,)), 32: Builds((1273.0,))}
    result = CostResult(chain, bare, {})
    assert {name: each.value for name, each in result.metrics.items()} == {"cost": 5369.5, "cost_in_bursts": 3967.0}
    record = result.as_record()
    assert record["instructions_per_frame"] == 5369.5
    assert [each["bare_path"] for each in record["bursts"]] == [2380.0, 1273.0]
    assert [each["builds"] for each in record["bursts"]] == [[7751.5, 7749.5], [5241.0, 5240.0]]


def test_the_bare_path_itself_has_all_that_the_tester_does() -> None:
    alone = CostResult({burst: Builds((2380.0,)) for burst in BURSTS}, {}, {})
    assert alone.cost(1) == 2380.0
