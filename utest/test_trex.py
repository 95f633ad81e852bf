"""The TRex tester without a TRex: streams, results, versions, configuration; each trap of TRex has a test here."""

from __future__ import annotations

import ast
import base64
import json
import socket
import struct
import sys
import threading
import time
import tracemalloc
import zlib
from contextlib import nullcontext
from dataclasses import replace
from ipaddress import ip_address
from itertools import cycle, islice
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from packets import HEADERS, faults_of
from podperf.errors import PodperfError
from podperf.frames import AddressFamily, Headers, Varying
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.model import (
    BOTH_DIRECTIONS,
    IMIX,
    AddressedTraffic,
    Direction,
    Entry,
    FrameSize,
    Placement,
    TrafficProfile,
    Trial,
    bucket_index,
    bucket_lower_ns,
)
from podperf.testbed.machines import Machines, WorkerMachine
from podperf.testers import TESTERS
from podperf.testers.base import UNPACED, Site, TesterPort
from podperf.testers.trex import TrexTester, explained, request_line, require_interpreter
from podperf.testers.trex_client import until_gone
from podperf.testers.trex_results import latency_of, trial_result
from podperf.testers.trex_rpc import CLIENT, Endpoint, ServerVersion, read_version, server_version
from podperf.testers.trex_server import Interfaces, Server, configuration, running
from podperf.testers.trex_streams import LEAD, Stream, intended, streams_of
from podperf.topology import SCHEMA_PATH, TrexServerSettings, TrexSettings, load_topology
from scripted_host import ScriptedHost
from traffic import TRAFFIC, traffic_of
from trex_dialogue import Dialogue, PlayedHost

LEFT_TO_RIGHT, RIGHT_TO_LEFT = BOTH_DIRECTIONS
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ENDPOINT = Endpoint("192.0.2.10", 4501)
FIRST_ENDS = {
    AddressFamily.IPV4: ("198.18.16.1", "198.19.16.1"),
    AddressFamily.IPV6: ("2001:2:0:18::1001", "2001:2:0:19::1001"),
}
NEW = ServerVersion("v3.08", (5, 1))
GROUPS = {LEFT_TO_RIGHT: 1, RIGHT_TO_LEFT: 2}

frames = st.sampled_from([FrameSize.parse(64), FrameSize.parse(1518), IMIX])
directions = st.sampled_from(BOTH_DIRECTIONS)


# --- streams ---------------------------------------------------------------------------------------------------------


@given(frame=frames, load=st.floats(1, 1e7), duration=st.floats(0.01, 10), direction=directions)
def test_the_streams_of_a_trial_are_its_frames_and_its_load(
    frame: FrameSize, load: float, duration: float, direction: Direction
) -> None:
    streams = streams_of(Trial(AddressedTraffic(TrafficProfile(frame)), load, duration), direction, MACS, 7)
    assert intended(streams) == max(1, round(load * duration))
    for stream in streams:
        assert stream.count is not None
        assert stream.count > 0
    if intended(streams) > 1000:
        assert sum(stream.rate for stream in streams) == pytest.approx(load, rel=1e-6)


def test_a_mix_leaves_in_its_order() -> None:
    """TRex merges the streams by their times. The result must be the mix's sequence again and again."""
    streams = [
        stream
        for stream in streams_of(Trial(AddressedTraffic(TrafficProfile(IMIX)), 1200, 1), LEFT_TO_RIGHT, MACS, 1)
        if stream.latency_group is None
    ]
    moments = sorted(
        (stream.delay + number * 1e6 / stream.rate, len(stream.frame) + 4)
        for stream in streams
        for number in range(stream.count or 0)
    )
    assert [size for _, size in moments] == list(islice(cycle(IMIX.sequence), len(moments)))


