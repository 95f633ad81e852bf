"""The Open vSwitch of a run. It has a private database and run directory, and shares nothing with the host's own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import cycle
from types import MappingProxyType
from typing import Any

from podperf.addressing import ChainAddresses
from podperf.dataplanes.base import Worker
from podperf.errors import PodperfError
from podperf.frames import AddressFamily
from podperf.hosts.base import Host, Process, json_answer
from podperf.hosts.linux import await_success
from podperf.kernel.thread_time import CpuUser, Cycles
from podperf.kernel.threads import held_to, threads_named
from podperf.model import Chain, Direction, Entry

PLAIN = "ovs-vswitchd"
WITH_DPDK = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"  # its path on Debian and Ubuntu
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
MOST_COMPLAINTS = 4
START_TIMEOUT = 30.0  # seconds, enough for an emulated CPU; on a free core ovs-vswitchd answers after 0.2 to 1 s
ANSWER_TIMEOUT = 60  # seconds, enough for an emulated CPU; on a free core a port with DPDK takes 0.1 s


def missing(host: Host, daemon: str) -> str | None:
    """The reason why the host cannot run this switch, or None."""
    if not host.ask("which", "ovsdb-server", daemon, check=False, assumed="").exit_code:
        return None
    package = "openvswitch-switch" if daemon == PLAIN else "openvswitch-switch-dpdk"
    return f"Open vSwitch{'' if daemon == PLAIN else ' with DPDK'} is not installed (Debian package {package})"


def cpu_mask(cpus: Sequence[int]) -> str:
    """CPU numbers as the hexadecimal mask that Open vSwitch wants."""
    return hex(sum(1 << cpu for cpu in set(cpus)))


def busy_threads(worker: Worker, pollers: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """The threads that share each CPU: the kernel's receive threads of the worker's ports, and the pollers.

    If a thread sleeps in its turn, the previous thread keeps the CPU. The pollers stand between the receive threads. So
    if frames come from one side only, a poller keeps the CPU.
    """
    left, right = (
        threads_named(worker.host, f"napi/{each.interface}-", assumed=0 if each.pci else 1)
        for each in (worker.left, worker.right)
    )
    busy = {cpu: list(threads) for cpu, threads in pollers.items()}
    cpus = worker.cpus
    busy[cpus.receives_left] = left + busy.get(cpus.receives_left, [])
    busy[cpus.receives_right] = busy.get(cpus.receives_right, []) + right
    return busy


def entries_of_chains(chain: Chain, addresses: ChainAddresses) -> list[Mapping[Direction, Entry]]:
    """The destinations by which `OpenVSwitch.join_chains` tells chains apart. A single chain takes all frames."""
    if chain.chains == 1:
        return [{}]
    return [
        {
            Direction.LEFT_TO_RIGHT: Entry(address=addresses.chain_from_left(number)),
            Direction.RIGHT_TO_LEFT: Entry(address=addresses.chain_from_right(number)),
        }
        for number in range(chain.chains)
    ]


class OpenVSwitch:
    """The ovsdb-server and ovs-vswitchd of one set-up, in the network of `host`."""

    def __init__(
        self,
        host: Host,
        directory: str,
        undo: ExitStack,
        *,
        daemon: str = PLAIN,
        cpus: Sequence[int] = (),
        configuration: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Start both programs. `daemon` is the program of the switch. It runs on `cpus`, or on any CPU without `cpus`.
        `configuration` is the `other_config` with which it starts (ovs-vswitchd.conf.db(5))."""
        self._host, self._directory = host, directory
        self._ports = 0  # so far
        self._polled = int(configuration.get("pmd-cpu-mask", "0x1"), 16)  # the mask of the pollers' CPUs
        self._database = f"{directory}/db.sock"
        self._control = f"{directory}/vswitchd.ctl"
        host.do("rm", "-rf", directory)  # a killed run may have left a database
        host.do("mkdir", "-p", directory)
        host.do("ovsdb-tool", "create", f"{directory}/conf.db", SCHEMA)
        server = host.spawn(
            "env",
            *self._environment,
            "ovsdb-server",
            f"{directory}/conf.db",
            f"--remote=punix:{self._database}",
            f"--unixctl={directory}/ovsdb.ctl",
        )
        undo.callback(server.stop)
        self._await(server, "ovs-appctl", "-t", f"{directory}/ovsdb.ctl", "version")
        self.vsctl("--no-wait", "init")
        settings = [f"other_config:{key}={json.dumps(value)}" for key, value in configuration.items()]
        if settings:
            self.vsctl("--no-wait", "set", "Open_vSwitch", ".", *settings)
        command = [daemon, self._remote, f"--unixctl={self._control}"]
        self.process = host.spawn("env", *self._environment, *command, cpus=cpus)
        undo.callback(self.process.stop)
        # The switch answers before it has read its configuration. After this, DPDK may still end the switch.
        self._await(self.process, *self._vsctl(timeout=1), "set", "Open_vSwitch", ".", "external_ids:made_by=podperf")

    @property
    def _environment(self) -> list[str]:
        # The last one is DPDK's.
        return [f"{name}={self._directory}" for name in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "RUNTIME_DIRECTORY")]

    @property
    def _remote(self) -> str:
        return f"unix:{self._database}"

    def _await(self, process: Process, *command: str) -> None:
        if not await_success(self._host, process, START_TIMEOUT, *command):
            raise PodperfError(f"Open vSwitch did not start on {self._host.name}: {_last_words(process.errors())}")

    def check(self) -> None:
        """Raises PodperfError if ovs-vswitchd has ended, with its last errors."""
        if not self.process.alive():
            said = _last_words(self.process.errors())
            raise PodperfError(f"ovs-vswitchd has ended on {self._host.name}{f': {said}' if said else ''}")

    def confine(self, cpus: Sequence[int]) -> None:
        """Hold all threads except the pollers to these CPUs. Call this after the start, which any CPU may speed up."""
        for thread in self._controllers():
            self._host.do("taskset", "--cpu-list", "--pid", ",".join(map(str, cpus)), str(thread), check=False)

    def _controllers(self) -> set[int]:
        polling = {thread for threads in self.pollers().values() for thread in threads}
        return set(threads_named(self._host, "", of=self.process.pid, assumed=1)) - polling

    def pollers(self) -> dict[int, list[int]]:
        """The threads of the PMDs, by CPU."""
        found = {}
        assumed = [cpu for cpu in range(self._polled.bit_length()) if self._polled >> cpu & 1]
        threads = threads_named(self._host, "pmd-c", of=self.process.pid, assumed=len(assumed))
        for thread, cpu in zip(threads, cycle(assumed)):
            # Named after their CPU and their number: pmd-c01/id:8.
            name = self._host.get(f"/proc/{self.process.pid}/task/{thread}/comm", f"pmd-c{cpu:02}".encode()).decode()
            found[int(name.removeprefix("pmd-c").split("/")[0])] = [thread]
        return found

    def pmds(self) -> CpuUser:
        """The PMDs. The switch tells how many of their cycles were for frames."""

        def threads() -> list[int]:
            return [thread for found in self.pollers().values() for thread in found]

        return CpuUser("PMDs of ovs-vswitchd", self._host, threads, polls=True, cycles=self._cycles)

    def whole(self) -> CpuUser:
        """All threads of a switch that sleeps while no frame arrives."""
        pid = self.process.pid
        return CpuUser("ovs-vswitchd", self._host, lambda: threads_named(self._host, "", of=pid))

    def _cycles(self) -> Cycles | None:
        return parse_pmd_cycles(self.appctl("dpif-netdev/pmd-stats-show"))

    def describe_pmds(self) -> dict[str, Any]:
        """Versions and configuration of the switch, its ports, the CPUs of its control threads, and the counters of its
        pollers."""
        config = self.row("Open_vSwitch", ".")
        return {
            "version": self.appctl("version").splitlines(),
            "dpdk_version": config["dpdk_version"],
            "dpdk_initialized": config["dpdk_initialized"],
            "other_config": dict(config["other_config"][1]),
            "datapath": self.appctl("dpif/show").splitlines(),
            "control_held_to": held_to(self._host, self._controllers()),
            "pmd_rxq": self.appctl("dpif-netdev/pmd-rxq-show").splitlines(),
            "pmd_stats": [line.strip() for line in self.appctl("dpif-netdev/pmd-stats-show").splitlines()],
        }

    def vsctl(self, *arguments: str) -> str:
        """Configure the switch through the database, and wait until ovs-vswitchd has applied the change."""
        done = self._host.do(*self._vsctl(ANSWER_TIMEOUT), *arguments, timeout=ANSWER_TIMEOUT + 5)
        return done.stdout

    def _vsctl(self, timeout: int) -> list[str]:
        return ["ovs-vsctl", f"--db={self._remote}", f"--timeout={timeout}"]

    def ofctl(self, *arguments: str, stdin: str | None = None) -> str:
        return self._host.do("env", *self._environment, "ovs-ofctl", *arguments, stdin=stdin).stdout

    def flows(self, bridge: str) -> list[str]:
        command = ("env", *self._environment, "ovs-ofctl", "dump-flows", "--no-stats", bridge)
        return self._host.ask(*command).stdout.splitlines()

    def appctl(self, *arguments: str) -> str:
        return self._host.ask("ovs-appctl", "-t", self._control, *arguments).stdout

    def add_ports(self, bridge: str, ports: Mapping[str, Mapping[str, str]]) -> list[int]:
        """Add interfaces with these settings, and return their OpenFlow numbers. Raises PodperfError if one is refused.

        All ports are added in one step. The switch reconfigures itself after each step, and ports that are polled
        already make it wait.
        """
        words: list[str] = []
        for interface, settings in ports.items():
            self._ports += 1
            wanted = {"ofport_request": str(self._ports), **settings}
            words += ["--", "add-port", bridge, interface]
            words += ["--", "set", "Interface", interface, *(f"{name}={value}" for name, value in wanted.items())]
        before = len(self.process.errors())
        self.vsctl(*words[1:])
        assumed = [[number, ["set", []]] for number in range(self._ports - len(ports) + 1, self._ports + 1)]
        answer = json.dumps({"headings": ["ofport", "error"], "data": assumed})
        rows = zip(ports, self._rows("Interface", *ports, assumed=answer), strict=True)
        return [self._port_number(name, row, before) for name, row in rows]

    def _port_number(self, interface: str, row: Mapping[str, Any], before: int) -> int:
        """The port's OpenFlow number. The cause of a refusal stands only in the log, behind its first `before`
        characters."""
        number = row["ofport"]
        if isinstance(number, int) and number >= 0:  # an empty set: not known yet; -1: refused
            return number
        complaints = "; ".join(_complaints(self.process.errors()[before:]))
        cause = f": {complaints}" if complaints else ""
        raise PodperfError(f"Open vSwitch refused the port {interface}: {row['error'] or 'no reason given'}{cause}")

    def join(self, bridge: str, ports: Sequence[int], tags: tuple[int, int] | None = None) -> None:
        """Join `ports` of a chain to segments, two by two. Frames that enter one port of a segment leave the other.

        With `tags`, the first port is a trunk with frames of the first VLAN ID, and the last one with frames of the
        other ID. All other ports are access ports: their frames have no tags.
        """
        segments = list(zip(ports[::2], ports[1::2], strict=True))
        ways = segments + [(other, one) for one, other in segments]
        trunks = {} if tags is None else {ports[0]: tags[0], ports[-1]: tags[1]}
        flows = []
        for source, target in ways:
            actions = ["strip_vlan"] if source in trunks else []
            actions += [f"mod_vlan_vid:{trunks[target]}"] if target in trunks else []
            flows.append((f"in_port={source}", ",".join([*actions, f"output:{target}"])))
        self._add_flows(bridge, flows)

    def join_chains(
        self, bridge: str, ends: tuple[int, int], chains: Sequence[Sequence[int]], addresses: ChainAddresses
    ) -> None:
        """Join the ports of several chains that share the `ends`. A frame that enters an end goes to the chain of its
        destination address (podperf.addressing)."""
        left, right = ends
        to = "ip,nw_dst" if addresses.family is AddressFamily.IPV4 else "ipv6,ipv6_dst"  # ovs-fields(7)
        for number, (first, *inner, last) in enumerate(chains):
            self._add_flows(
                bridge,
                [
                    (f"in_port={left},{to}={addresses.chain_from_left(number)}", f"output:{first}"),
                    (f"in_port={right},{to}={addresses.chain_from_right(number)}", f"output:{last}"),
                    (f"in_port={first}", f"output:{left}"),
                    (f"in_port={last}", f"output:{right}"),
                ],
            )
            if inner:
                self.join(bridge, inner)

    def _add_flows(self, bridge: str, flows: Sequence[tuple[str, str]]) -> None:
        """For each of these matches, take these actions."""
        text = "".join(f"{match},actions={actions}\n" for match, actions in flows)
        self.ofctl("add-flows", bridge, "-", stdin=text)

    def row(self, table: str, record: str) -> dict[str, Any]:
        """A row of a database table. An empty column is None (RFC 7047, section 5.1)."""
        (row,) = self._rows(table, record)
        return row

    def _rows(self, table: str, *records: str, assumed: str | None = None) -> list[dict[str, Any]]:
        question = (*self._vsctl(ANSWER_TIMEOUT), "--format=json", "list", table, *records)
        said = self._host.ask(*question, timeout=ANSWER_TIMEOUT + 5, assumed=assumed).stdout
        return json_answer(self._host, " ".join(question), said, _rows_of)


