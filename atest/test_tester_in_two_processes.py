"""A trial of two processes of the tester, each with one port: one of them sends, the other one counts."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from attempts import first
from packets import checksums_are_right
from podperf.frames import AddressFamily, Headers
from podperf.hosts.base import Process
from podperf.hosts.linux import ip, mac_address
from podperf.kubernetes.ports import DISCARDED
from podperf.model import AddressedTraffic, Direction, Entry, FrameSize, TrafficProfile, Trial
from podperf.testers.software import request_line
from test_software_tester import BINARY, Frames, Lab, ScriptedSut
from traffic import SMALL

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built"),
]
LEFT, RIGHT = "10.9.0.1", "10.9.0.2"
ADDRESSES = {AddressFamily.IPV4: (LEFT, RIGHT), AddressFamily.IPV6: ("fd09::1", "fd09::2")}


class TwoProcesses:
    """The processes, at the two ends of a lab."""

    def __init__(self, lab: Lab, undo: ExitStack) -> None:
        self.macs = mac_address(lab.left, "p0"), mac_address(lab.right, "p1")
        self._sender = self._start(lab.left.spawn(BINARY, "--left", "p0", "--engine", "packet-ring"), undo)
        options = ("--engine", "packet-ring", "--discard", str(DISCARDED))
        self._numbers = itertools.count(1)  # of trials: a second trial of a number would bring duplicates alone
        self._counter = self._start(lab.right.spawn(BINARY, "--right", "p1", *options), undo)

    @staticmethod
    def _start(process: Process, undo: ExitStack) -> Process:
        undo.callback(process.stop)
        ready = json.loads(process.receive(10))["ready"]
        assert len(ready["ports"]) == 1
        return process

    def stop_far_end(self, seconds: float) -> None:
        """Let the process that counts stand still for some time."""
        os.kill(self._counter.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self._counter.pid, signal.SIGCONT)

    def measure(
        self,
        frame: FrameSize = SMALL,
        flows: int = 1,
        train: int = 1,
        parts: tuple[str, str] = ("send", "count"),
        family: AddressFamily = AddressFamily.IPV4,
        at: float = 0.0,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answers of the one that sends and of the one that counts, in a new trial."""
        number = next(self._numbers)
        left, right = ADDRESSES[family]
        entries = {Direction.LEFT_TO_RIGHT: Entry(address=right, udp_port=DISCARDED, source=left)}
        profile = TrafficProfile(frame, flows=flows, headers=Headers(family, udp_checksum=True))
        to_send, to_count = (
            request_line(Trial(traffic, 5000, 0.2, train=train), 0.05, self.macs, any_address=True)
            for traffic in (AddressedTraffic(profile, entries), AddressedTraffic(profile, {}))
        )
        self._counter.send(f"{to_count} trial={number} part={parts[1]}")
        assert json.loads(self._counter.receive(10)) == {"counting": number}
        self._sender.send(f"{to_send} trial={number} part={parts[0]} at={at:.6f}")
        sending = json.loads(self._sender.receive(10))["trial"]
        sent = {**sending, **sending["directions"][0]}
        self._counter.send(f"sent={sent['sent']}")
        found = json.loads(self._counter.receive(10))["trial"]
        return sent, {**found, **found["directions"][0]}

    def exchange(self, load: float = 5000, train: int = 1) -> list[list[dict[str, Any]]]:
        """The answers of the left and of the right process for both directions, which both send at the same time."""
        number = next(self._numbers)
        processes = self._sender, self._counter
        ends = [*zip(Direction, zip(ADDRESSES[AddressFamily.IPV4], (RIGHT, LEFT), strict=True), strict=True)]
        for process, (direction, (source, to)) in zip(processes, ends, strict=True):
            entries = {direction: Entry(address=to, udp_port=DISCARDED, source=source)}
            profile = TrafficProfile(SMALL, tuple(Direction), headers=Headers(udp_checksum=True))
            trial = Trial(AddressedTraffic(profile, entries), load, 0.2, train=train)
            process.send(f"{request_line(trial, 0.05, self.macs, any_address=True)} trial={number} part=exchange")
            assert json.loads(process.receive(10)) == {"counting": number}
        for process in processes:
            process.send("go=1")
        sent = [json.loads(process.receive(10))["sent"] for process in processes]
        for process, by_other in zip(processes, reversed(sent), strict=True):
            process.send(f"sent={by_other}")
        return [json.loads(process.receive(10))["trial"]["directions"] for process in processes]


@pytest.fixture
def lab() -> Iterator[Lab]:
    """The tester's ports in their namespaces."""
    with ExitStack() as undo:
        yield Lab(undo)


@pytest.fixture
def both(lab: Lab) -> Iterator[TwoProcesses]:
    """Both processes."""
    with ExitStack() as undo:
        yield TwoProcesses(lab, undo)


def test_what_one_sends_the_other_one_counts(lab: Lab, both: TwoProcesses) -> None:
    lab.forward()

    def whole() -> bool:
        sent, counted = both.measure(FrameSize("two sizes", (64, 1518)))
        arrived = sent["sent"] == sent["intended"] == counted["received"] == 1000
        return bool(arrived and not counted["duplicated"] and counted["latency"]["min"] > 0)

    first(bool, whole)


