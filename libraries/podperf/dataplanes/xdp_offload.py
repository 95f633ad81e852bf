"""eBPF on the NIC itself: the hardware of the port runs the program of `xdp-redirect`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.bpf_programs import OFFLOADED, refusal
from podperf.dataplanes.xdp_redirect import XdpRedirect
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.model import Chain, NetworkingModel


class XdpOffload(XdpRedirect):
    """Few NICs can run a program. podperf tries it; if the kernel refuses, its answer is the reason of the skip."""

    name: ClassVar[str] = "xdp-offload"
    model: ClassVar[NetworkingModel] = NetworkingModel.SMART_NIC
    modes: ClassVar[Sequence[str]] = (OFFLOADED,)

    @staticmethod
    def refused(host: Host, ports: Sequence[str]) -> str | None:
        if not ports:
            return "a run makes the worker's ports as veths, and those have no NIC that could run an eBPF program"
        for port in ports:
            if reason := refusal(host, port, OFFLOADED):
                return f"{port} of {host.name} runs no eBPF program on the NIC: {reason}"
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if reason := self.refused(worker.host, [worker.left.interface, worker.right.interface]):
            raise Unavailable(reason)
        return super().set_up(worker, chain, undo)
