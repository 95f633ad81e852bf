"""The contract of testers (utest/tester_contract.py) on real links: the software tester, and TRex if there is one.

PODPERF_TREX names the folder of a TRex with `_t-rex-64`. PODPERF_TREX_PYTHON names an interpreter for its client
(default /usr/bin/python3). With PODPERF_TREX_CLIENT=trex-stl-lib the client is the package from PyPI in this
interpreter, for a TRex with the old API.

With PODPERF_TREX_RECORD set, TRex's answers are recorded. With the client from PyPI, they are recorded on its sockets,
for utest/test_recorded_trex.py. Otherwise the lines of podperf's own program are recorded, for
utest/test_trex_contract.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

import recorded_trex
from attempts import first
from packets import faults_of
from podperf.errors import PodperfError
from podperf.frames import Headers
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.model import BOTH_DIRECTIONS, Direction, Trial
from podperf.testers import TESTERS
from podperf.testers.base import UNPACED, Ability, Site, Tester, TesterPort
from podperf.testers.software import TESTER_BINARY
from podperf.testers.trex import CLIENT_BELOW_SERVER, TrexTester, request_line
from podperf.testers.trex_rpc import Endpoint, server_version
from podperf.testers.trex_server import PUBLISHER_PORT, Interfaces, running
from podperf.topology import PortSettings, SoftwareSettings, TesterSettings, TrexServerSettings, TrexSettings
from tagged_frames import ANY_PROTOCOL, AUXDATA, PACKET_AUXDATA, SOL_PACKET, TAG_VALID
from test_software_tester import MTU, SO_RCVBUFFORCE, TESTER_CPU, Lab, enter
from test_trex_contract import dialogue_of
from tester_contract import *  # noqa: F403
from tester_contract import ELSEWHERE, JUMBO, LOW, SECONDS, valid
from traffic import TRAFFIC, traffic_of
from trex_dialogue import Dialogue, RecordingHost

TREX = os.environ.get("PODPERF_TREX")
PYTHON = os.environ.get("PODPERF_TREX_PYTHON", "/usr/bin/python3")
FROM_PYPI = os.environ.get("PODPERF_TREX_CLIENT") == "trex-stl-lib"
RECORD = bool(os.environ.get("PODPERF_TREX_RECORD"))
CLIENT = None if FROM_PYPI else f"{TREX}/{CLIENT_BELOW_SERVER}"
PACKETS_SENT = ("ip", "-json", "-stats", "link", "show", "dev", "p0")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")


class Arriving:
    """Copies of the frames that arrive at an interface."""

    def __init__(self, namespace: NetworkNamespace, interface: str) -> None:
        thread = threading.Thread(target=self._open, args=(namespace, interface))
        thread.start()
        thread.join()

    def _open(self, namespace: NetworkNamespace, interface: str) -> None:
        enter(namespace)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ANY_PROTOCOL))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self._socket.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._socket.bind((interface, ANY_PROTOCOL))
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def frames(self) -> Iterator[bytes]:
        """The frames since the last call, with the outer VLAN tag, which the kernel takes off."""
        with suppress(BlockingIOError):
            while True:
                frame, control, _, source = self._socket.recvmsg(65536, socket.CMSG_SPACE(AUXDATA.size))
                if source[2] == socket.PACKET_OUTGOING:  # those that leave by this interface
                    continue
                status, *_, tag, kind = AUXDATA.unpack_from(control[0][2])
                yield frame[:12] + struct.pack("!HH", kind, tag) + frame[12:] if status & TAG_VALID else frame


class RealBench:
    """A lab whose ports are in one namespace, as TRex needs them. Its kernel forwards as nftables says."""

    def __init__(self, undo: ExitStack, mtu: int = MTU) -> None:
        self._lab = Lab(undo, one_namespace=True, mtu=mtu)
        self.ports, self._sut = self._lab.left, self._lab.sut
        self.mtu = mtu
        self.ports.do("ip", "link", "set", "lo", "up")
        elsewhere = f"ether daddr {ELSEWHERE.mac} ip daddr {ELSEWHERE.address} udp dport {ELSEWHERE.udp_port}"
        self._lab.forward("add @seen { ip saddr . ip daddr }", f"{elsewhere} counter name elsewhere")
        self.tester: Tester
        self.seconds = SECONDS
        self.seen: list[int] = []

    def _nft(self, *words: str) -> str:
        return self._sut.do("nft", *words).stdout

    def lose_one_in(self, number: int) -> None:
        self._nft("insert", "rule", "netdev", "from_s0", "forward", "numgen", "inc", "mod", str(number), "0", "drop")

    def lose_half_elsewhere(self) -> None:
        """From now on, lose every second frame to ELSEWHERE from left to right. It is then counted nowhere."""
        elsewhere = ("ether", "daddr", str(ELSEWHERE.mac))
        self._nft(
            "insert", "rule", "netdev", "from_s0", "forward", *elsewhere, "numgen", "inc", "mod", "2", "0", "drop"
        )

    def let_through(self, rate: int, burst: int) -> None:
        """From now on, let this many frames/s pass from left to right, and `burst` additional frames."""
        limit = ("limit", "rate", "over", f"{rate}/second", "burst", str(burst), "packets", "drop")
        self._nft("insert", "rule", "netdev", "from_s0", "forward", *limit)

    def flows_seen(self) -> int:
        return self._told(self._lab.flows_seen())

    def frames_elsewhere(self) -> int:
        found = json.loads(self._nft("-j", "list", "counter", "netdev", "from_s0", "elsewhere"))["nftables"]
        return self._told(sum(each["counter"]["packets"] for each in found if "counter" in each))

    def listen(self, undo: ExitStack) -> None:
        """Keep copies of the frames from the left."""
        self._arriving = undo.enter_context(closing(Arriving(self._sut, "s0")))

    def sound_frames(self, headers: Headers) -> int:
        return self._told(sum(not faults_of(frame, headers, headers.left) for frame in self._arriving.frames()))

    def _told(self, number: int) -> int:
        self.seen.append(number)
        return number


@pytest.fixture(params=["xdp", "packet-ring", "trex"])
def bench(request: pytest.FixtureRequest) -> Iterator[RealBench]:
    parameters = request.node.callspec.params
    mtu = JUMBO if parameters.get("size") == JUMBO else MTU
    if request.param == "xdp" and mtu > MTU:
        pytest.skip("XDP sends no frames of this size")
    with ExitStack() as undo:
        if request.param == "trex":
            if TREX is None:
                pytest.skip("no TRex here: PODPERF_TREX names the folder of one")
            bench = RealBench(undo, mtu)
            path = dialogue_of(re.sub("trex-|-trex|trex", "", request.node.name))
            bench.tester = undo.enter_context(closing(trex(bench, TREX, path, undo)))
        else:
            if not os.access(TESTER_BINARY, os.X_OK):
                pytest.skip(f"{TESTER_BINARY} is not built")
            bench = RealBench(undo, mtu)
            bench.seconds = 0.3
            settings = TesterSettings(SoftwareSettings(), None, PortSettings(), PortSettings())
            left, right = (TesterPort(port, bench.ports.namespace) for port in ("p0", "p1"))
            site = Site(LocalHost(), settings, request.param, (TESTER_CPU,), left, right)
            bench.tester = undo.enter_context(closing(TESTERS["software"].at(site)))
        if "headers" in parameters:
            bench.listen(undo)
        yield bench


def trex(bench: RealBench, folder: str, path: Path, undo: ExitStack) -> TrexTester:
    """A TRex on the bench's ports. Its answers are recorded if the environment asks for that."""
    interfaces = Interfaces("p0", "p1", kernel=True, mtu=bench.mtu)
    endpoint = undo.enter_context(running(bench.ports, TrexServerSettings(folder), interfaces, (TESTER_CPU,))).endpoint
    host: Host = bench.ports
    publisher_port = PUBLISHER_PORT
    if RECORD and FROM_PYPI:
        recording = recorded_trex.FOLDER / f"{path.stem}.json.gz"
        recorder = host.spawn(sys.executable, recorded_trex.__file__, str(recording))
        undo.callback(recorder.stop)
        assert recorder.receive(10) == "ready"
        endpoint, publisher_port = Endpoint("127.0.0.1", recorded_trex.RPC_PORT), recorded_trex.PUBLISHER_PORT
    elif RECORD:
        dialogue = Dialogue(path)

        def save() -> None:
            dialogue.seen = bench.seen
            dialogue.save()

        undo.callback(save)
        host = RecordingHost(bench.ports, dialogue)
    settings = TrexSettings(interpreter=PYTHON)
    return TrexTester(host, settings, endpoint, publisher_port, CLIENT)