def test_what_is_lost_between_them_is_missing(lab: Lab, both: TwoProcesses) -> None:
    def measure() -> tuple[int, int]:
        lab.sut.do("nft", "flush", "ruleset")
        lab.forward("limit rate 1/day burst 300 packets drop")
        sent, counted = both.measure()
        return sent["sent"], counted["received"]

    first(lambda found: found == (1000, 700), measure)


def test_a_sender_of_trains_computes_for_its_frames_alone(lab: Lab, both: TwoProcesses) -> None:
    """Between single frames it polls. Between trains it sleeps, and no frame is missing for this reason."""
    lab.forward()

    def shares() -> tuple[float, float]:
        (polls, _), (sleeps, counted) = both.measure(), both.measure(train=32)
        whole = sleeps["sent"] == sleeps["intended"] == counted["received"] == 1000
        return polls["cpu_ns"] / 0.2e9, sleeps["cpu_ns"] / 0.2e9 if whole else 1.0

    first(lambda found: found[0] > 0.5 and found[1] < found[0] / 4, shares)


@pytest.mark.parametrize("family", AddressFamily)
def test_frames_come_back_and_their_time_at_the_far_end_does_not_count(
    lab: Lab, both: TwoProcesses, family: AddressFamily
) -> None:
    """The far end changes the time of sending in the frame. Its marks and its checksums must fit."""
    lab.forward()
    mix = FrameSize("three sizes", (98, 570, 1518))

    def whole() -> bool:
        stopped = threading.Timer(0.1, both.stop_far_end, [0.05])
        with Frames(lab.left, "p0") as arriving:
            stopped.start()
            sent, returned = both.measure(mix, parts=("round-trip", "return"), family=family)
        stopped.join()
        frames = [each for each in arriving.frames if DISCARDED.to_bytes(2, "big") in each[34:60]]
        assert all(map(checksums_are_right, frames))
        assert not sent["corrupted"] and not returned["corrupted"]
        back = len(frames) == sent["received"] == returned["received"] == sent["sent"] == 1000
        held = returned["latency"]["max"] > 40e6 and 0 < sent["latency"]["max"] < 20e6
        return back and held

    first(bool, whole)


@pytest.mark.parametrize("train", [1, 32])
def test_both_send_at_the_same_time_and_each_counts_the_other_one(lab: Lab, both: TwoProcesses, train: int) -> None:
    lab.forward()

    def whole() -> bool:
        left, right = both.exchange(train=train)
        sent, received = (left[0]["sent"], right[1]["sent"]), (right[0]["received"], left[1]["received"])
        return sent == received == (1000, 1000) and not left[0]["received"] and not right[1]["received"]

    first(bool, whole)


def test_an_exchange_without_a_header_of_its_own_frames_is_refused(both: TwoProcesses) -> None:
    both._sender.send("load=1 duration=0.1 trial=3 part=exchange directions=left-to-right,right-to-left")
    assert "the header of its frames" in json.loads(both._sender.receive(10))["error"]


def test_the_sender_waits_for_the_moment_at_which_all_begin(lab: Lab, both: TwoProcesses) -> None:
    """The wait is no part of the trial."""
    lab.forward()
    at = time.time() + 1.5
    sent, counted = both.measure(at=at)
    assert sent["started"] + sent["preparation"] >= at - 1e-5
    assert sent["elapsed"] < 1.4 + time.time() - at
    assert sent["sent"] > 0 and counted["received"] > 0


def test_flows_differ_in_their_udp_source_port(lab: Lab, both: TwoProcesses) -> None:
    def cross() -> list[bytes]:
        with ScriptedSut(lab, lambda frame: [frame]) as sut:
            both.measure(flows=100)
        return [each for each in sut.frames if each[23:24] == b"\x11"]

    frames = first(lambda found: len({each[34:36] for each in found}) == 100, cross)
    ends = {(socket.inet_ntoa(each[26:30]), socket.inet_ntoa(each[30:34]), each[36:38]) for each in frames}
    assert ends == {(LEFT, RIGHT, DISCARDED.to_bytes(2, "big"))}


def test_the_kernel_does_not_answer_that_nobody_listens(lab: Lab, both: TwoProcesses) -> None:
    ip(lab.right, "address", "add", f"{RIGHT}/24", "dev", "p1")
    ip(lab.right, "neigh", "replace", LEFT, "lladdr", mac_address(lab.left, "p0"), "dev", "p1")
    lab.forward()
    first(lambda found: found[1]["received"] > 900, both.measure)
    assert json.loads(lab.right.ask("nstat", "--json", "-az", "IcmpOutDestUnreachs").stdout)["kernel"] == {
        "IcmpOutDestUnreachs": 0
    }


def test_without_a_number_of_sent_frames_the_counter_complains(both: TwoProcesses) -> None:
    both._counter.send("load=1 duration=0.1 trial=3 part=count")
    both._counter.receive(10)
    both._counter.send("nonsense")
    assert "sent=N" in json.loads(both._counter.receive(10))["error"]
