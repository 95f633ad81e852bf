"""The values that all packages above the hosts share. No I/O.

Units: loads and rates are in frames per second and per direction, durations in seconds, latencies in nanoseconds, frame
sizes in bytes with the FCS, ratios between 0 and 1. Terms are those of RFC 2544, RFC 9971 and ETSI TST 009. MRR is
FD.io CSIT's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import reduce
from statistics import fmean
from types import MappingProxyType
from typing import Any, ClassVar

from podperf.cpu_time import CpuTime
from podperf.noise import Noise

DRAFT = "draft-dcn-bmwg-containerized-infra-10"  # the version whose section numbers podperf uses

FCS_BYTES = 4
L1_OVERHEAD_BYTES = 20  # preamble 7, start delimiter 1, interframe gap 12 (IEEE 802.3)
MIN_FRAME_BYTES, MAX_FRAME_BYTES = 64, 3000
MOST_GROUPS = 16  # groups of flows that a tester can count apart
MOST_PODS = 255  # of a chain on one worker: the third byte of an address (addressing.left_of) counts the segments


class Direction(StrEnum):
    """The direction in which a frame crosses the system under test."""

    LEFT_TO_RIGHT = "left-to-right"
    RIGHT_TO_LEFT = "right-to-left"


BOTH_DIRECTIONS = (Direction.LEFT_TO_RIGHT, Direction.RIGHT_TO_LEFT)


class NetworkingModel(StrEnum):
    """The categories of draft section 4.1, in its order."""

    KERNEL_SPACE = "kernel-space"
    USER_SPACE = "user-space"
    EBPF = "ebpf"
    SMART_NIC = "smart-nic"
    COMBINATION = "combination"
    NONE = "none"  # the bare path, and a black box of unknown kind

    @property
    def section(self) -> str:
        """The section of the draft about this model."""
        return "4.1" if self is NetworkingModel.NONE else f"4.1.{list(NetworkingModel).index(self) + 1}"


@dataclass(frozen=True)
class FrameSize:
    """The sizes of the frames of one trial: one size, or a repeating mix of sizes.

    `sequence` is the repeated order of sizes. A single size has one entry.
    """

    name: str
    sequence: tuple[int, ...]

    def __post_init__(self) -> None:
        for size in self.sequence:
            if not MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES:
                raise ValueError(
                    f"frame size {size} is outside {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} bytes (with FCS)"
                )

    @staticmethod
    def parse(text: str | float) -> FrameSize:
        """`64`, `64.0`, `"64"`, `"64B"`, `"1518 B"` or `"IMIX"` as a FrameSize. ValueError names the allowed values."""
        word = (f"{text:g}" if isinstance(text, float) else str(text)).strip().upper()
        if word == "IMIX":
            return IMIX
        digits = word.removesuffix("B").strip()
        if not digits.isascii() or not digits.isdigit():
            raise ValueError(f"frame size {text!r} is neither a number of bytes (with FCS) nor IMIX")
        return FrameSize(f"{int(digits)}B", (int(digits),))

    @property
    def mean_bytes(self) -> float:
        """Mean size in bytes, with FCS."""
        return fmean(self.sequence)

    @property
    def largest(self) -> int:
        """The largest size of the mix, in bytes with FCS."""
        return max(self.sequence)


# The simple IMIX of RFC 6985 and of CSIT: 7 x 64, 4 x 570, 1 x 1518, mixed so that no size comes in a burst.
IMIX = FrameSize("IMIX", (64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 64, 570))


def l2_bit_rate(frames_per_second: float, frame: FrameSize) -> float:
    """Bits per second counted from the destination MAC to the FCS."""
    return frames_per_second * frame.mean_bytes * 8


def l1_bit_rate(frames_per_second: float, frame: FrameSize) -> float:
    """Bits per second on the wire: L2 plus preamble, start delimiter and interframe gap (20 bytes a frame)."""
    return frames_per_second * (frame.mean_bytes + L1_OVERHEAD_BYTES) * 8


def line_rate(link_bits_per_second: float, frame: FrameSize) -> float:
    """The most frames per second that a link of this speed carries."""
    return link_bits_per_second / ((frame.mean_bytes + L1_OVERHEAD_BYTES) * 8)


@dataclass(frozen=True)
class Entry:
    """The destination of test frames that enter the system under test from one side.

    `None` means the tester's default: the MAC of the other tester port, the flow's own address, the tester's UDP port.
    """

    mac: str | None = None
    address: str | None = None
    udp_port: int | None = None


@dataclass(frozen=True)
class TrafficProfile:
    """The properties of the test traffic apart from load and duration.

    `flows` (1 to 65 536) UDP flows a direction, with addresses from 198.18.0.0/15 (RFC 2544 appendix C.2.2).
    If several chains stand beside each other, `further_entries` has those of all chains but the first. The flows are
    then in as many groups of the same size, one for each chain. Frames go to each group in turn.
    """

    frame: FrameSize
    directions: tuple[Direction, ...] = (Direction.LEFT_TO_RIGHT,)
    flows: int = 1
    entries: Mapping[Direction, Entry] = field(default_factory=lambda: MappingProxyType({}))
    further_entries: Sequence[Mapping[Direction, Entry]] = ()

    def __post_init__(self) -> None:
        if self.groups > MOST_GROUPS or self.flows % self.groups:
            raise ValueError(f"{self.flows} flows cannot be in {self.groups} groups of the same size, at most 16")
        if not 1 <= self.flows <= 65536:
            raise ValueError(f"flows must be 1 to 65536, not {self.flows}")
        if not self.directions or len(set(self.directions)) != len(self.directions):
            raise ValueError(f"directions must name one or both directions once, not {self.directions}")

    @property
    def groups(self) -> int:
        """The number of groups of flows."""
        return 1 + len(self.further_entries)

    def entry(self, direction: Direction) -> Entry:
        """The destination of frames of this direction, or of its first group of flows."""
        return self.entries.get(direction, Entry())

    def entries_of(self, direction: Direction) -> list[Entry]:
        """The destination of each group of flows of this direction."""
        return [each.get(direction, Entry()) for each in (self.entries, *self.further_entries)]


@dataclass(frozen=True)
class Loop:
    """A closed loop: bursts of `burst` frames. A burst is sent when the previous one has arrived.

    A trial has `windows` windows of WINDOW frames. `warm_up` frames, a multiple of WINDOW, go before the first window.
    """

    burst: int  # a power of two, at most WINDOW
    windows: int
    warm_up: int = 0

    WINDOW: ClassVar[int] = 64  # frames of which the tester tells the common time


@dataclass(frozen=True)
class Overload:
    """The first part of a trial: `load` frames per second and direction for `duration` seconds."""

    load: float
    duration: float


@dataclass(frozen=True)
class Trial:
    """One measurement at a constant load. `load` is frames per second and per direction, `duration` seconds.

    With `loop`, frames go in a closed loop, and `load` has no meaning. `duration` is then the longest time allowed.
    `train` frames leave together (a power of two, at most 64), at the same mean load. With `frames`, so many frames
    leave in each direction, and `duration` is the longest time allowed. With `overload`, this part goes first, and
    `load` and `duration` are of the part that follows without a gap.
    """

    traffic: TrafficProfile
    load: float
    duration: float
    loop: Loop | None = None
    train: int = 1
    frames: int = 0
    overload: Overload | None = None

    @property
    def mean_load(self) -> float:
        """Frames per second and direction over the whole trial."""
        if self.overload is None:
            return self.load
        frames = self.overload.load * self.overload.duration + self.load * self.duration
        return frames / (self.overload.duration + self.duration)

    @property
    def longest(self) -> float:
        """Seconds that the sending may take."""
        return self.duration + (self.overload.duration if self.overload else 0.0)


@dataclass(frozen=True)
class Latency:
    """One-way latency of the frames of one direction, in nanoseconds, with its log-linear histogram.

    `counts` maps an HdrHistogram counts index (lowest value 1, two significant digits) to a number of frames.
    """

    minimum: int
    mean: float
    maximum: int
    counts: Mapping[int, int]

    def percentile(self, percent: float) -> int:
        """The latency in ns that `percent` of the frames did not exceed: the upper edge of a bucket, or the maximum."""
        total = sum(self.counts.values())
        wanted = max(1.0, total * percent / 100)
        seen = 0
        for index in sorted(self.counts):
            seen += self.counts[index]
            if seen >= wanted:
                return min(bucket_upper_ns(index), self.maximum)
        return self.maximum

    def merged(self, other: Latency) -> Latency:
        """The latency of both sets of frames taken together."""
        counts = Counter(self.counts)
        counts.update(other.counts)
        mine, theirs = sum(self.counts.values()), sum(other.counts.values())
        mean = (self.mean * mine + other.mean * theirs) / max(1, mine + theirs)
        return Latency(min(self.minimum, other.minimum), mean, max(self.maximum, other.maximum), counts)


def merged_latency(latencies: Iterable[Latency | None]) -> Latency | None:
    """All latencies together, or None without any."""
    found = [each for each in latencies if each is not None]
    return reduce(Latency.merged, found) if found else None


def bucket_lower_ns(index: int) -> int:
    """The smallest value of the histogram bucket with this index (HdrHistogram layout, 256 sub-buckets)."""
    if index < 256:
        return index
    exponent = index // 128 - 1
    return (index % 128 + 128) << exponent


def bucket_upper_ns(index: int) -> int:
    """The largest value of the histogram bucket with this index."""
    return bucket_lower_ns(index + 1) - 1


@dataclass(frozen=True)
class DirectionResult:
    """The counts of one trial in one direction.

    `received` counts each sequence number once, and `duplicated` counts the copies. `corrupted` frames had the
    signature but not the content that was sent; `received` does not contain them. `duration` is the time from the first
    frame to the last one, plus one gap. `received_by_group` has the received frames of each group of flows, if there
    are several groups.
    """

    direction: Direction
    intended: int
    sent: int
    received: int
    duplicated: int
    reordered: int
    corrupted: int
    duration: float
    late: int = 0  # frames that the sender put out more than 1 ms after they were due
    last_lost: int | None = None  # of a trial with an overload: the number of the last lost frame, counted from 0
    received_by_group: tuple[int, ...] = ()
    latency: Latency | None = None

    @property
    def lost(self) -> int:
        """Frames that were sent and not received intact. Never negative."""
        return max(0, self.sent - self.received)

    @property
    def achieved_load(self) -> float:
        """Frames per second that were really sent."""
        return self.sent / self.duration if self.duration > 0 else 0.0

    @property
    def receive_rate(self) -> float:
        """Received frames divided by the duration of sending."""
        return self.received / self.duration if self.duration > 0 else 0.0

    @property
    def rates_by_group(self) -> tuple[float, ...]:
        """The receive rate of each group of flows. Their sum is `receive_rate`."""
        counts = self.received_by_group or (self.received,)
        return tuple(each / self.duration if self.duration > 0 else 0.0 for each in counts)


@dataclass(frozen=True)
class TrialResult:
    """One trial with its counts.

    `stray` frames had no signature of this trial. The tester itself lost `own_drops` frames. `invalid` is the reason
    why this trial says nothing about the system under test, or None.
    """

    trial: Trial
    started: float  # seconds since the epoch
    directions: tuple[DirectionResult, ...]
    stray: int = 0
    own_drops: int = 0
    invalid: str | None = None
    elapsed: float = 0.0  # seconds, with everything around the sending
    noise: Noise | None = None  # other work on the measuring CPUs; None: not watched
    windows: tuple[int, ...] = ()  # of a closed loop: nanoseconds of each window
    cpu_time: CpuTime | None = None  # of the system under test; None: nobody read it

    @property
    def intended_count(self) -> int:
        """Frames that should have been sent, all directions."""
        return sum(each.intended for each in self.directions)

    @property
    def sent(self) -> int:
        """Frames sent, all directions."""
        return sum(each.sent for each in self.directions)

    @property
    def received(self) -> int:
        """Frames received intact, all directions, each sequence number once."""
        return sum(each.received for each in self.directions)

    @property
    def lost(self) -> int:
        """Frames sent and not received intact, all directions."""
        return sum(each.lost for each in self.directions)

    @property
    def loss_ratio(self) -> float:
        """Lost frames divided by sent frames, all directions. 0 if nothing was sent."""
        return self.lost / self.sent if self.sent else 0.0

    @property
    def achieved_load(self) -> float:
        """Frames per second sent in the slowest direction."""
        return min((each.achieved_load for each in self.directions), default=0.0)

    @property
    def receive_rate(self) -> float:
        """Frames per second received, mean over the directions."""
        return fmean(each.receive_rate for each in self.directions) if self.directions else 0.0

    @property
    def rates_by_group(self) -> tuple[float, ...]:
        """Frames per second received of each group of flows, mean over the directions."""
        return tuple(fmean(each) for each in zip(*(way.rates_by_group for way in self.directions), strict=True))

    @property
    def duration(self) -> float:
        """The real seconds of sending, in the longest direction."""
        return max((each.duration for each in self.directions), default=0.0)

    @property
    def latency(self) -> Latency | None:
        """Latency of all directions together, or None if nothing was received."""
        return merged_latency(each.latency for each in self.directions)


@dataclass(frozen=True)
class Chain:
    """The ordered pods between the tester's left and right port: 1 pod is PVP, N pods a service function chain.

    With `chains`, so many chains of these pods stand beside each other on the same ports (service density). With
    `common_pod`, their last pod is the same one.
    """

    data_plane: str
    pods: int
    forwarder: str | None = None  # the program that forwards in a pod; None: the data plane's default
    workers: int = 1  # the pods are divided among so many workers, from left to right
    chains: int = 1
    common_pod: bool = False

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"a chain is on 1 or more workers, not {self.workers}")
        if not 0 <= self.pods <= MOST_PODS * self.workers:
            raise ValueError(f"a chain has 0 to {MOST_PODS} pods on each worker, not {self.pods}")
        if not 1 <= self.chains <= MOST_GROUPS:
            raise ValueError(f"1 to {MOST_GROUPS} chains stand beside each other, not {self.chains}")
        if self.common_pod and (self.chains < 2 or self.pods < 2):
            raise ValueError("a common pod is the last one of two or more chains, each of two pods or more")

    @property
    def all_pods(self) -> int:
        """The number of pods in all chains that stand beside each other."""
        return self.pods * self.chains - (self.chains - 1 if self.common_pod else 0)

    @property
    def parts(self) -> list[Chain]:
        """The part of each worker, from left to right. Remaining pods go to the first parts."""
        least, left_over = divmod(self.pods, self.workers)
        return [replace(self, pods=least + (number < left_over), workers=1) for number in range(self.workers)]

    def __str__(self) -> str:
        """`linux-bridge, 1 pod`, `af-xdp, 2 pods with l2fwd`, `sriov-vpp, 4 pods on 2 workers`, or
        `macvlan, 2 chains of 1 pod`."""
        inside = f" with {self.forwarder}" if self.forwarder else ""
        where = f" on {self.workers} workers" if self.workers > 1 else ""
        beside = f"{self.chains} chains of " if self.chains > 1 else ""
        common = ", the last one in common" if self.common_pod else ""
        return f"{self.data_plane}, {beside}{self.pods} pod{'' if self.pods == 1 else 's'}{inside}{where}{common}"


class PageSize(IntEnum):
    """The size of the pages of an application's memory, in MiB. NONE: ordinary pages, no hugepages."""

    NONE = 0
    TWO_MIB = 2
    ONE_GIB = 1024

    @property
    def words(self) -> str:
        """`ordinary pages`, `pages of 2 MiB` or `pages of 1 GiB`."""
        if self is PageSize.NONE:
            return "ordinary pages"
        return f"pages of {'1 GiB' if self is PageSize.ONE_GIB else '2 MiB'}"


