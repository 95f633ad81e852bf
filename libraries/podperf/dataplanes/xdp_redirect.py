"""eBPF at the XDP hook: frames go from one receive ring to the next interface before they become socket buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_programs import describe_program, missing, redirect_at_xdp
from podperf.dataplanes.kernel_state import KernelPods
from podperf.dataplanes.segments import forward_along, patches, start_pods_on_veth, take_all_frames
from podperf.hosts.base import Host
from podperf.model import Chain, Direction, Entry, NetworkingModel


class XdpRedirect(KernelPods):
    """Native where the driver has it, else generic; the description says which is in force on each interface."""

    name: ClassVar[str] = "xdp-redirect"
    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF
    least_pods: ClassVar[int] = 0
    modes: ClassVar[Sequence[str]] = ("native", "generic")

    _interfaces: Sequence[str]

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        pods = start_pods_on_veth(worker, chain, undo)
        take_all_frames(worker)
        for pod in pods:
            for interface in pod.interfaces:  # a veth end takes redirected frames only when it has a NAPI context
                pod.host.run("ethtool", "-K", interface, "gro", "on")
        pairs = patches(worker, pods)
        for source, target in pairs:
            redirect_at_xdp(worker.host, source, target, self.modes)
        self._worker, self._pods, self._interfaces = worker, pods, [source for source, _ in pairs]
        return forward_along(pods, worker)

    def describe(self) -> dict[str, Any]:
        programs = {name: describe_program(self._worker.host, name) for name in self._interfaces}
        return super().describe() | {"programs": programs}
