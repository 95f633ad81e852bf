"""The forwarder seam: an application that polls a pod's devices in user space and forwards between each two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from podperf.hosts.base import Host
from podperf.pods.base import Pod

POD_MEMORY = 128  # MiB


@dataclass(frozen=True)
class Share:
    """What an application gets of its machine: the CPU that it polls on, and POD_MEMORY, ordinary or in hugepages."""

    cpu: int
    hugepages: bool = False


class Application(Protocol):
    """One that runs in a pod."""

    @property
    def name(self) -> str:
        """The pod's."""

    def begin(self) -> None:
        """Wait until it is up, and let it forward. PodperfError, with what it said, when it does not come up."""

    def pollers(self) -> list[int]:
        """Its threads that poll without a pause, by the numbers that the worker's kernel gives them."""

    def allow(self, cpus: Iterable[int]) -> None:
        """Let all its threads run on any of these CPUs."""

    def check(self) -> None:
        """PodperfError when it is gone, with the last that it said."""

    def await_file(self, path: str, timeout: float) -> bool:
        """Wait until the application has made this file. False after `timeout` seconds, or when it has ended."""

    def hugepages_mib(self) -> Mapping[str, int]:
        """MiB of its memory that are in hugepages, by NUMA node, read back from the kernel."""

    def sockets(self) -> list[dict[str, Any]]:
        """Its AF_XDP sockets; see podperf.kernel.xdp_sockets."""

    def describe(self) -> Mapping[str, object]:
        """Its command line, and what it says of itself."""


class Forwarder(Protocol):
    """A kind of application."""

    def missing(self, host: Host) -> str | None:
        """Why it cannot be run on this host, with the remedy, or None."""

    def launch(self, pod: Pod, devices: Sequence[str], share: Share, undo: ExitStack) -> Application:
        """Start it in a pod on `devices` (PCI addresses, EAL --vdev texts); do not wait until it is up.

        So there can be many at once, and devices whose peers come afterwards.
        """
