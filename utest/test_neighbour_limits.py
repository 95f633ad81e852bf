"""The neighbour that is another chain under load, and the limits of a neighbour: what is configured and read back."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finding_rows import claims
from podperf.allocation import UNLIMITED, PodLimits
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claims import isolation
from podperf.hosts.local import LocalHost
from podperf.kernel.control_groups import ControlGroup, Controller
from podperf.kernel.cpus import Cpus
from podperf.model import Chain, FrameSize
from podperf.preflight.plan import Plan, plan
from podperf.preflight.recording import Kind
from podperf.testbed import neighbour
from podperf.testbed.neighbour import HOG_MIB, Neighbour, NeighbourKind, NeighbourPlan, refuse_neighbour
from podperf.testbed.scenarios import CpuIsolation, Node, Scenario
from podperf.topology import SCHEMA_PATH, load_topology
from scripted_host import ScriptedHost
from test_neighbour import recorded

BUSY, HOG, CHAIN = NeighbourKind.BUSY, NeighbourKind.MEMORY_HOG, NeighbourKind.CHAIN
QUARTER = PodLimits(cpu=0.25)
SMALL = FrameSize.parse(64)


def planned(kind: NeighbourKind, limits: PodLimits = UNLIMITED, number: int = 2) -> Plan:
    """A pod on any CPU of a machine with so many CPUs, beside this neighbour."""
    topology = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
    scenario = Scenario("x", Node.ANY, (Node.ANY,), CpuIsolation.NONE, kind, limits, precedence=False)
    return plan(topology, Chain("af-xdp", 1), SMALL, Cpus(tuple(range(number)), tuple(range(number))), scenario)


# --- another chain ----------------------------------------------------------------------------------------------------


def test_another_chain_has_pods_ports_and_a_tester_of_its_own() -> None:
    made = planned(CHAIN)
    texts = [step.text for step in made.steps]
    (started,) = (step for step in made.steps if step.kind is Kind.START and "neighbour1-tester" in step.text)
    assert started.text.startswith("setpriv --bounding-set=-sys_nice -- ")
    assert "--left left@podperf-neighbour1-tester --right right@podperf-neighbour1-tester" in started.text
    assert "--cpu" not in started.text, "any of its CPUs will do"
    assert started.text.endswith("(on CPU 1)")
    (told,) = (step for step in made.steps if step.kind is Kind.TELL and "duration=86400" in step.content)
    assert "load=0.0" in told.content
    assert "directions=left-to-right,right-to-left" in told.content
    assert "left-to-right.header=<MAC of n-left in neighbour1-worker>" in told.content
    in_pod = [step for step in made.steps if step.namespace == "podperf-neighbour1-pod1"]
    assert any("route replace 198.19.0.0/16" in each.content for each in in_pod)
    assert not [text for text in texts if "napi/n-left" in text], "no thread receives: the sender's CPU does"
    added = [text.split()[-1] for text in texts if text.startswith("ip netns add")]
    removed = [text.split()[-1] for text in texts if text.startswith("ip netns del")]
    assert added == removed[::-1]
    assert len(added) == 6


@given(st.integers(2, 5))
def test_each_cpu_of_the_neighbour_has_a_chain(number: int) -> None:
    started = [step.text for step in planned(CHAIN, number=number).steps if step.kind is Kind.START]
    testers = [text for text in started if "neighbour" in text]
    assert len(testers) == number - 1  # the tester of the chain under test has one CPU
    assert all(text.endswith(f"(on CPU {','.join(map(str, range(1, number)))})") for text in testers)


def test_the_claim_has_the_neighbour_in_its_name() -> None:
    claim = isolation("af-xdp", "CHAIN", "EXCLUSIVE", "NONE")
    assert claim.name == "isolation-af-xdp-chain-under-load-exclusive-none"
    assert claim.contenders[1].name == "exclusive, beside a chain under load"


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(NeighbourKind))
def test_a_neighbour_with_limits_starts_in_a_group(kind: NeighbourKind) -> None:
    made = planned(kind, PodLimits(memory=64))
    texts = [step.text for step in made.steps]
    folder = "/sys/fs/cgroup/podperf-neighbour"
    start = next(number for number, text in enumerate(texts) if f"1 {folder} " in text)
    assert texts.index(f"mkdir {folder}") < texts.index(f"tee {folder}/memory.max") < start
    assert [step.content for step in made.steps if step.text == f"tee {folder}/memory.max"] == [str(64 << 20)]
    assert not any(folder in step.text for step in planned(kind).steps)


@given(st.one_of(st.none(), st.integers(1, 4096)), st.integers(1, 16))
def test_memory_hogs_fill_half_of_their_limit_at_most(limit: int | None, cpus: int) -> None:
    plan = NeighbourPlan(HOG, tuple(range(cpus)), PodLimits(memory=limit))
    assert 1 <= plan.block_mib <= HOG_MIB
    assert plan.command[-1] == f"bs={plan.block_mib}M"
    if limit is None:
        assert plan.block_mib == HOG_MIB
    elif limit >= 2 * cpus:
        assert plan.block_mib * cpus * 2 <= limit


def test_limits_that_the_worker_cannot_have_are_refused() -> None:
    host = ScriptedHost({"/proc/mounts": "proc /proc proc rw 0 0\n"}, patient=True)
    with pytest.raises(Unavailable, match="has no cpu controller of control groups"):
        refuse_neighbour(host, NeighbourPlan(BUSY, (0,), QUARTER))
    refuse_neighbour(host, NeighbourPlan(BUSY, (0,)))


def test_a_limit_of_cpu_time_that_would_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour, "missing", lambda *_: None)  # the worker has all control groups
    with pytest.raises(Unavailable, match="does not hold for a chain under load"):
        refuse_neighbour(ScriptedHost({}), NeighbourPlan(CHAIN, (0,), QUARTER))
    refuse_neighbour(ScriptedHost({}), NeighbourPlan(CHAIN, (0,), PodLimits(memory=64)))


def test_limits_that_do_not_hold_fail_the_test(tmp_path: Path) -> None:
    for name, text in {"cgroup.procs": "", "cpu.max": "25000 100000", "cpu.stat": "nr_periods 7"}.items():
        (tmp_path / name).write_text(text)
    group = ControlGroup(LocalHost(), {Controller("cpu", 2, "/"): str(tmp_path)})
    with ExitStack() as undo:
        process = LocalHost().spawn("cat")
        undo.callback(process.stop)
        limited = Neighbour(NeighbourPlan(BUSY, (0,), QUARTER), LocalHost(), [process], 0, 0, group)
        with pytest.raises(PodperfError, match="hold only for 0 of its 1 processes"):
            limited.describe()
        (tmp_path / "cgroup.procs").write_text(f"{os.getpid()}\n")
        assert limited.describe()["limits"]["cpu"] == 0.25
        assert limited.read_limits()["periods"] == 7


@pytest.mark.parametrize("name", [f"AF_XDP, limit of the neighbour's {what}" for what in ("CPU time", "memory")])
def test_the_claims_differ_in_the_limit_only(name: str) -> None:
    claim = claims()[name]
    limited, free = (contender.placement.scenario for contender in claim.contenders)
    assert limited is not None and free is not None
    assert (limited.neighbour, limited.isolation) == (free.neighbour, free.isolation) != (None, None)
    assert limited.neighbour_limits and not free.neighbour_limits


def test_the_record_has_the_limits(tmp_path: Path) -> None:
    claim = claims()["AF_XDP, limit of the neighbour's CPU time"]
    limited = claim.contenders[0].name
    taken: dict[str, Any] = {"processes": 1, "cpu_version": 2, "cpu": 0.25, "throttled_seconds": 1.5}
    found = recorded(tmp_path, claim, {limited: taken}).document
    assert found["methods"]["comparison"]["placements"][limited]["neighbour"]["limits"] == QUARTER.as_record()
    isolation = found["parameters"]["cpu_isolation"]
    assert isolation.count("a neighbour (busy) competes on CPU 1 with the time of 0.25 CPU") == 1
