"""The choice of CPUs for tester and system under test."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import Cpus, allowed_cpus, read_cpus
from podperf.model import BOTH_DIRECTIONS, Direction, Placement
from podperf.testbed.placement import place, remarks
from podperf.topology import SCHEMA_PATH, Topology, load_topology
from scripted_host import ScriptedHost

ONE_WAY = (Direction.LEFT_TO_RIGHT,)


@pytest.fixture(scope="module")
def topology() -> Callable[..., Topology]:
    local = load_topology(SCHEMA_PATH.parent / "local.yaml")

    def make(
        tester: tuple[int, ...] | None = None,
        sut: tuple[int, ...] | None = None,
        directions: tuple[Direction, ...] = ONE_WAY,
    ) -> Topology:
        return replace(
            local,
            tester=replace(local.tester, cpus=tester),
            workers=(replace(local.workers[0], cpus=sut),),
            traffic=replace(local.traffic, directions=directions),
        )

    return make


def chosen(placement: Placement) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The CPUs of tester and system under test."""
    return placement.tester, placement.sut


def cpus(count: int, *, threads: int = 1, nodes: int = 1) -> Cpus:
    """CPUs numbered as Linux does on Intel: first one thread of each core, node by node in blocks, then the others."""
    cores = count // threads
    return Cpus(
        tuple(range(count)),
        tuple(range(count)),
        {cpu: frozenset(range(cpu % cores, count, cores)) for cpu in range(count)},
        {cpu: (cpu % cores) * nodes // cores for cpu in range(count)},
    )


@pytest.mark.parametrize(
    ("machine", "one_way", "both_ways"),
    [
        (cpus(1), ((0,), (0,)), ((0,), (0,))),
        (cpus(2), ((0,), (1,)), ((0,), (1,))),
        (cpus(2, threads=2), ((0,), (1,)), ((0,), (1,))),
        (cpus(4), ((0,), (3,)), ((0,), (2, 3))),
        (cpus(4, threads=2), ((0,), (3,)), ((0,), (1, 3))),
        (cpus(8, threads=2), ((0,), (7,)), ((0,), (6, 7))),
        (cpus(8, nodes=2), ((0,), (3,)), ((0,), (2, 3))),
        (cpus(4, threads=2, nodes=2), ((0,), (3,)), ((0,), (1, 3))),  # another node before the tester's core
    ],
)
def test_the_automatic_rule(
    topology: Callable[..., Topology],
    machine: Cpus,
    one_way: tuple[tuple[int, ...], tuple[int, ...]],
    both_ways: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    assert chosen(place(topology(), machine)) == one_way
    assert chosen(place(topology(directions=BOTH_DIRECTIONS), machine)) == both_ways


def test_what_the_topology_says_is_kept_and_the_other_side_makes_room(topology: Callable[..., Topology]) -> None:
    assert chosen(place(topology(tester=(3,), sut=(0, 1)), cpus(4))) == ((3,), (0, 1))
    assert chosen(place(topology(sut=(0,)), cpus(2))) == ((1,), (0,))
    assert chosen(place(topology(sut=(0,)), cpus(4, threads=2))) == ((1,), (0,))
    assert chosen(place(topology(tester=(1,)), cpus(2))) == ((1,), (0,))
    assert chosen(place(topology(tester=(0, 1)), cpus(2))) == ((0, 1), (0, 1))


def test_only_cpus_that_the_process_may_use_are_taken(topology: Callable[..., Topology]) -> None:
    assert chosen(place(topology(), replace(cpus(8), allowed=(2, 5)))) == ((2,), (5,))
    with pytest.raises(PodperfError, match="no CPU is both online and allowed"):
        place(topology(), replace(cpus(2), allowed=(7,)))


def test_a_cpu_that_cannot_be_used_is_an_error_that_says_which_can(topology: Callable[..., Topology]) -> None:
    with pytest.raises(PodperfError, match=r"local.yaml: tester.cpus: CPU 4,9 is not online; allowed: 0-3$"):
        place(topology(tester=(0, 4, 9)), cpus(4))
    with pytest.raises(PodperfError, match=r"workers.0..cpus: CPU 3 is not allowed for this process .*; allowed: 0-1$"):
        place(topology(sut=(3,)), replace(cpus(4), allowed=(0, 1)))


@given(st.data())
def test_tester_and_sut_share_nothing_that_the_machine_lets_them_have_apart(
    topology: Callable[..., Topology], data: st.DataObject
) -> None:
    threads = data.draw(st.sampled_from((1, 2)))
    machine = cpus(data.draw(st.integers(1, 16)) * threads, threads=threads, nodes=data.draw(st.sampled_from((1, 2))))
    allowed = data.draw(st.sets(st.sampled_from(machine.online), min_size=1))
    machine = replace(machine, allowed=tuple(sorted(allowed)))
    directions = data.draw(st.sampled_from((ONE_WAY, BOTH_DIRECTIONS)))
    placement = place(topology(directions=directions), machine)
    assert {*placement.tester, *placement.sut} <= allowed
    assert 1 <= len(placement.sut) <= len(directions)
    assert bool(placement.shared) == (len(allowed) == 1)
    assert {*placement.tester, *placement.sut, *placement.neighbour} == allowed
    assert set(placement.neighbour).isdisjoint((*placement.tester, *placement.sut))
    cores = {machine.siblings[cpu] for cpu in allowed}
    assert any(machine.same_core(cpu, placement.tester) for cpu in placement.sut) == (len(cores) == 1)


def test_remarks_name_what_is_unsound(topology: Callable[..., Topology]) -> None:
    def said(machine: Cpus, tester: tuple[int, ...], sut: tuple[int, ...], directions: int = 1) -> str:
        return " ".join(remarks(Placement(tester, sut), machine, directions))

    assert said(cpus(2), (0,), (1,)) == ""
    assert "share CPU 0:" in said(cpus(1), (0,), (0,))
    assert "physical core" in said(cpus(4, threads=2), (0,), (2,))
    assert "NUMA" in said(cpus(4, nodes=2), (0,), (3,))
    assert said(cpus(2), (0,), (1,), directions=2) == "2 directions share CPU 1 of the system under test"


@given(st.sets(st.integers(0, 500), min_size=1))
def test_the_affinity_is_read_from_the_process_status(allowed: set[int]) -> None:
    status = f"Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{format_cpu_list(allowed)}\nMems_allowed_list:\t0\n"
    assert allowed_cpus(status) == tuple(sorted(allowed))


def test_cpus_that_the_kernel_keeps_free_can_be_had_by_asking() -> None:
    """A machine with `isolcpus=2-3`: no process is there by itself, and its cpuset has CPU 3 only."""
    system, status = "/sys/devices/system/cpu", "Cpus_allowed_list:\t0-1\n"
    files = {f"{system}/online": "0-3", f"{system}/isolated": "2-3", "/proc/self/status": status}
    asked = {"taskset --cpu-list 2-3 cat /proc/self/status": "Cpus_allowed_list:\t3\n"}
    assert read_cpus(ScriptedHost(files, asked)).usable == (0, 1, 3)
    assert read_cpus(ScriptedHost(files | {f"{system}/isolated": "\n"})).usable == (0, 1)


def test_this_machine_can_be_read() -> None:
    machine = read_cpus(LocalHost())
    assert machine.usable
    assert all(cpu in machine.siblings[cpu] for cpu in machine.online)


def test_a_worker_on_another_machine_has_cpus_of_its_own(topology: Callable[..., Topology]) -> None:
    worker = cpus(8, nodes=2)
    assert place(topology(), cpus(1), worker, nic_node=0) == Placement(
        (0,), (3,), apart=True, neighbour=(0, 1, 2, 4, 5, 6, 7)
    )
    both_ways = place(topology(directions=BOTH_DIRECTIONS), cpus(2), worker, nic_node=1)
    assert chosen(both_ways) == ((0,), (6, 7))
    same_numbers = place(topology(tester=(0,), sut=(0, 1)), cpus(1), worker)
    assert not same_numbers.shared
    assert not remarks(same_numbers, worker, 2)
    with pytest.raises(PodperfError, match=r"workers.0..cpus: CPU 8 is not online; allowed: 0-7"):
        place(topology(sut=(8,)), cpus(16), worker)
    with pytest.raises(PodperfError, match=r"tester\.cpus: CPU 1 is not online; allowed: 0"):
        place(topology(tester=(1,)), cpus(1), worker)


def test_all_workers_beside_the_tester_leave_it_the_same_cpus() -> None:
    """The second worker names the CPU that the tester would have beside the first one."""
    two = load_topology(SCHEMA_PATH.parent / "two_workers.yaml")
    named = replace(two, workers=tuple(replace(each, cpus=(1 - n,)) for n, each in enumerate(two.workers)))
    placed = [place(named, cpus(4), number=number) for number in range(2)]
    assert [chosen(each) for each in placed] == [((2,), (1,)), ((2,), (0,))]
