"""A TRex server that podperf itself starts: its configuration file, its start and its end.

Its RPC and its events listen on every address, without a password. So the server runs in a network namespace with only
the test ports. Only root can enter the namespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import yaml

from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import await_success
from podperf.hosts.run_directory import RUN_DIRECTORY, free_shared_memory, shared_memory_prefix
from podperf.testers.trex_rpc import HERE, Endpoint, Programs, command
from podperf.topology import TrexServerSettings

PROGRAM = "_t-rex-64"
START_TIMEOUT = 60.0  # seconds until the server answers; NICs may take long to come up
CPUS_OF_ITS_OWN = 3  # one each for master, latency and data; with fewer CPUs, all threads share one
LOCAL = "127.0.0.1"
_START = 'cd "$1" && export LD_LIBRARY_PATH="$1" && program=$2 log=$3 && shift 3 && exec "./$program" "$@" >"$log" 2>&1'
RPC_PORT, PUBLISHER_PORT = 4501, 4500
LAST_LINES = 20
_RINGS, _LARGEST_MTU = "blocksz=1048576,framesz=4096,framecnt=16384", 3900
# TRex's buffers have 9280 bytes, and TRex refuses larger frames of a ring. A block is whole frames and whole pages.
_JUMBO_RINGS = "blocksz=593920,framesz=9280,framecnt=4096"
_COMPLAINT = re.compile(r"error|cause:|signal|assert|abort|fault|watchdog", re.IGNORECASE)


@dataclass(frozen=True)
class Interfaces:
    """The two ports, left first: interfaces of the kernel with this MTU, or PCI addresses of devices on `node`."""

    left: str
    right: str
    kernel: bool
    node: int = 0
    mtu: int = 1500

    def of_trex(self) -> list[str]:
        """The ports by their names in TRex's configuration."""
        if not self.kernel:
            return [self.left, self.right]
        return [_af_packet(number, name, self.mtu) for number, name in enumerate((self.left, self.right))]


def _af_packet(number: int, interface: str, mtu: int) -> str:
    """An interface of the kernel through a packet socket. Its rings hold 16384 frames; the usual 256 lose frames.

    The rings of an interface for jumbo frames take as much memory, and hold 4096 frames.
    """
    rings = _RINGS if mtu <= _LARGEST_MTU else _JUMBO_RINGS
    return f"--vdev=net_af_packet{number},iface={interface},{rings},qdisc_bypass=1"


def configuration(interfaces: Interfaces, cpus: Sequence[int], prefix: str, low_end: bool | None = None) -> str:
    """TRex's platform configuration, a YAML document (TRex manual, "Platform YAML").

    With fewer than three CPUs, or `low_end`, all threads share the first one.
    """
    if not cpus:
        raise PodperfError("TRex needs CPUs of its own: name them by tester.cpus in the topology")
    platform: dict[str, object] = {
        "version": 2,
        "port_limit": 2,
        "interfaces": interfaces.of_trex(),
        "zmq_rpc_port": RPC_PORT,
        "zmq_pub_port": PUBLISHER_PORT,
        "prefix": prefix,
    }
    if low_end if low_end is not None else len(cpus) < CPUS_OF_ITS_OWN:
        platform |= {"low_end": True, "low_end_core": cpus[0]}
    elif len(cpus) < CPUS_OF_ITS_OWN:
        raise PodperfError(
            f"TRex without low_end needs {CPUS_OF_ITS_OWN} or more CPUs, not {len(cpus)}: name them by tester.cpus, or "
            "leave tester.settings.server.low_end at auto"
        )
    else:
        master, latency, *threads = cpus
        platform["c"] = len(threads)
        platform["platform"] = {
            "master_thread_id": master,
            "latency_thread_id": latency,
            "dual_if": [{"socket": interfaces.node, "threads": threads}],
        }
    return yaml.safe_dump([platform], sort_keys=False)


@dataclass(frozen=True)
class Server:
    """A server that podperf started."""

    host: Host
    process: Process
    log: str  # path of the file with its output

    @property
    def endpoint(self) -> Endpoint:
        """The server's address, seen from its host."""
        return Endpoint(LOCAL, RPC_PORT)

    def complaints(self) -> str:
        """The errors in the server's last lines. Empty without errors."""
        return "; ".join(line for line in _lines(self.host, self.log)[-LAST_LINES:] if _COMPLAINT.search(line))


@contextmanager
def running(
    host: Host, settings: TrexServerSettings, interfaces: Interfaces, cpus: Sequence[int], programs: Programs = HERE
) -> Iterator[Server]:
    """A server on this host, which must be a separate network namespace. It stops at the end of the context.

    Raises PodperfError with the server's message if the server does not come up.
    """
    program = f"{settings.directory}/{PROGRAM}"
    if host.ask("test", "-x", program, check=False, assumed="").exit_code:
        raise PodperfError(
            f"on {host.name}, there is no {program}: tester.settings.server.directory must be the folder of an "
            "unpacked TRex release (or `scripts` of a built one)"
        )
    prefix = shared_memory_prefix()  # the prefix of DPDK's files in /run/dpdk and in hugepages
    folder = f"{RUN_DIRECTORY}/{prefix}"
    path, log = f"{folder}/trex.yaml", f"{folder}/trex.log"
    host.put(configuration(interfaces, cpus, prefix, settings.low_end).encode(), path)
    # Start the program itself. The script around it leaves helpers and folders behind.
    options = ("-i", "--cfg", path, "--iom", "0", "--hdrh", "--no-scapy-server", "--no-ofed-check", *settings.options)
    process = host.spawn("sh", "-c", _START, "sh", settings.directory, PROGRAM, log, *options)
    server = Server(host, process, log)
    try:
        if not await_success(host, process, START_TIMEOUT, *command(server.endpoint, 1.0, programs)):
            raise PodperfError(f"the TRex server in {settings.directory} does not come up: {_said(host, log)}")
        yield server
    finally:
        process.stop()
        host.do("rm", "-rf", folder, f"/run/dpdk/{prefix}")
        free_shared_memory(host)
        host.do("rmdir", "--ignore-fail-on-non-empty", str(RUN_DIRECTORY), check=False)


def _said(host: Host, log: str) -> str:
    """The errors of a server that did not come up, or its last lines."""
    lines = _lines(host, log)
    complaints = [line for line in lines if _COMPLAINT.search(line)]
    return "; ".join((complaints or lines)[-3:]) or "it said nothing"


def _lines(host: Host, log: str) -> list[str]:
    try:
        text = host.get(log).decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip()]
