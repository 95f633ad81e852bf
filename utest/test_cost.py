"""Cost: the chain is built until the least figure is known, and the bare path is taken off."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import TrialNotDelivered, Unavailable
from podperf.methods.cost import (
    BURSTS,
    ENOUGH_ALIKE,
    MOST_BUILDS,
    AllBuilds,
    Builds,
    Cost,
    CostResult,
    StandingChain,
    middle,
)
from podperf.methods.functions import Functions
from podperf.model import FrameSize, Loop, TrafficProfile, Trial, TrialResult

WITH_TICK = 3  # a window
TRAFFIC = TrafficProfile(FrameSize.parse(64))


def closed_loop(loop: Loop, frame: float) -> TrialResult:
    """A trial in which each frame takes `frame` instructions. One window has a tick of the clock in it."""
    windows = [int(frame * Loop.WINDOW)] * loop.windows
    windows[WITH_TICK] += 40_000
    return TrialResult(Trial(TRAFFIC, 0.0, 10.0, loop), 0.0, (), windows=tuple(windows))


@dataclass
class MadeUpChain:
    """A build of a chain whose frames take `figure(burst)` instructions, all but 100 of them in one function."""

    figure: Callable[[int], float]
    missing: str | None = None
    asked: list[Sequence[int]] = field(default_factory=list)  # the windows whose functions were asked for
    last: float = 0.0

    def loop(self, loop: Loop) -> TrialResult:
        self.last = self.figure(loop.burst)
        return closed_loop(loop, self.last)

    def functions(self, windows: Sequence[int]) -> Functions:
        if self.missing:
            raise Unavailable(self.missing)
        self.asked.append(windows)
        return {"ip_forward": self.last - 100, "send_frames [bpf]": 100.0}


def measured(
    figure: Callable[[int, int], float], missing: str | None = None
) -> tuple[AllBuilds, dict[int, str], list[MadeUpChain]]:
    """The builds of a chain whose frames take `figure(build, burst)` instructions, and each build as it was."""
    chains: list[MadeUpChain] = []

    @contextmanager
    def build() -> Iterator[StandingChain]:
        number = len(chains)
        chains.append(MadeUpChain(lambda burst: figure(number, burst), missing))
        yield chains[-1]

    found, why = Cost().run(build)
    return found, dict(why), chains


def test_a_chain_that_costs_the_same_in_each_build_is_built_no_oftener_than_shows_that() -> None:
    found, missing, _ = measured(lambda build, burst: 5000 + burst)
    assert {burst: each.figures for burst, each in found.items()} == {1: (5001,) * 4, 32: (5032,) * 4}
    assert ENOUGH_ALIKE == 4 and not missing


def test_a_tick_of_the_clock_and_half_an_instruction_make_no_difference() -> None:
    found, _, _ = measured(lambda build, burst: 9936 + build / 64)
    assert len(found[1].figures) == ENOUGH_ALIKE and found[1].least == 9936


def test_a_build_that_costs_less_by_chance_is_no_reason_for_more_builds() -> None:
    found, _, _ = measured(lambda build, burst: 9677.375 - 2 * (build == 3))
    assert len(found[1].figures) == ENOUGH_ALIKE and found[1].least == 9677.375


def test_of_builds_with_collisions_in_a_hash_table_the_least_counts() -> None:
    found, _, _ = measured(lambda build, burst: 10_584 + 28 * (build * 7 % 4 + 1 if build not in {2, 9} else 0))
    assert len(found[1].figures) == MOST_BUILDS
    assert found[1].least == 10_584 and found[1].alike == 2


def test_a_single_build_that_costs_less_by_chance_is_not_the_figure() -> None:
    found, _, _ = measured(lambda build, burst: 7749 - 2 * (build == 5) + 20 * (build == 1))
    assert found[1].least == 7749 and found[1].alike == MOST_BUILDS - 2
    assert Builds((3.0, 2.0)).least == 2.0, "if none came more often"


def test_one_build_without_a_collision_is_enough() -> None:
    assert Builds((10_623.0, 10_623.0, 10_651.0, 10_595.0)).least == 10_595


@pytest.mark.parametrize(("flows", "warm_up"), [(1, 512), (64, 576), (1000, 1536), (65_536, 66_048)])
def test_each_flow_has_had_a_frame_before_the_first_window(flows: int, warm_up: int) -> None:
    asked: list[Loop] = []

    class Asked(MadeUpChain):
        def loop(self, loop: Loop) -> TrialResult:
            asked.append(loop)
            return super().loop(loop)

    @contextmanager
    def build() -> Iterator[StandingChain]:
        yield Asked(lambda _: 5000)

    Cost.of(TrafficProfile(FrameSize.parse(64), flows=flows)).run(build)
    assert {each.warm_up for each in asked} == {warm_up}


def test_a_chain_that_no_burst_crosses_in_order_has_the_figure_of_single_frames_only() -> None:
    def figure(build: int, burst: int) -> float:
        if burst > 1 and build == 1:
            raise TrialNotDelivered("5 bursts began before the one before had arrived")
        return 39_116

    found, missing, _ = measured(figure)
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


def test_a_figure_from_which_no_bare_path_can_be_taken_off_is_missing() -> None:
    result = CostResult.beside({1: Builds((2380.0,))}, {1: Builds((7750.0,)), 32: Builds((5241.0,))}, {})
    assert {name: each.value for name, each in result.metrics.items()} == {"cost": 5370.0}
    assert result.missing == {32: "the bare path has no such figure, which would be taken off"}


def test_the_bare_path_itself_has_all_that_the_tester_does() -> None:
    alone = CostResult({burst: Builds((2380.0,)) for burst in BURSTS}, {}, {})
    assert alone.cost(1) == 2380.0


def test_the_functions_are_those_of_the_build_with_the_least_figure() -> None:
    figures = [9938, 9936, 9940, 9936, 9937, *[9936] * 7]
    found, _, chains = measured(lambda build, burst: figures[build])
    assert found[1].functions == {"ip_forward": 9836, "send_frames [bpf]": 100}
    asked = [number for number, chain in enumerate(chains) if chain.asked]
    assert asked == [0, 1], "a build that costs no less than one before is not asked: listing symbols takes a second"


def test_the_functions_are_those_of_the_median_windows() -> None:
    _, _, chains = measured(lambda build, burst: 9936)
    for windows in chains[0].asked:
        assert len(windows) == 2 and WITH_TICK not in windows


@given(st.lists(st.integers(100_000, 100_050), min_size=1, max_size=64))
def test_the_middle_windows_make_the_median(windows: list[int]) -> None:
    chosen = middle(windows)
    assert statistics.mean(windows[each] for each in chosen) == statistics.median(windows)


def test_the_sum_of_the_functions_is_the_cost() -> None:
    chain = {1: Builds((7751.5,), {"ip_forward": 5000.25, "veth_xmit": 2651.25, "send_frames [bpf]": 99.75})}
    bare = {1: Builds((2380.0,), {"veth_xmit": 2280.0, "send_frames [bpf]": 100.0})}
    (burst,) = CostResult(chain, bare, {}).as_record()["bursts"]
    assert burst["functions"] == {"ip_forward": 5000.25, "veth_xmit": 371.25, "send_frames [bpf]": -0.25}
    assert list(burst["functions"]) == ["ip_forward", "veth_xmit", "send_frames [bpf]"], "the most first"
    assert sum(burst["functions"].values()) + burst["in_no_function"] == burst["instructions_per_frame"]
    assert burst["in_no_function"] == 0.25, "times are rounded, and the rest is told"


@pytest.mark.parametrize("without", ("chain", "bare path"))
def test_without_the_functions_of_one_of_them_the_figure_stays_and_the_record_says_why(without: str) -> None:
    known = {"ip_forward": 100.0}
    chain = {1: Builds((7751.5,), {} if without == "chain" else known, "old QEMU" if without == "chain" else None)}
    bare = {1: Builds((2380.0,), {} if without == "bare path" else known, None if without == "chain" else "old QEMU")}
    (burst,) = CostResult(chain, bare, {}).as_record()["bursts"]
    assert burst["instructions_per_frame"] == 5371.5
    assert burst["functions"] == {} and burst["functions_missing"] == "old QEMU"


def test_a_machine_that_does_not_tell_functions_has_figures_and_the_reason() -> None:
    found, missing, _ = measured(lambda build, burst: 9936, missing="QEMU 7.2 does not take it")
    assert found[1].least == 9936 and not missing
    assert found[1].functions_missing == "QEMU 7.2 does not take it"
