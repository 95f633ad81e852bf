"""The code that the BPF programs and the packet rings share: pacing, frames, accounting, the histogram's index."""

from __future__ import annotations

import ctypes
import ipaddress
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from packets import HEADERS, checksums_are_right, faults_of
from podperf.frames import (
    BOTH_ADDRESSES,
    C_TAG,
    HOSTS,
    PLAIN,
    S_TAG,
    UDP_PORTS,
    Address,
    AddressFamily,
    Headers,
    Varying,
    Vlan,
    described,
)
from podperf.model import (
    IMIX,
    AddressedTraffic,
    Direction,
    Entry,
    TrafficProfile,
    bucket_lower_ns,
    bucket_upper_ns,
)
from podperf.testbed.frame_watch import SIGNATURE
from podperf.testers.software import _header_words
from traffic import SMALL

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler: the set-up installs one")

LARGEST_LATENCY_NS = 2**37 - 1
BOTH = "directions=left-to-right,right-to-left"
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")


class Code:
    """One trial in the tester's own code, on a clock that the test turns."""

    def __init__(self, library: Path) -> None:
        self._code = ctypes.CDLL(str(library))
        self._buffer = ctypes.create_string_buffer(9018)

    def begin(
        self,
        request: str,
        trial: int = 7,
        *,
        headers: Headers = PLAIN,
        entries: Sequence[Entry] = (),
        pods: bool = False,
    ) -> str | None:
        """Start a trial with these headers, and with these entries of the frames from the left. The complaint, or None.

        With `pods`, the addresses may be any.
        """
        words = dict(word.split("=") for word in request.split())
        groups = int(words.get("groups", 1))
        ways = [{Direction.LEFT_TO_RIGHT: entry} for entry in entries] or [{}] * groups
        small = SMALL.at_least(headers.smallest_frame)
        profile = TrafficProfile(small, flows=int(words.get("flows", 1)) // groups, headers=headers)
        traffic = AddressedTraffic(profile, ways[0], ways[1:])
        header_words = (f"{key}={value}" for key, value in _header_words(traffic, MACS, any_address=pods))
        return self.begin_as(" ".join([request, *header_words]), trial)

    def begin_as(self, request: str, trial: int = 7) -> str | None:
        """Start a trial with this whole request. The complaint, or None."""
        ctypes.memset(self._buffer, 0, len(self._buffer))  # as in the sender, all buffers are new
        refused = self._code.begin(request.encode(), trial)
        return (ctypes.c_char * 512).in_dll(self._code, "complaint").value.decode() if refused else None

    def send(self, now: int) -> tuple[int, bytes] | bool:
        """The frame that leaves at this time, with its direction. False: no frame is due. True: all frames are sent."""
        direction = ctypes.c_int()
        length = self._code.send_at(ctypes.c_ulonglong(now), self._buffer, ctypes.byref(direction))
        assert length >= -1
        return (direction.value, self._buffer.raw[:length]) if length > 0 else length < 0

    def frames(self, count: int, start: int = 1_000_000) -> list[bytes]:
        """So many frames of an unpaced trial, a microsecond apart."""
        sent = (self.send(start + 1000 * index) for index in range(count))
        return [each[1] for each in sent if isinstance(each, tuple)]

    def receive(self, frame: bytes, now: int = 10**9, direction: int = 0) -> bool:
        """Receive a frame at the end of this direction. True for a test frame."""
        return bool(self._code.receive_at(ctypes.c_ulonglong(now), frame, len(frame), direction))

    def counted(self) -> dict[str, int]:
        names = (
            "received",
            "duplicated",
            "reordered",
            "corrupted",
            "stray",
            "latency_sum",
            "latency_min",
            "latency_max",
            "latency_negative",
        )
        numbers = (ctypes.c_ulonglong * len(names))()
        self._code.counted(numbers)
        return dict(zip(names, numbers, strict=True))

    def by_group(self, groups: int) -> list[int]:
        """The received frames of each group of flows."""
        numbers = (ctypes.c_ulonglong * 16)()
        self._code.counted_by_group(numbers)
        assert not any(numbers[groups:])
        return list(numbers[:groups])

    def sent(self, direction: int = 0) -> tuple[int, int, int]:
        """Frames sent, frames sent late, and the nanoseconds that were made up for in haste."""
        numbers = (ctypes.c_ulonglong * 3)()
        self._code.sent(direction, numbers)
        return numbers[0], numbers[1], numbers[2]

    def last_lost(self) -> int:
        """The number of the last lost frame from left to right, or -1."""
        self._code.last_lost_of.restype = ctypes.c_longlong
        return int(self._code.last_lost_of(0))

    def arrived(self) -> dict[str, Any]:
        """What the headers of the first received frame have."""
        bytes_ = ctypes.create_string_buffer(80)
        self._code.first_arrived(bytes_)
        return described(bytes_.raw)

    def batch_after(self, took: int, frames: int) -> int:
        """The number of frames that a sender gives to the kernel at once, after so many took so many nanoseconds."""
        return int(self._code.batch_after(ctypes.c_ulonglong(took), frames))

    def timed(self, count: int) -> bytes:
        """For each frame of an unpaced trial: 1 if its latency counts, otherwise 0."""
        frames = ctypes.create_string_buffer(count)
        self._code.timed(count, frames)
        return frames.raw

    def index_of(self, value: int) -> int:
        return int(self._code.index_of(ctypes.c_ulonglong(value)))


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    library = tmp_path_factory.mktemp("tester") / "code.so"
    sources = HERE.parent / "tester"
    flags = ["-O1", "-shared", "-fPIC", "-w", f"-I{sources}", "-o", str(library)]
    subprocess.run([str(COMPILER), *flags, str(HERE / "tester_code.c"), "-lm"], check=True)
    return Code(library)


def outcome(code: Code) -> dict[str, int]:
    """The counters, without zeros and latencies."""
    return {name: count for name, count in code.counted().items() if count and "latency" not in name}


def sizes_in_order(sizes: list[int], flows: int) -> list[int]:
    """The sizes of the first 50 frames: after each round of flows, the next round begins with another size."""
    found, first, at = list[int](), 0, 0
    for number in range(1, 51):
        found.append(sizes[at])
        at = (at + 1) % len(sizes)
        if flows > 1 and number % flows == 0 and at == first:
            first = at = (first + 1) % len(sizes)
    return found


def addresses(frame: bytes) -> tuple[ipaddress.IPv4Address, ipaddress.IPv4Address]:
    return ipaddress.IPv4Address(frame[26:30]), ipaddress.IPv4Address(frame[30:34])


# --- the histogram ---------------------------------------------------------------------------------------------------


@given(value=st.integers(0, LARGEST_LATENCY_NS))
def test_a_latency_falls_into_the_bucket_that_the_model_reads(code: Code, value: int) -> None:
    index = code.index_of(value)
    assert bucket_lower_ns(index) <= value <= bucket_upper_ns(index)


@given(value=st.integers(LARGEST_LATENCY_NS + 1, 2**64 - 1))
def test_longer_latencies_share_the_last_bucket(code: Code, value: int) -> None:
    assert code.index_of(value) == code.index_of(LARGEST_LATENCY_NS)


# --- frames ----------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    headers=HEADERS,
    more=st.lists(st.integers(0, 8900), min_size=1, max_size=4),
    flows=st.integers(1, 70_000),
    count=st.integers(1, 50),
)
def test_frames_of_any_header_are_valid_and_of_the_sizes_asked_for(
    code: Code, headers: Headers, more: list[int], flows: int, count: int
) -> None:
    """Scapy reads them. All sizes go through one buffer, as in the sender: marks of earlier frames stay in it."""
    sizes = [headers.smallest_frame + each for each in more]
    assert code.begin(f"load=0 duration=1 sizes={','.join(map(str, sizes))} flows={flows}", headers=headers) is None
    frames = code.frames(count)
    for number, frame in enumerate(frames):
        assert len(frame) == sizes_in_order(sizes, flows)[number] - 4
        assert faults_of(frame, headers, headers.left) == []
        assert code.receive(frame)
    assert outcome(code) == {"received": count}
    names = {C_TAG: "802.1Q", S_TAG: "802.1ad"}
    tags_of = [{"id": tag.id, "priority": tag.priority, "type": names[tag.number]} for tag in headers.left]
    wanted = {"vlans": tags_of, "family": headers.family, "hop_limit": headers.hop_limit, "dscp": headers.dscp}
    assert code.arrived() == wanted