@pytest.mark.parametrize("lost", [False, True])
def test_the_frames_of_each_group_of_flows_are_counted_to_the_frame(bench: RealBench, lost: bool) -> None:
    """The system under test counts those of the third group, and loses every second frame of it."""
    if Ability.GROUPS not in bench.tester.facts.abilities:
        pytest.skip("this tester does not count groups of flows")
    if lost:
        bench.lose_half_elsewhere()
    traffic = traffic_of("IMIX", BOTH_DIRECTIONS, 32, further_entries=({}, {Direction.LEFT_TO_RIGHT: ELSEWHERE}, {}))
    load = 2 * LOW
    whole = load * bench.seconds / 4

    def measure() -> tuple[Sequence[int], int]:
        before = bench.frames_elsewhere()
        result = valid(bench, Trial(traffic, load, bench.seconds))
        for direction in result.directions:
            assert sum(direction.received_by_group) == direction.received
        counts, seen = result.directions[0].received_by_group, bench.frames_elsewhere() - before
        assert len(counts) == 4 and counts[2] <= seen
        return counts, seen

    arrive = whole / 2 if lost else whole
    _, seen = first(lambda found: found[0] == (whole, whole, arrive, whole), measure)
    assert seen - arrive in {0, 1}, "the learning frame goes there, too, or is lost"


