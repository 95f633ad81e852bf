"""DPDK's example l2fwd as a pod's application. The draft's own experiments run l2fwd in their pods."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from podperf.allocation import USUAL_ALLOCATION, PodAllocation
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import ORDINARY_MTU, Share
from podperf.pods.forwarders.dpdk import START_TIMEOUT, DpdkApplication, command_line, spawn

PROGRAM = "dpdk-l2fwd"
UP = "entering main loop"
PORTS = 2


@dataclass(frozen=True)
class L2fwdApplication(DpdkApplication):
    """A running l2fwd. It polls on its main thread and answers no questions."""

    def begin(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        while UP not in self.process.errors(assumed=UP):
            self.check()
            if time.monotonic() > deadline:
                raise PodperfError(f"l2fwd did not start in {self.host.name} in {START_TIMEOUT:.0f} s")
            time.sleep(0.02)
        self.settle()

    def pollers(self) -> list[int]:
        """The number of l2fwd's main thread, which polls."""
        return [self.process.pid]

    def describe(self) -> dict[str, object]:
        """l2fwd's command line, and its messages about its ports at the start."""
        said = [line.strip() for line in self.process.errors().splitlines()]
        return {
            "command": list(self.command),
            "hugepages_of_mib": self.page_size(),
            "devices": [line for line in said if "portid" in line],
        }


class L2fwd:
    """l2fwd between two ports. It leaves frames unchanged (`--no-mac-updating`)."""

    transparent = True

    def missing(self, host: Host) -> str | None:
        if host.ask("which", PROGRAM, check=False, assumed="").exit_code:
            return (
                "DPDK's example l2fwd is not installed: no package has it; "
                f"build it from DPDK's sources (meson -Dexamples=l2fwd) and put {PROGRAM} on the PATH"
            )
        return None

    def refused(self, allocation: PodAllocation) -> str | None:
        usual = replace(USUAL_ALLOCATION, limits=allocation.limits)
        return None if allocation == usual else "l2fwd chooses its descriptors and buffers, and polls on one CPU"

    def launch(self, pod: Pod, devices: Sequence[str], share: Share, undo: ExitStack) -> L2fwdApplication:
        if share.mtu > ORDINARY_MTU:
            raise Unavailable(f"buffers of l2fwd do not hold a frame for an MTU of {share.mtu}: testpmd's do")
        arguments = ["-p", hex(2**PORTS - 1), "-q", str(PORTS), "-T", "0", "--no-mac-updating"]
        command = command_line(PROGRAM, pod, devices, arguments, share, polls_on_main=True)
        return L2fwdApplication(pod, spawn(pod, command, undo), command, share.cpu)
