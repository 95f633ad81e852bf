"""The common parts of DPDK's applications: the arguments of the environment abstraction layer (EAL), start and end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

from podperf.cpu_lists import format_cpu_list
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import await_success
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel import hugepages, pci
from podperf.kernel.cpus import allowed_cpus, numa_nodes
from podperf.kernel.memory import pages_of
from podperf.kernel.thread_time import Cycles
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import POD_MEMORY, Share

DRIVERS = "/usr/lib/*/dpdk/pmds-*"  # the folders of Debian and Ubuntu; DPDK loads all drivers in them
MAX_LCORES = 128  # of Debian's build; a CPU with a higher number has no lcore of its number
START_TIMEOUT = 60.0  # seconds, enough for an emulated CPU; a device may also wait 1 s for its peer
_COMPLAINT = re.compile(r"error|fail|panic|cannot|invalid", re.IGNORECASE)


def missing_drivers(host: Host, *drivers: str) -> str | None:
    """The reason why this host lacks one of these drivers (such as `net_af_xdp`), with the remedy, or None."""
    for driver in drivers:
        if host.ask("sh", "-c", f"ls {DRIVERS}/librte_{driver}.so*", check=False, assumed="").exit_code:
            package = f"librte-{driver.replace('_', '-')}"  # the full name ends with the number of DPDK's ABI
            return f"DPDK's driver {driver} is not installed (Debian package {package}…, which comes with dpdk-dev)"
    return None


@dataclass(frozen=True)
class DpdkApplication:
    """A running application of DPDK."""

    pod: Pod
    process: Process
    command: Sequence[str]
    cpu: int

    @property
    def name(self) -> str:
        return self.pod.name

    @property
    def host(self) -> Host:
        return self.pod.host

    def settle(self) -> None:
        """Pin the main thread to the application's CPU. While the application starts, the thread may use any CPU."""
        self.host.do("taskset", "--cpu-list", "--pid", str(self.cpu), str(self.process.pid))

    @property
    def cycles(self) -> Callable[[], Cycles | None] | None:
        """It does not tell the cycles of its pollers. A subclass may."""
        return None

    def allow(self, cpus: Iterable[int]) -> None:
        names = ",".join(map(str, cpus))
        self.host.do("taskset", "--all-tasks", "--cpu-list", "--pid", names, str(self.process.pid))

    def page_size(self) -> int | None:
        """The size in MiB of the application's hugepages, read back from the kernel. None: it has ordinary pages.

        Of several sizes it is the one of most of the memory.
        """
        held = pages_of(self.host, self.process.pid).hugepages_kib
        return max(held, key=lambda size: held[size]) // 1024 if held else None

    def hugepages_mib(self) -> Mapping[str, int]:
        """MiB of the application's memory in hugepages, by NUMA node, read back from the kernel."""
        return hugepages.held(self.host, self.process.pid)

    def sockets(self) -> list[dict[str, Any]]:
        return describe_sockets(self.host, self.process.pid)

    def await_file(self, path: str, timeout: float) -> bool:
        return await_success(self.host, self.process, timeout, "test", "-e", path)

    def check(self) -> None:
        if not self.process.alive():
            complaints = [line for line in self.process.errors().splitlines() if _COMPLAINT.search(line)]
            said = "".join(f": {complaint}" for complaint in complaints[-1:])
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
    """The command line of a program with its EAL arguments. The program gets no other PCI device than `devices`.

    The main thread may use any CPU until `settle`, because pollers may keep the share's CPU busy. With `polls_on_main`
    the main thread polls. Otherwise a second thread polls on the share's CPU.

    DPDK takes an lcore's number for a CPU number, and allocates memory on that CPU's node. So all lcores get numbers of
    CPUs on the node of the share's CPU.
    """
    anywhere = format_cpu_list(allowed_cpus(pod.host.get("/proc/self/status").decode()))
    nodes = numa_nodes(pod.host)
    node = nodes.get(share.cpu, 0)
    cpus = (share.cpu, *share.further_cpus)
    *pollers, main = lcore_numbers(cpus, [cpu for cpu in nodes if nodes[cpu] == node])
    if polls_on_main:
        main, *pollers = pollers
    lcores = [f"{main}@({anywhere})", *(f"{number}@{cpu}" for number, cpu in zip(pollers, cpus, strict=False))]
    memory = ["--no-huge", "-m", str(POD_MEMORY)]
    if share.hugepages:  # with a named node, the place of the memory does not depend on the thread's CPU
        # DPDK takes pages of the largest size of which one fits into the memory. So the memory is whole pages.
        whole = max(POD_MEMORY, share.hugepages)
        memory = ["--in-memory", "--single-file-segments", f"--socket-mem={'0,' * node}{whole}"]
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


def lcore_numbers(cpus: Sequence[int], near: Sequence[int]) -> list[int]:
    """Different numbers for the lcores on these CPUs, and at the end one for another lcore.

    A CPU without an lcore of its number gets the number of a CPU `near` it, or any free one.
    """
    found: list[int] = []
    for cpu in (*cpus, None):
        others = [each for each in (*near, *range(MAX_LCORES)) if each not in cpus]
        wanted = others if cpu is None else [cpu, *others]
        found.append(next(each for each in wanted if each < MAX_LCORES and each not in found))
    return found


def in_port_order(devices: Sequence[str]) -> list[str]:
    """The devices in the order of DPDK's port numbers: PCI devices by address, then the others in the given order."""
    physical = sorted(device.lower() for device in devices if pci.ADDRESS.fullmatch(device))
    return [*physical, *(device for device in devices if not pci.ADDRESS.fullmatch(device))]


def spawn(pod: Pod, command: Sequence[str], undo: ExitStack) -> Process:
    """Start a DPDK application in the pod, until `undo`."""
    # DPDK keeps its files under RUNTIME_DIRECTORY. stdbuf makes the program write each line at once.
    return pod.start_application(["env", f"RUNTIME_DIRECTORY={RUN_DIRECTORY}", "stdbuf", "-oL", *command], undo)


Role = Literal["server", "client"]

# The binary logarithm of the number of descriptors. Rings of 1024, the default of DPDK and VPP, overflow on bursts.
MEMIF_RING_SIZE = 12
MEMIF_BUFFER_BYTES = 2048


def memif_device(port: int, role: Role, socket: str, connection: int = 0) -> str:
    """The EAL `--vdev` text of a memif: shared memory between two processes, agreed over a UNIX socket (libmemif).

    The server listens on the socket. The client owns the memory. `connection` is the number of the memif on its socket.

    The socket has a path, because an abstract socket is visible in one network namespace only.
    """
    ring = f"rsize={MEMIF_RING_SIZE},bsize={MEMIF_BUFFER_BYTES}"
    return f"net_memif{port},role={role},id={connection},socket={socket},socket-abstract=no,{ring}"
