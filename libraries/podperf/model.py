"""The values that all packages above the hosts share. No I/O.

Units: loads and rates are in frames per second and per direction, durations in seconds, latencies in nanoseconds, frame
sizes in bytes with the FCS, ratios between 0 and 1. Terms are those of RFC 2544, RFC 9971 and ETSI TST 009. MRR is
FD.io CSIT's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from functools import reduce
from statistics import fmean
from types import MappingProxyType
from typing import Any, ClassVar

from podperf.frames import PLAIN, Headers, Range
from podperf.noise import Noise


@dataclass(frozen=True)
class CpuTime:
    """The CPU time of the parts of a system under test during one trial.

    `parts` has nanoseconds by the name of the part. `runs` is how often their threads were put on a CPU: the fewer
    frames a thread finds then, the more of its time is for waking up. `polling` names the parts that poll, and do not
    tell how much of their time was for frames; `parts` does not have them. `unread` is the reason why the time of a
    part could not be read, or empty. `beside` has the nanoseconds of all else on the machines of the parts, whatever
    it was for.
    """

    parts: Mapping[str, float] = field(default_factory=dict)
    runs: int = 0
    polling: tuple[str, ...] = ()
    unread: str = ""
    beside: Mapping[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float | None:
        """Nanoseconds of all parts. None if the time of a part is not known."""
        return None if self.polling or self.unread else sum(self.parts.values())


DRAFT = "draft-dcn-bmwg-containerized-infra-10"  # the version whose section numbers podperf uses

L1_OVERHEAD_BYTES = 20  # preamble 7, start delimiter 1, interframe gap 12 (IEEE 802.3)
MIN_FRAME_BYTES, MAX_FRAME_BYTES = 64, 9022  # the largest one: 9000 bytes of packet, and a VLAN tag
LONGEST_LATENCY_NS = 3_600_000_000_000  # one hour, far above every latency that can be measured
MOST_GROUPS = 16  # groups of flows that a tester can count apart
MOST_FLOWS = 1_000_000  # in each direction, of all groups together
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
        """A size or a mix of sizes as a FrameSize. ValueError names what is allowed.

        One size: `64`, `64.0`, `"64"`, `"64B"`, `"1518 B"`. A mix: a name (`IMIX`, `IMIX_v4_1`), sizes with weights
        (`7x64,4x570,1x1518`), or an IMIX genome of RFC 6985 (`aaaabbbc`), whose sizes are sent in its order.
        """
        word = (f"{text:g}" if isinstance(text, float) else str(text)).strip()
        if named := next((mix for mix in (IMIX, IMIX_V4_1) if mix.name.upper() == word.upper()), None):
            return named
        if 1 < len(word) <= MOST_SIZES and all(letter in _GENOME for letter in word):
            return FrameSize(word, tuple(_GENOME[letter] for letter in word))
        if re.fullmatch(r"\d{1,2}x\d{1,4}(,\d{1,2}x\d{1,4})+", word, re.ASCII):
            return FrameSize(word, _in_turn([tuple(map(int, each.split("x"))) for each in word.split(",")]))
        digits = word.upper().removesuffix("B").strip()
        if not digits.isascii() or not digits.isdigit():
            raise ValueError(
                f"frame size {text!r} is neither a number of bytes (with FCS) nor a mix: IMIX, IMIX_v4_1, sizes with "
                "weights as 7x64,4x570,1x1518, or letters a to i as aaaabbbc (RFC 6985)"
            )
        return FrameSize(f"{int(digits)}B", (int(digits),))

    def at_least(self, smallest: int) -> FrameSize:
        """These sizes, with this one in place of all smaller ones."""
        if min(self.sequence) >= smallest:
            return self
        sizes = tuple(max(size, smallest) for size in self.sequence)
        return FrameSize(f"{smallest}B" if len(sizes) == 1 else self.name, sizes)

    @property
    def mean_bytes(self) -> float:
        """Mean size in bytes, with FCS."""
        return fmean(self.sequence)

    @property
    def largest(self) -> int:
        """The largest size of the mix, in bytes with FCS."""
        return max(self.sequence)


def _in_turn(weights: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The sizes of the frames of a mix in their order. `weights` has the number of frames and the size, for each size.

    The sizes are mixed as evenly as possible. ValueError if the frames are too many.
    """
    total = sum(number for number, _ in weights)
    if not 1 <= total <= MOST_SIZES:
        raise ValueError(f"a mix has 1 to {MOST_SIZES} frames until it begins again, not {total}")
    places = [((turn + 0.5) / number, size) for number, size in weights for turn in range(number)]
    return tuple(size for _, size in sorted(places, key=lambda each: each[0]))


