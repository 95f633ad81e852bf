"""The code that the BPF programs and the packet rings share: pacing, frames, accounting, the histogram's index."""

from __future__ import annotations

import ctypes
import ipaddress
import shutil
import struct
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podperf.model import IMIX, bucket_lower_ns, bucket_upper_ns

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler: the set-up installs one")

LARGEST_LATENCY_NS = 2**37 - 1
BOTH = "directions=left-to-right,right-to-left"


class Code:
    """One trial in the tester's own code, on a clock that the test turns."""

    def __init__(self, library: Path) -> None:
        self._code = ctypes.CDLL(str(library))
        self._buffer = ctypes.create_string_buffer(3000)

    def begin(self, request: str, trial: int = 7) -> str | None:
        """Start a trial. The complaint, or None."""
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

    def sent(self, direction: int = 0) -> tuple[int, int]:
        """Frames sent, frames sent late."""
        numbers = (ctypes.c_ulonglong * 2)()
        self._code.sent(direction, numbers)
        return numbers[0], numbers[1]

    def last_lost(self) -> int:
        """The number of the last lost frame from left to right, or -1."""
        self._code.last_lost_of.restype = ctypes.c_longlong
        return int(self._code.last_lost_of(0))

    def batch_after(self, took: int, frames: int) -> int:
        """The number of frames that a sender gives to the kernel at once, after so many took so many nanoseconds."""
        return int(self._code.batch_after(ctypes.c_ulonglong(took), frames))

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


def checksum_is_right(frame: bytes) -> bool:
    total = sum(struct.unpack("!10H", frame[14:34]))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total == 0xFFFF


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
@given(size=st.integers(64, 3000), flows=st.integers(1, 65536), count=st.integers(1, 50))
def test_frames_are_valid_and_of_the_size_asked_for(code: Code, size: int, flows: int, count: int) -> None:
    assert code.begin(f"load=0 duration=1 sizes={size} flows={flows}") is None
    for frame in code.frames(count):
        assert len(frame) == size - 4
        assert checksum_is_right(frame)
        assert struct.unpack("!H", frame[16:18])[0] == size - 4 - 14
        assert struct.unpack("!H", frame[38:40])[0] == size - 4 - 34
        assert struct.unpack("!H", frame[40:42])[0] == 0  # no UDP checksum
        assert code.receive(frame)
    assert outcome(code) == {"received": count}


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
    """The sink counts no latency then. To find the latency's bucket would take longer for some frames."""
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


@given(source=st.ip_addresses(v=4), destination=st.ip_addresses(v=4), size=st.sampled_from([64, 570, 1518]))
def test_frames_between_two_pods_have_the_addresses_of_the_pods(
    code: Code, source: ipaddress.IPv4Address, destination: ipaddress.IPv4Address, size: int
) -> None:
    ends = f"left-to-right.source={source} left-to-right.address={destination}"
    assert code.begin(f"load=0 duration=1 sizes={size} flows=3 trial=7 part=send {ends}") is None
    for frame in code.frames(4):
        assert addresses(frame) == (source, destination)
        assert checksum_is_right(frame)
        assert code.receive(frame)


@pytest.mark.parametrize("flows", [1, 2, 254, 255, 65024, 65536])
def test_every_flow_has_its_own_addresses_within_the_benchmark_network(code: Code, flows: int) -> None:
    code.begin(f"load=0 duration=1 flows={flows}")
    pairs = {addresses(frame) for frame in code.frames(flows + 10)}
    assert len(pairs) == flows == len({source for source, _ in pairs})
    assert all(source in ipaddress.ip_network("198.18.0.0/16") for source, _ in pairs)
    assert all(destination in ipaddress.ip_network("198.19.0.0/16") for _, destination in pairs)
    if flows <= 65024:
        assert not any(int(source) & 255 in (0, 255) for source, _ in pairs)


def test_an_entry_decides_where_frames_go(code: Code) -> None:
    entry = "left-to-right.mac=02:aa:bb:cc:dd:ee left-to-right.address=198.18.0.9 left-to-right.udp-port=5000"
    code.begin(f"load=0 duration=1 flows=100 {entry}")
    for frame in code.frames(100):
        assert frame[:6].hex(":") == "02:aa:bb:cc:dd:ee"
        assert str(addresses(frame)[1]) == "198.18.0.9"
        assert struct.unpack("!H", frame[36:38])[0] == 5000
        assert checksum_is_right(frame)


MACS = [f"02:00:00:00:02:{number:02x}" for number in range(1, 17)]


@settings(deadline=None)
@given(groups=st.integers(1, 16), each=st.integers(1, 5), count=st.integers(1, 200))
def test_frames_go_to_each_group_in_turn_and_a_flow_is_always_of_one_group(
    code: Code, groups: int, each: int, count: int
) -> None:
    macs = " ".join(f"left-to-right.{number}.mac={MACS[number - 1]}" for number in range(1, groups + 1))
    assert code.begin(f"load=0 duration=1 flows={each * groups} groups={groups} {macs}") is None
    frames = code.frames(count)
    assert [frame[:6].hex(":") for frame in frames] == [MACS[number % groups] for number in range(count)]
    assert all(checksum_is_right(frame) for frame in frames)
    groups_of = {
        addresses(frame): {other[:6] for other in frames if addresses(other) == addresses(frame)} for frame in frames
    }
    assert all(len(found) == 1 for found in groups_of.values())


