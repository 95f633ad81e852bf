"""The driver of the software tester, with a front that gives scripted answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from killed import gone
from podperf.errors import PodperfError, understood
from podperf.frames import AddressFamily, Headers
from podperf.hosts.local import LocalHost
from podperf.model import IMIX, AddressedTraffic, Direction, Entry, FrameSize, Loop, TrafficProfile, Trial
from podperf.testers.base import UNPACED, TesterPort
from podperf.testers.headers import first_address
from podperf.testers.software import SoftwareTester, own_words, request_line, trial_result
from traffic import TRAFFIC

TRIAL = Trial(TRAFFIC, load=1000.0, duration=0.1)
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
    return SoftwareTester(LocalHost(), TesterPort("a", "n"), TesterPort("b"), binary=binary, engine=engine)


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


HUGE_INDEX = [[1_000_000_000_000, 1000]]  # as a shift, 7.8e9 bits
BROKEN: list[tuple[dict[str, Any], str]] = [
    *(
        ({"latency": {"min": 1, "sum": 1, "max": 1, "counts": counts}}, words)
        for counts, words in [
            (HUGE_INDEX, "a latency has the index 1000000000000, which is longer than an hour"),
            ([[-1, 1]], "an index of the latencies is -1"),
            ([[1.5, 1]], "an index of the latencies is 1.5"),
            ([[True, 1]], "an index of the latencies is True"),
            ([[1, "x"]], "a count of latencies is 'x'"),
            ([[1, 2], [1, 2]], "the index 1 of the latencies is there twice"),
            ([[1, 0]], "ZeroDivisionError"),
            ([[1]], "not enough values"),
            (7, "not iterable"),
        ]
    ),
    *(({"latency": {"min": value, "sum": 1, "max": 1, "counts": [[1, 1]]}}, "min is ") for value in (-1, 2**80, None)),
    *(({key: value}, f"{key} is ") for key in ("sent", "received", "corrupted") for value in (-1, 2**63, "1", 1e300)),
    ({"duration_ns": "x" * 1_000_000}, "duration_ns is 'x"),
    ({"received_by_group": [1] * 17}, "received_by_group has 17 numbers, and at most 16 can be"),
    ({"windows_ns": [1] * 65}, "windows_ns has 65 numbers, and at most 64 can be"),
    ({"last_lost": {}}, "last_lost is {}"),
    ({"stray": None}, "stray is None"),
    ({"started": "1"}, "started is '1'"),
    ({"elapsed": True}, "elapsed is True"),
    ({"unready": "x" * 1_000_000}, "unready is no text of at most 500 characters"),
    ({"own_drops_reason": 7}, "own_drops_reason is no text"),
    ({"direction": "up"}, "'up' is not a valid Direction"),
]


@pytest.mark.parametrize(("changes", "complaint"), BROKEN)
def test_an_answer_of_a_tester_with_a_value_that_cannot_be_is_one_line(
    front: Callable[[str], str], tmp_path: Path, changes: dict[str, Any], complaint: str
) -> None:
    """The machine of the tester may be a pod of somebody else."""
    direction = {key: changes[key] for key in ("last_lost", "received_by_group", "latency") if key in changes}
    whole = answer(**{key: value for key, value in changes.items() if key not in direction})
    whole["trial"]["directions"][0].update(direction)
    (tmp_path / "answer").write_text(json.dumps(whole))
    script = f"say({json.dumps(READY)!r})\nfor line in sys.stdin: say(open({str(tmp_path / 'answer')!r}).read())"
    with start(front(script)) as tester, pytest.raises(PodperfError) as caught:
        tester.measure(TRIAL)
    words = str(caught.value)
    assert words.startswith("the software tester gave an answer that podperf does not understand (")
    assert complaint in words and words.isprintable() and len(words) < 400


@pytest.mark.parametrize("ready", [{"ports": 7}, {"version": "1", "engine": "xdp", "ports": {"left": {}}}, [7]])
def test_a_front_that_is_ready_without_ports_is_one_line(front: Callable[[str], str], ready: object) -> None:
    with pytest.raises(PodperfError, match="the software tester gave an answer that podperf does not understand"):
        start(front(f"say({json.dumps({'ready': ready})!r})"))


def test_json_with_infinity_is_none(front: Callable[[str], str]) -> None:
    endless = json.dumps(answer(elapsed=float("inf")))
    script = f"say({json.dumps(READY)!r})\nfor line in sys.stdin: say({endless!r})"
    complaint = "the software tester gave no valid answer"
    with start(front(script)) as tester, pytest.raises(PodperfError, match=complaint):
        tester.measure(TRIAL)


def test_an_interrupted_trial_stops_the_front(front: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    tester = start(front(f"say({json.dumps(READY)!r})\nfor line in sys.stdin: time.sleep(60)"))
    process = tester._process
    assert process is not None

    def interrupted(timeout: float, assumed: str = "") -> str:
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
    assert [port.mac for port in facts.ports.values()] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"received": 0, "latency": {"min": 0, "sum": 0, "max": 0, "counts": []}}, None),  # loss is the SUT's
        ({"sent": 98, "received": 98}, "98.0% of the intended load left-to-right"),
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


MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


def test_the_request_of_a_closed_loop_has_the_headers_of_both_directions() -> None:
    words = dict(word.split("=") for word in request_line(LOOP, 0.05, MACS).split())
    headers = [words.pop(f"{direction}.header").split(",") for direction in Direction]
    assert words == {
        **{"load": "0.000000", "duration": "10.000000", "settle": "0.050", "sizes": "64", "mtu": "46"},
        **{"directions": "left-to-right", "flows": "1", "burst": "32", "windows": "2", "warm-up": "0"},
        **{"fields": "28:first,32:first,16:length-14,38:length-34", "checksums": "24:14-34"},
        "values": "4097:61439,49184:16352",
    }
    assert [tuple(macs) for *macs, _ in headers] == [MACS[::-1], MACS]
    assert [rest[28:44] for *_, rest in headers] == ["c6120000c6130000", "c6130000c6120000"]


@pytest.mark.parametrize(
    ("entry", "family", "reason"),
    [
        (Entry(address="10.0.0.1"), AddressFamily.IPV4, "10.0.0.1 is no ipv4 address for benchmarks"),
        (Entry(address="198.19.0.1", source="10.9.0.1"), AddressFamily.IPV4, "10.9.0.1 is no ipv4 address for"),
        (Entry(address="198.19.0.1"), AddressFamily.IPV6, "198.19.0.1 is no ipv6 address for benchmarks"),
        (Entry(address="2001:db8::1"), AddressFamily.IPV6, "2001:db8::1 is no ipv6 address for benchmarks"),
        (Entry(address="x"), AddressFamily.IPV4, "'x' does not appear to be an IPv4 or IPv6 address"),
    ],
)
def test_no_frame_has_an_address_that_is_not_for_benchmarks(entry: Entry, family: AddressFamily, reason: str) -> None:
    profile = TrafficProfile(FrameSize.parse(84), headers=Headers(family))
    traffic = AddressedTraffic(profile, {Direction.LEFT_TO_RIGHT: entry})
    with pytest.raises(PodperfError, match=reason):
        request_line(replace(TRIAL, traffic=traffic), 0.05, MACS)


GROUPED = replace(TRIAL, traffic=replace(TRIAL.traffic, further_entries=({}, {})))


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


@pytest.mark.parametrize(("flows", "groups"), [(1, 17), (62_501, 16)])
def test_more_groups_or_flows_than_a_tester_sends_are_refused(flows: int, groups: int) -> None:
    with pytest.raises(ValueError, match="at most 16 groups and 1000000 flows"):
        AddressedTraffic(TrafficProfile(IMIX, flows=flows), further_entries=({},) * (groups - 1))


@pytest.mark.parametrize(
    ("flows", "first", "own"),
    [
        (1, "198.18.16.1", "left.own=198.18.16.1/1 right.own=198.19.16.1/1"),
        (100, "198.18.16.1", "left.own=198.18.16.1/100,10.9.0.2/1 right.own=198.19.16.1/100"),
        (1_000_000, "198.18.16.1", "left.own=198.18.16.1/61439 right.own=198.19.16.1/61439"),
    ],
)
def test_the_tester_has_the_addresses_of_its_flows_and_those_of_its_ports(flows: int, first: str, own: str) -> None:
    traffic = AddressedTraffic(TrafficProfile(FrameSize.parse(64), flows=flows))
    further = {"left": "10.9.0.2" if "10.9.0.2" in own else None, "right": None}
    assert " ".join(own_words(traffic, further)) == own
    assert f"{first_address('left', AddressFamily.IPV4)}" == first


def test_frames_of_a_pod_leave_the_answers_to_the_pod() -> None:
    entries = {Direction.LEFT_TO_RIGHT: Entry(source="198.18.0.7")}
    words = list(
        own_words(AddressedTraffic(TrafficProfile(FrameSize.parse(64)), entries), {"left": None, "right": None})
    )
    assert words == ["left.own=", "right.own=198.19.16.1/1"]


def test_questions_without_an_answer_are_told() -> None:
    asked = [{"port": "right", "by": "fe80::1", "for": "2001:2::9"}]
    told = trial_result(TRIAL, answer(unanswered=asked)["trial"]).unanswered
    assert told == ("fe80::1 asks at the right port for 2001:2::9",)


@pytest.mark.parametrize("asked", [7, [7], [{}], [{"port": "left", "by": "\x1b[2J", "for": "198.18.0.1"}]])
def test_questions_that_are_none_are_an_error_in_one_line(asked: object) -> None:
    with pytest.raises(PodperfError, match="does not understand") as caught, understood("the software tester"):
        trial_result(TRIAL, answer(unanswered=asked)["trial"])
    assert str(caught.value).isprintable()


def test_an_unpaced_trial_has_no_load_to_fall_short_of() -> None:
    unpaced = Trial(TRIAL.traffic, UNPACED, 0.1)
    assert trial_result(unpaced, answer(duration_ns=50_000_000)["trial"]).invalid is None


@given(load=st.floats(0, 1e8), duration=st.floats(0.001, 3600))
def test_load_and_duration_survive_the_request(load: float, duration: float) -> None:
    words = dict(word.split("=") for word in request_line(Trial(TRIAL.traffic, load, duration), 0.05, MACS).split())
    assert float(words["load"]) == pytest.approx(load, abs=1e-6)
    assert float(words["duration"]) == pytest.approx(duration, abs=1e-6)
