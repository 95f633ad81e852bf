"""The bare path: the tester's two ports plugged into each other. The baseline of every other data plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import ClassVar

from podperf.dataplanes.base import Cabling, DataPlane, RunningDataPlane, Worker
from podperf.hosts.base import Host
from podperf.kernel.thread_time import CpuUser
from podperf.model import Chain, Direction, Entry, NetworkingModel


class Wire(DataPlane):
    """No switching component and no pod."""

    name: ClassVar[str] = "wire"
    takes_tags: ClassVar[bool] = True
    no_end_in_pod: ClassVar[str] = ""
    no_end_in_container: ClassVar[str] = ""
    model: ClassVar[NetworkingModel] = NetworkingModel.NONE
    cabling: ClassVar[Cabling] = Cabling.BACK_TO_BACK
    least_pods: ClassVar[int] = 0
    forwarders: ClassVar[Sequence[str]] = ("none",)
    path: ClassVar[str] = "the tester's ports plugged into each other"
    cpu_users: ClassVar[Sequence[CpuUser] | None] = ()  # see RunningDataPlane

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        return self.between(worker.ports)

    def between(
        self, ports: Mapping[str, Host], entries: Mapping[Direction, Entry] = MappingProxyType({})
    ) -> RunningDataPlane:
        """The path between ports of the tester. There is no worker to set up."""
        return RunningDataPlane(entries, ports, lambda: {"path": self.path}, cpu_users=self.cpu_users)


class External(Wire):
    """The black box between two existing ports: any vendor's switch, CNI or appliance. podperf sets nothing up.

    The topology gives the destination addresses of frames.
    """

    name: ClassVar[str] = "external"
    takes_tags: ClassVar[bool] = True
    no_end_in_pod: ClassVar[str] = "podperf makes no pod behind the ports of a black box"
    cabling: ClassVar[Cabling] = Cabling.EXISTING
    cpu_users: ClassVar[Sequence[CpuUser] | None] = None
    path: ClassVar[str] = "the tester's existing ports; podperf does not know the system between them"
