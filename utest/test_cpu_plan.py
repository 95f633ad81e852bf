"""The CPU roles of a chain, the commands that pin processes to these CPUs, and lists of CPUs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.allocation import PodAllocation
from podperf.cpu_lists import HIGHEST_CPU, format_cpu_list, parse_cpu_list
from podperf.cpu_plan import CpuPlan, plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.kernel.cpus import Cpus
from podperf.model import BOTH_DIRECTIONS, Chain, FrameSize, Placement
from podperf.preflight.plan import plan
from podperf.preflight.recording import Step
from podperf.testbed.scenarios import SCENARIOS
from podperf.topology import SCHEMA_PATH, load_topology


def machine(count: int, nodes: int = 1) -> Cpus:
    """CPUs with a core each, numbered node by node."""
    numbers = tuple(range(count))
    return Cpus(numbers, numbers, nodes={cpu: cpu * nodes // count for cpu in numbers})


def _on_mask(text: str) -> str:
    return format_cpu_list(cpu for cpu in range(64) if int(text, 16) >> cpu & 1)


def _roles(steps: Sequence[str]) -> Iterator[str]:
    """The roles and their CPUs, in words, as these commands set them."""
    found: dict[str, str] = {}
    lines = "\n".join(steps)
    for who, pattern in (
        ("tester", r"podperf-tester .*\(on CPU ([\d,]+)\)"),
        ("left", r"taskset --cpu-list --pid (\d+) '<thread 1 of those named napi/(?:w-left|net1)-"),
        ("right", r"taskset --cpu-list --pid (\d+) '<thread 1 of those named napi/(?:w-right|net2)-"),
        ("switch", r"pmd-cpu-mask=\S*?(0x\w+)"),
        ("switch", r"taskset --cpu-list --pid (\d+) '<process of ovs-vswitchd"),
        ("ports", r"pmd-rxq-affinity=\W*0:(\d+)"),
        ("vpp", r" vpp -c \S+ \(on CPU ([\d,]+)\)"),
        ("pods", r"--lcores=\S+?,\d+@(\d+)"),
        ("main", r"dpdk-lcore-mask=\S*?(0x\w+)"),
        ("control", r"taskset --cpu-list --pid ([\d,]+) '<thread 1 of those named \*>'"),
        ("daemon", r"ovs-vswitchd .*\(on CPU ([\d,]+)\)"),
    ):
        cpus = [_on_mask(each) if each.startswith("0x") else each for each in re.findall(pattern, lines)]
        if who in {"left", "right", "control"}:  # a port may be moved into a pod, and each control thread is held
            cpus = cpus[-1:]
        if cpus:
            found[who] = " ".join(cpus)
    for cpu, threads in re.findall(r"podperf-rotation'? (\d+) 100 (.*)", lines):
        found[f"turns on {cpu}"] = str(len(re.findall(r"<", threads)))
    return (f"{who} {cpus}" for who, cpus in found.items())


def _in_words(steps: Iterable[Step]) -> str:
    return "; ".join(_roles([step.text for step in steps]))


SMALL = FrameSize.parse(64)
LOCAL = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
LAB = load_topology(SCHEMA_PATH.parent / "appendix_c_multi_pod.yaml", DATA_PLANES)  # worker.cpus 20-24, switch 20-21


def on_this_machine(cpus: Cpus, chain: Chain, sut: str | None = None, switch: str | None = None) -> str:
    """The roles of a chain that sends both ways, on a machine that has the tester, too."""
    named, polled = (None if text is None else parse_cpu_list(text) for text in (sut, switch))
    topology = replace(
        LOCAL,
        workers=(replace(LOCAL.workers[0], cpus=named, switch_cpus=polled),),
        traffic=replace(LOCAL.traffic, directions=BOTH_DIRECTIONS),
    )
    return _in_words(plan(topology, chain, SMALL, cpus).steps)


# `turns on 1 4`: four threads take turns on CPU 1.
@pytest.mark.parametrize(
    ("cpus", "data_plane", "pods", "roles"),
    [
        (machine(1), "ovs-dpdk", 1, "0 0; switch 0; ports 0 0 0 0; pods 0; main 0; control 0; turns on 0 4"),
        (machine(2), "linux-bridge", 1, "1 1"),
        (machine(2), "ovs-netdev", 1, "1 1; switch 1; daemon 1; turns on 1 3"),
        (machine(2), "ovs-afxdp", 1, "1 1; switch 1; ports 1 1 1 1; control 1; turns on 1 3"),
        (machine(2), "ovs-dpdk", 1, "1 1; switch 1; ports 1 1 1 1; pods 1; main 1; control 1; turns on 1 4"),
        (machine(2), "vpp-vrf", 2, "1 1; vpp 1; pods 1 1; turns on 1 5"),
        (machine(2), "memif", 2, "1 1; pods 1 1; turns on 1 4"),
        (machine(2), "af-xdp", 1, "1 1; pods 1; turns on 1 3"),
        (machine(4), "linux-bridge", 1, "2 3"),
        (machine(4), "ovs-kernel", 1, "2 3; daemon 2,3"),
        (machine(4), "ovs-netdev", 1, "2 3; switch 2; daemon 2,3; turns on 2 2"),
        (machine(4), "ovs-afxdp", 1, "2 3; switch 2; ports 2 2 2 2; control 3; turns on 2 2"),
        (
            machine(4),
            "ovs-dpdk",
            2,
            "2 3; switch 2; ports 2 2 2 2 2 2; pods 3 3; main 3; control 3; turns on 2 2; turns on 3 3",
        ),
        (machine(4), "vpp-vrf", 2, "2 3; vpp 3,2; pods 3 3; turns on 2 2; turns on 3 3"),
        (machine(4), "memif", 2, "2 3; pods 2 3; turns on 2 2; turns on 3 2"),
        (machine(4), "memif", 3, "2 2; pods 2 3 2; turns on 2 4"),
        (machine(4), "af-xdp", 3, "2 3; pods 2 3 2; turns on 2 3; turns on 3 2"),
        (machine(8), "af-xdp", 1, "6 7; pods 6; turns on 6 2"),
        # On two nodes, everything is on the tester's.
        (machine(8, 2), "vpp-vrf", 2, "2 3; vpp 3,2; pods 3 3; turns on 2 2; turns on 3 3"),
        (machine(8, 2), "af-xdp", 1, "2 3; pods 2; turns on 2 2"),
    ],
)
def test_who_runs_where_on_the_cpus_that_podperf_chooses(cpus: Cpus, data_plane: str, pods: int, roles: str) -> None:
    left_right, _, others = roles.partition("; ")
    left, right = left_right.split()
    expected = "; ".join(filter(None, ("tester 0", f"left {left}", f"right {right}", others)))
    assert on_this_machine(cpus, Chain(data_plane, pods)) == expected


@pytest.mark.parametrize(
    ("sut", "switch", "data_plane", "pods", "roles"),
    [
        ("2-6", "2-3", "ovs-netdev", 1, "switch 2; daemon 2,3,4,5,6; turns on 2 2"),
        ("2-6", "2-3", "ovs-afxdp", 1, "switch 2-3; ports 2 2 3 3; control 4,5,6; turns on 2 2"),
        ("2-6", "2-3", "ovs-dpdk", 1, "switch 2-3; ports 2 2 3 3; pods 4; main 6; control 5,6; turns on 2 2"),
        ("2-6", "2-3", "ovs-dpdk", 2, "switch 2-3; ports 2 2 2 3 3 3; pods 4 5; main 6; control 6; turns on 2 2"),
        ("2-6", "2-3", "vpp-vrf", 2, "vpp 6,2,3; pods 4 5; turns on 2 2"),
        ("2-6", "2-3", "af-xdp", 1, "pods 2; turns on 2 2"),
        ("2-6", "5", "ovs-dpdk", 2, "switch 5; ports 5 5 5 5 5 5; pods 2 3; main 6; control 4,6; turns on 2 2"),
        ("2-6", None, "ovs-dpdk", 2, "switch 2; ports 2 2 2 2 2 2; pods 3 4; main 6; control 5,6; turns on 2 2"),
        ("2-6", None, "vpp-vrf", 2, "vpp 6,2; pods 3 4; turns on 2 2"),
    ],
)
def test_who_runs_where_on_the_cpus_that_the_topology_names(
    sut: str, switch: str | None, data_plane: str, pods: int, roles: str
) -> None:
    ends = "tester 0; left 2; right 6"
    assert on_this_machine(machine(8), Chain(data_plane, pods), sut, switch) == f"{ends}; {roles}"


def test_a_switch_that_has_all_cpus_of_the_worker_leaves_its_pods_on_them() -> None:
    found = on_this_machine(machine(8), Chain("ovs-dpdk", 2), "3-4", "3-4")
    assert "pods 3 4; main 4; control 3,4; turns on 3 3; turns on 4 3" in found
    assert "vpp 3,4; pods 3 4" in on_this_machine(machine(8), Chain("vpp-vrf", 2), "3-4", "3-4"), "one main, one worker"


@pytest.mark.parametrize(
    ("scenario", "data_plane", "roles"),
    [
        ("S1", "ovs-dpdk", "switch 20-21; ports 20 20 20 21 21 21; pods 1 2; main 22; control 22"),
        ("S2", "ovs-dpdk", "switch 20-21; ports 20 20 20 21 21 21; pods 22 23; main 24; control 24"),
        ("S6", "ovs-dpdk", "switch 1-2; ports 1 1 1 2 2 2; pods 3 20; main 4; control 4"),
        ("S1", "vpp-l2patch", "vpp 22,20,21; pods 1 2"),
        ("S4", "vpp-l2patch", "vpp 3,1,2; pods 20 21"),
        ("S5", "af-xdp", "left 20; right 1; pods 20 1; turns on 20 2; turns on 1 2"),
        ("S5", "memif", "left 20; right 1; pods 20 1; turns on 20 2; turns on 1 2"),
        ("S3", "ovs-afxdp", "switch 1-2; ports 1 1 1 2 2 2; control 3,4,5"),
        ("shared-different-node", "ovs-dpdk", "switch 20-21; ports 20 20 20 21 21 21; pods 1 2; main 22; control 22"),
        ("no-isolation", "vpp-l2patch", "vpp 24,20,21; pods 22 23"),
    ],
)
def test_who_runs_where_in_a_published_placement_on_two_nodes(scenario: str, data_plane: str, roles: str) -> None:
    assert _in_words(plan(LAB, Chain(data_plane, 2), SMALL, scenario=SCENARIOS[scenario]).steps) == roles


# Pure arithmetic, for any CPUs.

CPUS = st.sets(st.integers(0, 31), min_size=1)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    """CPUs of a tester and a system under test as podperf.testbed.placement chooses them, or a topology names them."""
    sut = draw(CPUS)
    named = draw(st.sets(st.sampled_from(sorted(sut))))
    apart = draw(st.booleans())
    tester = draw(CPUS if apart else CPUS.map(lambda each: each - sut or sut))
    neighbour = draw(st.sets(st.integers(0, 31))) - sut - (set() if apart else tester)
    return Placement(
        *(tuple(sorted(each)) for each in (tester, sut, named)), apart=apart, neighbour=tuple(sorted(neighbour))
    )


@given(placements(), st.integers(0, 6), st.booleans())
def test_no_poller_shares_its_cpu_as_long_as_there_are_enough(chosen: Placement, pods: int, with_switch: bool) -> None:
    found = plan_cpus(chosen, pods, with_switch=with_switch)
    assert (len(found.pods), bool(found.switch)) == (pods, with_switch)
    wanted = [*found.switch, *found.pods, *((found.main,) if with_switch else ())]
    enough = len(chosen.sut) >= len(wanted)
    assert (len(set(wanted)) == len(wanted)) == enough
    if enough:
        assert set(found.control).isdisjoint((*found.switch, *found.pods)) or not with_switch


@given(placements(), st.integers(0, 6), st.booleans())
def test_a_cpu_with_several_roles_is_said_to_be_shared(chosen: Placement, pods: int, with_switch: bool) -> None:
    found = plan_cpus(chosen, pods, with_switch=with_switch)
    here = found.roles
    assert ("tester" in here) != chosen.apart
    assert {cpu for cpus in here.values() for cpu in cpus} <= {*chosen.tester, *chosen.sut, *chosen.neighbour}
    for cpu in {cpu for cpus in here.values() for cpu in cpus}:
        names = [name for name, cpus in here.items() if cpu in cpus]
        assert list(found.shared.get(cpu, names[:1])) == names
    tested = {cpu for name, cpus in here.items() if name not in {"tester", "neighbour"} for cpu in cpus}
    assert tested <= set(chosen.sut)
    assert tested.isdisjoint(found.neighbour)
    assert sorted(tested.intersection(here.get("tester", ()))) == sorted(set(chosen.shared) & tested)


@given(placements(), st.integers(0, 6))
def test_pods_and_control_have_what_the_switch_leaves(chosen: Placement, pods: int) -> None:
    found = plan_cpus(chosen, pods, with_switch=True)
    left = set(chosen.sut) - set(found.switch)
    assert set(found.beside_switch) == (left or set(chosen.sut))
    assert found.main in found.control
    assert found.main == max(found.beside_switch), "away from interrupts and daemons"


@given(placements(), st.integers(1, 12))
def test_the_ports_of_a_chain_are_spread_over_the_switch_from_left_to_right(chosen: Placement, ports: int) -> None:
    found = plan_cpus(chosen, 1, with_switch=True)
    polled = found.pollers_of(ports)
    assert polled == sorted(polled)
    often = [polled.count(cpu) for cpu in found.switch]
    assert sum(often) == ports
    assert max(often) - min(often) <= 1


def test_a_pod_keeps_its_planned_cpus_where_its_runtime_gave_it_none_alone() -> None:
    plan = CpuPlan((0,), (1, 2, 3), 1, 3, (), (2, 3), (1,), 1, allocation=PodAllocation(cpus=2), further=((1,), (2,)))
    found = plan.with_own([(), (6, 7, 8), (9,)])
    assert (found.pods, found.further) == ((2, 6), ((1,), (7,)))
    assert plan.with_own([(), ()]) is plan


# --- lists of CPUs ---------------------------------------------------------------------------------------------------


@given(st.sets(st.integers(0, HIGHEST_CPU), max_size=60))
def test_a_cpu_list_survives_the_way_to_text_and_back(cpus: set[int]) -> None:
    assert parse_cpu_list(format_cpu_list(cpus)) == tuple(sorted(cpus))


@given(st.sets(st.integers(0, 40)))
def test_the_text_is_the_shortest(cpus: set[int]) -> None:
    parts = [part.split("-") for part in format_cpu_list(cpus).split(",") if part]
    assert all(int(later[0]) > int(earlier[-1]) + 1 for earlier, later in pairwise(parts))


@pytest.mark.parametrize(
    ("text", "cpus"), [("", ()), ("0", (0,)), ("0-1\n", (0, 1)), ("2-5,7", (2, 3, 4, 5, 7)), ("3, 1,1-2", (1, 2, 3))]
)
def test_lists_as_the_kernel_and_people_write_them(text: str, cpus: tuple[int, ...]) -> None:
    assert parse_cpu_list(text) == cpus


@pytest.mark.parametrize("text", ["a", "1,", "-1", "1-", "5-2", "0-9999", "0x", "1;2", "¹", "0-99999999999"])
def test_what_is_no_cpu_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|backwards|above"):
        parse_cpu_list(text)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_a_mask_is_refused_with_the_list_that_it_means(cpus: set[int]) -> None:
    mask = f"{sum(1 << cpu for cpu in cpus):#x}"
    with pytest.raises(ValueError, match=f"^the mask {mask} is {format_cpu_list(cpus)} as a list$"):
        parse_cpu_list(mask)
