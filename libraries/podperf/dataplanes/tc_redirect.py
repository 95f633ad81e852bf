"""eBPF at the tc hook, as Cilium and Calico's eBPF mode do: frames skip the worker's bridge, routing and netfilter."""

from __future__ import annotations

from typing import ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.bpf_programs import TC_PEER, TC_REDIRECT, redirect_at_tc
from podperf.dataplanes.redirected_pods import RedirectedPods


class TcRedirect(RedirectedPods):
    """bpf_redirect to the next interface: a frame for a pod crosses its veth pair and the CPU's backlog queue."""

    name: ClassVar[str] = "tc-redirect"
    to_pod: ClassVar[str] = TC_REDIRECT

    def redirect(self, worker: Worker, source: str, target: str) -> None:
        ports = (worker.left.interface, worker.right.interface)
        redirect_at_tc(worker.host, TC_REDIRECT if target in ports else self.to_pod, source, target)


class TcRedirectPeer(TcRedirect):
    """bpf_redirect_peer towards pods: the pod's end of the pair receives a frame at once, without the backlog queue."""

    name: ClassVar[str] = "tc-redirect-peer"
    to_pod: ClassVar[str] = TC_PEER
    no_end_in_pod: ClassVar[str] = "frames enter its pods behind the XDP hook, where the tester counts them"
