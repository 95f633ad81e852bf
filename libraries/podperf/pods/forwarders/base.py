"""The forwarder seam: an application that polls a pod's devices in user space and forwards between each two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from podperf.allocation import USUAL_ALLOCATION, PodAllocation
from podperf.hosts.base import Host
from podperf.kernel.thread_time import Cycles
from podperf.model import PageSize
from podperf.pods.base import Pod

POD_MEMORY = 128  # MiB
ORDINARY_MTU = 1500  # bytes; frames for it fit into one ordinary buffer, beside a headroom of 128 or 256 bytes


@dataclass(frozen=True)
class Share:
    """An application's share of its machine: the CPU on which it polls, and POD_MEMORY, ordinary or in hugepages.

    With several CPUs in its `allocation`, it polls on `further_cpus`, too.
    """

    cpu: int
    hugepages: PageSize = PageSize.NONE
    allocation: PodAllocation = USUAL_ALLOCATION
    further_cpus: tuple[int, ...] = ()
    mtu: int = ORDINARY_MTU  # of its ports


class Application(Protocol):
    """An application that runs in a pod."""

    @property
    def name(self) -> str:
        """The name of the pod."""

    def begin(self) -> None:
        """Wait until the application is up, and let it forward. Raises PodperfError with its message if it fails."""

    def pollers(self) -> list[int]:
        """The numbers of its polling threads, as the worker's kernel counts threads."""

    @property
    def cycles(self) -> Callable[[], Cycles | None] | None:
        """Asks the application for the cycles that its polling threads have spent. None if it does not tell."""

    def allow(self, cpus: Iterable[int]) -> None:
        """Let all threads of the application run on any of these CPUs."""

    def check(self) -> None:
        """Raises PodperfError if the application has ended, with its last message."""

    def await_file(self, path: str, timeout: float) -> bool:
        """Wait until the application has made this file. False after `timeout` seconds, or when it has ended."""

    def hugepages_mib(self) -> Mapping[str, int]:
        """MiB of the application's memory in hugepages, by NUMA node, read back from the kernel."""

    def sockets(self) -> list[dict[str, Any]]:
        """The application's AF_XDP sockets (podperf.kernel.xdp_sockets)."""

    def describe(self) -> Mapping[str, object]:
        """The application's command line, and its own description."""


class Forwarder(Protocol):
    """A kind of application."""

    @property
    def transparent(self) -> bool:
        """Whether it leaves frames unchanged."""

    def missing(self, host: Host) -> str | None:
        """The reason why this host cannot run the application, with the remedy, or None."""

    def refused(self, allocation: PodAllocation) -> str | None:
        """The reason why the application cannot have this allocation, or None."""

    def launch(self, pod: Pod, devices: Sequence[str], share: Share, undo: ExitStack) -> Application:
        """Start the application in a pod on `devices` (PCI addresses, EAL --vdev texts). Do not wait until it is up.

        So several applications can start at once, also with devices whose peers come later.
        """
