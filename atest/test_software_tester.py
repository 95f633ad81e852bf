"""The software tester on real links: both engines, as root, against systems under test whose behaviour is known."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from attempts import first
from namespaces import add_namespace
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.kernel.receive_threads import dedicate_receive_processing
from podperf.model import (
    BOTH_DIRECTIONS,
    IMIX,
    Direction,
    DirectionResult,
    Entry,
    FrameSize,
    Overload,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.testers.base import UNPACED
from podperf.testers.software import SoftwareTester
from tester_contract import whole

BINARY = os.environ.get("PODPERF_TESTER", str(Path(__file__).parents[1] / "build" / "tester" / "podperf-tester"))
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built"),
]

SO_RCVBUFFORCE = 33  # from asm-generic/socket.h; Python has no name for it
MTU = 3490
TESTER_CPU, SUT_CPU = 0, (os.cpu_count() or 1) - 1
LEFT_TO_RIGHT, RIGHT_TO_LEFT = BOTH_DIRECTIONS
SMALL = TrafficProfile(FrameSize.parse(64))


class Lab:
    """The tester's ports p0 and p1, each in its own namespace. Their other ends s0 and s1 belong to the SUT."""

    def __init__(self, undo: ExitStack) -> None:
        self.host = LocalHost()
        self.spoiled = False  # a test changed more than the rules: the next test has a new lab
        self.left, self.right, self.sut = (add_namespace(name, undo) for name in ("left", "right", "sut"))
        for namespace in (self.left, self.right, self.sut):
            namespace.do("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for port, namespace, peer in (("p0", self.left, "s0"), ("p1", self.right, "s1")):
            link = ["ip", "link", "add", "name", port, "netns", namespace.namespace, "mtu", str(MTU), "type", "veth"]
            self.host.do(*link, "peer", "name", peer, "netns", self.sut.namespace, "mtu", str(MTU))
            namespace.do("ip", "link", "set", port, "up")
            self.sut.do("ip", "link", "set", peer, "up")
            dedicate_receive_processing(self.sut, peer, SUT_CPU)

    def forward(self, *rules: str) -> None:
        """Let the kernel forward between s0 and s1; `rules` come first, from left to right only."""
        chains = (("s0", "s1", rules), ("s1", "s0", ()))
        self.sut.do("nft", "-f", "-", stdin="\n".join(_chain(*chain) for chain in chains))

    def tester(self, engine: Any = "xdp") -> SoftwareTester:
        return SoftwareTester(
            self.host,
            "p0",
            "p1",
            binary=BINARY,
            engine=engine,
            cpus=[TESTER_CPU],
            left_namespace=self.left.namespace,
            right_namespace=self.right.namespace,
        )


def _chain(source: str, target: str, rules: Sequence[str]) -> str:
    lines = [
        f"table netdev from_{source} {{",
        "set seen { type ipv4_addr . ipv4_addr; size 65536; flags dynamic; }",
        "chain forward {",
        f"type filter hook ingress device {source} priority 0;",
        *rules,
        f"fwd to {target}",
        "}",
        "}",
    ]
    return "\n".join(lines)


class ScriptedSut(threading.Thread):
    """Forwards from s0 to s1. `act` gets each frame that arrives, and returns the frames to send. For low loads."""

    def __init__(self, lab: Lab, act: Callable[[bytes], Iterable[bytes]]) -> None:
        super().__init__(daemon=True)
        self._lab, self._act, self._ready, self._end = lab, act, threading.Event(), threading.Event()
        self.frames: list[bytes] = []

    def run(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{self._lab.sut.namespace}") as namespace:  # noqa: PTH123
            assert libc.setns(namespace.fileno(), 0x40000000) == 0  # of this thread only
        with (
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as source,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as target,
        ):
            source.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            source.bind(("s0", 3))
            source.settimeout(0.02)
            target.bind(("s1", 0))
            self._ready.set()
            while not self._end.is_set():
                try:
                    frame = source.recv(4096)
                except TimeoutError:
                    continue
                self.frames.append(frame)
                for each in self._act(frame):
                    target.send(each)

    def __enter__(self) -> ScriptedSut:
        self.start()
        assert self._ready.wait(5)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join()


class Labs:
    """The lab that the tests share, because to make one and to remove it takes longer than most tests."""

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._lab: Lab | None = None

    def clean_one(self) -> Lab:
        """The lab as it was made."""
        if self._lab is None or self._lab.spoiled:
            self.close()
            self._lab = Lab(self._undo)
        self._lab.sut.do("nft", "flush", "ruleset")
        return self._lab

    def close(self) -> None:
        self._undo.close()


@pytest.fixture(scope="module")
def labs() -> Iterator[Labs]:
    labs = Labs()
    yield labs
    labs.close()


@pytest.fixture
def lab(labs: Labs) -> Lab:
    return labs.clean_one()


@pytest.fixture(params=["xdp", "packet-ring"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tester(lab: Lab, engine: str) -> Iterator[SoftwareTester]:
    with lab.tester(engine) as tester:
        yield tester


def valid(tester: SoftwareTester, trial: Trial) -> TrialResult:
    """The first valid result of some: a busy machine may spoil trials."""
    return first(lambda result: result.invalid is None, lambda: tester.measure(trial))


def lossless(tester: SoftwareTester, traffic: TrafficProfile, load: float = 5000, duration: float = 0.2) -> TrialResult:
    """The result of the first trial that sent all intended frames and lost none."""
    return first(whole, lambda: valid(tester, Trial(traffic, load, duration)))


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.01)
    return False


# --- both engines -----------------------------------------------------------------------------------------------------


def test_the_tester_describes_its_ports(lab: Lab, tester: SoftwareTester, engine: str) -> None:
    facts = tester.describe()
    assert facts["engine"] == engine
    for name, namespace, interface in (("left", lab.left, "p0"), ("right", lab.right, "p1")):
        port = facts["ports"][name]
        (link,) = json.loads(namespace.ask("ip", "-j", "link", "show", interface).stdout)
        assert port["mac"] == link["address"]
        assert (port["interface"], port["namespace"], port["driver"]) == (interface, namespace.namespace, "veth")
        assert port["mode"] == ("native" if engine == "xdp" else "packet-ring")


@pytest.mark.parametrize("size", [64, 65, 72, 128, 1518, 3000, "IMIX"])
def test_everything_that_was_sent_is_received_in_both_directions(lab: Lab, tester: SoftwareTester, size: int) -> None:
    lab.forward()
    result = lossless(tester, TrafficProfile(FrameSize.parse(size), BOTH_DIRECTIONS, flows=100))
    assert [each.direction for each in result.directions] == list(BOTH_DIRECTIONS)
    for each in result.directions:
        assert each.sent == each.intended == each.received == 1000
        assert each.duplicated == each.reordered == each.corrupted == 0
        assert each.achieved_load == pytest.approx(5000, rel=0.01)
        assert each.latency is not None
        assert sum(each.latency.counts.values()) == 1000
        assert 0 < each.latency.minimum <= each.latency.mean <= each.latency.maximum
        assert each.latency.minimum <= each.latency.percentile(50) <= each.latency.maximum
    assert result.stray == result.own_drops == 0


def test_one_direction_alone_in_either_way(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    for direction in BOTH_DIRECTIONS:
        (each,) = lossless(tester, TrafficProfile(FrameSize.parse(64), (direction,))).directions
        assert (each.direction, each.received) == (direction, 1000)


def test_the_frames_of_a_mix_have_its_sizes_in_its_order(lab: Lab, tester: SoftwareTester) -> None:
    with ScriptedSut(lab, lambda frame: [frame]) as sut:
        result = lossless(tester, TrafficProfile(IMIX), load=1000)
        sizes = [len(frame) + 4 for frame in sut.frames[-result.sent :]]
    assert sizes == list(itertools.islice(itertools.cycle(IMIX.sequence), result.sent))


@pytest.mark.parametrize("flows", [4, 7, 12])
def test_every_flow_of_a_mix_has_all_its_sizes(lab: Lab, tester: SoftwareTester, flows: int) -> None:
    with ScriptedSut(lab, lambda frame: [frame]) as sut:
        result = lossless(tester, TrafficProfile(IMIX, flows=flows), load=1000)
        frames = sut.frames[-result.sent :]
    seen = {frame[26:30]: set[int]() for frame in frames}
    for frame in frames:
        seen[frame[26:30]].add(len(frame) + 4)
    assert list(seen.values()) == [set(IMIX.sequence)] * flows
    rounds = len(frames) // len(IMIX.sequence)
    sizes = Counter(len(frame) + 4 for frame in frames[: rounds * len(IMIX.sequence)])
    assert sizes == {size: rounds * IMIX.sequence.count(size) for size in set(IMIX.sequence)}


def test_one_flow_is_one_pair_of_addresses_and_65536_are_all_seen(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward("add @seen { ip saddr . ip daddr }")

    def seen() -> int:
        listing = lab.sut.ask("nft", "-j", "list", "set", "netdev", "from_s0", "seen").stdout
        return sum(len(item["set"].get("elem", [])) for item in json.loads(listing)["nftables"] if "set" in item)

    lossless(tester, TrafficProfile(FrameSize.parse(64), flows=1))
    assert seen() == 1
    lossless(tester, TrafficProfile(FrameSize.parse(64), flows=1000))
    assert seen() == 1000
    everything = Trial(TrafficProfile(FrameSize.parse(64), flows=65536), 70_000, 1.0)
    assert any(tester.measure(everything).sent >= 65536 and seen() == 65536 for _ in range(20))


def test_an_entry_addresses_the_frames(lab: Lab, tester: SoftwareTester) -> None:
    entry = Entry(mac="02:aa:bb:cc:dd:ee", address="198.19.0.5", udp_port=5000)
    with ScriptedSut(lab, lambda frame: [frame]) as sut:
        lossless(tester, TrafficProfile(FrameSize.parse(64), entries={LEFT_TO_RIGHT: entry}), load=1000)
    assert {frame[:6].hex(":") for frame in sut.frames} == {"02:aa:bb:cc:dd:ee"}
    assert {frame[30:34] for frame in sut.frames} == {socket.inet_aton("198.19.0.5")}
    assert {frame[36:38] for frame in sut.frames} == {(5000).to_bytes(2, "big")}


def test_loss_is_the_share_that_was_dropped(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward("numgen inc mod 10 0 drop")
    best = min(
        (valid(tester, Trial(SMALL, 10_000, 0.2)) for _ in range(5)), key=lambda result: result.loss_ratio
    )  # the machine may lose more frames, never fewer
    assert best.loss_ratio == pytest.approx(0.1, abs=0.002)
    assert best.directions[0].reordered == best.directions[0].duplicated == best.directions[0].corrupted == 0


def test_copies_are_counted_as_duplicates(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward("numgen inc mod 4 0 dup to s1")
    (each,) = lossless(tester, SMALL).directions
    assert (each.received, each.duplicated) == (1000, 250)


def test_frames_that_are_overtaken_are_counted(lab: Lab, tester: SoftwareTester) -> None:
    held: list[bytes] = []

    def hold_each_tenth(frame: bytes) -> list[bytes]:
        if int.from_bytes(frame[42:46], "little") % 10 == 0:
            held.append(frame)
            return []
        return [frame, *(held.pop() for _ in list(held))]

    with ScriptedSut(lab, hold_each_tenth):
        (each,) = lossless(tester, SMALL, load=1000).directions
    assert (each.received, each.reordered, each.duplicated) == (200, 20, 0)


@pytest.mark.parametrize("place", [46, 52, 58, -1])
def test_altered_frames_are_corrupted_and_not_received(lab: Lab, tester: SoftwareTester, place: int) -> None:
    def alter_each_tenth(frame: bytes) -> list[bytes]:
        altered = bytearray(frame)
        if int.from_bytes(frame[42:46], "little") % 10 == 0:
            altered[place] ^= 1
        return [bytes(altered)]

    trial = Trial(TrafficProfile(FrameSize.parse(256)), 1000, 0.2)
    with ScriptedSut(lab, alter_each_tenth):
        results = (valid(tester, trial).directions[0] for _ in range(20))
        assert any((each.received, each.corrupted) == (180, 20) for each in results)


def test_the_kernel_may_rewrite_addresses_and_ttl(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward("ip saddr set 203.0.113.1", "ip ttl set 3", "udp dport set 9999")
    assert lossless(tester, SMALL).received == 1000


def test_a_mangled_payload_does_not_come_back_as_the_testers_own_fault(lab: Lab, tester: SoftwareTester) -> None:
    """The kernel mangles in place the pages that live frames are made of: the next frames in them must be whole."""
    traffic = TrafficProfile(FrameSize.parse(1518))
    lab.forward("@th,9600,32 set 0xdeadbeef")
    valid(tester, Trial(traffic, 20_000, 0.2))
    lab.sut.do("nft", "flush", "ruleset")
    lab.forward()
    assert lossless(tester, traffic, load=20_000).directions[0].corrupted == 0


def test_a_known_delay_is_the_latency(lab: Lab, tester: SoftwareTester) -> None:
    """A frame is held for 5 ms, and one comes every 10 ms. So none waits for the one before it; Linux adds a little."""
    hold = 5_000_000  # ns

    def hold_each(frame: bytes) -> list[bytes]:
        time.sleep(hold / 1e9)
        return [frame]

    with ScriptedSut(lab, hold_each):
        for _ in range(20):  # a busy machine may delay some trials, not all
            latency = lossless(tester, SMALL, load=100, duration=0.5).latency
            assert latency is not None
            assert hold <= latency.minimum <= latency.mean <= latency.maximum
            assert latency.percentile(50) >= hold
            if (middle := latency.percentile(50)) <= 8_000_000:
                return
    raise AssertionError(f"the frames of every trial are delayed, the last ones by {middle} ns")


def test_frames_that_come_while_the_tester_has_no_cpu_wait_for_it(lab: Lab, tester: SoftwareTester) -> None:
    """The SUT keeps all frames, stops the tester, and then sends the frames one by one in a fifth of a second."""
    assert tester._process is not None
    pid, kept = tester._process.pid, list[bytes]()

    def keep_and_send_late(frame: bytes) -> Iterator[bytes]:
        kept.append(frame)
        if len(kept) == 100:
            os.kill(pid, signal.SIGSTOP)
            for each in kept:
                yield each
                time.sleep(0.002)
            os.kill(pid, signal.SIGCONT)

    def measure() -> tuple[int, int]:
        kept.clear()
        result = tester.measure(Trial(SMALL, 1000, 0.1))
        return result.own_drops, result.received

    with ScriptedSut(lab, keep_and_send_late):
        first(lambda found: found == (0, 100), measure)


def test_frames_of_others_are_strays(lab: Lab, tester: SoftwareTester) -> None:
    def add_a_stray_to_each_tenth(frame: bytes) -> list[bytes]:
        other = bytes.fromhex("ffffffffffff020000000009") + b"\x88\xb5" + bytes(46)
        return [frame, other] if int.from_bytes(frame[42:46], "little") % 10 == 0 else [frame]

    with ScriptedSut(lab, add_a_stray_to_each_tenth):
        # What comes too late for its trial is a stray of the next one.
        results = (lossless(tester, SMALL, load=1000) for _ in range(20))
        assert any((each.received, each.stray) == (200, 20) for each in results)


def test_a_throttled_sut_gets_the_load_all_the_same_and_loses(lab: Lab, tester: SoftwareTester, engine: str) -> None:
    if SUT_CPU == TESTER_CPU:
        pytest.skip("needs two CPUs: one for the tester, one for the SUT")
    lab.forward(*(["ip saddr 203.0.113.7 ip daddr 203.0.113.9 drop"] * 4000))
    load = 200_000 if engine == "xdp" else 50_000
    result = valid(tester, Trial(SMALL, load, 0.3))
    assert result.achieved_load == pytest.approx(load, rel=0.01)
    assert result.loss_ratio > 0.2


def test_an_unpaced_trial_sends_more_than_a_paced_one(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    results = [tester.measure(Trial(SMALL, UNPACED, 0.2)) for _ in range(5)]
    assert all(each.invalid is None and each.sent == each.intended_count for each in results)
    assert all(each.received <= each.sent for each in results)
    assert any(each.achieved_load > 20_000 and each.received > 0 for each in results)


@pytest.mark.parametrize("frames", [1, 100, 3000])
def test_a_burst_has_so_many_frames_and_lasts_no_longer_than_they_take(
    lab: Lab, tester: SoftwareTester, frames: int
) -> None:
    lab.forward()
    trial = Trial(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS), UNPACED, 1.0, frames=frames)
    results = [valid(tester, trial) for _ in range(5)]
    assert all(each.sent == frames for result in results for each in result.directions)
    if frames <= 100:  # more of them may not fit into the rings of the SUT
        assert any(not result.lost for result in results)
    assert max(result.duration for result in results) < 0.5


def test_an_overload_goes_first_and_the_last_lost_frame_is_told(lab: Lab, tester: SoftwareTester) -> None:
    """The filter drops the frames that come first: so many that the last of them is behind the overload."""
    overload, load, dropped = Overload(4000.0, 0.25), 1000.0, 1100

    def measure() -> DirectionResult:
        lab.sut.do("nft", "flush", "ruleset")
        # A burst that is never used up again: what is beyond it passes.
        lab.forward(f"limit rate 1/day burst {dropped} packets drop")
        (result,) = tester.measure(Trial(SMALL, load, 0.5, overload=overload)).directions
        return result

    each = first(lambda result: result.sent == result.intended == 1500 and result.lost == dropped, measure)
    assert each.duration == pytest.approx(0.75, rel=0.02)
    assert each.last_lost == pytest.approx(dropped, abs=3)


def test_without_loss_there_is_no_last_lost_frame(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    for _ in range(10):
        (each,) = valid(tester, Trial(SMALL, 1000.0, 0.2, overload=Overload(2000.0, 0.1))).directions
        if not each.lost:
            assert each.last_lost is None
            return
    raise AssertionError("frames are lost every time")


def test_trials_do_not_leak_into_each_other(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    tester.measure(Trial(TrafficProfile(FrameSize.parse(3000), BOTH_DIRECTIONS, 65536), UNPACED, 0.1))
    result = lossless(tester, TrafficProfile(FrameSize.parse(64), (RIGHT_TO_LEFT,)))
    assert [each.direction for each in result.directions] == [Direction.RIGHT_TO_LEFT]
    assert result.directions[0].corrupted == 0


def test_a_port_that_goes_down_is_an_error_and_the_tester_recovers(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    lab.spoiled = True
    lab.left.do("ip", "link", "set", "p0", "down")
    with pytest.raises(PodperfError, match="port left: p0 is down"):
        tester.measure(Trial(SMALL, 1000, 0.1))
    lab.left.do("ip", "link", "set", "p0", "up")
    assert lossless(tester, SMALL).received == 1000


def test_a_trial_in_which_a_port_lost_its_link_is_invalid(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    lab.spoiled = True
    cut = threading.Timer(0.3, lab.sut.do, ("ip", "link", "set", "s1", "down"))
    cut.start()
    result = tester.measure(Trial(SMALL, 1000, 1.0))
    cut.join()
    assert 0 < result.received < result.sent
    assert result.invalid == "port right: p1 is down or has no carrier; set it and its peer up"


def test_a_trial_in_which_a_port_lost_its_link_for_a_moment_is_invalid(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    lab.spoiled = True
    flap = threading.Timer(0.3, lab.sut.do, ("ip", "-batch", "-"), {"stdin": "link set s1 down\nlink set s1 up\n"})
    flap.start()
    result = tester.measure(Trial(SMALL, 1000, 1.0))
    flap.join()
    assert result.received > 0
    assert result.invalid == "port right: p1 lost its link in the trial, and has it again"


def test_a_frame_that_does_not_fit_is_an_error(lab: Lab, tester: SoftwareTester) -> None:
    lab.spoiled = True
    lab.left.do("ip", "link", "set", "p0", "mtu", "1500")
    with pytest.raises(PodperfError, match="a frame of 1519 bytes needs an MTU of 1501, p0 has 1500"):
        tester.measure(Trial(TrafficProfile(FrameSize.parse(1519)), 1000, 0.1))


# --- starting and ending ---------------------------------------------------------------------------------------------


def attached(namespace: NetworkNamespace, interface: str) -> bool:
    (link,) = json.loads(namespace.ask("ip", "-j", "link", "show", interface).stdout)
    return "xdp" in link


def test_a_killed_front_leaves_no_program_behind_and_is_explained(lab: Lab) -> None:
    lab.spoiled = True
    tester = lab.tester()
    assert attached(lab.left, "p0")
    assert attached(lab.right, "p1")
    assert tester._process is not None
    pid = tester._process.pid
    timer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
    timer.start()
    with pytest.raises(PodperfError, match="exit code -9"):
        tester.measure(Trial(SMALL, 1000, 5.0))
    assert eventually(lambda: not attached(lab.left, "p0") and not attached(lab.right, "p1"))
    lab.forward()
    with lab.tester() as another:
        assert lossless(another, SMALL).received == 1000


def test_closing_in_mid_trial_ends_it_at_once(lab: Lab) -> None:
    tester = lab.tester()
    timer = threading.Timer(0.3, tester.close)
    timer.start()
    began = time.monotonic()
    with pytest.raises(PodperfError):
        tester.measure(Trial(SMALL, 1000, 20.0))
    assert time.monotonic() - began < 5
    timer.join()  # `measure` ends with the process, and `close` a moment later
    assert eventually(lambda: not attached(lab.left, "p0"))


class WithoutBpf(NetworkNamespace):
    """A namespace where commands may use packet sockets, but not load BPF programs."""

    def __init__(self, namespace: str) -> None:
        super().__init__(namespace)
        self._inside += ("setpriv", "--bounding-set", "-all,+net_raw,+net_admin", "--inh-caps", "-all")


def test_without_bpf_rights_the_packet_rings_serve_and_the_tester_says_so() -> None:
    with ExitStack() as undo:
        with_bpf = add_namespace("no-bpf", undo)
        with_bpf.do("ip", "link", "add", "name", "p0", "type", "veth", "peer", "name", "p1")
        for port in ("p0", "p1"):
            with_bpf.do("ip", "link", "set", port, "up")
        namespace = WithoutBpf(with_bpf.namespace)
        with SoftwareTester(namespace, "p0", "p1", binary=BINARY, engine="auto", cpus=[TESTER_CPU]) as tester:
            facts = tester.describe()
            assert facts["engine"] == "packet-ring"
            assert "not permitted" in facts["engine_remark"]
            assert lossless(tester, SMALL).received == 1000
        with pytest.raises(PodperfError, match="loading BPF programs is not permitted"):
            SoftwareTester(namespace, "p0", "p1", binary=BINARY, engine="xdp")


def test_a_port_that_is_not_there_is_named(lab: Lab) -> None:
    for port, namespace, complaint in (
        ("nope", lab.left.namespace, "port left: there is no interface nope in namespace"),
        ("p0", "h-nowhere", "port left: there is no network namespace h-nowhere"),
    ):
        with pytest.raises(PodperfError, match=complaint):
            SoftwareTester(lab.host, port, "p1", binary=BINARY, left_namespace=namespace)


def test_a_port_that_another_program_holds_is_named(lab: Lab) -> None:
    with lab.tester(), pytest.raises(PodperfError, match="port left: another XDP program sits on p0"):
        lab.tester()


def test_a_peer_that_takes_no_xdp_frames_makes_the_trial_invalid_and_says_what_to_do(lab: Lab) -> None:
    lab.spoiled = True
    lab.sut.do("ethtool", "-K", "s0", "gro", "off")
    with lab.tester() as tester:
        results = [tester.measure(Trial(SMALL, 1000, 0.1)) for _ in range(5)]
    assert all(each.own_drops == each.sent for each in results)
    assert any(each.sent == 100 for each in results), "a busy machine may send less in some trials, not in all"
    assert all("ethtool -K PEER gro on" in str(each.invalid) for each in results)
