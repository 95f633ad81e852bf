"""The contract of testers: the same assertions for the software tester, a TRex, and its recordings.

A test module imports these functions and defines the fixture `bench`: a tester, and a known system under test between
its ports.
"""

from __future__ import annotations

from typing import Protocol

import pytest

from attempts import first
from podperf.errors import PodperfError
from podperf.frames import S_TAG, AddressFamily, Headers, Vlan
from podperf.model import (
    BOTH_DIRECTIONS,
    AddressedTraffic,
    Direction,
    Entry,
    FrameSize,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.testers.base import UNPACED, Tester
from traffic import TRAFFIC, traffic_of

LEFT_TO_RIGHT, RIGHT_TO_LEFT = BOTH_DIRECTIONS
LOW = 2000.0  # frames/s that any tester sends and receives
SECONDS = 1.0  # for rates and durations to be exact to a few per cent
JUMBO = 9018  # bytes with FCS: a packet of 9000 bytes
# VLAN tags of the left and of the right port.
TAGGED = (Vlan(100, 3),), (Vlan(200),)
DOUBLE = ((Vlan(7, number=S_TAG), Vlan(8)),) * 2
ELSEWHERE = Entry(mac="02:aa:bb:cc:dd:ee", address="198.19.0.5", udp_port=5000)


class Bench(Protocol):
    """A tester whose ports are joined by something that forwards everything, unless told otherwise."""

    tester: Tester
    seconds: float  # that a trial takes which tells nothing about time

    def lose_one_in(self, number: int) -> None:
        """From now on lose each so-manieth frame from left to right."""

    def flows_seen(self) -> int:
        """How many pairs of addresses have come from the left so far."""

    def frames_elsewhere(self) -> int:
        """How many frames addressed to ELSEWHERE have come from the left so far."""

    def sound_frames(self, headers: Headers) -> int:
        """How many sound frames with these headers have come from the left, if no others have."""


def valid(bench: Bench, trial: Trial) -> TrialResult:
    """The first valid result of some."""
    return first(lambda result: result.invalid is None, lambda: bench.tester.measure(trial))


def lossless(bench: Bench, trial: Trial) -> TrialResult:
    """The result of the first trial that sent all intended frames and lost none."""
    return first(whole, lambda: valid(bench, trial))


def whole(result: TrialResult) -> bool:
    """Whether the trial sent all intended frames and lost none."""
    return not result.lost and all(direction.sent == direction.intended for direction in result.directions)


@pytest.mark.parametrize("size", [64, 1518, JUMBO, "IMIX"])
def test_everything_that_was_sent_is_received_in_both_directions(bench: Bench, size: int | str) -> None:
    result = lossless(bench, Trial(traffic_of(size, BOTH_DIRECTIONS, flows=100), LOW, bench.seconds))
    assert [direction.direction for direction in result.directions] == list(BOTH_DIRECTIONS)
    for direction in result.directions:
        assert direction.sent == direction.intended == direction.received == LOW * bench.seconds
        assert direction.corrupted == direction.duplicated == direction.reordered == 0
    assert result.own_drops == 0


@pytest.mark.parametrize("size", [100, 1518])
@pytest.mark.parametrize(
    "headers",
    [
        Headers(AddressFamily.IPV6),
        Headers(AddressFamily.IPV4, *TAGGED, dscp=46, udp_checksum=True),
        Headers(AddressFamily.IPV6, *DOUBLE, random=True),
    ],
    ids=lambda headers: headers.words,
)
def test_frames_of_any_header_arrive_whole_and_are_described(bench: Bench, headers: Headers, size: int) -> None:
    profile = TrafficProfile(FrameSize.parse(size), BOTH_DIRECTIONS, 100, headers)
    result = lossless(bench, Trial(AddressedTraffic(profile), LOW, bench.seconds))
    for direction, tags in zip(result.directions, (headers.left, headers.right), strict=True):
        assert direction.received == LOW * bench.seconds
        assert direction.corrupted == direction.duplicated == direction.reordered == 0
        assert direction.latency is not None
        if bench.tester.facts.name == "TRex":  # it only counts the frames that arrive
            assert direction.arrived is None
            continue
        assert direction.arrived is not None
        assert (direction.arrived["family"], direction.arrived["dscp"]) == (headers.family, headers.dscp)
        seen = direction.arrived["vlans"]
        if seen is not None:  # a veth keeps a tag beside the frame, where XDP does not see it
            assert [(tag["id"], tag["priority"]) for tag in seen] == [(tag.id, tag.priority) for tag in tags]
        assert seen is not None or bench.tester.facts.engine == "xdp"
    assert bench.sound_frames(headers) >= LOW * bench.seconds


def test_one_direction_alone_in_either_way(bench: Bench) -> None:
    for direction in BOTH_DIRECTIONS:
        (each,) = lossless(bench, Trial(traffic_of(64, (direction,)), LOW, bench.seconds)).directions
        assert (each.direction, each.received) == (direction, LOW * bench.seconds)


@pytest.mark.parametrize("load", [200.0, 20_000.0])
def test_the_load_is_the_intended_one_over_the_intended_time(bench: Bench, load: float) -> None:
    result = valid(bench, Trial(TRAFFIC, load, SECONDS))
    (each,) = result.directions
    assert each.sent == pytest.approx(load * SECONDS, rel=0.01)
    assert each.achieved_load == pytest.approx(load, rel=0.02)
    assert each.duration == pytest.approx(SECONDS, rel=0.02)
    assert result.elapsed >= SECONDS * 0.98


def test_latency_is_there_and_its_figures_fit_each_other(bench: Bench) -> None:
    result = valid(bench, Trial(traffic_of(64, BOTH_DIRECTIONS), LOW, bench.seconds))
    for direction in result.directions:
        assert direction.latency is not None
        assert 0 < sum(direction.latency.counts.values()) <= direction.sent
        assert 0 <= direction.latency.minimum <= direction.latency.mean <= direction.latency.maximum < 1e9
        assert direction.latency.minimum <= direction.latency.percentile(50) <= direction.latency.maximum


@pytest.mark.parametrize("flows", [1, 1000])
def test_a_flow_is_a_pair_of_addresses(bench: Bench, flows: int) -> None:
    lossless(bench, Trial(traffic_of(64, flows=flows), LOW, SECONDS))  # a frame of each flow at least
    assert bench.flows_seen() == flows


def test_an_entry_addresses_the_frames(bench: Bench) -> None:
    lossless(bench, Trial(traffic_of(64, entries={LEFT_TO_RIGHT: ELSEWHERE}), LOW, bench.seconds))
    assert bench.frames_elsewhere() >= LOW * bench.seconds


def test_what_the_far_end_does_not_get_is_lost(bench: Bench) -> None:
    bench.lose_one_in(10)

    def best() -> TrialResult:
        trials = [valid(bench, Trial(TRAFFIC, LOW, bench.seconds)) for _ in range(3)]  # as many as were recorded
        return min(trials, key=lambda each: each.loss_ratio)

    result = first(lambda each: each.loss_ratio == pytest.approx(0.1, abs=0.005), best)
    assert result.lost == result.sent - result.received > 0


def test_a_trial_shows_nothing_of_the_one_before(bench: Bench) -> None:
    bench.tester.measure(Trial(traffic_of("IMIX", BOTH_DIRECTIONS, 1000), UNPACED, bench.seconds / 2))
    result = lossless(bench, Trial(traffic_of(64, (RIGHT_TO_LEFT,)), 500, bench.seconds))
    (each,) = result.directions
    assert each.direction is Direction.RIGHT_TO_LEFT
    assert each.sent == each.received == 500 * bench.seconds
    assert each.latency is not None
    assert sum(each.latency.counts.values()) <= 500 * bench.seconds


def test_an_unpaced_trial_sends_more_than_a_paced_one(bench: Bench) -> None:
    def measure() -> TrialResult:
        result = bench.tester.measure(Trial(TRAFFIC, UNPACED, bench.seconds))
        assert result.sent == result.intended_count
        assert 0 < result.received <= result.sent
        return result

    # TRex stops late if it cannot keep up.
    result = first(lambda each: 0.9 * bench.seconds <= each.duration < 1.5 * bench.seconds, measure)
    assert result.achieved_load > 10 * LOW


def test_a_load_that_the_tester_cannot_send_makes_an_invalid_trial(bench: Bench) -> None:
    result = bench.tester.measure(Trial(TRAFFIC, 1e8, bench.seconds / 2))
    assert result.invalid is not None
    assert result.achieved_load < 1e8


def test_the_tester_says_what_it_is(bench: Bench) -> None:
    facts, told = bench.tester.facts, bench.tester.describe()
    assert facts.name and facts.version and facts.engine != "auto"
    assert (told["name"], told["version"], told["engine"]) == (facts.name, facts.version, facts.engine)
    macs = [facts.left.mac, facts.right.mac]
    assert [told["ports"][side]["mac"] for side in ("left", "right")] == macs
    assert len({*macs}) == 2
    assert all(len(bytes.fromhex(mac.replace(":", ""))) == 6 for mac in macs)


def test_closing_may_be_repeated_and_ends_it(bench: Bench) -> None:
    bench.tester.close()
    bench.tester.close()
    with pytest.raises(PodperfError, match="make a new one"):
        bench.tester.measure(Trial(TRAFFIC, LOW, SECONDS))
