"""Published placements on workers of several shapes: parts on the nodes that they name, no CPU twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cpu_plan import CpuPlan
from podperf.errors import Unavailable
from podperf.kernel.cpus import Cpus
from podperf.model import Placement
from podperf.testbed.scenarios import SCENARIOS, CpuIsolation, Node, Placed, Scenario, place_scenario


def worker(cores: int, nodes: int, threads: int = 1) -> Cpus:
    """`cores` cores on each node; siblings are numbered behind all cores, as Linux does on most servers."""
    numbers = range(cores * nodes * threads)
    return Cpus(
        tuple(numbers),
        tuple(numbers),
        {cpu: frozenset(range(cpu % (cores * nodes), len(numbers), cores * nodes)) for cpu in numbers},
        {cpu: cpu % (cores * nodes) // cores for cpu in numbers},
    )


def roles(placed: Placed) -> CpuPlan:
    """The roles that a scenario gives to the CPUs."""
    (only,) = placed.cpus
    return only


LAB = worker(cores=20, nodes=2)
USUAL = Placement((0,), (20, 21, 22, 23, 24), (20, 21))


@pytest.mark.parametrize(
    ("name", "switch", "pods"),
    [("S1", 1, (0, 0)), ("S2", 1, (1, 1)), ("S3", 0, (0, 0)), ("S4", 0, (1, 1)), ("S5", 1, (1, 0)), ("S6", 0, (0, 1))],
)
def test_the_six_placements_of_the_draft(name: str, switch: int, pods: tuple[int, int]) -> None:
    """Appendix C.3: its table says NUMA0 and NUMA1, and that the NIC is on node 1."""
    cpus = roles(place_scenario(SCENARIOS[name], 2, USUAL, LAB, nic_node=1))
    assert {LAB.node(cpu) for cpu in cpus.switch} == {switch}
    assert tuple(LAB.node(cpu) for cpu in cpus.pods) == pods
    assert {LAB.node(cpu) for cpu in cpus.control} == {switch}
    assert len(cpus.switch) == len(USUAL.named_switch)


def test_everything_on_the_nics_node_is_the_usual_placement() -> None:
    assert set(place_scenario(SCENARIOS["S2"], 2, USUAL, LAB, nic_node=1).placement.sut) == set(USUAL.sut)


def test_pools_are_shared_after_the_start_only() -> None:
    exclusive, shared, none = (
        place_scenario(SCENARIOS[name], 2, USUAL, LAB, nic_node=1)
        for name in ("exclusive-same-node", "shared-same-node", "no-isolation")
    )
    assert exclusive.shared == ()
    assert shared.shared == tuple(sorted(roles(shared).pods))
    assert set(none.shared) == set(LAB.usable), "appendix A.2: any node, all CPUs of the host"


def test_without_isolation_pods_have_any_node_and_all_cpus_but_the_testers_and_isolated_ones() -> None:
    near = replace(worker(cores=2, nodes=2), isolated=frozenset({3}))
    placed = place_scenario(
        SCENARIOS["no-isolation"], 2, Placement((0,), (1,)), near, nic_node=0, taken=(0,), with_switch=False
    )
    assert placed.shared == (1, 2)
    assert {near.node(cpu) for cpu in placed.placement.sut} == {0, 1}, "node 0 has one CPU left, and that is enough"


@pytest.mark.parametrize("name", ["shared-same-node", "no-isolation"])
def test_isolated_cpus_are_not_shared_as_the_kernel_moves_nothing_between_them(name: str) -> None:
    isolated = replace(LAB, isolated=frozenset({20, 21, 22, 23, 24}))
    with pytest.raises(Unavailable, match=r"from one isolated CPU to another: leave CPU [\d,-]+ of the worker out"):
        place_scenario(SCENARIOS[name], 2, USUAL, isolated, nic_node=1)
    assert place_scenario(SCENARIOS["exclusive-same-node"], 2, USUAL, isolated, nic_node=1).shared == ()


def test_without_a_switch_the_pods_have_their_cpus_first() -> None:
    """As virtual functions go into pods: drivers without a switch count the worker's CPUs from the first one."""
    usual = Placement((0,), (20, 21, 22))
    placed = {
        name: place_scenario(SCENARIOS[name], 1, usual, LAB, nic_node=1, with_switch=False)
        for name in ("exclusive-same-node", "exclusive-different-node", "shared-same-node", "no-isolation")
    }
    assert placed["exclusive-same-node"].placement.sut == (20,)
    assert LAB.node(roles(placed["exclusive-different-node"]).pods[0]) == 0
    assert placed["shared-same-node"].shared == (20, 21)
    assert placed["no-isolation"].shared == LAB.usable


@given(
    st.sampled_from(list(SCENARIOS.values())),
    st.integers(1, 12),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 4),
    st.integers(0, 2),
)
def test_parts_have_cpus_of_their_own_or_the_scenario_is_not_offered(
    scenario: Scenario, cores: int, nodes: int, threads: int, pods: int, nic: int
) -> None:

    cpus = worker(cores, nodes, threads)
    nic %= nodes
    usual = Placement((0,), (cpus.usable[-1],))
    try:
        placed = place_scenario(scenario, pods, usual, cpus, nic_node=nic, taken=(0,))
    except Unavailable as reason:
        assert scenario.name in str(reason)
        assert nodes == 1 or cores * threads < pods + 4
        return
    found = roles(placed)
    assert len(set(found.sut)) == len(found.sut)
    assert set(found.sut) >= {*found.switch, *found.pods, *found.control, found.receives_left, found.receives_right}
    assert 0 not in found.sut, "the tester's"
    for cpu in (*found.switch, found.main):
        assert (cpus.node(cpu) == nic) == (scenario.switch is Node.NIC)
    assert set(found.switch).isdisjoint(found.beside_switch)
    assert set(found.neighbour).isdisjoint((0, *found.sut))
    assert {0, *found.sut, *found.neighbour} == set(cpus.usable)
    assert len(found.pods) == pods
    if scenario.isolation is CpuIsolation.EXCLUSIVE:
        assert found.control == (found.main,)
        assert len({*found.pods, found.main}) == pods + 1
        for number, cpu in enumerate(found.pods):
            where = scenario.pods[min(number, len(scenario.pods) - 1)]
            assert (cpus.node(cpu) == nic) == (where is Node.NIC)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(
        Unavailable, match="S1 has a part on another NUMA node than the NIC's, and the worker has one node"
    ):
        place_scenario(SCENARIOS["S1"], 2, Placement((0,), (1,)), worker(8, 1), nic_node=0)
    with pytest.raises(Unavailable, match=r"S2 wants a CPU each for switch, pods and control threads.* has 2 CPUs"):
        place_scenario(SCENARIOS["S2"], 2, Placement((0,), (1,)), worker(2, 1), nic_node=0, taken=(0,))