@given(load=st.floats(10, 1e7))
def test_latency_frames_are_part_of_the_load_and_a_small_one(load: float) -> None:
    """TRex does not scale latency streams with its multiplier: each stream has its own rate instead."""
    streams = streams_of(Trial(TRAFFIC, load, 10.0), LEFT_TO_RIGHT, MACS, 7)
    latency = [stream for stream in streams if stream.latency_group is not None]
    assert [stream.latency_group for stream in latency] == [7]
    assert latency[0].rate <= min(1000, load / 10) * 1.001
    assert intended(streams) == round(load * 10)


@given(frame=frames, load=st.floats(10, 1e7))
def test_no_frame_leaves_before_the_servers_clock_is_right(frame: FrameSize, load: float) -> None:
    streams = streams_of(Trial(AddressedTraffic(TrafficProfile(frame)), load, 1.0), LEFT_TO_RIGHT, MACS, 1)
    assert min(stream.delay for stream in streams) == pytest.approx(LEAD * 1e6)


def test_an_unpaced_trial_asks_for_the_whole_link() -> None:
    streams = streams_of(Trial(AddressedTraffic(TrafficProfile(IMIX)), UNPACED, 1.0), LEFT_TO_RIGHT, MACS, 1)
    assert sum(stream.share for stream in streams) == pytest.approx(100)
    assert all(stream.count is None for stream in streams)


@pytest.mark.parametrize(
    ("flows", "hosts"), [(1, None), (2, (0x1001, 0x1002)), (1000, (0x1001, 0x13E8)), (61439, (0x1001, 65535))]
)
def test_flows_are_hosts_of_the_test_network(flows: int, hosts: tuple[int, int] | None) -> None:
    traffic = traffic_of(64, flows=flows)
    for stream in streams_of(Trial(traffic, 1000, 1), LEFT_TO_RIGHT, MACS, 1):
        assert (stream.values, stream.places) == (hosts, (28, 32) if hosts else ())


def test_a_fixed_destination_address_is_left_alone() -> None:
    traffic = traffic_of(64, flows=9, entries={LEFT_TO_RIGHT: Entry(address="198.19.0.5")})
    assert streams_of(Trial(traffic, 1000, 1), LEFT_TO_RIGHT, MACS, 1)[0].places == (28,)


@given(headers=HEADERS, more=st.integers(0, 8900), direction=directions, flows=st.integers(1, 16352))
def test_a_frame_is_a_sound_udp_packet_of_the_test_network(
    headers: Headers, more: int, direction: Direction, flows: int
) -> None:
    assume(len(headers.ranges) == 1)
    size = max(64, headers.smallest_frame) + more
    traffic = AddressedTraffic(TrafficProfile(FrameSize.parse(size), (direction,), flows, headers))
    for stream in streams_of(Trial(traffic, 1000, 1), direction, MACS, 1):
        assert len(stream.frame) == size - 4, "without the FCS"
        assert faults_of(stream.frame, headers, headers.left) == []
        first, last = stream.values or (0, flows - 1)
        assert last - first == flows - 1
        assert [int.from_bytes(stream.frame[at : at + 2]) for at in stream.places] == [first] * len(stream.places)
        assert len(stream.places) == (len(headers.varying) if flows > 1 else 0)
        assert stream.frame[stream.packet] >> 4 == (4 if headers.family is AddressFamily.IPV4 else 6)
        assert stream.udp is None or stream.frame[stream.udp :][4:6] == (len(stream.frame) - stream.udp).to_bytes(2)
        assert (stream.udp is None) is (headers.family is AddressFamily.IPV4 and not headers.udp_checksum)
        assert stream.random is headers.random
        ends = FIRST_ENDS[headers.family][:: 1 if direction is LEFT_TO_RIGHT else -1]
        assert b"".join(ip_address(end).packed for end in ends) in stream.frame


