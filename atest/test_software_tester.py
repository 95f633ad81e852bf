"""The software tester on real links: both engines, as root, against systems under test whose behaviour is known."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any, Self

import pytest

from attempts import first
from namespaces import ThirdPort, add_namespace
from podperf.errors import PodperfError
from podperf.frames import HOSTS, AddressFamily, Headers
from podperf.hosts.linux import await_carrier, ip, ip_json
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.threads import dedicate_receive_processing, receive_at_once, threads_named
from podperf.model import (
    BOTH_DIRECTIONS,
    AddressedTraffic,
    Direction,
    DirectionResult,
    FrameSize,
    Latency,
    Overload,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.testers.base import UNPACED, TesterPort
from podperf.testers.software import SoftwareTester, request_line
from tester_contract import TAGGED, whole
from traffic import TRAFFIC, traffic_of

BINARY = os.environ.get("PODPERF_TESTER", str(Path(__file__).parents[1] / "build" / "tester" / "podperf-tester"))
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.skipif(not os.access(BINARY, os.X_OK), reason=f"{BINARY} is not built"),
]

SO_RCVBUFFORCE = 33  # from asm-generic/socket.h; Python has no name for it
TRIAL_NUMBER, LEARNING = slice(50, 52), bytes(2)  # of a test frame, see tester/payload.h; frames that teach switches
MTU = 3490
TESTER_CPU, SUT_CPU = 0, (os.cpu_count() or 1) - 1
LEFT_TO_RIGHT, RIGHT_TO_LEFT = BOTH_DIRECTIONS


class Lab:
    """The tester's ports p0 and p1, in two namespaces or in one. Their other ends s0 and s1 belong to the SUT."""

    def __init__(self, undo: ExitStack, *, one_namespace: bool = False, mtu: int = MTU) -> None:
        self.host = LocalHost()
        self.spoiled = False  # a test changed more than the rules: the next test has a new lab
        self.left, self.sut = add_namespace("left", undo), add_namespace("sut", undo)
        self.right = self.left if one_namespace else add_namespace("right", undo)
        for namespace in (self.left, self.right, self.sut):
            namespace.do("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for port, namespace, peer in (("p0", self.left, "s0"), ("p1", self.right, "s1")):
            link = ["ip", "link", "add", "name", port, "netns", namespace.namespace, "mtu", str(mtu), "type", "veth"]
            self.host.do(*link, "peer", "name", peer, "netns", self.sut.namespace, "mtu", str(mtu))
            namespace.do("ip", "link", "set", port, "up")
            self.sut.do("ip", "link", "set", peer, "up")
            dedicate_receive_processing(self.sut, peer, SUT_CPU)

    def forward(self, *rules: str) -> None:
        """Let the kernel forward between s0 and s1; `rules` come first, from left to right only."""
        chains = (("s0", "s1", rules), ("s1", "s0", ()))
        self.sut.do("nft", "-f", "-", stdin="\n".join(_chain(*chain) for chain in chains))

    def flows_seen(self) -> int:
        """How many pairs of addresses a rule has put into the set `seen`."""
        found = json.loads(self.sut.ask("nft", "-j", "list", "set", "netdev", "from_s0", "seen").stdout)["nftables"]
        return sum(len(each["set"].get("elem", [])) for each in found if "set" in each)

    def tester(self, engine: Any = "xdp") -> SoftwareTester:
        return SoftwareTester(
            self.host,
            TesterPort("p0", self.left.namespace),
            TesterPort("p1", self.right.namespace),
            binary=BINARY,
            engine=engine,
            cpus=[TESTER_CPU],
        )


def _chain(source: str, target: str, rules: Sequence[str]) -> str:
    lines = [
        f"table netdev from_{source} {{",
        "set seen { type ipv4_addr . ipv4_addr; size 65536; flags dynamic; }",
        "counter elsewhere { }",
        "chain forward {",
        f"type filter hook ingress device {source} priority 0;",
        *rules,
        f"fwd to {target}",
        "}",
        "}",
    ]
    return "\n".join(lines)


class Switch:
    """A bridge between s0 and s1 with a third port, where nobody lives. It forgets a MAC after a second."""

    def __init__(self, lab: Lab) -> None:
        lab.spoiled = True
        self._sut = lab.sut
        ip(lab.sut, "link", "add", "switch", "up", "type", "bridge", "ageing_time", "100", "mcast_snooping", "0")
        self.third = ThirdPort(lab.sut, "switch")
        for port in ("s0", "s1"):
            ip(lab.sut, "link", "set", port, "master", "switch")
        assert eventually(lambda: self._states() == {"forwarding"})

    def forget(self) -> None:
        """All MACs that it has learnt."""
        ip(self._sut, "link", "set", "dev", "switch", "type", "bridge", "fdb_flush")

    def _states(self) -> set[str]:
        return {each["state"] for each in json.loads(self._sut.ask("bridge", "-j", "link", "show").stdout)}


def enter(namespace: NetworkNamespace) -> None:
    """Move the calling thread into a network namespace, and no other one."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{namespace.namespace}") as file:  # noqa: PTH123
        assert libc.setns(file.fileno(), 0x40000000) == 0


class Frames(threading.Thread):
    """Reads the frames of an interface for the time of a context, and keeps those that arrive."""

    def __init__(self, namespace: NetworkNamespace, interface: str) -> None:
        super().__init__(daemon=True)
        self._namespace, self._interface = namespace, interface
        self._ready, self._end = threading.Event(), threading.Event()
        self.frames: list[bytes] = []

    def run(self) -> None:
        enter(self._namespace)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as source:
            source.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            source.bind((self._interface, 3))
            source.settimeout(0.02)
            self._ready.set()
            while not self._end.is_set():
                try:
                    frame, (_, _, kind, *_) = source.recvfrom(4096)
                except TimeoutError:
                    continue
                self.take(frame, kind)

    def take(self, frame: bytes, kind: int) -> None:
        """A frame was read. Its kind is that of packet(7)."""
        if kind != socket.PACKET_OUTGOING:
            self.frames.append(frame)

    def __enter__(self) -> Self:
        self.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self.join()


class ScriptedSut(Frames):
    """Forwards from s0 to s1. `act` gets each frame that arrives, and returns the frames to send. For low loads."""

    def __init__(self, lab: Lab, act: Callable[[bytes], Iterable[bytes]]) -> None:
        super().__init__(lab.sut, "s0")
        self._act = act

    def run(self) -> None:
        enter(self._namespace)
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as self._target:
            self._target.bind(("s1", 0))
            super().run()

    def take(self, frame: bytes, kind: int) -> None:
        if frame[TRIAL_NUMBER] == LEARNING:
            self._target.send(frame)
            return
        self.frames.append(frame)
        for each in self._act(frame):
            self._target.send(each)


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


def lossless(
    tester: SoftwareTester, traffic: AddressedTraffic, load: float = 5000, duration: float = 0.2
) -> TrialResult:
    """The result of the first trial that sent all intended frames and lost none."""
    return first(whole, lambda: valid(tester, Trial(traffic, load, duration)))


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
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


@pytest.mark.parametrize("size", [65, 72, 128, 3000])
def test_frames_of_every_size_arrive_whole_and_each_has_its_latency(
    lab: Lab, tester: SoftwareTester, size: int
) -> None:
    lab.forward()
    result = lossless(tester, traffic_of(size, BOTH_DIRECTIONS, flows=100))
    for direction in result.directions:
        assert (direction.received, direction.duplicated, direction.reordered, direction.corrupted) == (1000, 0, 0, 0)
        assert direction.latency is not None and sum(direction.latency.counts.values()) == 1000
    assert result.stray == result.own_drops == 0


def test_many_flows_are_as_many_pairs_of_addresses(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward("add @seen { ip saddr . ip daddr }")
    everything = Trial(traffic_of(64, flows=HOSTS[1]), 70_000, 1.0)
    assert any(tester.measure(everything).sent >= HOSTS[1] and lab.flows_seen() == HOSTS[1] for _ in range(20))


def test_a_tag_that_the_system_under_test_takes_away_is_seen(lab: Lab, tester: SoftwareTester) -> None:
    profile = TrafficProfile(FrameSize.parse(128), headers=Headers(AddressFamily.IPV6, *TAGGED))
    with ScriptedSut(lab, lambda frame: [frame[:12] + frame[16:]]):
        trial = Trial(AddressedTraffic(profile), 1000, 0.2)
        (direction,) = first(lambda each: each.received, lambda: tester.measure(trial)).directions
    assert not direction.corrupted
    no_tag: list[Any] | None = None if tester.facts.engine == "xdp" else []
    assert direction.arrived == {"vlans": no_tag, "family": "ipv6", "hop_limit": 64, "dscp": 0}


def test_whatever_happens_to_frames_is_counted(lab: Lab, tester: SoftwareTester) -> None:
    """Of each ten frames, one is altered, one comes twice, one is overtaken, and one is followed by a foreign frame."""
    other = bytes.fromhex("ffffffffffff020000000009") + b"\x88\xb5" + bytes(46)
    held: list[bytes] = []

    def disturb(frame: bytes) -> list[bytes]:
        turn, place = divmod(int.from_bytes(frame[42:46], "little"), 10)
        if place == 0:
            held.append(frame)
            return []
        if place == 2:
            altered = bytearray(frame)
            altered[(46, 52, 58, -1)[turn % 4]] ^= 1
            return [bytes(altered)]
        return [frame, *(held.pop() for _ in list(held)), *{4: [frame], 6: [other]}.get(place, [])]

    def measure() -> tuple[int, ...]:
        result = valid(tester, Trial(traffic_of(256), 1000, 0.2))
        (each,) = result.directions
        return each.received, each.corrupted, each.duplicated, each.reordered, result.stray

    with ScriptedSut(lab, disturb):  # what comes too late for its trial is a stray of the next one
        first(lambda found: found == (180, 20, 20, 20, 20), measure)


def test_a_mangled_payload_does_not_come_back_as_the_testers_own_fault(lab: Lab, tester: SoftwareTester) -> None:
    """The kernel mangles in place the pages that live frames are made of: the next frames in them must be whole."""
    traffic = traffic_of(1518)
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
            latency = lossless(tester, TRAFFIC, load=100, duration=0.5).latency
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
        result = tester.measure(Trial(TRAFFIC, 1000, 0.1))
        return result.own_drops, result.received

    with ScriptedSut(lab, keep_and_send_late):
        first(lambda found: found == (0, 100), measure)


@pytest.mark.parametrize("direction", BOTH_DIRECTIONS)
def test_a_switch_knows_the_receiving_port_before_a_trial_of_one_direction(
    lab: Lab, tester: SoftwareTester, direction: Direction
) -> None:
    switch = Switch(lab)
    traffic = traffic_of(64, (direction,))

    def measure() -> tuple[TrialResult, int]:
        switch.forget()
        before = switch.third.frames
        return tester.measure(Trial(traffic, 5000, 0.2)), switch.third.frames - before

    # One learning frame is flooded, to a MAC that nobody has used yet.
    result, _ = first(lambda found: found[0].received > 900 and found[0].stray == 0 and found[1] <= 1, measure)
    assert result.directions[0].duplicated == 0
    lossless(tester, traffic)


@pytest.mark.parametrize(("learning", "floods"), [(0.2, False), (60, True)])
def test_a_switch_does_not_forget_the_receiving_port_in_a_long_trial(
    lab: Lab, engine: str, learning: float, floods: bool
) -> None:
    switch = Switch(lab)
    with lab.tester(engine) as tester:

        def measure() -> tuple[int, int, bool]:
            assert tester._process is not None
            before = switch.third.frames
            tester._process.send(f"{request_line(Trial(TRAFFIC, 1000, 3), 0.05, tester._macs)} learning={learning}")
            answer = tester._answer(20)["trial"]
            return answer["directions"][0]["received"], answer["stray"], switch.third.frames - before > 500

        first(lambda found: found[0] > 2900 and found[1:] == (0, floods), measure)


def test_a_throttled_sut_gets_the_load_all_the_same_and_loses(lab: Lab, tester: SoftwareTester, engine: str) -> None:
    if SUT_CPU == TESTER_CPU:
        pytest.skip("needs two CPUs: one for the tester, one for the SUT")
    lab.forward(*(["ip saddr 203.0.113.7 ip daddr 203.0.113.9 drop"] * 4000))
    load = 200_000 if engine == "xdp" else 50_000
    result = valid(tester, Trial(TRAFFIC, load, 0.3))
    assert result.achieved_load == pytest.approx(load, rel=0.01)
    assert result.loss_ratio > 0.2


def test_a_sender_that_stood_still_catches_up_more_slowly_than_a_limiter_drops(lab: Lab) -> None:
    """The load is seven eighths of what the limiter lets through. The sender stands still for 40 ms, long before the
    end of the trial. The burst of the limiter is as long as the stalls of a busy machine, and half of what a sender
    that catches up by a third has too much."""
    lab.forward("limit rate over 20000/second burst 200 packets drop")
    with lab.tester("packet-ring") as tester, ThreadPoolExecutor(1) as beside:
        assert tester._process is not None
        pid = tester._process.pid

        def stand_still() -> None:
            time.sleep(0.2)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.04)
            os.kill(pid, signal.SIGCONT)

        def measure() -> DirectionResult:
            stop = beside.submit(stand_still)
            (result,) = tester.measure(Trial(TRAFFIC, 17_500.0, 2.0)).directions
            stop.result()
            return result

        first(lambda found: found.late > 500 and found.sent == 35_000 and found.lost == 0, measure)


@pytest.mark.parametrize("frames", [1, 100, 3000])
def test_a_burst_has_so_many_frames_and_lasts_no_longer_than_they_take(
    lab: Lab, tester: SoftwareTester, frames: int
) -> None:
    lab.forward()
    trial = Trial(traffic_of(64, BOTH_DIRECTIONS), UNPACED, 1.0, frames=frames)
    results = [valid(tester, trial) for _ in range(5)]
    assert all(direction.sent == frames for result in results for direction in result.directions)
    if frames <= 100:  # more of them may not fit into the rings of the SUT
        assert any(not result.lost for result in results)
    assert median(result.duration for result in results) < 0.5


def test_an_overload_goes_first_and_the_last_lost_frame_is_told(lab: Lab, tester: SoftwareTester) -> None:
    """The filter drops the frames that come first: so many that the last of them is behind the overload."""
    overload, load, dropped = Overload(4000.0, 0.25), 1000.0, 1100

    def measure() -> DirectionResult:
        lab.sut.do("nft", "flush", "ruleset")
        # A burst that is never used up again: what is beyond it passes.
        no_learning_frame = f"@ll,{8 * TRIAL_NUMBER.start},16 != 0"
        lab.forward(f"{no_learning_frame} limit rate 1/day burst {dropped} packets drop")
        (result,) = tester.measure(Trial(TRAFFIC, load, 0.5, overload=overload)).directions
        return result

    def undisturbed(result: DirectionResult) -> bool:
        sent = result.sent == result.intended == 1500 and result.duration == pytest.approx(0.75, rel=0.02)
        return sent and result.lost == dropped and result.last_lost == pytest.approx(dropped, abs=3)

    first(undisturbed, measure)


def test_without_loss_there_is_no_last_lost_frame(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    for _ in range(10):
        (each,) = valid(tester, Trial(TRAFFIC, 1000.0, 0.2, overload=Overload(2000.0, 0.1))).directions
        if not each.lost:
            assert each.last_lost is None
            return
    raise AssertionError("frames are lost every time")


def test_a_port_that_goes_down_is_an_error_and_the_tester_recovers(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    lab.spoiled = True
    lab.left.do("ip", "link", "set", "p0", "down")
    with pytest.raises(PodperfError, match="port left: p0 is down"):
        tester.measure(Trial(TRAFFIC, 1000, 0.1))
    lab.left.do("ip", "link", "set", "p0", "up")
    assert lossless(tester, TRAFFIC).received == 1000


def test_a_trial_in_which_a_port_lost_its_link_is_invalid(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    lab.spoiled = True

    def measure() -> TrialResult:
        lab.sut.do("ip", "link", "set", "s1", "up")
        assert await_carrier(lab.right, "p1")
        return in_mid_trial(lab, tester, "link set s1 down")

    result = first(lambda each: 0 < each.received < each.sent, measure)
    assert result.invalid == "port right: p1 is down or has no carrier; set it and its peer up"


def test_a_trial_in_which_a_port_lost_its_link_for_a_moment_is_invalid(lab: Lab, tester: SoftwareTester) -> None:
    lab.forward()
    lab.spoiled = True
    lost = "port right: p1 lost its link in the trial, and has it again"
    result = first(
        lambda each: each.invalid == lost, lambda: in_mid_trial(lab, tester, "link set s1 down\nlink set s1 up")
    )
    assert result.received > 0


def in_mid_trial(lab: Lab, tester: SoftwareTester, changes: str) -> TrialResult:
    """The result of a trial of a second, in which these changes are made for `ip` once frames arrive."""

    def arrived() -> int:
        (link,) = ip_json(lab.sut, "-statistics", "link", "show", "dev", "s0")
        return int(link["stats64"]["rx"]["packets"])

    def change() -> None:
        eventually(lambda: arrived() > before + 100)
        lab.sut.do("ip", "-batch", "-", stdin=changes)

    before, changing = arrived(), threading.Thread(target=change)
    changing.start()
    result = tester.measure(Trial(TRAFFIC, 1000, 1.0))
    changing.join()
    return result


def test_a_frame_that_does_not_fit_is_an_error(lab: Lab, tester: SoftwareTester) -> None:
    lab.spoiled = True
    lab.left.do("ip", "link", "set", "p0", "mtu", "1500")
    with pytest.raises(PodperfError, match="the frames need an MTU of 1501, p0 has 1500"):
        tester.measure(Trial(traffic_of(1519), 1000, 0.1))


# --- the bare path: the tester's two ports plugged into each other ----------------------------------------------------


BARE_LOADS = (10_000.0, 100_000.0, 1_000_000.0)


class BarePath:
    """The ports b0 and b1 are the ends of a veth pair. The tester's CPU receives what it sends, at once."""

    def __init__(self, undo: ExitStack) -> None:
        self.host = LocalHost()
        self.left, self.right = (add_namespace(name, undo) for name in ("bare-left", "bare-right"))
        for namespace in (self.left, self.right):
            namespace.do("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        link = ["ip", "link", "add", "name", "b0", "netns", self.left.namespace, "mtu", str(MTU), "type", "veth"]
        self.host.do(*link, "peer", "name", "b1", "netns", self.right.namespace, "mtu", str(MTU))
        for namespace, port in ((self.left, "b0"), (self.right, "b1")):
            namespace.do("ip", "link", "set", port, "up")
            receive_at_once(namespace, port)

    def receive_seldom(self) -> None:
        """From now on, b1 receives only while the tester's CPU has nothing else to do: its ring overflows."""
        dedicate_receive_processing(self.right, "b1", TESTER_CPU)
        for thread in threads_named(self.right, "napi/b1-"):
            self.right.do("chrt", "--idle", "--pid", "0", str(thread), check=False)

    def tester(self, *, joined: bool = False) -> SoftwareTester:
        return SoftwareTester(
            self.host,
            TesterPort("b0", self.left.namespace),
            TesterPort("b1", self.right.namespace),
            binary=BINARY,
            engine="xdp",
            cpus=[TESTER_CPU],
            joined=joined,
        )


@pytest.fixture
def bare() -> Iterator[BarePath]:
    with ExitStack() as undo:
        yield BarePath(undo)


def latency_of(result: TrialResult) -> Latency:
    assert result.latency is not None
    return result.latency


@pytest.mark.parametrize("load", BARE_LOADS)
def test_all_frames_arrive_on_the_bare_path_and_each_has_its_latency(bare: BarePath, load: float) -> None:
    with bare.tester() as tester:
        result = lossless(tester, TRAFFIC, load=load, duration=0.1)
    assert result.received == load * 0.1
    assert sum(latency_of(result).counts.values()) == result.received


def test_frames_wait_little_for_each_other_at_a_high_load(bare: BarePath) -> None:
    """The least of some medians is the tester's, without the machine's noise.

    With 62 calls a batch, the median at 1 M/s is nine times that at 10 k/s; with 16 calls it is three times as long.
    """
    with bare.tester() as tester:
        tester.measure(Trial(TRAFFIC, UNPACED, 0.05))  # shows the tester where the receiver runs
        medians: dict[float, list[int]] = {load: [] for load in BARE_LOADS}

        def least() -> tuple[int, ...]:
            for load in BARE_LOADS * 10:  # by turns, as the CPU may be slow for some seconds
                medians[load].append(latency_of(valid(tester, Trial(TRAFFIC, load, 0.1))).percentile(50))
            return tuple(map(min, medians.values()))

        first(lambda p50: p50[1] < 3 * p50[0] and p50[2] < 5 * p50[0], least)


def test_the_last_frames_of_a_trial_leave_in_time(bare: BarePath) -> None:
    """At 1 M/s, four frames fill a part of a batch. The rest of its calls must not delay them.

    At 200 k/s, a batch has few calls. The least of some maxima is the tester's, without the machine's noise.
    """
    with bare.tester() as tester:
        maxima: dict[float, list[int]] = {1_000_000: [], 200_000: []}

        def least() -> tuple[int, ...]:
            for load in tuple(maxima) * 30:  # by turns, as the CPU may be slow for some seconds
                maxima[load].append(latency_of(tester.measure(Trial(TRAFFIC, load, 1.0, frames=4))).maximum)
            return tuple(map(min, maxima.values()))

        first(lambda found: found[0] < 3 * found[1], least)


def test_one_frame_in_eight_of_an_unpaced_trial_has_its_latency(bare: BarePath) -> None:
    flows = traffic_of("IMIX", BOTH_DIRECTIONS, flows=64)
    with bare.tester() as tester:
        for traffic in (TRAFFIC, flows):
            for direction in first(
                whole, lambda traffic=traffic: tester.measure(Trial(traffic, UNPACED, 0.1))
            ).directions:
                assert direction.latency is not None
                assert sum(direction.latency.counts.values()) == pytest.approx(direction.received / 8, rel=0.1)


def test_what_the_ring_of_the_other_port_has_no_room_for_is_the_testers_own_loss(bare: BarePath) -> None:
    bare.receive_seldom()
    with bare.tester(joined=True) as tester:
        unpaced = Trial(TRAFFIC, UNPACED, 0.2)
        result = first(lambda each: 0 < each.lost == each.own_drops, lambda: tester.measure(unpaced))
    assert "the receive ring of the other port was full" in str(result.invalid)
    with bare.tester() as tester:
        result = tester.measure(Trial(TRAFFIC, UNPACED, 0.2))
    assert result.lost and not result.own_drops, "behind a port that is not joined, the system under test has lost them"


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
        tester.measure(Trial(TRAFFIC, 1000, 5.0))
    assert eventually(lambda: not attached(lab.left, "p0") and not attached(lab.right, "p1"))
    lab.forward()
    with lab.tester() as another:
        assert lossless(another, TRAFFIC).received == 1000


def test_closing_in_mid_trial_ends_it_at_once(lab: Lab) -> None:
    tester = lab.tester()
    timer = threading.Timer(0.3, tester.close)
    timer.start()
    began = time.monotonic()
    with pytest.raises(PodperfError):
        tester.measure(Trial(TRAFFIC, 1000, 20.0))
    assert time.monotonic() - began < 15
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
        with SoftwareTester(
            namespace, TesterPort("p0"), TesterPort("p1"), binary=BINARY, engine="auto", cpus=[TESTER_CPU]
        ) as tester:
            facts = tester.describe()
            assert facts["engine"] == "packet-ring"
            assert "not permitted" in facts["engine_remark"]
            assert lossless(tester, TRAFFIC).received == 1000
        with pytest.raises(PodperfError, match="loading BPF programs is not permitted"):
            SoftwareTester(namespace, TesterPort("p0"), TesterPort("p1"), binary=BINARY, engine="xdp")


def test_a_port_that_is_not_there_is_named(lab: Lab) -> None:
    for port, namespace, complaint in (
        ("nope", lab.left.namespace, "port left: there is no interface nope in namespace"),
        ("p0", "h-nowhere", "port left: there is no network namespace h-nowhere"),
    ):
        with pytest.raises(PodperfError, match=complaint):
            SoftwareTester(lab.host, TesterPort(port, namespace), TesterPort("p1"), binary=BINARY)


def test_a_port_that_another_program_holds_is_named(lab: Lab) -> None:
    with lab.tester(), pytest.raises(PodperfError, match="port left: another XDP program sits on p0"):
        lab.tester()


def test_a_peer_that_takes_no_xdp_frames_makes_the_trial_invalid_and_says_what_to_do(lab: Lab) -> None:
    lab.spoiled = True
    lab.sut.do("ethtool", "-K", "s0", "gro", "off")
    with lab.tester() as tester:
        results = [tester.measure(Trial(TRAFFIC, 1000, 0.1)) for _ in range(5)]
    assert all(result.own_drops == result.sent for result in results)
    assert any(result.sent == 100 for result in results), "a busy machine may send less in some trials, not in all"
    assert all("ethtool -K PEER gro on" in str(result.invalid) for result in results)
