"""Cost: the chain is built until the least figure is known, and the bare path is taken off."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

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
    builds_of_json,
    json_of_builds,
    middle,
)
from podperf.methods.functions import (
    TESTER,
    Functions,
    Profile,
    differences,
    is_testers,
    most_first,
    with_tester_apart,
    without,
)
from podperf.model import Loop, Trial, TrialResult
from traffic import TRAFFIC, traffic_of

WITH_TICK = 3  # a window


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

    def profile(self, windows: Sequence[int]) -> Profile:
        if self.missing:
            raise Unavailable(self.missing)
        self.asked.append(windows)
        return Profile({"ip_forward": self.last - 100, "send_frames [bpf]": 100.0}, {"loads": {"ip_forward": 3.0}})


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
    assert found[1].least == 7749 and len(found[1].figures) == ENOUGH_ALIKE + 1, "one build had a collision"
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

    Cost.of(traffic_of(64, flows=flows)).run(build)
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
    assert [burst["bare_path"] for burst in record["bursts"]] == [2380.0, 1273.0]
    assert [burst["builds"] for burst in record["bursts"]] == [[7751.5, 7749.5], [5241.0, 5240.0]]


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
    assert found[1].profile.functions == {"ip_forward": 9836, "send_frames [bpf]": 100}
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
    functions = {"ip_forward": 5000.25, "veth_xmit": 2651.25, "send_frames [bpf]": 99.75}
    chain = {1: Builds((7751.5,), Profile(functions))}
    bare = {1: Builds((2380.0,), Profile({"veth_xmit": 2280.0, "send_frames [bpf]": 100.0}))}
    (burst,) = CostResult(chain, bare, {}).as_record()["bursts"]
    assert burst["functions"] == {"ip_forward": 5000.25, "veth_xmit": 371.25, "send_frames [bpf]": -0.25}
    assert list(burst["functions"]) == ["ip_forward", "veth_xmit", "send_frames [bpf]"], "the most first"
    assert sum(burst["functions"].values()) + burst["in_no_function"] == burst["instructions_per_frame"]
    assert burst["in_no_function"] == 0.25, "times are rounded, and the rest is told"


def test_memory_that_the_bare_path_uses_is_taken_off() -> None:
    chain = {1: Builds((7751.5,), Profile(memory={"loads": {"ip_forward": 30.5, "veth_xmit": 20.0}, "misses": {}}))}
    bare = {1: Builds((2380.0,), Profile(memory={"loads": {"veth_xmit": 18.0}, "misses": {"veth_xmit": 0.5}}))}
    (burst,) = CostResult(chain, bare, {}).as_record()["bursts"]
    assert burst["memory"] == {
        "loads": {"per_frame": 32.5, "functions": {"ip_forward": 30.5, "veth_xmit": 2.0}},
        "misses": {"per_frame": -0.5, "functions": {"veth_xmit": -0.5}},
    }


@pytest.mark.parametrize("without", ("chain", "bare path"))
def test_without_the_functions_of_one_of_them_the_figure_stays_and_the_record_says_why(without: str) -> None:
    known, nothing = (Profile({"ip_forward": 100.0}), None), (Profile(), "old QEMU")
    chain = {1: Builds((7751.5,), *(nothing if without == "chain" else known))}
    bare = {1: Builds((2380.0,), *(known if without == "chain" else nothing))}
    (burst,) = CostResult(chain, bare, {}).as_record()["bursts"]
    assert burst["instructions_per_frame"] == 5371.5
    assert burst["functions"] == burst["memory"] == {} and burst["functions_missing"] == "old QEMU"


def test_a_machine_that_does_not_tell_functions_has_figures_and_the_reason() -> None:
    found, missing, _ = measured(lambda build, burst: 9936, missing="QEMU 7.2 does not take it")
    assert found[1].least == 9936 and not missing
    assert found[1].functions_missing == "QEMU 7.2 does not take it"


def test_builds_are_kept_beside_a_snapshot_with_all_that_they_have() -> None:
    memory = {"loads": {"ip_forward": 30.5}, "misses": {}}
    builds = {
        1: Builds((2380.5, 2380.0), Profile({"ip_forward": 100.25}, memory)),
        32: Builds((9.0,), Profile(), "old"),
    }
    assert builds_of_json(json_of_builds(builds)) == builds


# --- instructions by function: differences of two variants add up, and renamed functions are paired -------------------


NAMES = st.sampled_from(
    (
        *("memset", "memset_erms", "nft_do_chain [nf_tables]", "nft_do_chain", "ip_forward", "ip_forward.isra.0"),
        *("__list_add_valid", "__list_add_valid_or_report", "veth_poll [veth]", "veth_xmit [veth]", "(user space)"),
    )
)
AMOUNTS = st.integers(-(2**20), 2**20).map(lambda each: each / 128)  # means of two windows of 64 frames
FUNCTIONS = st.dictionaries(NAMES, AMOUNTS.filter(bool))


@given(FUNCTIONS, FUNCTIONS)
def test_the_changes_add_up_to_the_difference_of_the_sums(before: Functions, after: Functions) -> None:
    found = differences(before, after)
    assert sum(each.change for each in found) == sum(after.values()) - sum(before.values())
    assert [abs(each.change) for each in found] == sorted((abs(each.change) for each in found), reverse=True)


@given(FUNCTIONS, FUNCTIONS)
def test_no_function_is_in_two_rows(before: Functions, after: Functions) -> None:
    found = differences(before, after)
    for names in ([each.name_before for each in found], [each.name_after for each in found]):
        told = [name for name in names if name is not None]
        assert len(told) == len(set(told))
    for each in found:
        besides = [before, after] if each.beside is None else [before] if each.beside.ran_before else [after]
        further = 0.0 if each.beside is None else besides[0][each.beside.name]
        assert each.before == before.get(each.name_before or "", 0.0) + (further if besides == [before] else 0.0)
        assert each.after == after.get(each.name_after or "", 0.0) + (further if besides == [after] else 0.0)


def bpf_programs(source: str) -> list[str]:
    """The names of the programs in a file of the tester, as the kernel knows them: with 15 characters."""
    text = (Path(__file__).parents[1] / "tester" / source).read_text()
    return [name[:15] for name in re.findall(r'^SEC\("[a-z_/]+"\)\nint (\w+)\(', text, re.MULTILINE)]


def test_the_testers_own_programs_are_its_work() -> None:
    programs = [*bpf_programs("sender.bpf.c"), *bpf_programs("sink.bpf.c")]
    assert len(programs) == 6 and all(is_testers(f"{name} [bpf]") for name in programs)
    assert not is_testers("send_frames") and not is_testers("filter [bpf]")


@pytest.mark.parametrize(
    "name",
    ["xdp_test_run_init_page", "__alloc_pages_bulk", "bpf_test_run_xdp_live.constprop.0", "alloc_pages_bulk_noprof"],
)
def test_the_pages_of_the_testers_frames_are_its_work(name: str) -> None:
    assert is_testers(name)


@pytest.mark.parametrize("name", ["page_pool_put_unrefed_page", "free_unref_page", "xdp_do_redirect", "veth_xdp_rcv"])
def test_what_the_system_does_with_these_pages_is_not(name: str) -> None:
    assert not is_testers(name)


@given(FUNCTIONS, st.floats(-1e4, 1e4).map(round), st.floats(-1e4, 1e4).map(round))
def test_the_testers_work_is_one_line_and_nothing_is_lost(functions: Functions, one: float, other: float) -> None:
    own = {"xdp_test_run_init_page": one, "__alloc_pages_bulk": other}
    assert with_tester_apart({**functions, **own}) == {**functions, TESTER: one + other}
    assert with_tester_apart(functions) == functions


@given(FUNCTIONS)
def test_a_variant_does_not_differ_from_itself(functions: Functions) -> None:
    assert differences(functions, functions) == []


@given(FUNCTIONS, FUNCTIONS)
def test_what_is_taken_off_and_what_is_left_are_all(functions: Functions, taken_off: Functions) -> None:
    left = without(functions, taken_off)
    assert sum(left.values()) + sum(taken_off.values()) == sum(functions.values())
    assert left.keys() == functions.keys() | taken_off.keys()


@pytest.mark.parametrize(
    ("before", "after"),
    (
        ("memset_erms", "memset"),
        ("__list_add_valid", "__list_add_valid_or_report"),
        ("ip_rcv_core.isra.0", "ip_rcv_core"),
        ("skb_release_data", "skb_release_data.constprop.0"),
        ("nf_hook_slow [netfilter]", "nf_hook_slow"),
    ),
)
def test_a_function_with_another_name_is_one_row(before: str, after: str) -> None:
    (found,) = differences({before: 120.0, "ip_forward": 29.0}, {after: 126.0, "ip_forward": 29.0})
    assert (found.name_before, found.name_after, found.change) == (before, after, 6.0)
    assert found.name == f"{before}, now {after}"


@pytest.mark.parametrize(
    ("before", "after"),
    (
        ({"memset_erms": 120.0}, {"memcpy": 120.0}),
        ({"net_rx_action": 120.0}, {"net_rx": 12.0}),  # too cheap to be the same
        ({"xdp_do_redirect": 50.0}, {"xdp_do_redirect_frame": 50.0, "xdp_do_redirect_map": 50.0}),
        ({"ip_rcv_core": 50.0, "__ip_rcv_core": 50.0}, {"ip_rcv_core.isra.0": 50.0}),
    ),
)
def test_where_names_do_not_tell_a_function_is_gone_and_another_one_new(before: Functions, after: Functions) -> None:
    found = differences(before, after)
    assert len(found) == len(before) + len(after)
    assert {each.name for each in found} == {
        *(f"{each} (gone)" for each in before),
        *(f"{each} (new)" for each in after),
    }


@pytest.mark.parametrize(
    ("before", "after", "rows"),
    (
        ({"memset": 10, "memset_erms": 100}, {"memset": 112}, [("memset, before also memset_erms", 2)]),
        ({"memset": 112}, {"memset": 10, "memset_erms": 100}, [("memset, now also memset_erms", -2)]),
        ({"memset": 10, "memset_erms": 100}, {"memset": 15}, [("memset_erms (gone)", -100), ("memset", 5)]),
        ({"memset": 10, "memset_erms": 100}, {"memset": 10}, [("memset_erms (gone)", -100)]),
    ),
)
def test_a_function_that_does_the_work_of_another_one_is_one_row_with_it(
    before: Functions, after: Functions, rows: list[tuple[str, float]]
) -> None:
    assert [(each.name, each.change) for each in differences(before, after)] == rows


def test_a_function_of_which_nothing_is_left_has_run() -> None:
    before = without({"handle_softirqs": 98.0}, {"handle_softirqs": 88.0})
    after = without({"handle_softirqs": 88.0}, {"handle_softirqs": 88.0})
    assert [each.name for each in differences(before, after)] == ["handle_softirqs"], "it is not gone"


def test_the_most_come_first_and_names_decide_among_equals() -> None:
    assert [name for name, _ in most_first({"b": 1.0, "a": 1.0, "c": 2.0})] == ["c", "a", "b"]


def test_names_without_end_take_no_time_without_end() -> None:
    """A record of somebody else can have any number of functions."""
    began = time.monotonic()
    found = differences({f"old_{each}": 1.0 for each in range(20_000)}, {f"new_{each}": 1.0 for each in range(20_000)})
    assert len(found) == 40_000 and time.monotonic() - began < 20
    more = {f"old_{number}": 1.0 for number in range(20_000)} | {f"both_{number}": 2.0 for number in range(20_000)}
    began = time.monotonic()
    found = differences(dict.fromkeys(more, 1.0), {name: 2.0 for name in more if name.startswith("both")})
    assert len(found) == 40_000 and time.monotonic() - began < 20
