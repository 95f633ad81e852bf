"""The driver of the software tester, with a front that gives scripted answers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.model import BOTH_DIRECTIONS, IMIX, Direction, Entry, FrameSize, Loop, TrafficProfile, Trial
from podperf.testers.base import UNPACED
from podperf.testers.software import SoftwareTester, request_line, trial_result

TRIAL = Trial(TrafficProfile(FrameSize.parse(64)), load=1000.0, duration=0.1)
PORTS = {"left": {"mac": "02:00:00:00:00:01"}, "right": {"mac": "02:00:00:00:00:02"}}
READY = {"ready": {"version": "1", "engine": "xdp", "ports": PORTS}}
REFUSED = {"error": "loading BPF programs is not permitted", "kind": "no-bpf"}

FRONT = """#!/usr/bin/env python3
import os, signal, sys, time
def say(text): print(text, flush=True)
engine = sys.argv[sys.argv.index("--engine") + 1]
{script}
"""


def answer(**changes: Any) -> dict[str, Any]:
    """A front's answer to TRIAL, all well unless `changes` says otherwise."""
    direction = {
        "direction": "left-to-right",
        "intended": 100,
        "sent": 100,
        "received": 100,
        "duplicated": 0,
        "reordered": 0,
        "corrupted": 0,
        "duration_ns": 100_000_000,
        "late": 0,
        "latency": {"min": 500, "sum": 60_000, "max": 700, "counts": [[384, 60], [400, 40]]},
    }
    direction.update({name: changes.pop(name) for name in list(changes) if name in direction})
    trial = {"started": 1.5, "elapsed": 0.2, "stray": 0, "own_drops": 0, "own_drops_reason": "", "unready": ""}
    return {"trial": {**trial, **changes, "directions": [direction]}}


@pytest.fixture
def front(tmp_path: Path) -> Callable[[str], str]:
    """Makes a front out of a Python script; gives its path."""

    def make(script: str) -> str:
        path = tmp_path / "front"
        path.write_text(FRONT.format(script=script))
        path.chmod(0o755)
        return str(path)

    return make


def start(binary: str, engine: Any = "xdp") -> SoftwareTester:
    return SoftwareTester(LocalHost(), "a", "b", binary=binary, engine=engine, left_namespace="n")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_trial_is_asked_for_and_read(front: Callable[[str], str]) -> None:
    script = f"say({json.dumps(READY)!r})\nfor line in sys.stdin: say({json.dumps(answer(stray=3))!r})"
    with start(front(script)) as tester:
        first, second = tester.measure(TRIAL), tester.measure(TRIAL)
    assert first == second
    assert (first.sent, first.received, first.stray, first.invalid) == (100, 100, 3, None)
    assert first.achieved_load == pytest.approx(1000)
    assert first.latency is not None
    assert first.latency.mean == 600
    assert first.latency.counts == {384: 60, 400: 40}


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("sys.exit(3)", "exit code 3"),
        ("print('cannot map', file=sys.stderr); sys.exit(1)", "cannot map"),
        ("say('hello')", "no valid answer: 'hello'"),
        ("say('[1]')", "no valid answer"),
        ('say(\'{"error":"there is no interface a","kind":"broken"}\')', "cannot start: there is no interface a"),
    ],
)
def test_a_front_that_does_not_start_is_explained(front: Callable[[str], str], script: str, complaint: str) -> None:
    with pytest.raises(PodperfError, match=complaint):
        start(front(script))


def test_a_missing_front_is_explained() -> None:
    with pytest.raises(PodperfError, match="failed to execute /nowhere/front"):
        start("/nowhere/front")


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "exit code -9"),
        ("say('{\"trial\":')", "no valid answer"),
    ],
)
def test_a_front_that_breaks_in_mid_trial_is_explained_and_stopped(
    front: Callable[[str], str], script: str, complaint: str
) -> None:
    tester = start(front(f"say({json.dumps(READY)!r})\nsys.stdin.readline(); {script}"))
    with pytest.raises(PodperfError, match=complaint):
        tester.measure(TRIAL)
    with pytest.raises(PodperfError, match="make a new one"):
        tester.measure(TRIAL)


