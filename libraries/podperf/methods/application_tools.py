"""iperf3 and netperf: their kinds of traffic, their command lines, and their answers. podperf writes no TCP itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError, understood
from podperf.hosts.base import Completed, ProgramPlace, json_answer, shown
from podperf.hosts.linux import await_success, path_of
from podperf.model import CpuTime
from podperf.testers.ends import ChainEnd

_START_PATIENCE = 5.0  # seconds until a server listens
_END_PATIENCE = 20.0  # seconds that a client may take beyond its traffic
_LISTENS = 'ss --no-header --listening --tcp --numeric "sport = :$1" | grep -q .'


class CpuClock(Protocol):
    """Tells the CPU time that something takes between `start` and `stop`."""

    def start(self) -> None: ...

    def stop(self) -> CpuTime: ...


@dataclass(frozen=True)
class Traffic:
    """The traffic of one run: bits/s or transactions/s, and the bytes or transactions of the whole run."""

    rate: float
    amount: float
    retransmits: int | None = None  # None: the tool does not tell
    congestion_control: str = ""  # of the sender's TCP; empty: the tool does not tell


@dataclass(frozen=True)
class Tool:
    """A program of the field, which has a server at the right end and a client at the left end.

    `client` gets the addresses of the left and the right end, and the seconds of the traffic.
    """

    name: str
    remedy: str
    port: int
    server: Callable[[str], Sequence[str]]
    client: Callable[[str, str, float], Sequence[str]]
    read: Callable[[ProgramPlace, Completed], Traffic]

    def missing(self, host: ProgramPlace) -> str | None:
        """The reason why this host cannot run it, with the remedy, or None."""
        there = path_of(host, self.name) is not None
        return None if there else f"{self.name} is not installed on {host.name}; {self.remedy}"


@dataclass(frozen=True)
class TrafficKind:
    """One kind of traffic, by the field's name of it. `metric` is its rate in podperf.metrics.METRICS."""

    metric: str
    words: str
    tool: Tool
    options: Sequence[str]
    cpu_metric: str = ""  # of the CPU time of a byte or a transaction; empty: that is in the table of the record only

    def run(
        self, left: ChainEnd, right: ChainEnd, seconds: float, clock: CpuClock | None
    ) -> tuple[Traffic, CpuTime | None]:
        """One run, and the CPU time by this clock meanwhile. Each run has a server of its own."""
        tool = self.tool
        with ExitStack() as undo:
            server = right.host.spawn(*tool.server(right.address), cpus=right.cpus)
            undo.callback(server.stop)
            listens = ("sh", "-c", _LISTENS, "sh", str(tool.port))
            if not await_success(right.host, server, _START_PATIENCE, *listens):
                said = server.errors().strip() or f"it does not listen on TCP port {tool.port}"
                raise PodperfError(f"the server of {tool.name} did not start at {right.address}: {said}")
            command = (*tool.client(left.address, right.address, seconds), *self.options)
            pinned = ("taskset", "--cpu-list", format_cpu_list(left.cpus)) if left.cpus else ()
            if clock is not None:
                clock.start()
            done = left.host.do(*pinned, *command, check=False, timeout=seconds + _END_PATIENCE)
            taken = None if clock is None else clock.stop()
            return tool.read(left.host, done), taken


def read_iperf3(host: ProgramPlace, done: Completed) -> Traffic:
    """The traffic that arrived at iperf3's server, by its JSON."""
    answer = json_answer(host, "iperf3", done.stdout or done.stderr, _object)
    if error := answer.get("error"):
        raise PodperfError(f"on {host.name}, iperf3: {str(error)[:500]}")
    with understood("iperf3"):
        end = answer["end"]
        received, again = end["sum_received"], int(end["sum_sent"]["retransmits"])
        control = str(end.get("sender_tcp_congestion", ""))
        return Traffic(float(received["bits_per_second"]), float(received["bytes"]), again, control)


def _object(answer: Any) -> Mapping[str, Any]:
    if not isinstance(answer, dict):
        raise TypeError
    return answer


def read_netperf(host: ProgramPlace, done: Completed) -> Traffic:
    """Transactions of netperf, by its keys and values."""
    if done.exit_code:
        said = " ".join((done.stdout + done.stderr).split())[-500:]
        raise PodperfError(f"on {host.name}, `{shown(done.command)}` ended with exit code {done.exit_code}: {said}")
    with understood("netperf"):
        found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
        if found["THROUGHPUT_UNITS"] != "Trans/s":
            raise ValueError(f"a rate in {found['THROUGHPUT_UNITS']}")
        rate = float(found["THROUGHPUT"])
        return Traffic(rate, rate * float(found["ELAPSED_TIME"]))


IPERF3 = Tool(
    "iperf3",
    "apt-get install iperf3",
    5201,
    lambda own: ("iperf3", "--server", "--one-off", "--bind", own),
    lambda own, to, seconds: ("iperf3", "--client", to, "--bind", own, "--json", "--time", f"{seconds:g}"),
    read_iperf3,
)
NETPERF = Tool(
    "netperf",
    "it is in `non-free` of Debian and in `multiverse` of Ubuntu: add this component to the sources of apt, then "
    "apt-get install netperf. Pods of a cluster have it in the image of `podperf image build --netperf`",
    12865,
    lambda own: ("netserver", "-D", "-L", own),
    lambda own, to, seconds: ("netperf", "-H", to, "-L", own, "-l", f"{seconds:.0f}", "-P", "0"),
    read_netperf,
)
TOOLS = (IPERF3, NETPERF)
_KEYS = ("--", "-k", "THROUGHPUT,THROUGHPUT_UNITS,ELAPSED_TIME")
KINDS = (
    TrafficKind("tcp_stream", "TCP_STREAM, 1 stream", IPERF3, ("--parallel", "1"), "tcp_stream_cpu_time"),
    TrafficKind("tcp_streams", "TCP_STREAM, 8 streams", IPERF3, ("--parallel", "8")),
    TrafficKind("tcp_rr", "TCP_RR", NETPERF, ("-t", "TCP_RR", *_KEYS), "tcp_rr_cpu_time"),
    TrafficKind("tcp_crr", "TCP_CRR", NETPERF, ("-t", "TCP_CRR", *_KEYS)),
    TrafficKind("udp_rr", "UDP_RR", NETPERF, ("-t", "UDP_RR", *_KEYS)),
)
