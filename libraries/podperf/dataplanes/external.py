"""The black box between two ports that exist already: nothing is set up, whatever stands there is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Cabling, Worker
from podperf.hosts.base import Host
from podperf.model import Chain, Direction, Entry, NetworkingModel


class External:
    """Any vendor's switch, CNI or appliance. How to address frames into it is said in the topology."""

    name: ClassVar[str] = "external"
    model: ClassVar[NetworkingModel] = NetworkingModel.NONE
    cabling: ClassVar[Cabling] = Cabling.EXISTING
    least_pods: ClassVar[int] = 0
    forwarders: ClassVar[Sequence[str]] = ("none",)

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        return {}

    def describe(self) -> Mapping[str, Any]:
        return {"path": "the tester's existing ports; what stands between them is not known to podperf"}
