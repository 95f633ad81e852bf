"""DPDK's testpmd as a pod's application: it polls the pod's devices and forwards between each two of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from podperf.cleanup import RUN_DIRECTORY
from podperf.cpus import format_cpu_list
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import threads_named
from podperf.placement import allowed_cpus

Mode = Literal["io", "mac", "macswap"]
PROMPT = "testpmd> "
MARK = "end-of-answer"  # no command of testpmd: its echo shows that the answer before is complete
DRIVERS = "/usr/lib/*/dpdk/pmds-*"  # where Debian and Ubuntu keep them; DPDK loads all
START_TIMEOUT = 20.0  # seconds; a device may wait for its peer, which tries again every second
ANSWER_TIMEOUT = 5.0
# DPDK names a polling thread after its lcore: before 22.11, since 22.11, since 23.03.
POLLING_THREADS = ("lcore-worker", "rte-worker", "dpdk-worker")
_COMPLAINT = re.compile(r"error|fail|panic|cannot|invalid", re.IGNORECASE)


@dataclass(frozen=True)
class Testpmd:
    """A running testpmd."""

    __test__ = False  # not a pytest class

    name: str
    host: Host
    process: Process
    command: Sequence[str]
    cpu: int

    def begin(self) -> None:
        """Wait until it is up, and let it forward. PodperfError, with what it said, when it does not come up."""
        try:
            self.ask("start", START_TIMEOUT)
        except PodperfError as error:
            raise PodperfError(f"testpmd did not start in {self.host.name}: {error}") from error
        # From here on its main thread only waits for questions.
        self.host.run("taskset", "--cpu-list", "--pid", str(self.cpu), str(self.process.pid))

    def ask(self, question: str, timeout: float = ANSWER_TIMEOUT) -> list[str]:
        """What it answers at its prompt, in lines. `timeout` is in seconds and holds for each line."""
        self.process.send(question)
        self.process.send(MARK)
        answer: list[str] = []
        while (line := self.process.receive(timeout)) != PROMPT + MARK:
            answer.append(line)
        self.process.receive(timeout)  # it does not know the mark, and says so
        asked = answer.index(PROMPT + question) if PROMPT + question in answer else -1
        return answer[asked + 1 :]

    def pollers(self) -> list[int]:
        """Its threads that poll without a pause."""
        return [
            thread for prefix in POLLING_THREADS for thread in threads_named(self.host, prefix, of=self.process.pid)
        ]

    def check(self) -> None:
        """PodperfError when it is gone, with the last that it said."""
        if not self.process.alive():
            complaints = [line for line in self.process.errors().splitlines() if _COMPLAINT.search(line)]
            raise PodperfError(
                f"testpmd has ended in {self.host.name}{''.join(f': {each}' for each in complaints[-1:])}"
            )

    def describe(self) -> dict[str, object]:
        """Its command line, and what it says of its forwarding and of its devices."""
        return {
            "command": list(self.command),
            "forwarding": [line for line in self.ask("show config fwd") if line],
            "devices": [line for line in self.ask("show port summary all") if line],
            "statistics": [line.strip() for line in self.ask("show fwd stats all") if ":" in line],
        }


def missing(host: Host, *drivers: str) -> str | None:
    """Why pods on this host cannot run it, or it cannot use these drivers (`net_af_xdp`), with the remedy; or None."""
    if host.run("which", "dpdk-testpmd", check=False).exit_code:
        return "DPDK's testpmd is not installed (Debian package dpdk-dev)"
    for driver in drivers:
        if host.run("sh", "-c", f"ls {DRIVERS}/librte_{driver}.so*", check=False).exit_code:
            package = f"librte-{driver.replace('_', '-')}"  # followed by the number of DPDK's binary interface
            return f"DPDK's driver {driver} is not installed (Debian package {package}…, which comes with dpdk-dev)"
    return None


def start(
    host: Host,
    name: str,
    devices: Sequence[str],
    undo: ExitStack,
    *,
    cpu: int,
    mode: Mode = "io",
    hugepages: bool = False,
    memory: int = 128,
) -> Testpmd:
    """Testpmd on virtual `devices` (EAL --vdev texts), forwarding, with its main and its polling thread on one CPU.

    `memory` is in MiB; without `hugepages` it is ordinary memory. PodperfError, with what it said, when it does not
    come up.
    """
    testpmd = launch(host, name, devices, undo, cpu=cpu, mode=mode, hugepages=hugepages, memory=memory)
    testpmd.begin()
    return testpmd


def launch(
    host: Host,
    name: str,
    devices: Sequence[str],
    undo: ExitStack,
    *,
    cpu: int,
    mode: Mode = "io",
    hugepages: bool = False,
    memory: int = 128,
) -> Testpmd:
    """As `start`, without waiting until it is up: for devices whose peers come afterwards, and for many at once.

    It comes up on any CPU, as its own may be busy with pollers that are up already.
    """
    anywhere = format_cpu_list(allowed_cpus(host.get("/proc/self/status").decode()))
    pages = ["--in-memory", "--single-file-segments"] if hugepages else ["--no-huge"]
    eal = [
        "--no-pci",
        "--no-telemetry",
        f"--lcores=0@({anywhere}),1@{cpu}",
        "-m",
        str(memory),
        f"--file-prefix=podperf-{name}",
        *pages,
    ]
    application = ["--total-num-mbufs=8192", f"--forward-mode={mode}", "--nb-cores=1", "--no-lsc-interrupt", "-i"]
    application.append("--disable-link-check")  # it would wait 9 s for a peer that starts only afterwards
    command = ["dpdk-testpmd", *eal, *(f"--vdev={device}" for device in devices), "--", *application]
    # DPDK keeps its files under RUNTIME_DIRECTORY; with line buffers, an answer arrives when it is given.
    process = host.spawn("env", f"RUNTIME_DIRECTORY={RUN_DIRECTORY}", "stdbuf", "-oL", *command)
    undo.callback(process.stop)
    return Testpmd(name, host, process, command, cpu)