def test_frames_cross_in_the_time_that_was_planned(bench: RealBench) -> None:
    """A device of a known rate tells: sent within a shorter time than planned, more frames are lost."""
    rate, burst = 20_000, 2_000
    bench.let_through(rate, burst)

    def lost() -> tuple[str | None, float]:
        time.sleep(2 * burst / rate)  # the device's bucket is full again after half of it
        result = bench.tester.measure(Trial(TRAFFIC, rate + burst, 1.0))
        return result.invalid, result.loss_ratio

    # A stall of 5 ms while the bucket is full costs 0.5 %.
    first(lambda found: found[0] is None and found[1] < 0.005, lost)


# --- a TRex that podperf started --------------------------------------------------------------------------------------


@pytest.mark.skipif(TREX is None, reason="PODPERF_TREX names no TRex")
def test_a_trex_that_is_killed_in_mid_trial_is_named_at_once() -> None:
    assert TREX is not None
    with ExitStack() as undo:
        bench = RealBench(undo)
        interfaces = Interfaces("p0", "p1", kernel=True)
        server = undo.enter_context(running(bench.ports, TrexServerSettings(TREX), interfaces, (TESTER_CPU,)))
        settings = TrexSettings(interpreter=PYTHON)
        tester = TrexTester(bench.ports, settings, server.endpoint, PUBLISHER_PORT, CLIENT, own=server)
        undo.callback(tester.close)
        pid = server.process.pid
        killing = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
        killing.start()
        began = time.monotonic()
        with pytest.raises(PodperfError, match=f"started as process {pid}, ended at .*: it did not say why"):
            tester.measure(Trial(TRAFFIC, LOW, 5.0))
        assert time.monotonic() - began < 3


# --- a TRex that runs already ----------------------------------------------------------------------------------------


@pytest.fixture
def endpoint() -> Iterator[tuple[RealBench, Endpoint]]:
    """A TRex that somebody else started."""
    if TREX is None:
        pytest.skip("no TRex here: PODPERF_TREX names the folder of one")
    with ExitStack() as undo:
        bench = RealBench(undo)
        interfaces = Interfaces("p0", "p1", kernel=True)
        server = undo.enter_context(running(bench.ports, TrexServerSettings(TREX), interfaces, (TESTER_CPU,)))
        yield bench, server.endpoint


def session(bench: RealBench, endpoint: Endpoint) -> TrexTester:
    settings = TrexSettings(interpreter=PYTHON)
    return TrexTester(bench.ports, settings, endpoint, PUBLISHER_PORT, CLIENT)


def test_a_server_that_runs_already_is_left_alone(endpoint: tuple[RealBench, Endpoint]) -> None:
    bench, there = endpoint
    for _ in range(2):
        with session(bench, there) as tester:
            assert tester.measure(Trial(TRAFFIC, LOW, SECONDS)).received > 0
    assert server_version(bench.ports, there).api >= (4, 1)


def test_ports_that_somebody_else_holds_are_not_taken(
    endpoint: tuple[RealBench, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, there = endpoint
    with session(bench, there):
        monkeypatch.setattr("platform.node", lambda: "elsewhere")
        with pytest.raises(PodperfError, match="port 0 is held by 'podperf@"):
            session(bench, there)


def test_what_a_killed_run_left_running_is_stopped_by_the_next(endpoint: tuple[RealBench, Endpoint]) -> None:
    bench, there = endpoint
    killed = session(bench, there)
    process, macs = killed._process, (killed.facts.left.mac, killed.facts.right.mac)
    assert process is not None
    process.send(request_line(Trial(TRAFFIC, UNPACED, 30.0), macs, dict.fromkeys(Direction, 1)))
    while not int((json.loads(bench.ports.ask(*PACKETS_SENT).stdout))[0]["stats64"]["tx"]["packets"]):
        pass
    process.stop()
    with session(bench, there) as tester:
        result = tester.measure(Trial(TRAFFIC, LOW, SECONDS))
        assert result.sent == result.intended_count