def test_destinations_come_from_the_entry_or_are_learned_from_the_ports() -> None:
    learned = streams_of(Trial(TRAFFIC, 1000, 1), LEFT_TO_RIGHT, MACS, 1)[0].frame
    assert learned[:12].hex() == "020000000002020000000001"
    entry = Entry(mac="02:00:00:00:00:99", address="198.19.0.5", udp_port=5000)
    named = traffic_of(64, entries={LEFT_TO_RIGHT: entry})
    frame = streams_of(Trial(named, 1000, 1), LEFT_TO_RIGHT, MACS, 1)[0].frame
    assert frame[:6].hex() == "020000000099"
    assert frame[30:34] == bytes([198, 19, 0, 5])
    assert frame[36:38] == (5000).to_bytes(2, "big")


def test_a_request_has_a_list_of_streams_for_each_port() -> None:
    request = json.loads(request_line(Trial(traffic_of(64, (RIGHT_TO_LEFT,)), 1000, 2.0), MACS, GROUPS))
    _, right = request["streams"]
    assert right[0]["frame"].startswith("020000000001020000000002")
    assert (request["duration"], request["lead"], request["unpaced"]) == (2.0, LEAD, False)
    assert set(right[0]) == set(Stream.__dataclass_fields__)


@given(duration=st.floats(0.5, 3600), direction=directions)
def test_a_port_that_only_receives_tells_switches_where_it_is(duration: float, direction: Direction) -> None:
    traffic = AddressedTraffic(
        TrafficProfile(IMIX, (direction,), flows=8), entries={LEFT_TO_RIGHT: Entry("02:00:00:00:00:99")}
    )
    streams = json.loads(request_line(Trial(traffic, 1000, duration), MACS, GROUPS))["streams"]
    (learning,) = streams[direction is LEFT_TO_RIGHT]
    receiver, sender = MACS[direction is LEFT_TO_RIGHT], MACS[direction is RIGHT_TO_LEFT]
    destination = sender if direction is LEFT_TO_RIGHT else "02:00:00:00:00:99"
    assert bytes.fromhex(learning["frame"])[:12].hex(":") == f"{destination}:{receiver}"
    assert len(learning["frame"]) == 2 * 60
    assert learning["delay"] == 0 < LEAD and learning["rate"] == 1, "before the trial's frames, and no load"
    assert max(1, duration - 1) <= learning["count"] < duration + 1, "it ends with the trial"
    assert learning["latency_group"] is None


# --- results: the traps ----------------------------------------------------------------------------------------------

LATENCY = {"histogram": {"0": 90, "10": 10}, "average": 999.0, "total_max": 1, "total_min": 5000}


def counted(**changes: Any) -> dict[str, Any]:
    """The answer to a faultless trial of 1 s at 1000 frames/s from left to right. The counters did not start at 0."""
    result: dict[str, Any] = {
        "started": 1.0,
        "wall": 1.05,
        "elapsed": 1.3,
        "before": [
            {"opackets": 5000, "ipackets": 70, "oerrors": 0, "ierrors": 3},
            {"opackets": 80, "ipackets": 5000, "oerrors": 0, "ierrors": 4},
        ],
        "after": [
            {"opackets": 6000, "ipackets": 70, "oerrors": 0, "ierrors": 3},
            {"opackets": 80, "ipackets": 6000, "oerrors": 0, "ierrors": 4},
        ],
        "samples": [
            {"earliest": 0.100, "latest": 0.102, "sent": [5100, 80]},
            {"earliest": 0.900, "latest": 0.902, "sent": [5900, 80]},
        ],
        "cut_short": False,
        "settled": True,
        "groups": {"1": {"latency": LATENCY, "errors": {}}},
    }
    for path, value in changes.items():
        place: Any = result
        *steps, last = path.split("__")
        for step in steps:
            place = place[int(step) if step.isdigit() else step]
        place[int(last) if last.isdigit() else last] = value
    return result


PLAIN = Trial(TRAFFIC, 1000, 1.0)