@settings(deadline=None)
@given(sent=HEADERS, arrives=HEADERS, size=st.integers(100, 3000), padding=st.integers(0, 30))
def test_a_frame_is_known_whatever_headers_the_system_under_test_gives_it(
    code: Code, sent: Headers, arrives: Headers, size: int, padding: int
) -> None:
    """Tags, another family of addresses, and padding at the end."""
    code.begin(f"load=0 duration=1 sizes={size}", headers=arrives)
    (other,) = code.frames(1)
    code.begin(f"load=0 duration=1 sizes={size - arrives.bytes + sent.bytes}", headers=sent)
    (frame,) = code.frames(1)
    assert code.receive(other[: arrives.bytes] + frame[sent.bytes :] + b"\x55" * padding)
    assert outcome(code) == {"received": 1}
    assert code.arrived()["family"] == arrives.family and len(code.arrived()["vlans"]) == len(arrives.left)


@pytest.mark.parametrize("offset", [1, 185])
def test_a_fragment_that_is_not_the_first_is_a_stray(code: Code, offset: int) -> None:
    code.begin("load=0 duration=1 sizes=1518")
    (frame,) = code.frames(1)
    assert not code.receive(frame[:20] + offset.to_bytes(2, "big") + frame[22:42] + frame[60:])
    assert outcome(code) == {"stray": 1}


@pytest.mark.parametrize(
    ("took", "frames", "batch"),
    [(0, 1, 32), (30_000, 1, 32), (32_000, 32, 32), (100_000, 1, 10), (1_000_000, 10, 10), (10**9, 32, 1)],
)
def test_frames_that_are_sent_together_take_a_millisecond_at_most(
    code: Code, took: int, frames: int, batch: int
) -> None:
    assert code.batch_after(took, frames) == batch