def test_an_interrupted_trial_stops_the_front(front: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    tester = start(front(f"say({json.dumps(READY)!r})\nfor line in sys.stdin: time.sleep(60)"))
    process = tester._process
    assert process is not None

    def interrupted(timeout: float) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "receive", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tester.measure(TRIAL)
    assert gone(process.pid)


def test_a_refused_trial_leaves_the_tester_usable(front: Callable[[str], str]) -> None:
    refusal = json.dumps({"error": "port left: a is down", "kind": "broken"})
    script = f"say({json.dumps(READY)!r})\nsys.stdin.readline(); say({refusal!r})\n"
    script += f"for line in sys.stdin: say({json.dumps(answer())!r})"
    with start(front(script)) as tester:
        with pytest.raises(PodperfError, match="port left: a is down"):
            tester.measure(TRIAL)
        assert tester.measure(TRIAL).received == 100


def test_without_bpf_the_packet_rings_serve_and_the_reason_is_told(front: Callable[[str], str]) -> None:
    ready = {"ready": {**READY["ready"], "engine": "packet-ring"}}
    script = f"say({json.dumps(REFUSED)!r} if engine == 'xdp' else {json.dumps(ready)!r})\nsys.stdin.read()"
    with start(front(script), "auto") as tester:
        told, facts = tester.describe(), tester.facts
    assert told["engine"] == facts.engine == "packet-ring"
    assert told["engine_remark"] == facts.engine_remark == "loading BPF programs is not permitted"
    assert facts.copies and facts.fallback is None, "there is no other engine left"
    with pytest.raises(PodperfError, match="not permitted"):
        start(front(script), "xdp")


@pytest.mark.parametrize(("asked", "fallback"), [("auto", "packet-ring"), ("xdp", None)])
def test_only_who_leaves_the_choice_gets_another_engine(
    front: Callable[[str], str], asked: str, fallback: str | None
) -> None:
    with start(front(f"say({json.dumps(READY)!r})\nsys.stdin.read()"), asked) as tester:
        facts = tester.facts
    assert (facts.engine, facts.copies, facts.fallback) == ("xdp", False, fallback)
    assert [each.mac for each in facts.ports.values()] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]


def test_closing_stops_the_front_and_may_be_repeated(front: Callable[[str], str]) -> None:
    tester = start(front(f"say({json.dumps(READY)!r})\nsys.stdin.read()"))
    assert tester._process is not None
    pid = tester._process.pid
    tester.close()
    tester.close()
    assert gone(pid)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"received": 0, "latency": {"min": 0, "sum": 0, "max": 0, "counts": []}}, None),  # loss is the SUT's
        ({"sent": 99}, None),
        ({"sent": 98, "received": 98}, "98.0% of the intended load left-to-right"),
        ({"sent": 100, "duration_ns": 102_000_000}, "98.0% of the intended load left-to-right"),
        ({"own_drops": 5, "own_drops_reason": "the ring was full"}, "lost 5 frames: the ring was full"),
        ({"own_drops": 5, "unready": "port left: p0 has no carrier"}, "port left: p0 has no carrier"),
    ],
)
def test_a_trial_that_the_tester_spoilt_is_invalid(changes: dict[str, Any], reason: str | None) -> None:
    changes = {"received": 90, **changes}
    answered = answer(**changes)["trial"]
    if not answered["directions"][0]["received"]:
        del answered["directions"][0]["latency"]
    invalid = trial_result(TRIAL, answered).invalid
    assert invalid is None if reason is None else reason in str(invalid)


LOOP = Trial(TRIAL.traffic, UNPACED, 10.0, Loop(burst=32, windows=2))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"received": 97}, "3 of 100 frames of a closed loop were lost"),
        ({"early": 2}, "2 bursts of a closed loop began before the previous one had arrived"),
        ({"early": 2, "unready": "port left: p0 has no carrier"}, "port left: p0 has no carrier"),
    ],
)
def test_a_closed_loop_that_was_none_is_invalid(changes: dict[str, Any], reason: str | None) -> None:
    answered = answer(**{"early": 0, "windows_ns": [81_500, 81_501], **changes})["trial"]
    del answered["directions"][0]["latency"]
    result = trial_result(LOOP, answered)
    assert result.invalid == reason
    assert result.windows == (81_500, 81_501) and result.latency is None


