"""The bare path: the tester's two ports plugged into each other. The baseline of every other data plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Cabling, DataPlane, Worker
from podperf.hosts.base import Host
from podperf.model import Chain, Direction, Entry, NetworkingModel


class Wire(DataPlane):
    """No switching component and no pod."""

    name: ClassVar[str] = "wire"
    model: ClassVar[NetworkingModel] = NetworkingModel.NONE
    cabling: ClassVar[Cabling] = Cabling.BACK_TO_BACK
    least_pods: ClassVar[int] = 0
    forwarders: ClassVar[Sequence[str]] = ("none",)

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        return {}

    def describe(self) -> Mapping[str, Any]:
        return {"path": "the tester's ports plugged into each other"}