@pytest.mark.parametrize(
    ("changes", "received", "stray", "duration", "invalid"),
    [
        ({}, 1000, 0, 1.0, None),
        ({"after__1__ipackets": 5900}, 900, 0, 1.0, None),
        ({"after__1__ipackets": 6003}, 1000, 3, 1.0, None),
        # TRex sends the planned count all the same, only later: by the wall clock the load was another.
        ({"wall": 4.7}, 1000, 0, 1.0, "the tester took 4.550 s to send what was planned for 1.000 s"),
        ({"samples__1__sent": [5800, 80], "wall": 1.2}, 1000, 0, 8 / 7, "its time is virtual"),
        # A stall at a sample does not make a trial longer than it was, and 2 % are forgiven.
        ({"samples__1__sent": [5870, 80], "wall": 1.04}, 1000, 0, 1.01, None),
        ({"samples__1__sent": [5888, 80]}, 1000, 0, 800 / 788, None),
        (
            {"after__0__opackets": 5980, "after__1__ipackets": 5980},
            980,
            0,
            0.98,
            "sent only 98.0% of the intended load",
        ),
        ({"settled": False}, 1000, 0, 1.0, "did not come to rest"),
    ],
    ids=str,
)
def test_a_result_is_what_the_counters_gained(
    changes: dict[str, Any], received: int, stray: int, duration: float, invalid: str | None
) -> None:
    result = trial_result(PLAIN, counted(**changes), GROUPS)
    (each,) = result.directions
    assert (each.intended, each.received, result.stray) == (1000, received, stray)
    assert each.lost == each.sent - received
    assert each.duration == pytest.approx(duration)
    assert result.invalid is None if invalid is None else invalid in str(result.invalid)


def test_frames_that_the_receiving_port_dropped_are_the_testers_own() -> None:
    result = trial_result(PLAIN, counted(after__1__ierrors=12, after__1__ipackets=5992), GROUPS)
    assert result.own_drops == 8
    assert "the tester itself lost 8 frames" in str(result.invalid)
    assert trial_result(PLAIN, counted(after__0__ierrors=9), GROUPS).own_drops == 0  # nothing was sent that way


def test_an_unpaced_trial_has_the_duration_that_its_rate_tells() -> None:
    result = trial_result(Trial(TRAFFIC, UNPACED, 1.0), counted(wall=9.0), GROUPS)
    assert result.invalid is None
    assert result.directions[0].intended == result.sent
    assert result.directions[0].duration == pytest.approx(1.0)


def test_a_trial_too_short_for_samples_has_the_planned_duration() -> None:
    short = counted(samples=[{"earliest": 0, "latest": 0, "sent": [0, 0]}] * 2, wall=0.1)
    assert trial_result(Trial(TRAFFIC, 1000, 0.02), short, GROUPS).directions[0].duration == 0.02


def test_latency_comes_from_the_histogram_and_not_from_the_filtered_average() -> None:
    latency = latency_of(LATENCY)
    assert latency is not None
    assert sum(latency.counts.values()) == 100
    assert latency.mean == pytest.approx((90 * 5 + 10 * 15) * 1000 / 100, rel=0.01)
    assert (latency.minimum, latency.maximum) == (0, 19_999)  # of the buckets, in ns
    assert latency.percentile(50) < 10_000 < latency.percentile(99)


def test_the_fine_histogram_is_preferred() -> None:
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415

    fine = HdrHistogram(1, 10_000_000, 3)
    for value in (7, 7, 8, 2500):
        fine.record_value(value)
    latency = latency_of({**LATENCY, "hdrh": fine.encode().decode()})
    assert latency is not None
    assert sum(latency.counts.values()) == 4
    assert 7000 <= latency.minimum < 7100
    assert 7000 <= latency.percentile(50) < 8000
    assert 2_500_000 <= latency.maximum < 2_510_000


def packed(size: int, digits: int = 3, highest: int = 10_000_000) -> str:
    """An HdrHistogram of so many bytes, all of them zero."""
    unpacked = zlib.compress(struct.pack(">IIIIQQQ", 478450451, size, 0, digits, 1, highest, 0) + bytes(size), 9)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(unpacked)) + unpacked).decode()