def test_the_request_of_a_closed_loop() -> None:
    assert request_line(LOOP, 0.05) == (
        "load=0.000000 duration=10.000000 settle=0.050 sizes=64 directions=left-to-right flows=1 burst=32 windows=2 "
        "warm-up=0"
    )


GROUPED = replace(TRIAL, traffic=replace(TRIAL.traffic, flows=3, further_entries=({}, {})))


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ([33, 33, 32], None),
        ([33, 33, 33], "99 frames arrived in all groups of flows, and 98 in all, left-to-right"),
        ([33, 65], "the tester counted 2 of 3 groups of flows left-to-right"),
        ([], "the tester counted 0 of 3 groups of flows left-to-right"),
    ],
)
def test_a_trial_whose_groups_are_not_the_whole_is_invalid(counts: list[int], reason: str | None) -> None:
    answered = answer(received=98)["trial"]
    answered["directions"][0] |= {"received_by_group": counts} if counts else {}
    result = trial_result(GROUPED, answered)
    assert result.invalid == reason
    if reason is None:
        assert result.rates_by_group == pytest.approx([330, 330, 320])
        assert sum(result.rates_by_group) == pytest.approx(result.receive_rate)


@given(flows=st.integers(1, 100), groups=st.integers(1, 20))
def test_groups_of_flows_are_of_the_same_size(flows: int, groups: int) -> None:
    further = ({},) * (groups - 1)
    if groups <= 16 and flows % groups == 0:
        assert TrafficProfile(IMIX, flows=flows, further_entries=further).groups == groups
    else:
        with pytest.raises(ValueError, match="groups of the same size"):
            TrafficProfile(IMIX, flows=flows, further_entries=further)


def test_the_request_names_the_entry_of_each_group() -> None:
    left_to_right = [{Direction.LEFT_TO_RIGHT: Entry(mac=f"02:00:00:00:00:0{number}")} for number in (1, 2)]
    traffic = TrafficProfile(
        FrameSize.parse(64), flows=2, entries=left_to_right[0], further_entries=(left_to_right[1],)
    )
    assert request_line(Trial(traffic, 1e5, 2.0), 0.05).endswith(
        "flows=2 groups=2 left-to-right.mac=02:00:00:00:00:01 left-to-right.2.mac=02:00:00:00:00:02"
    )


def test_an_unpaced_trial_has_no_load_to_fall_short_of() -> None:
    unpaced = Trial(TRIAL.traffic, UNPACED, 0.1)
    assert trial_result(unpaced, answer(duration_ns=50_000_000)["trial"]).invalid is None


@given(load=st.floats(0, 1e8), duration=st.floats(0.001, 3600))
def test_load_and_duration_survive_the_request(load: float, duration: float) -> None:
    words = dict(word.split("=") for word in request_line(Trial(TRIAL.traffic, load, duration), 0.05).split())
    assert float(words["load"]) == pytest.approx(load, abs=1e-6)
    assert float(words["duration"]) == pytest.approx(duration, abs=1e-6)


def test_a_request_says_everything_about_the_traffic() -> None:
    entries = {
        Direction.LEFT_TO_RIGHT: Entry(mac="02:00:00:00:00:01"),
        Direction.RIGHT_TO_LEFT: Entry(address="198.18.0.9", udp_port=5000),
    }
    traffic = TrafficProfile(IMIX, BOTH_DIRECTIONS, flows=16, entries=entries)
    assert request_line(Trial(traffic, 1e5, 2.0), 0.05) == (
        "load=100000.000000 duration=2.000000 settle=0.050 sizes=64,570,64,64,570,64,1518,64,570,64,64,570 "
        "directions=left-to-right,right-to-left flows=16 left-to-right.mac=02:00:00:00:00:01 "
        "right-to-left.address=198.18.0.9 right-to-left.udp-port=5000"
    )
