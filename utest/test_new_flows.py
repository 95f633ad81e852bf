"""Flows of trials of which each frame is a new one for the nodes of a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import made_up
from podperf.errors import Unavailable
from podperf.kubernetes.new_flows import HELD_SECONDS, NewFlows, demand_many, from_ports
from podperf.model import AddressedTraffic, Direction, Entry, FrameSize, TrafficProfile, Trial
from podperf.records.recorded import Record
from podperf.report.record_view import embed_html
from podperf.testers.software import request_line

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


def flows_of_request(source_ports: tuple[int, int], flows: int) -> set[tuple[int, int]]:
    """The pairs of destination and source port that the tester sends, by the rule at the head of tester/request.c."""
    entries = {Direction.LEFT_TO_RIGHT: Entry(MACS[1], "198.19.0.1", 9, source="198.18.0.1")}
    traffic = AddressedTraffic(TrafficProfile(FrameSize.parse(64), flows=flows), entries)
    line = request_line(Trial(from_ports(traffic, 32, source_ports), 1000, 1), 0.05, MACS)
    words = dict(word.partition("=")[::2] for word in line.split())
    assert words["fields"].startswith("36:first,34:second"), "the UDP destination port, and the source port"
    (first, first_count), (second, second_count) = (map(int, each.split(":")) for each in words["values"].split(","))
    return {(first + flow % first_count, second + flow // first_count % second_count) for flow in range(flows)}


def test_no_flow_of_a_trial_or_of_two_trials_is_the_same() -> None:
    new = NewFlows(32)
    first, _ = new.of_trial(1000, now=0)
    new.sent(320, 1000, now=1)
    second, wait = new.of_trial(1000, now=1)
    assert wait == 0
    of_first, of_second = flows_of_request(first, 1000), flows_of_request(second, 1000)
    assert len(of_first) == len(of_second) == 1000
    sent_by_first = {flow for flow in of_first if flow[1] < second[0]}
    assert len(sent_by_first) == 320
    assert not sent_by_first & of_second


def test_ports_that_are_used_up_are_new_again_when_the_nodes_have_forgotten_them() -> None:
    new, most = NewFlows(32), 1_000_000
    start, _ = new.of_trial(most, now=0)
    new.sent(most, most, now=1)
    _, wait = new.of_trial(most, now=2)
    assert wait == 0
    new.sent(most, most, now=3)
    assert new.of_trial(most, now=4) == (start, HELD_SECONDS + 1 - 4)
    assert new.of_trial(most, now=1 + HELD_SECONDS) == (start, 0)
    assert NewFlows(1).of_trial(63_488, now=0)[0] == (2048, 63_488)


def test_frames_that_are_no_new_flows_are_not_called_so() -> None:
    new = NewFlows(32)
    new.of_trial(100, now=0)
    with pytest.raises(Unavailable, match=r"sent 101 frames of 100 flows.* shorter"):
        new.sent(101, 100, now=1)
    with pytest.raises(Unavailable, match="possible with 2031616 flows, not with 3000000"):
        new.of_trial(3_000_000, now=1)
    with pytest.raises(Unavailable, match=r"new_flows needs traffic\.flows above 16352"):
        demand_many(AddressedTraffic(TrafficProfile(FrameSize.parse(64))), 16_352)


@pytest.mark.parametrize(("limit", "tracked"), [(262_144, "at most 262144"), (None, "an unread number of")])
def test_a_record_says_how_many_new_flows_there_were_and_how_many_the_node_tracks(
    tmp_path: Path, limit: int | None, tracked: str
) -> None:
    document = made_up.document(*made_up.forwarding_record("external", 281e3), tmp_path)
    document["tester"] |= {"new_flows": True, "connections_limit": limit}
    sent = sum(way["sent"] for trial in document["trials"] for way in trial["directions"])
    said = re.sub(r"<[^>]+>", " ", embed_html(Record.of(document)))
    assert f"each of {sent} frames was a new flow; the kernel of the node tracks {tracked} connections" in said
    document["tester"]["new_flows"] = False
    assert "was a new flow" not in embed_html(Record.of(document))
