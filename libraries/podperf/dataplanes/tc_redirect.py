"""eBPF at the tc hook, as Cilium and Calico's eBPF mode do: frames skip the worker's bridge, routing and netfilter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_programs import TC_PEER, TC_REDIRECT, describe_program, missing, redirect_at_tc
from podperf.dataplanes.kernel_state import KernelPods
from podperf.dataplanes.segments import forward_along, patches, start_pods_on_veth, take_all_frames
from podperf.hosts.base import Host
from podperf.model import Chain, Direction, Entry, NetworkingModel


class TcRedirect(KernelPods):
    """bpf_redirect to the next interface: a frame for a pod crosses its veth pair and the CPU's backlog queue."""

    name: ClassVar[str] = "tc-redirect"
    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF
    least_pods: ClassVar[int] = 0
    to_pod: ClassVar[str] = TC_REDIRECT

    _interfaces: Sequence[str]

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return missing(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        pods = start_pods_on_veth(worker, chain, undo)
        take_all_frames(worker)
        ports = (worker.left.interface, worker.right.interface)
        pairs = patches(worker, pods)
        for source, target in pairs:
            program = TC_REDIRECT if target in ports else self.to_pod
            redirect_at_tc(worker.host, program, source, target)
        self._worker, self._pods, self._interfaces = worker, pods, [source for source, _ in pairs]
        return forward_along(pods, worker)

    def describe(self) -> dict[str, Any]:
        programs = {name: describe_program(self._worker.host, name) for name in self._interfaces}
        return super().describe() | {"programs": programs}


class TcRedirectPeer(TcRedirect):
    """bpf_redirect_peer towards pods: a frame is received by the pod's end of the pair at once, without the backlog."""

    name: ClassVar[str] = "tc-redirect-peer"
    to_pod: ClassVar[str] = TC_PEER
