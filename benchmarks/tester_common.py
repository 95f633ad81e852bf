"""Common parts of the tester's benchmarks: a bare path in its own namespaces, and the form of the results."""

from __future__ import annotations

import json
import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.threads import dedicate_receive_processing
from podperf.testers.base import TesterPort
from podperf.testers.software import SoftwareTester
from podperf.topology import Engine

ROOT = Path(__file__).resolve().parents[1]
BINARY = os.environ.get("PODPERF_TESTER", str(ROOT / "build" / "tester" / "podperf-tester"))
SENDER_CPU, RECEIVER_CPU = 0, (os.cpu_count() or 1) - 1
START_TIMEOUT = 15.0  # seconds
SENDER, RECEIVER = "bench-tx", "bench-rx"
NARROW_MTU = 3490  # up to which XDP programs take the frames of a veth


@dataclass(frozen=True)
class Wire:
    """A veth pair between two namespaces."""

    sender: NetworkNamespace
    receiver: NetworkNamespace

    def tester(self, engine: Engine = "xdp", *, joined: bool = False) -> SoftwareTester:
        """The tester at both ends. With `joined`, a trial in which the receiving end's ring overflows is invalid."""
        return SoftwareTester(
            LocalHost(),
            TesterPort(SENDER, self.sender.namespace),
            TesterPort(RECEIVER, self.receiver.namespace),
            binary=BINARY,
            engine=engine,
            cpus=[SENDER_CPU],
            joined=joined,
        )

    def arrived(self) -> int:
        """Frames that reached the receiving end so far, without those that it had no room for."""
        (link,) = json.loads(self.sender.ask("ip", "-j", "-s", "link", "show", SENDER).stdout)
        return int(link["stats64"]["tx"]["packets"])


def end_in_order_when_told_to() -> None:
    """From now on, SIGTERM also takes the bare path down."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


@contextmanager
def bare_wire(one_core: bool = False, mtu: int = NARROW_MTU) -> Iterator[Wire]:
    """The path, taken down at the end. With `one_core` the receiving end's work is left to the sender's CPU."""
    if os.geteuid() != 0:
        sys.exit("run this as root: it makes network namespaces")
    end_in_order_when_told_to()
    host = LocalHost()
    wire = Wire(*(NetworkNamespace(f"h-bench-{os.getpid()}-{end}") for end in ("tx", "rx")))
    with ExitStack() as undo:
        for namespace in (wire.sender, wire.receiver):
            host.do("ip", "netns", "add", namespace.namespace)
            undo.callback(host.do, "ip", "netns", "del", namespace.namespace)
            namespace.do("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        ends = ["name", SENDER, "netns", wire.sender.namespace, "mtu", str(mtu), "type", "veth"]
        host.do("ip", "link", "add", *ends, "peer", "name", RECEIVER, "netns", wire.receiver.namespace, "mtu", str(mtu))
        for namespace, interface in ((wire.sender, SENDER), (wire.receiver, RECEIVER)):
            namespace.do("ip", "link", "set", interface, "up")
            if one_core:
                namespace.do("ethtool", "-K", interface, "gro", "on")  # gives a veth its NAPI context
            else:
                dedicate_receive_processing(namespace, interface, RECEIVER_CPU)
        yield wire


@contextmanager
def peer_sending(wire: Wire, command: Sequence[str]) -> Iterator[int]:
    """Run another sender on this CPU, with the tester's priority, from the start of its sending. Gives its group."""
    process = wire.sender.spawn(*command, cpus=[SENDER_CPU])
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, -20)
        Path(f"/proc/{process.pid}/autogroup").write_text("-20")
        before, deadline = wire.arrived(), time.monotonic() + START_TIMEOUT
        while wire.arrived() < before + 1000:
            if not process.alive() or time.monotonic() > deadline:
                raise PodperfError(f"it does not send: {process.errors().strip()[-200:]}")
            time.sleep(0.05)
        yield process.pid
        if not process.alive():
            raise PodperfError(f"it ended by itself: {process.errors().strip()[-200:]}")
    finally:
        process.stop()
        # Some leave workers behind: those are in the group of the first process, which spawn() gave them.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def cpu_seconds(group: int) -> float:
    """The CPU time so far of all threads of a group of processes (/proc/PID/schedstat: nanoseconds on a CPU)."""
    spent = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if os.getpgid(int(process.name)) == group:
                spent += sum(int(each.read_text().split()[0]) for each in process.glob("task/*/schedstat"))
    return spent / 1e9


@dataclass(frozen=True)
class Rate:
    """Frames that arrived, per second and per second of the sender's CPU time."""

    wall: float
    cpu: float


def rate_of_peer(wire: Wire, command: Sequence[str], seconds: float) -> Rate:
    """The rate of another sender at the receiving end, by the interface's counters."""
    with peer_sending(wire, command) as group:
        before, used, began = wire.arrived(), cpu_seconds(group), time.monotonic()
        time.sleep(seconds)
        after, used, ended = wire.arrived(), cpu_seconds(group) - used, time.monotonic()
    return Rate((after - before) / (ended - began), (after - before) / used)


def spread(values: Sequence[float]) -> str:
    """Median and range, in the unit of the values."""
    return f"{statistics.median(values):10.4g}  ({min(values):.4g} to {max(values):.4g}, n = {len(values)})"