@pytest.mark.parametrize(
    "figures",
    [
        {"hdrh": packed(300 << 20)},  # 300 kB that unpack to 300 MiB
        {"hdrh": packed(16, digits=5)},  # 6 million counts
        {"hdrh": packed(16, highest=2**62)},
        {"hdrh": "x"},
        {"hdrh": packed(16)[:40]},
        {"histogram": {"9" * 4000: 1}},
        {"histogram": {"-1": 1}},
        {"histogram": {"10": 2**80}},
        {"histogram": {"much": 1}},
    ],
)
def test_a_latency_of_trex_that_cannot_be_is_refused_before_it_fills_the_memory(figures: dict[str, Any]) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValueError):
            latency_of(figures)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_without_latency_frames_there_is_no_latency() -> None:
    assert latency_of({}) is None
    assert latency_of({"histogram": {}}) is None
    assert trial_result(PLAIN, counted(groups={}), GROUPS).latency is None


@given(index=st.integers(0, 5000))
def test_a_bucket_is_found_again_by_its_values(index: int) -> None:
    assert bucket_index(bucket_lower_ns(index)) == index
    assert bucket_index(bucket_lower_ns(index + 1) - 1) == index


# --- versions and errors ---------------------------------------------------------------------------------------------

REFUSED = "RPC version mismatch: a newer client version is required\n(API type 'STL': - server: '5.1', client: '0.0')"


def answers(text: str, version: str = "v3.08") -> dict[str, Any]:
    """A server's answers to the two questions."""
    error = {"code": -32000, "message": "Failed To Perform RPC Command", "specific_err": text}
    return {"get_version": {"result": {"version": version}}, "api_sync_v2": {"error": error}}


def test_the_refusal_tells_the_version_of_the_api() -> None:
    assert read_version(ENDPOINT, answers(REFUSED)) == NEW


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("RPC configuration mismatch - server RPC configuration: 'ASTF', client …: 'STL'", "start it with -i"),
        ("Method not registered", "needs TRex 2.31 or later"),
    ],
)
def test_a_server_that_cannot_be_used_is_explained(text: str, complaint: str) -> None:
    with pytest.raises(PodperfError, match=complaint) as raised:
        read_version(ENDPOINT, answers(text))
    assert "\n" not in str(raised.value)


UNPUBLISHED = json.dumps(answers(REFUSED) | {"published": False})


class OneCommand:
    """A host on which each command ends like this."""

    name = "this machine"

    def __init__(self, exit_code: int, stdout: str = "", stderr: str = "") -> None:
        self._done = (exit_code, stdout, stderr)

    def ask(self, *command: str, **_: Any) -> Completed:
        return Completed(command, *self._done)


@pytest.mark.parametrize(
    ("exit_code", "stdout", "stderr", "said"),
    [
        (3, "", "", r"no TRex server answers at 192\.0\.2\.10:4501 within 5 s.*t-rex-64 -i"),
        (0, UNPUBLISHED, "", r"nothing at port 4600 within 5 s: set tester\.settings\.publisher_port"),
        (1, "", "Traceback\nModuleNotFoundError: No module named 'zmq'", "No module named 'zmq'"),
    ],
)
def test_why_a_server_cannot_be_asked_is_one_clear_line(exit_code: int, stdout: str, stderr: str, said: str) -> None:
    with pytest.raises(PodperfError, match=said):
        server_version(OneCommand(exit_code, stdout, stderr), ENDPOINT, 4600)  # type: ignore[arg-type]


def test_an_interpreter_that_is_not_there_is_one_clear_line() -> None:
    settings = load_topology(SCHEMA_PATH.parent / "local.yaml").tester
    settings = replace(settings, kind=TrexSettings(interpreter="/usr/bin/python3.9"))
    with pytest.raises(PodperfError) as raised:
        TrexTester.at(Site(OneCommand(1), settings, "auto", (0,)))  # type: ignore[arg-type]
    assert str(raised.value) == (
        "on this machine, there is no program /usr/bin/python3.9: tester.settings.interpreter must name a Python that "
        "TRex's client was written for (3.7 to 3.12 for TRex 3.08)"
    )