def test_a_closed_loop_sends_all_windows_and_the_beginning_of_one_more_burst(code: Code) -> None:
    assert code.begin("load=0 duration=10 burst=32 windows=2") is None
    assert len(code.frames(1000)) == 2 * 64 + 32


def test_a_sink_works_as_long_on_each_frame_of_a_closed_loop(code: Code) -> None:
    """The sink counts no latency then. The search for the latency's bucket would take longer for some frames."""
    code.begin("load=0 duration=10 burst=1 windows=1")
    for late, frame in enumerate(code.frames(20)):
        assert code.receive(frame, now=1_000_000 + 1000 * late + 2**late)
    assert code.counted()["received"] == 20 and code.counted()["latency_max"] == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("load=0 burst=3 windows=1", "burst=3: must be a power of two"),
        ("load=0 burst=128 windows=1", "burst=128: must be 1 to 64 frames"),
        ("load=0 burst=1 windows=65", "windows=65: must be 1 to 64"),
        ("load=0 burst=1", "a closed loop needs burst and windows, and load=0"),
        ("load=1000 burst=1 windows=1", "a closed loop needs burst and windows, and load=0"),
        ("load=1000 train=3", "train=3: must be a power of two"),
        ("load=0 train=32", "a train needs a load"),
    ],
)
def test_a_closed_loop_that_cannot_be_is_refused(code: Code, words: str, reason: str) -> None:
    assert reason in str(code.begin(f"duration=1 {words}"))


def test_a_mix_of_sizes_is_sent_in_its_order(code: Code) -> None:
    code.begin(f"load=0 duration=1 sizes={','.join(map(str, IMIX.sequence))}")
    assert [len(frame) + 4 for frame in code.frames(24)] == list(IMIX.sequence) * 2


@pytest.mark.parametrize("flows", [4, 7, 12])
def test_every_flow_of_a_mix_has_all_its_sizes(code: Code, flows: int) -> None:
    code.begin(f"load=0 duration=1 flows={flows} sizes={','.join(map(str, IMIX.sequence))}")
    frames = code.frames(50 * len(IMIX.sequence))
    seen = {addresses(frame): set[int]() for frame in frames}
    for frame in frames:
        seen[addresses(frame)].add(len(frame) + 4)
    assert list(seen.values()) == [set(IMIX.sequence)] * flows
    assert Counter(len(frame) + 4 for frame in frames) == Counter(IMIX.sequence * 50)


@given(
    ends=st.sampled_from([4, 6]).flatmap(lambda version: st.tuples(*[st.ip_addresses(v=version)] * 2)),
    size=st.sampled_from([84, 570, 1518]),
)
def test_frames_between_two_pods_have_the_addresses_of_the_pods(
    code: Code, ends: tuple[Address, Address], size: int
) -> None:
    source, destination = map(str, ends)
    family = Headers(AddressFamily.IPV6 if ends[0].version == 6 else AddressFamily.IPV4)
    entry = Entry(address=destination, source=source)
    request = f"load=0 duration=1 sizes={size} flows=3 trial=7 part=send"
    assert code.begin(request, headers=family, entries=[entry], pods=True) is None
    frames = [Ether(each) for each in code.frames(4)]
    for frame in frames:
        assert (ipaddress.ip_address(frame[1].src), ipaddress.ip_address(frame[1].dst)) == ends
        assert checksums_are_right(bytes(frame))
        assert code.receive(bytes(frame))
    assert [frame[UDP].sport for frame in frames] == [49184, 49185, 49186, 49184]