@dataclass(frozen=True)
class Placement:
    """The CPUs that tester and system under test have. Numbers are the kernel's. podperf.cpu_plan gives them roles."""

    tester: tuple[int, ...]
    sut: tuple[int, ...]
    named_switch: tuple[int, ...] = ()  # the SUT's CPUs that the topology gives to a user-space switch
    hugepages: PageSize = PageSize.TWO_MIB  # that applications have, if the worker has some
    apart: bool = False  # the tester has another machine: equal numbers are different CPUs
    neighbour: tuple[int, ...] = ()  # the worker's CPUs that neither tester nor SUT has

    @property
    def shared(self) -> Sequence[int]:
        """CPUs that tester and SUT share. A good testbed has none."""
        return [] if self.apart else sorted(set(self.tester) & set(self.sut))

    def as_record(self) -> dict[str, Any]:
        """The chosen CPUs, in the form of records."""
        return {
            "tester": list(self.tester),
            "sut": list(self.sut),
            "named_switch": list(self.named_switch),
            "hugepages": bool(self.hugepages),
            "apart": self.apart,
        }


@dataclass(frozen=True)
class VirtualFunctionSettings:
    """The wanted settings of the SR-IOV virtual functions (VFs) of a NIC's port. The defaults are the kernel's."""

    number: int | None = None  # of each port; None: as many as a chain needs
    vlan: int = 0  # 0: none
    trust: bool = False  # whether a VF may change its MAC and receive all frames
    spoof_check: bool = True  # whether the NIC drops frames whose source MAC is not the VF's
    queues: int = 1