MOST_SIZES = 64  # of a mix until it begins again
_GENOME = dict(zip("abcdefghi", (64, 128, 256, 512, 1024, 1280, 1518, 2112, 9000), strict=True))  # RFC 6985 section 4
# The simple IMIX: 7 x 64, 4 x 570, 1 x 1518, mixed so that no size comes in a burst. CSIT's name for it is IMIX_v4_1.
IMIX = FrameSize("IMIX", (64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 64, 570))
IMIX_V4_1 = FrameSize("IMIX_v4_1", IMIX.sequence)


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
    With a `source`, all frames come from this address, and flows differ in their UDP source ports.
    """

    mac: str | None = None
    address: str | None = None
    udp_port: int | None = None
    source: str | None = None


@dataclass(frozen=True)
class TrafficProfile:
    """The properties of the test traffic apart from load, duration and destination.

    `flows` (1 to 1 000 000) UDP flows a direction, with addresses of the networks for benchmarks (RFC 2544 appendix
    C.2.2, RFC 5180). Each of several chains beside each other gets this number of flows.
    """

    frame: FrameSize
    directions: tuple[Direction, ...] = (Direction.LEFT_TO_RIGHT,)
    flows: int = 1
    headers: Headers = PLAIN

    def __post_init__(self) -> None:
        if not 1 <= self.flows <= MOST_FLOWS:
            raise ValueError(f"flows must be 1 to {MOST_FLOWS}, not {self.flows}")
        if self.flows > self.headers.most_flows:
            raise ValueError(
                f"1 to {self.headers.most_flows} flows that differ in {' and '.join(self.headers.varying)}"
            )
        if min(self.frame.sequence) < self.headers.smallest_frame:
            raise ValueError(f"frames with these headers have {self.headers.smallest_frame} bytes or more, with FCS")
        if not self.directions or len(set(self.directions)) != len(self.directions):
            raise ValueError(f"directions must name one or both directions once, not {self.directions}")


@dataclass(frozen=True)
class AddressedTraffic:
    """Test traffic with its destinations, which a system under test tells.

    If several chains stand beside each other, `further_entries` has those of all chains but the first. The flows are
    then in as many groups, one for each chain, and each group has the flows of the profile. Frames go to each group in
    turn. With `udp_ports`, flows differ in the UDP destination port and source port, which have these ranges.
    """

    profile: TrafficProfile
    entries: Mapping[Direction, Entry] = field(default_factory=lambda: MappingProxyType({}))
    further_entries: Sequence[Mapping[Direction, Entry]] = ()
    udp_ports: tuple[Range, Range] | None = None

    def __post_init__(self) -> None:
        if self.groups > MOST_GROUPS or self.flows > MOST_FLOWS:
            raise ValueError(
                f"{self.groups} groups of {self.profile.flows} flows: at most {MOST_GROUPS} groups and {MOST_FLOWS} "
                "flows can be sent"
            )

    @property
    def frame(self) -> FrameSize:
        """The size of the frames."""
        return self.profile.frame

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions of the frames."""
        return self.profile.directions

    @property
    def flows(self) -> int:
        """The number of flows of all groups together, in each direction."""
        return self.profile.flows * self.groups

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
    `train` frames leave together (a power of two, at most 64), at the same mean load. `frames` is the number of
    frames that leave in each direction; `duration` is then the longest time allowed. With `overload`, this part goes
    first, and `load` and `duration` are of the part that follows without a gap. With `round_trip`, the far end sends
    each frame back, and frames and latencies are counted where they were sent.
    """

    traffic: AddressedTraffic
    load: float
    duration: float
    loop: Loop | None = None
    train: int = 1
    frames: int = 0
    overload: Overload | None = None
    round_trip: bool = False

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

    @property
    def variation(self) -> int:
        """The delay variation in ns: the 99.9th percentile less the minimum (PDV of RFC 5481, section 4.2)."""
        return self.percentile(99.9) - self.minimum

    def as_record(self) -> dict[str, Any]:
        """Minimum, mean, percentiles and maximum in ns, in the form of records."""
        percentiles = {f"p{percent}_ns".replace(".", "_"): self.percentile(percent) for percent in (50, 90, 99, 99.9)}
        return {"minimum_ns": self.minimum, "mean_ns": self.mean, **percentiles, "maximum_ns": self.maximum}

    def merged(self, other: Latency) -> Latency:
        """The latency of both sets of frames taken together."""
        counts = Counter(self.counts)
        counts.update(other.counts)
        mine, theirs = sum(self.counts.values()), sum(other.counts.values())
        mean = (self.mean * mine + other.mean * theirs) / max(1, mine + theirs)
        return Latency(min(self.minimum, other.minimum), mean, max(self.maximum, other.maximum), counts)


def merged_latency(latencies: Iterable[Latency | None]) -> Latency | None:
    """All latencies together, or None without any."""
    found = [latency for latency in latencies if latency is not None]
    return reduce(Latency.merged, found) if found else None


def bucket_index(value: int) -> int:
    """The index of the histogram bucket for a value in ns."""
    if value < 256:
        return value
    exponent = value.bit_length() - 8
    return 128 * (exponent + 1) + (value >> exponent) - 128


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
    are several groups. `negative_latencies` frames carry a time of sending after their arrival. `latency` is that of
    the other received frames.
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
    hurried: int = 0  # frames that the sender sent beyond its load, while it caught up in haste
    last_lost: int | None = None  # the number of the last lost frame, counted from 0; None also if nobody knows it
    received_by_group: tuple[int, ...] = ()
    negative_latencies: int = 0
    latency: Latency | None = None
    arrived: Mapping[str, Any] | None = None  # what the headers of the first received frame have (frames.described)

    @property
    def lost(self) -> int:
        """Frames that were sent and not received intact. Never negative."""
        return max(0, self.sent - self.received)

    @property
    def loss_ratio(self) -> float:
        """Lost frames divided by sent frames. 0 if nothing was sent."""
        return self.lost / self.sent if self.sent else 0.0

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
        """The receive rate of each group of flows in this direction. Their sum is `receive_rate`."""
        counts = self.received_by_group or (self.received,)
        return tuple(count / self.duration if self.duration > 0 else 0.0 for count in counts)


@dataclass(frozen=True)
class TrialResult:
    """One trial with its counts.

    Counts are sums over the directions. Rates and the loss ratio are those of the worse direction, because a mean hides
    a direction that nearly stands still.

    `stray` frames had no signature of this trial. The tester itself lost `own_drops` frames. `invalid` is the reason
    why this trial says nothing about the system under test, or None. `impossible_latency` is the reason why the
    latencies of this trial are wrong, or None. The counts can be right then, and no direction has a latency.
    `unanswered` has a sentence for each neighbour that asked for an address that no port of the tester has.
    """

    trial: Trial
    started: float  # seconds since the epoch
    directions: tuple[DirectionResult, ...]
    stray: int = 0
    own_drops: int = 0
    invalid: str | None = None
    impossible_latency: str | None = None
    elapsed: float = 0.0  # seconds, with everything around the sending
    preparation: float | None = None  # seconds of this time until the first frame was due; None: nobody knows
    noise: Noise | None = None  # other work on the measuring CPUs; None: not watched
    windows: tuple[int, ...] = ()  # of a closed loop: nanoseconds of each window
    cpu_time: CpuTime | None = None  # of the system under test; None: nobody read it
    unanswered: tuple[str, ...] = ()

    @property
    def intended_count(self) -> int:
        """Frames that should have been sent, all directions."""
        return sum(direction.intended for direction in self.directions)

    @property
    def sent(self) -> int:
        """Frames sent, all directions."""
        return sum(direction.sent for direction in self.directions)

    @property
    def received(self) -> int:
        """Frames received intact, all directions, each sequence number once."""
        return sum(direction.received for direction in self.directions)

    @property
    def lost(self) -> int:
        """Frames sent and not received intact, all directions."""
        return sum(direction.lost for direction in self.directions)

    @property
    def worst(self) -> DirectionResult:
        """The direction with the highest loss ratio."""
        return max(self.directions, key=lambda each: each.loss_ratio)

    @property
    def loss_ratio(self) -> float:
        """Lost frames divided by sent frames, in the direction that lost more. 0 if nothing was sent."""
        return max((direction.loss_ratio for direction in self.directions), default=0.0)

    @property
    def achieved_load(self) -> float:
        """Frames per second sent in the slowest direction."""
        return min((direction.achieved_load for direction in self.directions), default=0.0)

    @property
    def receive_rate(self) -> float:
        """Frames per second received in the slower direction."""
        return min((direction.receive_rate for direction in self.directions), default=0.0)

    @property
    def rates_by_group(self) -> tuple[float, ...]:
        """Frames per second received of each group of flows, in the slower direction of the group."""
        return tuple(min(each) for each in zip(*(way.rates_by_group for way in self.directions), strict=True))

    @property
    def duration(self) -> float:
        """The real seconds of sending, in the longest direction."""
        return max((direction.duration for direction in self.directions), default=0.0)

    @property
    def effective_duration(self) -> float:
        """The Trial Effective Duration of RFC 9971 in seconds, with the time around the sending.

        At least the intended duration: otherwise an error of the clock of 1 us would cost a search another trial.
        """
        return max(self.trial.duration, self.elapsed)

    @property
    def latency(self) -> Latency | None:
        """Latency of all directions together, or None if nothing was received."""
        return merged_latency(direction.latency for direction in self.directions)

    @property
    def delay_variation(self) -> int | None:
        """The delay variation (see Latency) of the direction that varies more, in ns. None if nothing was received."""
        return max((each.latency.variation for each in self.directions if each.latency is not None), default=None)


@dataclass(frozen=True)
class ChangeUnderLoad:
    """A change that can be made while frames cross."""

    words: str  # a sentence without a full stop
    make: Callable[[ExitStack], None]  # it registers the undo, which is called when the frames have crossed
    seconds: float = 0.0  # that it usually takes until the rate is back, if these are more than a short trial has
    refused: str = ""  # the reason why it cannot be made here, with the remedy


Changes = Mapping[str, ChangeUnderLoad]  # by names that are the arguments of rows

NO_CHANGES: Changes = MappingProxyType({})
NOTHING = ChangeUnderLoad("nothing changes", lambda undo: None)


CABLE = "cable"


class End(StrEnum):
    """Where test traffic begins or ends. The tester's program sends and receives there."""

    PORT = "port"  # of the tester: a host outside of the worker
    POD = "pod"  # of the worker, attached to the data plane as its pods are
    CONTAINER = "container"  # one of two of the same pod: the other one is the other end

    @property
    def words(self) -> str:
        """`a port`, `a pod` or `a container`."""
        return f"a {self.value}"