@pytest.mark.parametrize(("interpreter", "there"), [("python3", True), ("/usr/bin/env", True), ("/nope", False)])
def test_an_interpreter_is_a_name_or_a_path(interpreter: str, there: bool) -> None:
    with nullcontext() if there else pytest.raises(PodperfError, match=f"no program {interpreter}:"):
        require_interpreter(LocalHost(), interpreter)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"kind": "version", "error": "5.1"}, ["speaks API 4.8", "speaks 5.1", "tester.settings.client", "v2.82"]),
        ({"kind": "client", "error": "no module cgi"}, ["/usr/bin/python3 cannot load", "tester.settings.interpreter"]),
        ({"kind": "owner", "error": "port 0 is held by 'alice'"}, ["held by 'alice'", "trex-console"]),
        ({"kind": "ports", "error": "it has ports [0, 1], not [4]"}, ["tester.settings.ports"]),
        ({"error": "whatever"}, ["whatever"]),
    ],
)
def test_what_keeps_the_client_from_starting_is_one_clear_line(answer: dict[str, str], words: list[str]) -> None:
    text = explained(answer, ENDPOINT, ServerVersion("v2.82", (4, 8)), "/usr/bin/python3", "/opt/trex/client")
    for word in words:
        assert word in text
    assert "\n" not in text


def dialogue(*said: dict[str, Any]) -> Dialogue:
    """A dialogue in which TRex's client gives these answers to any question."""
    made = Dialogue(Path("made up"))
    made.version, made.lines = answers(REFUSED), [("trex", each) for each in said]
    return made


def started_on(host: PlayedHost) -> TrexTester:
    return TrexTester(host, TrexSettings(), ENDPOINT, 4500, None)


def test_a_client_that_is_refused_is_stopped() -> None:
    host = PlayedHost(dialogue({"error": "4.6", "kind": "version"}))
    with pytest.raises(PodperfError, match=r"speaks API 5\.1, and trex-stl-lib of /usr/bin/python3 speaks 4\.6"):
        started_on(host)
    assert host.processes[0].stopped


READY = {"ready": {"ports": [{"mac": mac} for mac in MACS], "python": "3.11.2", "client_api": "5.1"}}


def test_a_client_that_is_gone_in_mid_trial_is_stopped_and_the_tester_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    host = PlayedHost(dialogue(READY))
    started = started_on(host)
    monkeypatch.setattr(host.processes[0], "send", lambda line: None)
    with pytest.raises(PodperfError, match="nothing more was recorded"):
        started.measure(PLAIN)
    assert host.processes[0].stopped and started.broken
    with pytest.raises(PodperfError, match="make a new one"):
        started.measure(PLAIN)


GONE = {"error": "Connection refused", "kind": "gone", "at": 1_700_000_000.0}


def test_a_server_that_is_gone_is_named_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    host = PlayedHost(dialogue(READY, GONE))
    started = started_on(host)

    def broken_pipe(line: str) -> None:
        raise PodperfError("the raw command line of a program that has ended")

    monkeypatch.setattr(host.processes[0], "send", broken_pipe)
    with pytest.raises(PodperfError) as raised:
        started.measure(PLAIN)
    assert str(raised.value) == (
        "the TRex server v3.08 at 192.0.2.10:4501 is gone: since 22:13:20 nobody answers at this port (Connection "
        "refused); start it again"
    )
    assert started.broken and host.processes[0].stopped


def test_a_server_of_ones_own_that_is_gone_is_named_with_its_process_and_its_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = PlayedHost(dialogue(READY, GONE))
    monkeypatch.setattr(host, "get", lambda path: b"port 0 : link up\nERROR there are not enough huge-pages\n")
    own = Server(host, host.spawn(), "/run/podperf/trex.log")
    started = TrexTester(host, TrexSettings(), ENDPOINT, 4500, None, own=own)
    monkeypatch.setattr(host.processes[1], "send", lambda line: None)
    words = r"v3\.08 .*, which podperf had started as process 0, ended at \S+: ERROR there are not enough huge-pages"
    with pytest.raises(PodperfError, match=words):
        started.measure(PLAIN)