def _rows_of(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = ([None if value == ["set", []] else value for value in row] for row in answer["data"])
    return [dict(zip(answer["headings"], row, strict=True)) for row in rows]


def parse_pmd_cycles(said: str) -> Cycles | None:
    """The cycles of all PMDs in the answer to `dpif-netdev/pmd-stats-show`, which also has those of the main thread.

    None if the switch has counted none.
    """
    of_pmds = "".join(part for part in re.split(r"^(?=\S)", said, flags=re.MULTILINE) if part.startswith("pmd thread"))
    idle, busy = (
        [int(found) for found in re.findall(rf"^ +{kind} cycles: (\d+) ", of_pmds, re.MULTILINE)]
        for kind in ("idle", "processing")
    )
    return Cycles(sum(busy), sum(idle) + sum(busy)) if busy else None


def _complaints(log: str) -> list[str]:
    """The last errors in a daemon's log, without time and module: `2026-01-01T00:00:00Z|00001|dpdk|ERR|text`."""
    complaints = [line.split("|", 4)[-1] for line in log.splitlines() if "|ERR|" in line or "|EMER|" in line]
    return list(dict.fromkeys(complaints))[-MOST_COMPLAINTS:]


def _last_words(log: str) -> str:
    """The last errors in a daemon's log, or else its end, in one line."""
    return "; ".join(_complaints(log)) or " ".join(log.split())[-300:]