@pytest.mark.parametrize("flows", [1, 2, 254, 61439, 61440, 200_000])
def test_every_flow_has_its_own_addresses_and_ports_within_the_benchmark_network(code: Code, flows: int) -> None:
    code.begin(f"load=0 duration=1 flows={flows}")
    frames = code.frames(flows + 10)
    assert len({frame[26:36] for frame in frames}) == flows
    pairs = {addresses(frame) for frame in frames}
    assert len(pairs) == min(flows, HOSTS[1]) == len({source for source, _ in pairs})
    assert all(source in ipaddress.ip_network("198.18.0.0/16") for source, _ in pairs)
    assert all(destination in ipaddress.ip_network("198.19.0.0/16") for _, destination in pairs)
    assert min(int(source) & 0xFFFF for source, _ in pairs) == 16 << 8 | 1, "the first ones are the testbed's"
    assert len({frame[34:36] for frame in frames}) == -(-flows // HOSTS[1])


@pytest.mark.parametrize(
    ("varying", "flows", "ranges"),
    [
        ((Varying.SOURCE_PORT,), 16_352, (1, 1, 16_352, 1)),
        ((Varying.DESTINATION_PORT, Varying.SOURCE_ADDRESS), 1000, (33, 1, 1, 31)),
        ((*BOTH_ADDRESSES, *UDP_PORTS), 1_000_000, (1000, 1000, 1000, 1000)),
        (BOTH_ADDRESSES, 1_000_000, (61_439, 61_439, 17, 1)),
    ],
)
def test_flows_differ_in_what_the_headers_say(
    code: Code, varying: tuple[Varying, ...], flows: int, ranges: tuple[int, ...]
) -> None:
    assert code.begin(f"load=0 duration=1 flows={flows}", headers=Headers(varying=varying)) is None
    frames = code.frames(flows)
    assert len({frame[26:38] for frame in frames}) == flows
    places = (slice(26, 30), slice(30, 34), slice(34, 36), slice(36, 38))
    assert tuple(len({frame[place] for frame in frames}) for place in places) == ranges


@pytest.mark.parametrize("outer", [(), (Vlan(7, 1, S_TAG),)])
def test_flows_differ_in_the_id_of_the_inner_tag(code: Code, outer: tuple[Vlan, ...]) -> None:
    tags = (*outer, Vlan(4000, 5))
    headers = Headers(left=tags, right=tags, varying=(Varying.VLAN_ID, Varying.SOURCE_PORT))
    assert headers.most_flows == 95 * 16_352
    assert code.begin("load=0 duration=1 sizes=100 flows=100", headers=headers) is None
    frames = code.frames(100)
    read = [Ether(frame) for frame in frames]
    assert {(frame[Dot1Q].vlan, frame[Dot1Q].prio) for frame in read} == {(4000 + each, 5) for each in range(10)}
    assert len({(frame[Dot1Q].vlan, frame[UDP].sport) for frame in read}) == 100
    assert [frame[Dot1AD].vlan for frame in read if Dot1AD in frame] == [7] * 100 * len(outer)
    assert all(code.receive(frame) for frame in frames)
    assert outcome(code) == {"received": 100}


def test_flows_in_pseudo_random_order_are_the_same_flows(code: Code) -> None:
    seen = []
    for headers in (PLAIN, Headers(random=True), Headers(random=True)):
        code.begin("load=0 duration=1 flows=1000", headers=headers)
        seen.append([addresses(frame) for frame in code.frames(1000)])
    in_turn, one, other = seen
    assert one == other != in_turn and set(one) == set(in_turn)


def test_an_entry_decides_where_frames_go(code: Code) -> None:
    code.begin("load=0 duration=1 flows=100", entries=[Entry("02:aa:bb:cc:dd:ee", "198.18.0.9", 5000)])
    for frame in code.frames(100):
        assert frame[:6].hex(":") == "02:aa:bb:cc:dd:ee"
        assert str(addresses(frame)[1]) == "198.18.0.9"
        assert struct.unpack("!H", frame[36:38])[0] == 5000
        assert checksums_are_right(frame)


GROUPS = [f"02:00:00:00:02:{number:02x}" for number in range(1, 17)]


@settings(deadline=None)
@given(groups=st.integers(1, 16), each=st.integers(1, 5), count=st.integers(1, 200))
def test_frames_go_to_each_group_in_turn_and_a_flow_is_always_of_one_group(
    code: Code, groups: int, each: int, count: int
) -> None:
    entries = [Entry(mac) for mac in GROUPS[:groups]]
    assert code.begin(f"load=0 duration=1 flows={each * groups} groups={groups}", entries=entries) is None
    frames = code.frames(count)
    assert [frame[:6].hex(":") for frame in frames] == [GROUPS[number % groups] for number in range(count)]
    assert all(checksums_are_right(frame) for frame in frames)
    groups_of = {
        addresses(frame): {other[:6] for other in frames if addresses(other) == addresses(frame)} for frame in frames
    }
    assert all(len(found) == 1 for found in groups_of.values())


def test_each_group_has_its_own_address_and_port(code: Code) -> None:
    entries = [Entry(), Entry("02:00:00:00:00:09", "198.19.0.7", 9)]
    code.begin("load=0 duration=1 flows=2 groups=2", entries=entries)
    first, second, third = code.frames(3)
    assert first[:6] == third[:6] and second[:6].hex(":") == "02:00:00:00:00:09"
    assert [str(addresses(each)[1]) for each in (first, second, third)] == ["198.19.16.1", "198.19.0.7", "198.19.16.1"]
    assert [struct.unpack("!H", each[36:38])[0] for each in (first, second, third)] == [7, 9, 7]
    assert all(map(checksums_are_right, (first, second, third)))


def test_the_other_direction_is_the_mirror_image(code: Code) -> None:
    code.begin("load=0 duration=1 directions=right-to-left")
    (frame,) = code.frames(1)
    assert frame[:12].hex() == "020000000001020000000002"
    assert [str(address)[:6] for address in addresses(frame)] == ["198.19", "198.18"]


# --- accounting ------------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(groups=st.integers(2, 16), fates=st.lists(st.integers(0, 3), min_size=1, max_size=150), data=st.data())
def test_the_frames_of_each_group_add_up_to_all(code: Code, groups: int, fates: list[int], data: st.DataObject) -> None:
    """Frames are lost (0), arrive once (1), twice (2) or damaged (3), in any order."""
    code.begin(f"load=0 duration=1 flows={groups} groups={groups}")
    arriving = [(number, frame) for number, frame in enumerate(code.frames(len(fates))) if fates[number]]
    for number, frame in data.draw(st.permutations(arriving)):
        if fates[number] == 3:
            code.receive(frame[:50] + bytes([frame[50] ^ 1]) + frame[51:])
        for _ in range(fates[number] % 3):
            code.receive(frame)
    wanted = [sum(fate in (1, 2) for fate in fates[group::groups]) for group in range(groups)]
    assert code.by_group(groups) == wanted
    assert code.counted()["received"] == sum(wanted)


def test_without_groups_none_is_counted(code: Code) -> None:
    code.begin("load=0 duration=1 flows=4")
    for frame in code.frames(10):
        code.receive(frame)
    assert code.by_group(0) == []


@given(size=st.integers(64, 3000), bit=st.integers(0, 18 * 8 - 1), sequence=st.integers(0, 20))
def test_any_bit_of_the_head_that_changes_is_seen(code: Code, size: int, bit: int, sequence: int) -> None:
    code.begin(f"load=0 duration=1 sizes={size}")
    frame = bytearray(code.frames(sequence + 1)[-1])
    frame[42 + bit // 8] ^= 1 << bit % 8
    code.receive(bytes(frame))
    assert outcome(code) == {"corrupted": 1}


@given(size=st.integers(72, 3000), byte=st.integers(1, 8))
def test_any_byte_at_the_end_that_changes_is_seen(code: Code, size: int, byte: int) -> None:
    code.begin(f"load=0 duration=1 sizes={size}")
    frame = bytearray(code.frames(1)[0])
    frame[-byte] ^= 0x40
    code.receive(bytes(frame))
    assert outcome(code) == {"corrupted": 1}


def test_a_fault_at_a_fixed_place_is_found_over_some_frames(code: Code) -> None:
    code.begin("load=0 duration=1 sizes=1518")
    for frame in code.frames(4000):
        code.receive(frame[:700] + bytes([frame[700] ^ 1]) + frame[701:])
    found = outcome(code)
    assert found["corrupted"] > 4000 / 190 / 2  # one in about 181 words
    assert found["corrupted"] + found["received"] == 4000


@given(size=st.integers(80, 3000), cut=st.integers(1, 16))
def test_a_frame_cut_short_is_corrupted(code: Code, size: int, cut: int) -> None:
    code.begin(f"load=0 duration=1 sizes={size}")
    code.receive(code.frames(1)[0][:-cut])
    assert outcome(code) == {"corrupted": 1}


@given(header=st.binary(min_size=42, max_size=42))
def test_headers_may_be_rewritten_on_the_way(code: Code, header: bytes) -> None:
    code.begin("load=0 duration=1 sizes=128")
    assert code.receive(header + code.frames(1)[0][42:])
    assert outcome(code) == {"received": 1}


@given(order=st.permutations(range(30)))
def test_reordering_counts_frames_that_come_after_a_later_one(code: Code, order: list[int]) -> None:
    code.begin("load=0 duration=1")
    frames = code.frames(30)
    for index in order:
        code.receive(frames[index])
    behind = sum(index < max(order[: place + 1]) for place, index in enumerate(order))
    assert {"reordered": 0, **outcome(code)} == {"received": 30, "reordered": behind}


@given(copies=st.lists(st.integers(1, 4), min_size=1, max_size=50), gap=st.integers(0, 60))
def test_copies_are_counted_apart_however_they_arrive(code: Code, copies: list[int], gap: int) -> None:
    code.begin("load=0 duration=1")
    arrivals: list[tuple[int, bytes]] = []
    for index, frame in enumerate(code.frames(len(copies))):
        arrivals += [(index + copy * gap, frame) for copy in range(copies[index])]
    for _, frame in sorted(arrivals, key=lambda arrival: arrival[0]):
        code.receive(frame)
    found = outcome(code)
    assert found["received"] == len(copies)
    assert found.get("duplicated", 0) == sum(copies) - len(copies)


@pytest.mark.parametrize("direction", [0, 1])
def test_learning_frames_are_taken_and_not_counted(code: Code, direction: int) -> None:
    code.begin("load=0 duration=1", trial=0)
    (learning,) = code.frames(1)
    code.begin("load=0 duration=1", trial=7)
    (own,) = code.frames(1)
    damaged = learning[:-1] + b"\xff"
    assert all(code.receive(each, direction=direction) for each in (learning, learning, damaged))
    assert outcome(code) == {}
    assert code.receive(own) and outcome(code) == {"received": 1}


def test_frames_of_another_trial_or_direction_and_other_peoples_are_strays(code: Code) -> None:
    code.begin("load=0 duration=1", trial=6)
    (stale,) = code.frames(1)
    code.begin("load=0 duration=1", trial=7)
    (fresh,) = code.frames(1)
    assert code.receive(stale)
    assert code.receive(fresh, direction=1)
    assert not code.receive(b"\xff" * 60)
    assert not code.receive(b"\xff" * 20)
    assert outcome(code) == {"stray": 4}


@given(start=st.integers(1, 2**63).filter(lambda start: start % 2**48), latency=st.integers(0, 2**36))
def test_latency_is_from_sending_to_receiving_whatever_the_clock_says(code: Code, start: int, latency: int) -> None:
    code.begin("load=0 duration=1")
    (frame,) = code.frames(1, start)
    code.receive(frame, start + latency)
    counted = code.counted()
    assert counted["latency_min"] == counted["latency_max"] == counted["latency_sum"] == latency
    assert counted["latency_negative"] == 0


@given(early=st.integers(1, 2**46))
def test_a_frame_that_arrives_before_its_time_of_sending_has_no_latency(code: Code, early: int) -> None:
    code.begin("load=0 duration=1")
    (frame,) = code.frames(1, start=2**47)
    code.receive(frame, 2**47 - early)
    counted = code.counted()
    assert counted["received"] == counted["latency_negative"] == 1
    assert (counted["latency_min"], counted["latency_max"], counted["latency_sum"]) == (2**64 - 1, 0, 0)


@pytest.mark.parametrize("count", [1, 7, 8, 100, 100_000])
def test_one_frame_in_eight_of_an_unpaced_trial_has_its_latency(code: Code, count: int) -> None:
    timed = code.timed(count)
    assert timed[0] == 1
    if count >= 100_000:
        assert sum(timed) == pytest.approx(count / 8, rel=0.05)
    # So the frames of a run are in one batch of the kernel.
    assert {place % 8 for place in range(1, count - 1) if timed[place] != timed[place - 1]} <= {0}


@pytest.mark.parametrize("flows", [2, 3, 8, 12, 16, 60, 64, 100, 128, 1000])
def test_each_flow_and_size_has_its_share_of_the_latencies_of_an_unpaced_trial(code: Code, flows: int) -> None:
    timed = code.timed(2000 * flows)
    shares = [sum(timed[flow::flows]) / 2000 for flow in range(flows)]
    assert min(shares) > 0.08 and max(shares) < 0.2


# --- pacing ----------------------------------------------------------------------------------------------------------


def departures(code: Code, moments: Iterator[int]) -> list[tuple[int, int]]:
    """When which direction sent, until the trial ended."""
    result = []
    for now in moments:
        answer = code.send(now)
        if answer is True:
            return result
        if answer:
            result.append((now, answer[0]))
    return result


def clock(step: int, start: int = 5_000_000_000, stalls: dict[int, int] | None = None) -> Iterator[int]:
    """Moments `step` ns apart; `stalls` maps an offset from the start to a pause in ns."""
    now, pending = start, sorted((stalls or {}).items())
    while now < start + 10**10:
        yield now
        now += step
        if pending and now - start >= pending[0][0]:
            now += pending.pop(0)[1]


@settings(deadline=None, max_examples=30)
@given(load=st.floats(50, 1e6))
def test_the_mean_rate_is_exact_whatever_the_rate(code: Code, load: float) -> None:
    duration = min(1.0, max(0.001, 100 / load))
    code.begin(f"load={load:.6f} duration={duration:.6f}")
    step = max(1, int(1e9 / load / 20))
    sent = departures(code, clock(step))
    assert len(sent) == max(1, round(load * duration))
    span = sent[-1][0] - sent[0][0]
    assert span == pytest.approx((len(sent) - 1) * 1e9 / load, abs=step + 1)


def test_two_directions_share_the_clock_evenly(code: Code) -> None:
    code.begin(f"load=10000 duration=0.01 {BOTH}")
    sent = departures(code, clock(100))
    assert [direction for _, direction in sent] == [0, 1] * 100
    assert all(later[0] - earlier[0] == pytest.approx(50_000, abs=200) for earlier, later in pairwise(sent))


@pytest.mark.parametrize("train", [2, 32, 64])
def test_frames_of_a_train_are_due_together_and_the_mean_rate_stays(code: Code, train: int) -> None:
    code.begin(f"load=100000 duration=0.02 train={train}")
    sent = [now for now, _ in departures(code, clock(100))]
    assert len(sent) == 2000
    trains = [sent[place : place + train] for place in range(0, len(sent), train)]
    assert all(each[-1] - each[0] == (len(each) - 1) * 100 for each in trains), "one at each call"
    starts = [each[0] for each in trains]
    assert all(later - earlier == pytest.approx(train * 10_000, abs=200) for earlier, later in pairwise(starts))
    assert starts[-1] - starts[0] == pytest.approx((len(trains) - 1) * train * 10_000, abs=200)


def test_late_trains_stay_together_and_come_faster_until_the_stall_is_made_up_for(code: Code) -> None:
    code.begin("load=100000 duration=0.05 train=32")
    sent = [now for now, _ in departures(code, clock(100, stalls={10_000_000: 5_000_000}))]
    assert len(sent) == 5000
    trains = [sent[place : place + 32] for place in range(0, len(sent), 32)]
    assert all(each[-1] - each[0] == (len(each) - 1) * 100 for each in trains)
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(trains)]
    assert sum(235_000 < gap < 305_000 for gap in gaps) > 40, "three quarters of the usual 320 us, and then more"
    assert sum(gap < 235_000 for gap in gaps) <= 4, "trains that are late by two at most leave at once"


def test_a_stall_is_made_up_for_without_a_burst(code: Code) -> None:
    code.begin("load=1000000 duration=0.05")
    sent = [now for now, _ in departures(code, clock(100, stalls={10_000_000: 5_000_000}))]
    assert len(sent) == 50_000
    after = [now for now in sent if now >= 5_015_000_000]
    for first, hundredth in zip(after, after[100:], strict=False):
        # Three quarters of the gap; the last 20 us of lateness, and 2 us of slack, are made up for at once.
        assert hundredth - first >= 100 * 750 - 20_000 - 2_000
    assert sent[-1] - sent[0] == pytest.approx(49_999_000, abs=20_000)  # back in time before the end
    _, late, _ = code.sent()
    assert late > 4_000


def dropped(moments: list[int], rate: float, burst: int = 20) -> int:
    """The frames that a limiter drops: it has room for `burst` frames at once, and for `rate` frames/s."""
    tokens, before, drops = float(burst), moments[0], 0
    for now in moments:
        tokens, before = min(burst, tokens + (now - before) * rate / 1e9), now
        drops += tokens < 1
        tokens -= tokens >= 1
    return drops


BUSY = {moment * 10_000_000: 3_000_000 for moment in range(1, 70, 10)}  # a stall of 3 ms in each 100 ms


def test_a_limiter_drops_no_frame_of_a_sender_that_catches_up_slowly(code: Code) -> None:
    """With bursts of three quarters of a gap, a limiter of 20 000 frames/s dropped frames from 15 000 frames/s on."""
    code.begin("load=18500 duration=1")
    sent = [now for now, _ in departures(code, clock(1000, stalls=BUSY))]
    assert len(sent) == 18_500
    _, late, hurried = code.sent()
    assert late > 1_000 and hurried == 0
    assert dropped(sent, 20_000) == 0


@settings(deadline=None, max_examples=30)
@given(stall=st.integers(5_000_000, 40_000_000), at=st.integers(100_000_000, 200_000_000), load=st.floats(2e4, 2e5))
def test_a_sender_in_haste_tells_the_most_frames_that_a_limiter_may_drop(
    code: Code, stall: int, at: int, load: float
) -> None:
    code.begin(f"load={load:.6f} duration=0.25")
    sent = [now for now, _ in departures(code, clock(500, stalls={at: stall}))]
    lost, hurried = dropped(sent, load * 16 / 15), code.sent()[2] * load / 1e9
    assert lost <= hurried + 1
    if stall > (250_000_000 - at) / 3:
        assert hurried > 0


def test_what_cannot_be_made_up_for_is_not_sent(code: Code) -> None:
    code.begin("load=100000 duration=0.1")
    sent = departures(code, clock(100, stalls={50_000_000: 45_000_000}))
    assert 5_000 < len(sent) < 6_000
    assert sent[-1][0] - sent[0][0] < 102_100_000


def test_an_unpaced_trial_sends_at_every_call_until_its_time_is_up(code: Code) -> None:
    code.begin(f"load=0 duration=0.001 {BOTH}")
    sent = departures(code, clock(1000))
    assert len(sent) == 1000
    assert [direction for _, direction in sent] == [0, 1] * 500


@pytest.mark.parametrize("frames", [1, 7, 500])
def test_so_many_frames_leave_as_fast_as_possible(code: Code, frames: int) -> None:
    code.begin(f"load=0 duration=1 frames={frames} {BOTH}")
    sent = departures(code, clock(100))
    assert len(sent) == 2 * frames
    assert sent[-1][0] - sent[0][0] == (2 * frames - 1) * 100, "one at each call"
    code.begin(f"load=100000 duration=1 frames={frames}")
    assert [now for now, _ in departures(code, clock(100))][-1] == pytest.approx(
        sent[0][0] + (frames - 1) * 10_000, abs=200
    )


def test_an_overload_goes_first_and_then_the_load(code: Code) -> None:
    code.begin("load=50000 duration=0.02 overload=200000 overload-duration=0.01")
    sent = [now for now, _ in departures(code, clock(100))]
    assert len(sent) == 2000 + 1000
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    assert all(gap == pytest.approx(5_000, abs=200) for gap in gaps[:1999])
    assert all(gap == pytest.approx(20_000, abs=200) for gap in gaps[2000:])


@given(lost=st.sets(st.integers(0, 99)))
@settings(max_examples=50)
def test_the_last_lost_frame_is_known(code: Code, lost: set[int]) -> None:
    code.begin("load=0 duration=1 frames=100")
    for number, frame in enumerate(code.frames(100)):
        if number not in lost:
            code.receive(frame)
    assert code.last_lost() == max(lost, default=-1)


def test_the_watch_for_frames_outside_knows_the_testers_signature(code: Code) -> None:
    code.begin(f"load=0 duration=1 {BOTH}")
    found = {struct.unpack_from("<I", frame, 46)[0] for frame in code.frames(10)}
    assert found == {SIGNATURE, SIGNATURE | 1}


HEADER = f"load=1 duration=1 left-to-right.header={'00' * 42}"

# --- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_line", "complaint"),
    [
        ("load=1", "load and duration must be given"),
        ("load=x duration=1", "load=x: must be 0 to 1e9 frames/s"),
        ("load=nan duration=1", "load=nan: must be"),
        ("load=1 duration=0", "duration=0: must be 0.001 to 86400 s"),
        ("load=1 duration=1 sizes=", "sizes=: must be one size or more"),
        ("load=1 duration=1 sizes=64,64.5", "sizes=64.5: must be 64 to 9022 bytes"),
        ("load=1 duration=1 sizes=" + "64," * 65, "at most 64 sizes"),
        ("load=1 duration=1 flows=1048577", "flows=1048577: must be 1 to 1048576"),
        ("load=1 duration=1 directions=up", "directions=up: must be left-to-right"),
        ("load=1 duration=1 left-to-right.header=0200", "must be an even number of bytes from 42 to 80"),
        (f"load=1 duration=1 left-to-right.header={'0' * 85}", "must be an even number of bytes from 42 to 80"),
        (f"load=1 duration=1 left-to-right.header={'0x' * 42}", "must be an even number of bytes from 42 to 80"),
        (f"load=1 duration=1 left-to-right.header={'00' * 82}", "must be an even number of bytes from 42 to 80"),
        ("load=1 duration=1", "there is no header left-to-right of group 1"),
        (f"{HEADER} right-to-left.header={'00' * 44}", "the headers are not of the same length"),
        (f"{HEADER} sizes=63", "sizes=63: must be 64 to 9022 bytes"),
        (f"load=1 duration=1 left-to-right.header={'00' * 62}", "frames with these headers have 84 bytes or more"),
        (
            f"{HEADER} fields=28:third",
            "fields=28:third: must be an even offset, and length less a number, first or second",
        ),
        (f"{HEADER} fields=27:first", "fields=27:first: must be an even offset"),
        (f"{HEADER} fields=16:length", "fields=16:length: must be an even offset"),
        (f"{HEADER} fields=28:first,28:first", "fields=28:first: must be an even offset"),
        (f"{HEADER} fields=16:length-14,28:first", "fields=28:first: must be before the fields with a length"),
        (f"{HEADER} fields={','.join(f'{2 * at}:first' for at in range(9))}", "must be one of at most 8 fields"),
        (f"{HEADER} fields=42:first", "a field is not in the header"),
        (f"{HEADER} fields=82:first", "fields=82:first: must be an even offset"),
        (f"{HEADER} checksums=24:14-44", "a checksum is not in the header"),
        (f"{HEADER} checksums=24:14", "checksums=24:14: must be OFFSET:FROM-TO"),
        (f"{HEADER} checksums=24:14-34,24:14-34,24:14-34", "must be one of at most 2 checksums"),
        (f"{HEADER} checksums=40:26-42:17:38", "one that names a field; the fields go first"),
        (f"{HEADER} values=65536:1", "values=65536:1: must be one of at most two FIRST:COUNT"),
        (f"{HEADER} values=1:1,1:1,1:1", "must be one of at most two FIRST:COUNT"),
        (f"{HEADER} left-to-right.fixed=28", "the offset of a field; the fields go first"),
        (f"{HEADER} order=up", "order=up: must be in-turn or random"),
        (f"{HEADER} mtu=0", "mtu=0: must be 1 to 65535 bytes"),
        ("load=1 duration=1 load=1000000", "load is there twice"),
        ("load=1 duration=1 trial=7 part=both", "part=both: must be send, count, round-trip, return"),
        ("load=1 duration=1 trial=0", "trial=0: must be 1 to 65535"),
        ("load=1 duration=1 at=noon", "at=noon: must be seconds since the epoch"),
        ("load=1 duration=1 part=send", "a part needs a trial and one direction"),
        (f"load=1 duration=1 part=send trial=7 {BOTH}", "a part needs a trial and one direction"),
        (f"{HEADER} part=exchange trial=7", "an exchange both"),
        ("load=0 duration=1 frames=64 burst=32 windows=2", "frames goes with neither a closed loop nor an overload"),
        ("load=0 duration=1 frames=0", "frames=0: must be 1 to 1e9"),
        ("load=1 duration=1 overload=2", "overload needs a duration and a load that follows"),
        ("load=0 duration=1 overload=2 overload-duration=1", "overload needs a duration and a load that follows"),
        ("load=1 duration=1 colour=red", "colour is no word of a request"),
        ("load=1 duration=1 left-to-right.colour=red", "left-to-right.colour is no word of a request"),
        ("load=1 duration=1 flows=3 groups=2", "flows must be a multiple of groups"),
        ("load=1 duration=1 flows=17 groups=17", "groups=17: must be 1 to 16"),
        ("load=1 duration=1 left-to-right.17.fixed=9", "must be the entry of a group from 1 to 16"),
        (
            f"{HEADER} right-to-left.2.header={'00' * 42}",
            "a header is of group 2, and there are 1",
        ),
        ("hello", "`hello` is not KEY=VALUE"),
    ],
)
def test_a_bad_request_is_refused_with_the_reason(code: Code, request_line: str, complaint: str) -> None:
    assert complaint in str(code.begin_as(request_line))