def test_the_client_notices_at_once_that_nobody_listens_any_more() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        found: list[str] = []
        watch = threading.Thread(target=lambda: found.append(until_gone(*server.getsockname())))
        watch.start()
        server.accept()[0].close()  # a server closes the connection of a client that it does not understand
        again, _ = server.accept()
        assert not found, "a server that listens is not gone"
    again.close()
    watch.join(30)
    assert found == ["Connection refused"]


def test_a_refused_trial_leaves_the_tester_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    host = PlayedHost(dialogue(READY, {"error": "port 0 is down"}, {"trial": counted()}))
    with started_on(host) as started:
        monkeypatch.setattr(host.processes[0], "send", lambda line: None)
        with pytest.raises(PodperfError, match="refused a trial: port 0 is down"):
            started.measure(PLAIN)
        assert started.measure(PLAIN).received == 1000
        assert started.broken, "the next test makes another one: the server may know nothing of this client"


def of_ports(flows: int, *varying: Varying) -> AddressedTraffic:
    return AddressedTraffic(TrafficProfile(FrameSize.parse(64), flows=flows, headers=Headers(varying=varying)))


@pytest.mark.parametrize(
    ("traffic", "said"),
    [
        (
            traffic_of(64, flows=61_440),
            "cannot send 61440 flows that differ in source-address, destination-address, so",
        ),
        (of_ports(1, Varying.SOURCE_PORT, Varying.SOURCE_ADDRESS), "cannot send 1 flows that differ in source-address"),
        (traffic_of(64, entries={LEFT_TO_RIGHT: Entry(address="192.0.2.1")}), "192.0.2.1 is no ipv4 address"),
    ],
)
def test_frames_that_trex_cannot_send_are_said_at_once(
    traffic: AddressedTraffic, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = PlayedHost(dialogue(READY, {"trial": counted()}))
    with started_on(host) as started:
        monkeypatch.setattr(host.processes[0], "send", lambda line: None)
        with pytest.raises(PodperfError, match=said):
            started.measure(Trial(traffic, 1000, 1.0))
        assert started.measure(PLAIN).received == 1000


def test_a_tester_that_broke_is_made_anew_for_the_next_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one trial that TRex did not answer would be the end of all tests that follow."""

    class Fragile:
        made: ClassVar[list[Any]] = []
        broken, closed = False, False

        @classmethod
        def at(cls, _: Site) -> Fragile:
            cls.made.append(cls())
            return cls.made[-1]

        def close(self) -> None:
            self.closed = True

    monkeypatch.setitem(TESTERS, "trex", Fragile)
    lab = load_topology(SCHEMA_PATH.parent / "appendix_c_multi_pod.yaml")
    machines = Machines(lab, [WorkerMachine(lab.workers[0], LocalHost(), Placement((0,), (1,)))])
    first = machines.tester_with_ports()
    assert machines.tester_with_ports() is first
    Fragile.made[0].broken = True
    assert machines.tester_with_ports() is Fragile.made[1] and Fragile.made[0].closed
    machines.close()
    assert Fragile.made[1].closed


def test_latency_groups_are_never_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """TRex keeps its counts under a group's number. A trial must not get counts of the previous trial."""
    host = PlayedHost(dialogue(READY, *[{"trial": counted()}] * 2))
    with started_on(host) as started:
        lines: list[str] = []
        monkeypatch.setattr(host.processes[0], "send", lines.append)
        started.measure(PLAIN)
        started.measure(PLAIN)
    found = [
        stream["latency_group"]
        for line in lines
        for streams in json.loads(line).get("streams", [])
        for stream in streams
        if stream["latency_group"] is not None
    ]
    assert len(found) == len(set(found)) == 2


def test_the_clients_program_imports_nothing_of_podperf_and_keeps_to_old_python() -> None:
    tree = ast.parse(CLIENT.read_text(), feature_version=(3, 7))
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported <= sys.stdlib_module_names


# --- the server ------------------------------------------------------------------------------------------------------

VETHS = Interfaces("left", "right", kernel=True)


def test_two_cpus_or_one_want_low_end() -> None:
    (made,) = yaml.safe_load(configuration(VETHS, (3,), "p"))
    assert (made["low_end"], made["low_end_core"]) == (True, 3)
    assert "platform" not in made


def test_three_cpus_are_for_master_latency_and_data() -> None:
    devices = Interfaces("0000:81:00.0", "0000:81:00.1", kernel=False)
    (made,) = yaml.safe_load(configuration(devices, (2, 3, 4, 5), "p"))
    assert made["interfaces"] == ["0000:81:00.0", "0000:81:00.1"]
    assert made["c"] == 2
    assert made["platform"]["dual_if"] == [{"socket": 0, "threads": [4, 5]}]
    (far,) = yaml.safe_load(configuration(replace(devices, node=1), (2, 3, 4, 5), "p"))
    assert far["platform"]["dual_if"][0]["socket"] == 1
    assert (made["platform"]["master_thread_id"], made["platform"]["latency_thread_id"]) == (2, 3)


def test_a_card_whose_driver_stays_with_the_kernel_is_refused() -> None:
    server = TrexServerSettings("/opt/trex", devices=("0000:81:00.0", "0000:81:00.1"))
    settings = replace(load_topology(SCHEMA_PATH.parent / "local.yaml").tester, kind=TrexSettings(server=server))
    host = ScriptedHost(answers={"readlink": "../../../bus/pci/drivers/mlx5_core\n", "sh -c test": ""})
    with pytest.raises(PodperfError, match=r"drives 0000:81:00\.0 only together with mlx5_core"):
        TrexTester.at(Site(host, settings, "auto", (0,)))


@pytest.mark.parametrize("namespaces", [(None, None), ("one", "another")])
def test_a_trex_is_not_started_where_others_reach_its_rpc(namespaces: tuple[str | None, str | None]) -> None:
    settings = load_topology(SCHEMA_PATH.parent / "local.yaml").tester
    settings = replace(settings, kind=TrexSettings(server=TrexServerSettings("/opt/trex")))
    ports = [TesterPort(side, each) for side, each in zip(("left", "right"), namespaces, strict=True)]
    with pytest.raises(PodperfError, match="needs both interfaces in one network namespace, as its RPC is open to"):
        TrexTester.at(Site(ScriptedHost(patient=True), settings, "auto", (0,), *ports))


@pytest.mark.parametrize(("mtu", "frames"), [(1500, 16384), (9004, 4096)])
def test_packet_rings_are_larger_than_those_that_lose_by_themselves(mtu: int, frames: int) -> None:
    (made,) = yaml.safe_load(configuration(replace(VETHS, mtu=mtu), (0,), "p"))
    for number, (side, text) in enumerate(zip(("left", "right"), made["interfaces"], strict=True)):
        assert text.startswith(f"--vdev=net_af_packet{number},iface={side},")
        ring = dict(part.split("=") for part in text.split(",")[1:])
        assert int(ring["framecnt"]) == frames
        assert int(ring["blocksz"]) % int(ring["framesz"]) == 0
        assert int(ring["framesz"]) > mtu + 100


def test_too_few_cpus_for_what_is_asked_is_said() -> None:
    with pytest.raises(PodperfError, match="low_end"):
        configuration(VETHS, (0, 1), "p", low_end=False)
    with pytest.raises(PodperfError, match=r"tester\.cpus"):
        configuration(VETHS, (), "p")


def test_a_folder_without_trex_is_said() -> None:
    settings = TrexServerSettings("/nowhere")
    with (
        pytest.raises(PodperfError, match=r"there is no /nowhere/_t-rex-64: tester\.settings\.server\.directory"),
        running(OneCommand(1), settings, VETHS, (0,)),  # type: ignore[arg-type]
    ):
        pass
