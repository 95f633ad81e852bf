"""What the applications of DPDK have in common: their environment abstraction layer (EAL), and how they end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import await_success
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel import hugepages, pci
from podperf.kernel.cpus import allowed_cpus, numa_nodes
from podperf.kernel.thread_time import Cycles
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import POD_MEMORY, Share

DRIVERS = "/usr/lib/*/dpdk/pmds-*"  # where Debian and Ubuntu keep them; DPDK loads all
MAX_LCORES = 128  # Debian's build; more CPUs than that have no lcore of their number
START_TIMEOUT = 60.0  # seconds, on an emulated CPU; a device may wait for its peer, which tries again every second
_COMPLAINT = re.compile(r"error|fail|panic|cannot|invalid", re.IGNORECASE)


def missing_drivers(host: Host, *drivers: str) -> str | None:
    """Why applications on this host cannot use these drivers (`net_af_xdp`), with the remedy; or None."""
    for driver in drivers:
        if host.ask("sh", "-c", f"ls {DRIVERS}/librte_{driver}.so*", check=False).exit_code:
            package = f"librte-{driver.replace('_', '-')}"  # followed by the number of DPDK's binary interface
            return f"DPDK's driver {driver} is not installed (Debian package {package}…, which comes with dpdk-dev)"
    return None


@dataclass(frozen=True)
class DpdkApplication:
    """A running one."""

    pod: Pod
    process: Process
    command: Sequence[str]
    cpu: int

    @property
    def name(self) -> str:
        """The pod's."""
        return self.pod.name

    @property
    def host(self) -> Host:
        """The pod's network."""
        return self.pod.host

    def settle(self) -> None:
        """Hold its main thread to its CPU, too; while it starts, any CPU may help."""
        self.host.do("taskset", "--cpu-list", "--pid", str(self.cpu), str(self.process.pid))

    @property
    def cycles(self) -> Callable[[], Cycles] | None:
        """It does not tell the cycles of its pollers. A subclass may."""
        return None

    def allow(self, cpus: Iterable[int]) -> None:
        """Let all its threads run on any of these CPUs."""
        names = ",".join(map(str, cpus))
        self.host.do("taskset", "--all-tasks", "--cpu-list", "--pid", names, str(self.process.pid))

    def page_size(self) -> int | None:
        """MiB of the hugepages that its memory is in, read back from the kernel. None: it is in ordinary pages."""
        return hugepages.PAGE_MIB if self.hugepages_mib() else None

    def hugepages_mib(self) -> Mapping[str, int]:
        """MiB of its memory that are in hugepages, by NUMA node, read back from the kernel."""
        return hugepages.held(self.host, self.process.pid)

    def sockets(self) -> list[dict[str, Any]]:
        """Its AF_XDP sockets."""
        return describe_sockets(self.host, self.process.pid)

    def await_file(self, path: str, timeout: float) -> bool:
        """Wait until the application has made this file. False after `timeout` seconds, or when it has ended."""
        return await_success(self.host, self.process, timeout, "test", "-e", path)

    def check(self) -> None:
        """PodperfError when it is gone, with the last that it said."""
        if not self.process.alive():
            complaints = [line for line in self.process.errors().splitlines() if _COMPLAINT.search(line)]
            said = "".join(f": {each}" for each in complaints[-1:])
            program = self.command[0].removeprefix("dpdk-")
            raise PodperfError(f"{program} has ended in {self.host.name}{said}")


def command_line(
    program: str,
    pod: Pod,
    devices: Sequence[str],
    arguments: Sequence[str],
    share: Share,
    *,
    polls_on_main: bool = False,
) -> list[str]:
    """A program with its EAL arguments. Of the PCI devices it may have those that are named, and no other.

    Its main thread may run on any CPU until it is settled: the share's may be busy with pollers that are up already.
    Unless it `polls_on_main`, a second thread polls, on the share's CPU. DPDK takes an lcore to be on the NUMA
    node of the CPU with its number, wherever it runs, and puts memory there: so both have numbers of the node of the
    share's CPU.
    """
    anywhere = format_cpu_list(allowed_cpus(pod.host.get("/proc/self/status").decode()))
    nodes = numa_nodes(pod.host)
    node = nodes.get(share.cpu, 0)
    numbers = [each for each in (share.cpu, *(cpu for cpu in nodes if nodes[cpu] == node), 0, 1) if each < MAX_LCORES]
    poller = numbers[0]
    main = poller if polls_on_main else next(each for each in numbers if each != poller)
    lcores = [f"{main}@({anywhere})", *([] if polls_on_main else [f"{poller}@{share.cpu}"])]
    memory = ["--no-huge", "-m", str(POD_MEMORY)]
    if share.hugepages:  # of a node that is named: a thread that may run on any takes its memory from that
        memory = ["--in-memory", "--single-file-segments", f"--socket-mem={'0,' * node}{POD_MEMORY}"]
    eal = [
        "--no-telemetry",
        f"--lcores={','.join(lcores)}",
        f"--main-lcore={main}",
        f"--file-prefix=podperf-{pod.name}",
        *memory,
    ]
    physical = [f"--allow={device}" for device in devices if pci.ADDRESS.fullmatch(device)]
    virtual = [f"--vdev={device}" for device in devices if not pci.ADDRESS.fullmatch(device)]
    return [program, *eal, *(physical or ["--no-pci"]), *virtual, "--", *arguments]


def in_port_order(devices: Sequence[str]) -> list[str]:
    """The devices as DPDK numbers them: those of the PCI bus by their address, then the others as they are given."""
    physical = sorted(device.lower() for device in devices if pci.ADDRESS.fullmatch(device))
    return [*physical, *(device for device in devices if not pci.ADDRESS.fullmatch(device))]


def spawn(pod: Pod, command: Sequence[str], undo: ExitStack) -> Process:
    """Start it in the pod, until `undo`."""
    # DPDK keeps its files under RUNTIME_DIRECTORY; with line buffers, an answer arrives when it is given.
    return pod.start_application(["env", f"RUNTIME_DIRECTORY={RUN_DIRECTORY}", "stdbuf", "-oL", *command], undo)
