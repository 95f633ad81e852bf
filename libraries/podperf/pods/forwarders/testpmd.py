"""DPDK's testpmd as a pod's application: it polls the pod's devices and forwards between each two of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process

Mode = Literal["io", "mac", "macswap"]
PROMPT = "testpmd>"
START_TIMEOUT = 20.0


@dataclass(frozen=True)
class Testpmd:
    """A running testpmd. `threads` of it poll without a pause."""

    __test__ = False  # not a pytest class

    process: Process
    command: Sequence[str]

    def ask(self, question: str) -> str:
        """What it answers at its prompt."""
        self.process.send(question)
        self.process.send("show port summary 65535")  # an answer of known text marks the end of the one before
        lines: list[str] = []
        while True:
            line = self.process.receive(5.0)
            if "Invalid port" in line:
                return "\n".join(lines)
            lines.append(line)


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
    """Start testpmd on virtual `devices` (EAL --vdev texts), its main and its polling thread on one CPU.

    `memory` is in MiB; without `hugepages` it is ordinary memory. PodperfError, with what it said, when it does not
    come up.
    """
    pages = ["--in-memory", "--single-file-segments"] if hugepages else ["--no-huge"]
    eal = ["--no-pci", f"--lcores=0@{cpu},1@{cpu}", "-m", str(memory), f"--file-prefix=podperf-{name}", *pages]
    application = ["--total-num-mbufs=8192", f"--forward-mode={mode}", "--nb-cores=1", "--no-lsc-interrupt", "-i"]
    command = ["dpdk-testpmd", *eal, *(f"--vdev={device}" for device in devices), "--", *application]
    process = host.spawn(*command, cpus=[cpu])
    undo.callback(process.stop)
    testpmd = Testpmd(process, command)
    try:
        process.send("start")
        testpmd.ask("show port summary all")
    except PodperfError as error:
        raise PodperfError(f"testpmd did not start in {host.name}: {error}") from error
    return testpmd
