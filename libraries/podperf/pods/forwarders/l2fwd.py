"""DPDK's example l2fwd as a pod's application: what the draft's own experiments run in their pods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import Share
from podperf.pods.forwarders.dpdk import START_TIMEOUT, DpdkApplication, command_line, spawn

PROGRAM = "dpdk-l2fwd"
UP = "entering main loop"
PORTS = 2


@dataclass(frozen=True)
class L2fwdApplication(DpdkApplication):
    """A running l2fwd. It polls on its main thread and answers no questions."""

    def begin(self) -> None:
        """Wait until it forwards. PodperfError, with what it said, when it does not come up."""
        deadline = time.monotonic() + START_TIMEOUT
        while UP not in self.process.errors():
            self.check()
            if time.monotonic() > deadline:
                raise PodperfError(f"l2fwd did not start in {self.host.name} in {START_TIMEOUT:.0f} s")
            time.sleep(0.02)
        self.settle()

    def pollers(self) -> list[int]:
        """Its main thread."""
        return [self.process.pid]

    def describe(self) -> dict[str, object]:
        """Its command line, and what it said of its ports when it started."""
        said = [line.strip() for line in self.process.errors().splitlines()]
        return {
            "command": list(self.command),
            "hugepages_of_mib": self.page_size(),
            "devices": [line for line in said if "portid" in line],
        }


class L2fwd:
    """l2fwd between two ports, frames passed on as they are (`--no-mac-updating`)."""

    def missing(self, host: Host) -> str | None:
        """Why it cannot be run on this host, with the remedy, or None."""
        if host.run("which", PROGRAM, check=False).exit_code:
            return (
                "DPDK's example l2fwd is not installed: no package has it; "
                f"build it from DPDK's sources (meson -Dexamples=l2fwd) and put {PROGRAM} on the PATH"
            )
        return None

    def launch(self, pod: Pod, devices: Sequence[str], share: Share, undo: ExitStack) -> L2fwdApplication:
        """Start it; see Forwarder.launch."""
        arguments = ["-p", hex(2**PORTS - 1), "-q", str(PORTS), "-T", "0", "--no-mac-updating"]
        command = command_line(PROGRAM, pod, devices, arguments, share, polls_on_main=True)
        return L2fwdApplication(pod, spawn(pod, command, undo), command, share.cpu)