@dataclass(frozen=True)
class Ends:
    """The left and the right end of a chain."""

    left: End = End.PORT
    right: End = End.PORT

    @property
    def by_side(self) -> Mapping[str, End]:
        """Both ends by their sides."""
        return {"left": self.left, "right": self.right}

    @property
    def in_pods(self) -> bool:
        """Whether an end is in a pod."""
        return self.number_in_pods > 0

    @property
    def number_in_pods(self) -> int:
        """The number of ends that are in pods, each in a container of its own."""
        return sum(end is not End.PORT for end in self.by_side.values())

    @property
    def in_one_pod(self) -> bool:
        """Whether an end is a container of the pod of the other end."""
        return End.CONTAINER in self.by_side.values()

    def __str__(self) -> str:
        """`from a pod to a port`."""
        return f"from {self.left.words} to {self.right.words}"


PORTS = Ends()


@dataclass(frozen=True)
class Chain:
    """The ordered pods between the left and the right end: 1 pod is PVP, N pods a service function chain.

    `chains` is the number of chains of these pods, beside each other on the same ports (service density). With
    `common_pod`, their last pod is the same one.
    """

    data_plane: str
    pods: int
    forwarder: str | None = None  # the program that forwards in a pod; None: the data plane's default
    workers: int = 1  # the number of workers, among which the pods are divided from left to right
    chains: int = 1
    common_pod: bool = False
    join: str = CABLE  # what carries the frames between two workers: a name of podperf.testbed.joins.JOINS
    ends: Ends = PORTS

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"a chain is on 1 or more workers, not {self.workers}")
        if not 0 <= self.pods <= MOST_PODS * self.workers:
            raise ValueError(f"a chain has 0 to {MOST_PODS} pods on each worker, not {self.pods}")
        if not 1 <= self.chains <= MOST_GROUPS:
            raise ValueError(f"1 to {MOST_GROUPS} chains stand beside each other, not {self.chains}")
        if self.common_pod and (self.chains < 2 or self.pods < 2):
            raise ValueError("a common pod is the last one of two or more chains, each of two pods or more")
        if self.ends.in_pods and self.chains > 1:
            raise ValueError("several chains stand beside each other between ports of the tester, not between pods")

    @property
    def all_pods(self) -> int:
        """The number of pods in all chains that stand beside each other."""
        return self.pods * self.chains - (self.chains - 1 if self.common_pod else 0)

    @property
    def parts(self) -> list[Chain]:
        """The part of each worker, from left to right. Remaining pods go to the first parts."""
        least, left_over = divmod(self.pods, self.workers)
        pods = [least + (number < left_over) for number in range(self.workers)]
        lefts = [self.ends.left, *[End.PORT] * (self.workers - 1)]
        rights = [*[End.PORT] * (self.workers - 1), self.ends.right]
        return [
            replace(self, pods=each, workers=1, join=CABLE, ends=Ends(left, right))
            for each, left, right in zip(pods, lefts, rights, strict=True)
        ]

    def __str__(self) -> str:
        """`linux-bridge, 1 pod`, `af-xdp, 2 pods with l2fwd`, `sriov-vpp, 4 pods on 2 workers`,
        `routed, 2 pods on 2 workers by vxlan`, `macvlan, 2 chains of 1 pod`, `linux-bridge, from a pod to a pod`, or
        `routed, 1 pod, from a port to a pod`."""
        inside = f" with {self.forwarder}" if self.forwarder else ""
        where = f" on {self.workers} workers" if self.workers > 1 else ""
        where += f" by {self.join}" if self.join != CABLE else ""
        beside = f"{self.chains} chains of " if self.chains > 1 else ""
        common = ", the last one in common" if self.common_pod else ""
        pods = f", {beside}{self.pods} pod{'' if self.pods == 1 else 's'}{inside}"
        if self.ends.in_pods and not self.pods:
            pods = ""
        ends = f", {self.ends}" if self.ends.in_pods else ""
        return f"{self.data_plane}{pods}{where}{common}{ends}"


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
            "hugepages_of_mib": self.hugepages.value,
            "shared": list(self.shared),
            "apart": self.apart,
        }


@dataclass(frozen=True)
class VirtualFunctionSettings:
    """The wanted settings of the SR-IOV virtual functions (VFs) of a NIC's port. The defaults are the kernel's."""

    number: int | None = None  # of each port; None: as many as a chain needs
    vlans: tuple[int, int] = (0, 0)  # of the left and of the right port; 0: none
    trust: bool = False  # whether a VF may change its MAC and receive all frames
    spoof_check: bool = True  # whether the NIC drops frames whose source MAC is not the VF's
    queues: int = 1
