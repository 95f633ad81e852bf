"""Placements and allocations of section 4.2: what they configure, what is missing for them, and how they are judged."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_rows import TESTS, claims
from made_up import ENVIRONMENT, TOPOLOGY, write
from podperf.allocation import PodAllocation, PodLimits
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import judge
from podperf.experiments.claims import placements
from podperf.kernel.cpus import Cpus
from podperf.metrics import Measured
from podperf.model import Chain, FrameSize, Placement
from podperf.pods.forwarders.dpdk import MAX_LCORES, lcore_numbers
from podperf.pods.forwarders.l2fwd import L2fwd
from podperf.preflight.plan import Plan, plan
from podperf.records import TestRecord, read_record, schema_errors
from podperf.records.parameters import PARAMETERS, SetUp
from podperf.testbed.scenarios import Node, Scenario, place_scenario
from podperf.topology import SCHEMA_PATH, Topology, load_topology

SMALL = FrameSize.parse(64)
PLACED = [each.name for each in TESTS if str(each.template).startswith("Placements ")]
HERE = [
    "AF_XDP, 100, 50 and 25 % of a CPU",
    "AF_XDP, 1024 and 192 MiB of memory",
    "AF_XDP, 2048, 512 and 64 descriptors",
    "AF_XDP, 8192 and 32768 buffers",
    "AF_XDP, limit of the neighbour's CPU time",
    "AF_XDP, limit of the neighbour's memory",
]  # what a worker with one CPU for the pod can have


def machine(cpus: int, nodes: int = 1) -> Cpus:
    """A worker with so many CPUs, the nodes one after the other."""
    numbers = tuple(range(cpus))
    return Cpus(numbers, numbers, nodes={cpu: cpu * nodes // cpus for cpu in numbers})


def local() -> Topology:
    return load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)


def lab() -> Topology:
    """A lab whose ports are those of a NIC."""
    return load_topology(SCHEMA_PATH.parent / "appendix_b_sriov_dpdk.yaml", DATA_PLANES)


def planned(name: str, place: int, worker: Cpus, topology: Topology | None = None) -> Plan:
    contender = claims()[name].contenders[place]
    return plan(topology or local(), contender.chain, contender.frame, worker, contender.placement.scenario)


def text(made: Plan) -> str:
    return "\n".join(f"{step.text}: {step.content}" for step in made.steps if step.phase == "set up")


# --- what the worker must have ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLACED)
def test_two_cpus_can_have_these_placements_and_the_others_say_what_is_missing(name: str) -> None:
    refused = set()
    for place in range(len(claims()[name].contenders)):
        try:
            planned(name, place, machine(2))
        except Unavailable as reason:
            refused.add(str(reason))
    assert bool(refused) == (name not in HERE)
    assert all(re.search(r"CPUs? in all|the worker has one node|only a NIC divides", each) for each in refused), refused


@pytest.mark.parametrize("name", PLACED)
def test_a_large_worker_with_a_nic_can_have_all_of_them(name: str) -> None:
    for place in range(len(claims()[name].contenders)):
        assert planned(name, place, machine(64, nodes=2), lab()).steps


def test_the_missing_cpus_are_counted() -> None:
    with pytest.raises(
        Unavailable,
        match=r"pod wants 4 CPUs for each pod, 1 CPU for .* has 2 CPUs in all, .* tester has CPU 0",
    ):
        planned("OVS-DPDK, 4, 2 and 1 CPUs a pod, 1518 B", 0, machine(2))
    with pytest.raises(Unavailable, match=r"4 pollers wants 1 CPU for each pod, 4 CPUs for a switch .* has 4 CPUs"):
        planned("OVS-DPDK, 1, 2 and 4 pollers", 2, machine(4))


def test_veths_do_not_divide_flows() -> None:
    with pytest.raises(Unavailable, match=r"af-xdp cannot poll on 4 CPUs: .* veths, and only a NIC divides flows"):
        planned("AF_XDP, 4, 2 and 1 CPUs a pod", 0, machine(16))


@pytest.mark.parametrize(
    ("chain", "allocation", "reason"),
    [
        (Chain("linux-bridge", 1), PodAllocation(PodLimits(cpu=1)), "run no process"),
        (Chain("memif", 2), PodAllocation(cpus=2), "memif cannot poll on 2 CPUs: a port of a pod has one queue"),
        (Chain("af-xdp", 2), PodAllocation(cpus=2), "in a chain of one pod"),
        (Chain("af-xdp", 1, "l2fwd"), PodAllocation(descriptors=64), "l2fwd chooses"),
    ],
)
def test_what_a_chain_cannot_have_is_refused(chain: Chain, allocation: PodAllocation, reason: str) -> None:
    scenario = Scenario("made up", Node.ANY, (Node.ANY,), allocation=allocation)
    with pytest.raises(Unavailable, match=reason):
        plan(local(), chain, SMALL, machine(16), scenario)


def test_l2fwd_can_have_limits() -> None:
    assert L2fwd().refused(PodAllocation(PodLimits(cpu=0.5, memory=512))) is None


# --- what is configured -----------------------------------------------------------------------------------------------


def test_a_limit_of_cpu_time_is_set_before_the_pod_starts_and_nothing_takes_turns() -> None:
    made = text(planned("AF_XDP, 100, 50 and 25 % of a CPU", 2, machine(2)))
    assert "tee /sys/fs/cgroup/podperf-pod1/cpu.max: 25000 100000" in made
    assert "memory.max" not in made
    assert made.index("cpu.max") < made.index("dpdk-testpmd")
    assert re.search(r"/sys/fs/cgroup/podperf-pod1 .*dpdk-testpmd", made), "it starts in its group"
    assert "podperf-rotation" not in made
    assert "chrt --other --pid 0" in made


def test_a_limit_of_memory_leaves_the_turns() -> None:
    made = text(planned("AF_XDP, 1024 and 192 MiB of memory", 1, machine(2)))
    assert f"podperf-pod1/memory.max: {192 << 20}" in made
    assert "podperf-pod1/memory.swap.max: 0" in made
    assert "podperf-rotation" in made


@pytest.mark.parametrize("runtime", ["namespaces", "runc"])
def test_containers_have_the_same_limits(runtime: str) -> None:
    topology = local()
    topology = replace(topology, pods=replace(topology.pods, runtime=runtime))
    made = planned("AF_XDP, 100, 50 and 25 % of a CPU", 1, machine(2), topology)
    assert "podperf-pod1/cpu.max: 50000 100000" in text(made)
    assert "dpdk-testpmd" in text(made)


def test_the_usual_pod_has_no_group() -> None:
    made = plan(local(), Chain("af-xdp", 1), SMALL, machine(2))
    assert "cgroup" not in text(made)
    assert "--total-num-mbufs=8192 --forward-mode=io --nb-cores=1 --no-lsc-interrupt" in text(made)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AF_XDP, 2048, 512 and 64 descriptors", [f"--rxd={each} --txd={each}" for each in (2048, 512, 64)]),
        ("AF_XDP, 8192 and 32768 buffers", [f"--total-num-mbufs={each}" for each in (8192, 32768)]),
    ],
)
def test_rings_and_buffers_are_those_of_the_application(name: str, options: list[str]) -> None:
    for place, option in enumerate(options):
        assert option in text(planned(name, place, machine(2)))


@pytest.mark.parametrize(("place", "cpus"), [(0, 4), (1, 2), (2, 1)])
def test_each_cpu_of_a_pod_polls_a_queue_to_the_switch(place: int, cpus: int) -> None:
    made = planned("OVS-DPDK, 4, 2 and 1 CPUs a pod, 1518 B", place, machine(16))
    (roles,) = made.cpus
    own = roles.roles["pod 1"]
    assert len(own) == len(set(own)) == cpus
    said = text(made)
    assert f"--nb-cores={cpus}" in said
    assert f"--total-num-mbufs={8192 * cpus} " in said, "each queue keeps some of them"
    for cpu in own:
        assert f"{cpu}@{cpu}" in said
    assert (f"--rxq={cpus} --txq={cpus}" in said) == (cpus > 1)
    assert (f"queues={cpus}" in said) == (cpus > 1)
    assert said.count("tx-steering=hash") == (2 if cpus > 1 else 0)
    affinities = re.findall(r'pmd-rxq-affinity=\W*"?([\d:,]+)', said)
    assert sorted(affinity.count(":") for affinity in affinities) == [1, 1, cpus, cpus]


@pytest.mark.parametrize(("place", "pollers"), [(0, 1), (1, 2), (2, 4)])
def test_the_ports_are_divided_among_the_pollers(place: int, pollers: int) -> None:
    made = planned("OVS-DPDK, 1, 2 and 4 pollers", place, machine(16))
    (roles,) = made.cpus
    assert len(set(roles.switch)) == pollers
    assert set(roles.switch).isdisjoint(roles.beside_switch)
    cpus = re.findall(r'pmd-rxq-affinity=\W*"?0:(\d+)', text(made))
    assert set(map(int, cpus)) == set(roles.switch)


def test_a_poller_without_its_own_cpu_shares_that_of_the_pod_as_an_ordinary_process() -> None:
    alone, shared = (planned("OVS-DPDK, a CPU for the poller over none", place, machine(16)) for place in (0, 1))
    assert set(alone.cpus[0].switch).isdisjoint(alone.cpus[0].pods)
    assert set(shared.cpus[0].switch) == set(shared.cpus[0].pods)
    assert shared.cpus[0].shared
    assert (alone.cpus[0].precedence, shared.cpus[0].precedence) == (True, False)


@pytest.mark.parametrize("place", [0, 1])
def test_queues_of_a_card_are_served_by_the_cpus_of_the_pod(place: int) -> None:
    made = planned("AF_XDP, 2 queues, 1000 flows over 1 flow", place, machine(64, nodes=2), lab())
    said = text(made)
    (roles,) = made.cpus
    assert "start_queue=0,queue_count=2" in said
    assert re.search(r"ethtool -L \S+ combined 2", said)
    assert len(roles.roles["pod 1"]) == 2
    assert claims()["AF_XDP, 2 queues, 1000 flows over 1 flow"].contenders[place].flows == (1000, 1)[place]


def test_parts_are_on_the_nodes_of_the_claim() -> None:
    worker = machine(16, nodes=2)
    usual = Placement((0,), (1,))
    for name, where in {"pod": (0, 1), "switch": (1, 0)}.items():
        near, far = (
            place_scenario(contender.placement.scenario, 1, usual, worker, nic_node=0, taken=(0,))
            for contender in claims()[f"OVS-DPDK, {name} on the NIC's NUMA node over another"].contenders
            if contender.placement.scenario is not None
        )
        assert [worker.node(cpu) for cpu in (near.cpus[0].switch[0], near.cpus[0].pods[0])] == [0, 0]
        assert (worker.node(far.cpus[0].switch[0]), worker.node(far.cpus[0].pods[0])) == where


@given(st.integers(1, 40), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), st.booleans())
def test_no_cpu_has_two_polling_roles_unless_the_switch_shares(
    cpus: int, pods: int, of_pod: int, pollers: int, alone: bool
) -> None:
    allocation = PodAllocation(cpus=of_pod)
    scenario = Scenario("made up", Node.ANY, (Node.ANY,), allocation=allocation, pollers=pollers, switch_alone=alone)
    usual = Placement((0,), (cpus,))
    try:
        placed = place_scenario(scenario, pods, usual, machine(cpus + 1), nic_node=0, taken=(0,))
    except Unavailable:
        assert cpus < pods * of_pod + 1 + (pollers if alone else 0)
        return
    plan_of_cpus: CpuPlan = placed.cpus[0]
    own = [cpu for number in range(pods) for cpu in plan_of_cpus.roles[f"pod {number + 1}"]]
    assert len(own) == len(set(own)) == pods * of_pod
    assert set(own) <= set(plan_of_cpus.sut) - {0}
    assert set(plan_of_cpus.switch).isdisjoint(own) == alone
    assert len(set(plan_of_cpus.switch)) == (pollers if alone else min(pollers, pods))
    assert plan_of_cpus.main not in {*own, *plan_of_cpus.switch}


@given(st.sets(st.integers(0, 300), min_size=1, max_size=8), st.sets(st.integers(0, 300), max_size=20))
def test_each_lcore_has_a_number_of_its_own_that_dpdk_knows(cpus: set[int], near: set[int]) -> None:
    found = lcore_numbers(sorted(cpus), sorted(near))
    assert len(set(found)) == len(found) == len(cpus) + 1
    assert all(0 <= each < MAX_LCORES for each in found)
    assert all(number == cpu for number, cpu in zip(found, sorted(cpus), strict=False) if cpu < MAX_LCORES)
    free = {each for each in near - cpus if each < MAX_LCORES}
    if len(free) > sum(cpu >= MAX_LCORES for cpu in cpus):
        assert found[-1] in free


def test_two_cpus_are_enough_for_two_pollers() -> None:
    """The numbers of lcores need not be those of CPUs."""
    assert lcore_numbers((1, 0), (0, 1)) == [1, 0, 2]


# --- the verdict and the record ---------------------------------------------------------------------------------------


def rates(*values: float) -> list[list[Measured]]:
    return [[Measured(value * (1 + number / 1000)) for number in range(10)] for value in values]


def test_the_record_has_the_allocation_and_what_the_pods_took(tmp_path: Path) -> None:
    contender = claims()["AF_XDP, 100, 50 and 25 % of a CPU"].contenders[2]
    assert contender.placement.scenario is not None
    usual = Placement((0,), (1,))
    placed = place_scenario(
        contender.placement.scenario, 1, usual, machine(2), nic_node=0, taken=(0,), with_switch=False
    )
    taken: dict[str, Any] = {"processes": 1, "cpu": 0.25, "memory_mib": 192.0, "throttled_periods": 5}
    record = TestRecord("x", "AF_XDP, CPU time", "s", ["sec-4.2.3"], 1, 2, "passed", topology=TOPOLOGY)
    record.environment = ENVIRONMENT
    record.methods = {
        "comparison": {
            "placements": {"25%": placed.as_record()},
            "limits_of_pods": {"25%": [{"pod1": taken}] * 10},
        }
    }
    record.contenders = {"25%": (Chain("af-xdp", 1, "testpmd"), placed)}
    record.data_plane = {"25%": {"limits": {"pod1": taken}, "runtime": {"memory_limit": None}}}
    read = read_record(write(tmp_path, record)).document
    assert schema_errors(read) == []
    allocation = read["methods"]["comparison"]["placements"]["25%"]["allocation"]
    assert allocation["limits"] == {"cpu": 0.25, "memory_mib": None}
    assert "1 (CPU 1, at most the time of 0.25 CPU)" in read["parameters"]["cores_of_pod"]
    assert "192 MiB" in read["parameters"]["memory_of_pod"]


def test_the_parameters_count_the_cpus_of_a_pod() -> None:
    scenario = claims()["OVS-DPDK, 4, 2 and 1 CPUs a pod, 1518 B"].contenders[1].placement.scenario
    assert scenario is not None
    placed = place_scenario(scenario, 1, Placement((0,), (1,)), machine(8), nic_node=0, taken=(0,))
    found = SetUp(Chain("ovs-dpdk", 1, "testpmd"), placed.cpus[0], (), {"runtime": {"kind": "made up"}})
    assert PARAMETERS["cores_of_pod"].read(found) == "2 (CPU 2-3)"


def test_placements_are_named_right() -> None:
    with pytest.raises(PodperfError, match=r"there is no placement '3 pollers'; near: .*1 poller"):
        placements("ovs-dpdk", "64", "1 poller", "3 pollers")
    with pytest.raises(PodperfError, match="two or more different contenders"):
        placements("ovs-dpdk", "64", "1 poller", "1 poller")


def test_no_difference_says_how_large_one_could_be() -> None:
    claim = claims()["AF_XDP, 1024 and 192 MiB of memory"]
    found = judge(claim, rates(1e5, 1.02e5))
    assert found.verdict == "inconclusive"
    assert "no relevant difference, none larger than 2.1 %" in found.detail
    assert judge(claim, rates(2e5, 1e5)).verdict == "confirmed"


@pytest.mark.parametrize(
    ("second", "verdict", "words"),
    [
        (1e5, "confirmed", "no difference larger than"),
        (2e5, "refuted", "they differ"),
        (5e4, "refuted", "they differ"),
        (1.05e5, "inconclusive", "differ too much among themselves"),
    ],
)
def test_a_claim_that_nothing_differs(second: float, verdict: str, words: str) -> None:
    claim = claims()["OVS-DPDK, 1, 2 and 4 pollers"]
    equal = replace(claim, contenders=claim.contenders[:2])
    found = judge(equal, [rates(1e5)[0], rates(second)[0][::-1]])
    assert found.verdict == verdict, found.detail
    assert words in found.detail
