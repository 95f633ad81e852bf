"""eBPF at the XDP hook: frames go from one receive ring to the next interface before they become socket buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.bpf_programs import GENERIC, NATIVE, OFFLOADED, redirect_at_xdp, refusal
from podperf.dataplanes.redirected_pods import RedirectedPods
from podperf.errors import Unavailable
from podperf.hosts.base import Host, Refusal
from podperf.model import Chain, NetworkingModel
from podperf.pods.base import Pod


def take_redirected_frames(pods: Sequence[Pod]) -> None:
    """Let the pods' interfaces take frames from XDP programs. A veth end does so only if it has a NAPI context."""
    for pod in pods:
        for interface in pod.interfaces:
            pod.host.do("ethtool", "-K", interface, "gro", "on")


class XdpRedirect(RedirectedPods):
    """Native XDP if the driver has it, and otherwise generic XDP. The description has the mode of each interface."""

    name: ClassVar[str] = "xdp-redirect"
    takes_tags: ClassVar[bool] = True
    modes: ClassVar[Sequence[str]] = (NATIVE, GENERIC)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if worker.headers.left and chain.pods:
            raise Unavailable("kernels of pods route frames without VLAN tags, and XDP redirects to no VLAN interface")
        return super().set_up(worker, chain, undo)

    def make_ready(self, worker: Worker, pods: Sequence[Pod]) -> None:
        take_redirected_frames(pods)

    def redirect(self, worker: Worker, source: str, target: str) -> None:
        redirect_at_xdp(worker.host, source, target, self.modes)


class XdpOffload(XdpRedirect):
    """The hardware of the NIC runs the program. Few NICs can.

    podperf tries it. If the kernel refuses, its answer is the reason of the skip.
    """

    name: ClassVar[str] = "xdp-offload"
    model: ClassVar[NetworkingModel] = NetworkingModel.SMART_NIC
    modes: ClassVar[Sequence[str]] = (OFFLOADED,)

    @staticmethod
    def refused(host: Host, ports: Mapping[str, str]) -> str | None:
        if not ports:
            return "a run makes the worker's ports as veths, and those have no NIC that could run an eBPF program"
        for port, driver in ports.items():
            if reason := refusal(host, port, OFFLOADED, _assumed(driver)):
                return f"{port} of {host.name} runs no eBPF program on the NIC: {reason}"
        return None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if reason := self.refused(worker.host, {each.interface: each.driver for each in (worker.left, worker.right)}):
            raise Unavailable(reason)
        return super().set_up(worker, chain, undo)

    def redirect(self, worker: Worker, source: str, target: str) -> None:
        driver = next((each.driver for each in (worker.left, worker.right) if each.interface == source), "veth")
        redirect_at_xdp(worker.host, source, target, self.modes, _assumed(driver))


def _assumed(driver: str) -> str:
    """The answer of the kernel that a plan assumes."""
    return "" if driver == "nfp" else Refusal(f"the driver {driver} offloads none")