def test_each_group_has_its_own_address_and_port(code: Code) -> None:
    further = "left-to-right.2.address=198.19.0.7 left-to-right.2.udp-port=9 left-to-right.2.mac=02:00:00:00:00:09"
    code.begin(f"load=0 duration=1 flows=2 groups=2 {further}")
    first, second, third = code.frames(3)
    assert first[:6] == third[:6] and second[:6].hex(":") == "02:00:00:00:00:09"
    assert [str(addresses(each)[1]) for each in (first, second, third)] == ["198.19.16.1", "198.19.0.7", "198.19.16.1"]
    assert [struct.unpack("!H", each[36:38])[0] for each in (first, second, third)] == [7, 9, 7]
    assert all(map(checksum_is_right, (first, second, third)))


def test_the_other_direction_is_the_mirror_image(code: Code) -> None:
    code.begin("load=0 duration=1 directions=right-to-left")
    (frame,) = code.frames(1)
    assert frame[:12].hex() == "020000000001020000000002"
    assert [str(each)[:6] for each in addresses(frame)] == ["198.19", "198.18"]


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


@given(start=st.integers(1, 2**63), latency=st.integers(0, 2**36))
def test_latency_is_from_sending_to_receiving_whatever_the_clock_says(code: Code, start: int, latency: int) -> None:
    code.begin("load=0 duration=1")
    (frame,) = code.frames(1, start)
    code.receive(frame, start + latency)
    counted = code.counted()
    assert counted["latency_min"] == counted["latency_max"] == counted["latency_sum"] == latency


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


def test_a_stall_is_made_up_for_without_a_burst(code: Code) -> None:
    code.begin("load=1000000 duration=0.05")
    sent = [now for now, _ in departures(code, clock(100, stalls={10_000_000: 5_000_000}))]
    assert len(sent) == 50_000
    after = [now for now in sent if now >= 5_015_000_000]
    for first, hundredth in zip(after, after[100:], strict=False):
        # Three quarters of the gap; the last 20 us of lateness, and 2 us of slack, are made up for at once.
        assert hundredth - first >= 100 * 750 - 20_000 - 2_000
    assert sent[-1] - sent[0] == pytest.approx(49_999_000, abs=20_000)  # back in time before the end
    _, late = code.sent()
    assert late > 4_000


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


# --- requests --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_line", "complaint"),
    [
        ("load=1", "load and duration must be given"),
        ("load=x duration=1", "load=x: must be 0 to 1e9 frames/s"),
        ("load=nan duration=1", "load=nan: must be"),
        ("load=1 duration=0", "duration=0: must be 0.001 to 86400 s"),
        ("load=1 duration=1 sizes=63", "sizes=63: must be 64 to 3000 bytes"),
        ("load=1 duration=1 sizes=", "sizes=: must be one size or more"),
        ("load=1 duration=1 sizes=64,64.5", "sizes=64.5: must be 64 to 3000 bytes"),
        ("load=1 duration=1 sizes=" + "64," * 65, "at most 64 sizes"),
        ("load=1 duration=1 flows=65537", "flows=65537: must be 1 to 65536"),
        ("load=1 duration=1 directions=up", "directions=up: must be left-to-right"),
        ("load=1 duration=1 left-to-right.mac=02:00", "left-to-right.mac=02:00: must be a MAC address"),
        ("load=1 duration=1 left-to-right.address=10.0.0.1", "must be an IPv4 address in 198.18.0.0/15"),
        ("load=1 duration=1 left-to-right.address=x", "must be an IPv4 address in 198.18.0.0/15"),
        ("load=1 duration=1 left-to-right.source=x", "left-to-right.source=x: must be an IPv4 address"),
        ("load=1 duration=1 left-to-right.source=10.0.0.1", "a source needs an address"),
        ("load=1 duration=1 trial=7 part=both", "part=both: must be send or count"),
        ("load=1 duration=1 trial=0", "trial=0: must be 1 to 65535"),
        ("load=1 duration=1 part=send", "a part needs a trial and one direction"),
        (f"load=1 duration=1 part=send trial=7 {BOTH}", "a part needs a trial and one direction"),
        ("load=0 duration=1 frames=64 burst=32 windows=2", "frames goes with neither a closed loop nor an overload"),
        ("load=0 duration=1 frames=0", "frames=0: must be 1 to 1e9"),
        ("load=1 duration=1 overload=2", "overload needs a duration and a load that follows"),
        ("load=0 duration=1 overload=2 overload-duration=1", "overload needs a duration and a load that follows"),
        ("load=1 duration=1 colour=red", "colour is no word of a request"),
        ("load=1 duration=1 left-to-right.colour=red", "left-to-right.colour is no word of a request"),
        ("load=1 duration=1 flows=3 groups=2", "flows must be a multiple of groups"),
        ("load=1 duration=1 flows=17 groups=17", "groups=17: must be 1 to 16"),
        ("load=1 duration=1 left-to-right.17.udp-port=9", "must be the entry of a group from 1 to 16"),
        ("load=1 duration=1 flows=2 groups=2 right-to-left.3.udp-port=9", "an entry is of group 3, and there are 2"),
        ("hello", "`hello` is not KEY=VALUE"),
    ],
)
def test_a_bad_request_is_refused_with_the_reason(code: Code, request_line: str, complaint: str) -> None:
    assert complaint in str(code.begin(request_line))
