"""Neighbours that compete on purpose: where they may run, that they work, and that they end with the chain."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up import ENVIRONMENT, TOPOLOGY, write
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import Claim, judge
from podperf.experiments.claims import isolation
from podperf.hosts.base import Process
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import Cpus
from podperf.kernel.poller_sharing import take_turns
from podperf.kernel.threads import scheduling
from podperf.metrics import Measured
from podperf.model import Chain, Placement
from podperf.preflight.plan import plan
from podperf.records import Record, TestRecord, read_record, schema_errors
from podperf.report.command import write_reports
from podperf.report.scenario_bars import group_of
from podperf.testbed.neighbour import (
    HOG_MIB,
    Neighbour,
    NeighbourKind,
    NeighbourPlan,
    refuse_neighbour,
    start_neighbour,
)
from podperf.testbed.scenarios import CpuIsolation, Node, Scenario, place_scenario
from podperf.topology import SCHEMA_PATH, load_topology
from scripted_host import ScriptedHost

EXCLUSIVE, SHARED, NONE = CpuIsolation.EXCLUSIVE, CpuIsolation.SHARED, CpuIsolation.NONE
BUSY, HOG = NeighbourKind.BUSY, NeighbourKind.MEMORY_HOG
CLAIM = isolation("af-xdp", "BUSY", "EXCLUSIVE", "SHARED", "NONE")
TWO_LEVELS = isolation("af-xdp", "BUSY", "EXCLUSIVE", "NONE")


def cpus(number: int, **more: Any) -> Cpus:
    """A machine with so many CPUs."""
    return Cpus(tuple(range(number)), tuple(range(number)), **more)


def scenario(level: CpuIsolation, neighbour: NeighbourKind | None = BUSY) -> Scenario:
    """A pod anywhere."""
    return Scenario("made up", Node.ANY, (Node.ANY,), level, neighbour, precedence=level is EXCLUSIVE)


def beside(level: CpuIsolation, machine: Cpus, usual: Placement) -> NeighbourPlan:
    """The neighbour of one pod without a switch."""
    taken = () if usual.apart else usual.tester
    placed = place_scenario(scenario(level), 1, usual, machine, nic_node=0, taken=taken, with_switch=False)
    assert placed.neighbour is not None
    assert placed.cpus[0].roles["neighbour"] == placed.neighbour.cpus == placed.placement.neighbour
    assert placed.cpus[0].precedence == (level is EXCLUSIVE)
    assert placed.as_record()["neighbour"] == {
        "kind": "busy",
        "cpus": list(placed.neighbour.cpus),
        "limits": {"cpu": None, "memory_mib": None},
    }
    assert placed.as_record()["isolation"] == level.name.lower()
    return placed.neighbour


# --- the CPUs ---------------------------------------------------------------------------------------------------------


def test_an_isolated_pod_leaves_the_other_cpus_of_the_worker() -> None:
    assert beside(EXCLUSIVE, cpus(4), Placement((0,), (3,))).cpus == (1, 2)
    assert beside(SHARED, cpus(4), Placement((0,), (3,))).cpus == (1, 3)
    assert beside(NONE, cpus(4), Placement((0,), (3,))).cpus == (1, 2, 3)


def test_with_two_cpus_the_neighbour_is_beside_the_tester_or_the_pod() -> None:
    usual = Placement((0,), (1,))
    assert beside(EXCLUSIVE, cpus(2), usual).cpus == (0,)
    assert beside(NONE, cpus(2), usual).cpus == (1,)
    with pytest.raises(Unavailable, match=r"made up wants a CPU each .* has 2 CPUs in all"):
        beside(SHARED, cpus(2), usual)


def test_a_neighbour_without_a_cpu_is_refused() -> None:
    with pytest.raises(Unavailable, match="wants a CPU for the neighbour, and the chain has all 1 CPU of the worker"):
        beside(EXCLUSIVE, cpus(1), Placement((0,), (0,), apart=True))
    isolated = cpus(2, isolated=frozenset({1}))
    with pytest.raises(Unavailable, match="wants a CPU for the neighbour"):
        beside(EXCLUSIVE, isolated, Placement((7,), (0,), apart=True))


@given(st.integers(2, 12), st.sampled_from(list(CpuIsolation)), st.booleans())
def test_only_an_isolated_pod_is_out_of_reach(number: int, level: CpuIsolation, apart: bool) -> None:
    usual = Placement((0,), (number - 1,), apart=apart)
    try:
        found = set(beside(level, cpus(number), usual).cpus)
    except Unavailable:
        assert number < 3
        return
    assert (number - 1 in found) == (level is not EXCLUSIVE)
    assert found <= set(range(number))
    if not apart and number > 2:
        assert 0 not in found, "the tester's"


def test_without_a_neighbour_a_placement_is_as_before() -> None:
    placed = place_scenario(
        scenario(NONE, None), 1, Placement((0,), (3,)), cpus(4), nic_node=0, taken=(0,), with_switch=False
    )
    assert placed.neighbour is None
    assert placed.placement.neighbour == (1, 2)


def test_pollers_without_precedence_are_ordinary_processes() -> None:
    host = ScriptedHost(patient=True)
    turns = take_turns(host, {1: [11, 12]}, ExitStack(), precedence=False)
    assert host.commands == ["chrt --other --pid 0 11", "chrt --other --pid 0 12"]
    turns.check()


@pytest.mark.parametrize(("kind", "works"), [(BUSY, "sha256sum /dev/zero"), (HOG, "dd if=/dev/zero")])
@pytest.mark.parametrize("level", [EXCLUSIVE, NONE])
def test_a_plan_has_the_neighbour_and_the_scheduling(level: CpuIsolation, kind: NeighbourKind, works: str) -> None:
    topology = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
    made = plan(topology, Chain("af-xdp", 1), CLAIM.contenders[0].frame, cpus(2), scenario(level, kind))
    texts = [step.text for step in made.steps]
    (started,) = (number for number, text in enumerate(texts) if works in text)
    assert any("dpdk-testpmd" in text for text in texts[:started]), "the chain stands first"
    assert any("podperf-rotation" in text for text in texts) == (level is EXCLUSIVE)
    assert any("chrt --other" in text for text in texts) == (level is NONE)


# --- the processes ----------------------------------------------------------------------------------------------------


def started(kind: NeighbourKind, undo: ExitStack) -> Neighbour:
    """A neighbour on the last CPU of this machine."""
    return start_neighbour(LocalHost(), NeighbourPlan(kind, (max(os.sched_getaffinity(0)),)), undo)


@pytest.mark.parametrize("kind", [BUSY, HOG])
def test_a_neighbour_works_where_it_may_and_ends(kind: NeighbourKind) -> None:
    with ExitStack() as undo:
        neighbour = started(kind, undo)
        (process,) = neighbour.processes
        cpu = str(max(os.sched_getaffinity(0)))
        told = neighbour.describe()
        assert told["held_to"] == [cpu]
        assert told["scheduling"] == [f"SCHED_OTHER, nice {os.nice(0)}"]
        assert (told["kind"], told["processes"]) == (kind, 1)
        # The kernel tells CPU times in hundredths of a second. One of them more or less must not matter.
        while (taken := neighbour.cpus_taken()) * (time.monotonic() - neighbour.since) < 0.1:
            pass
        assert 0 < taken < 1.5
        neighbour.check()
    assert not process.alive()
    with pytest.raises(PodperfError, match="the neighbour on this machine has ended"):
        neighbour.check()


def test_the_scheduling_of_threads_is_read() -> None:
    """Fields of proc(5): 19 nice, 40 priority, 41 policy. A user chooses the name of a process."""
    head = "S 1 " + "0 " * 14
    lines = [f"12 (a) b) c) {head}-20 {'0 ' * 20}0 0 0", f"13 (x) {head}0 {'0 ' * 20}1 2 0"]
    host = ScriptedHost(answers={"grep -h": "\n".join(lines)})
    assert scheduling(host, [12, 13]) == ["SCHED_OTHER, nice -20", "SCHED_RR, priority 1"]
    assert host.commands == ["grep -h  /dev/null /proc/12/stat /proc/13/stat"]
    assert scheduling(ScriptedHost(patient=True), []) == []


def test_a_program_that_does_not_start_is_told() -> None:
    class Dead(LocalHost):
        def spawn(self, *command: str, cpus: Any = ()) -> Process:
            return super().spawn("sh", "-c", "echo no such file >&2; exit 1")

    with ExitStack() as undo, pytest.raises(PodperfError, match="the neighbour did not start on this machine: no such"):
        start_neighbour(Dead(), NeighbourPlan(BUSY, (0,)), undo)


def test_a_memory_hog_that_does_not_fit_is_refused() -> None:
    host = ScriptedHost(files={"/proc/meminfo": "MemTotal: 9 kB\nMemAvailable:  1572864 kB\n"})
    refuse_neighbour(host, NeighbourPlan(HOG, (0, 1)))
    with pytest.raises(Unavailable, match=f"CPU 0-2 takes {3 * HOG_MIB} MiB, and 1024 MiB must be left; .* 1536 MiB"):
        refuse_neighbour(host, NeighbourPlan(HOG, (0, 1, 2)))
    refuse_neighbour(ScriptedHost(), NeighbourPlan(BUSY, (0, 1, 2)))


# --- the claim, the record and the report ---------------------------------------------------------------------------


def test_levels_are_ordered_beside_the_neighbour_only() -> None:
    assert [contender.name for contender in CLAIM.contenders] == [
        f"{level}, {how}" for level in ("exclusive", "shared", "none") for how in ("alone", "beside a busy neighbour")
    ]
    assert CLAIM.pairs == ((1, 3), (3, 5))
    rates = [[Measured(each)] * 10 for each in (2e5, 2e5, 2e5, 1.5e5, 2e5, 1e5)]
    found = judge(CLAIM, rates)
    assert found.verdict == "confirmed"
    assert "their figures: exclusive 39.2, shared 29.6, none 11.5 Gbit/s (B.2" in found.detail
    assert judge(CLAIM, [*rates[:5], rates[0]]).verdict == "refuted"
    assert isolation("af-xdp", "MEMORY_HOG", "EXCLUSIVE", "NONE").name == "isolation-af-xdp-memory-hog-exclusive-none"
    with pytest.raises(PodperfError, match="two or more different contenders"):
        isolation("af-xdp", "BUSY", "NONE", "NONE")
    with pytest.raises(PodperfError, match="'LOUD' is none of BUSY, MEMORY_HOG, CHAIN"):
        isolation("af-xdp", "LOUD", "EXCLUSIVE", "NONE")


def recorded(folder: Path, claim: Claim, limited: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> Record:
    """The record of a claim about neighbours. `limited` has the readings of limits by the contenders with some."""
    usual = Placement((0,), (1,))
    placed = {
        contender.name: place_scenario(
            contender.placement.scenario, 1, usual, cpus(2), nic_node=0, taken=(0,), with_switch=False
        )
        for contender in claim.contenders
        if contender.placement.scenario is not None
    }
    rates = dict(zip(placed, (2e5, 1.9e5, 1.2e5, 6e4), strict=False))
    comparison = {
        "rates": {name: [rate] * 10 for name, rate in rates.items()},
        "placements": {name: each.as_record() for name, each in placed.items()},
        "cpus_of_neighbours": {name: [0.01, 0.5, 0.6] for name in placed if "alone" not in name},
        "limits_of_neighbours": {name: [taken] for name, taken in limited.items()},
    }
    record = TestRecord("x", "AF_XDP, busy", "s", ["sec-4.2.1"], 1, 2, "passed", topology=TOPOLOGY)
    record.methods = {"comparison": comparison}
    record.environment = ENVIRONMENT
    record.contenders = {name: (Chain("af-xdp", 1, "testpmd"), each) for name, each in placed.items()}
    told = {name: {"kind": "busy", "held_to": ["1"]} for name in comparison["cpus_of_neighbours"]}
    told |= {name: {**told[name], "limits": taken} for name, taken in limited.items()}
    record.data_plane = {name: {"x": 1, **({"neighbour": told[name]} if name in told else {})} for name in placed}
    record.findings = [judge(claim, [[Measured(rate)] * 10 for rate in rates.values()])]
    found = read_record(write(folder, record))
    assert schema_errors(found.document) == []
    return found


def test_the_record_says_what_competed_and_where(tmp_path: Path) -> None:
    record = recorded(tmp_path, TWO_LEVELS)
    none = record.methods["comparison"]["placements"]["none, beside a busy neighbour"]
    assert (none["isolation"], none["precedence"]) == ("none", False)
    assert none["neighbour"] == {"kind": "busy", "cpus": [1], "limits": {"cpu": None, "memory_mib": None}}
    assert none["roles"][0]["neighbour"] == [1]
    isolation = record.parameters["cpu_isolation"]
    assert isolation is not None
    assert isolation.count("a neighbour (busy) competes on CPU 1") == 2


def test_the_report_has_a_bar_for_each_level(tmp_path: Path) -> None:
    record = recorded(tmp_path, TWO_LEVELS)
    assert [(bar.name, bar.words) for bar in group_of(record).bars] == [
        ("exclusive, alone", "200 kpps"),
        ("exclusive, beside a busy neighbour", "190 kpps; neighbour had 0.5 CPU"),
        ("none, alone", "120 kpps"),
        ("none, beside a busy neighbour", "60.0 kpps; neighbour had 0.5 CPU"),
    ]
    page = write_reports(tmp_path).read_text()
    section = page[page.index("CPU Isolation / NUMA Affinity") :]
    assert section.index("rate by scenario: AF_XDP, busy") < section.index("<table")
