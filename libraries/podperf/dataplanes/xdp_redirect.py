"""eBPF at the XDP hook: frames go from one receive ring to the next interface before they become socket buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_programs import GENERIC, NATIVE, redirect_at_xdp
from podperf.dataplanes.redirected_pods import RedirectedPods
from podperf.pods.base import Pod


def take_redirected_frames(pods: Sequence[Pod]) -> None:
    """Let the pods' interfaces take frames from XDP programs. A veth end does so only if it has a NAPI context."""
    for pod in pods:
        for interface in pod.interfaces:
            pod.host.do("ethtool", "-K", interface, "gro", "on")


class XdpRedirect(RedirectedPods):
    """Native XDP if the driver has it, and otherwise generic XDP. The description has the mode of each interface."""

    name: ClassVar[str] = "xdp-redirect"
    modes: ClassVar[Sequence[str]] = (NATIVE, GENERIC)

    def make_ready(self, worker: Worker, pods: Sequence[Pod]) -> None:
        take_redirected_frames(pods)

    def redirect(self, worker: Worker, source: str, target: str) -> None:
        redirect_at_xdp(worker.host, source, target, self.modes)
