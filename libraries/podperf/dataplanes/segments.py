"""Chains whose neighbours share a layer 2 segment: each pod routes to the next pod's MAC."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.addressing import PREFIX_LENGTH, left_of, right_of
from podperf.dataplanes.base import Worker
from podperf.hosts.linux import add_veth
from podperf.model import Chain, Direction, Entry
from podperf.pods.base import Attachment, Pod
from podperf.pods.forwarders.kernel import NextHop, forward


def static_address(address: str, prefix_length: int = PREFIX_LENGTH) -> dict[str, Any]:
    """An `ipam` section for the CNI plug-in `static`."""
    return {"type": "static", "addresses": [{"address": f"{address}/{prefix_length}"}]}


def start_pods(
    worker: Worker, chain: Chain, plugins: Callable[[int, str], Sequence[Mapping[str, Any]]], undo: ExitStack
) -> list[Pod]:
    """The chain's pods, net1 on the segment before a pod and net2 on the one behind it.

    `plugins(segment, address)` gives the CNI plug-ins that attach one interface with this address to this segment.
    """
    pods = []
    for number in range(1, chain.pods + 1):
        before, behind = number - 1, number
        attachments = [
            Attachment("net1", f"segment{before}", plugins(before, right_of(before))),
            Attachment("net2", f"segment{behind}", plugins(behind, left_of(behind))),
        ]
        pods.append(worker.pods.start(f"pod{number}", attachments, undo))
    return pods


def forward_along(pods: Sequence[Pod], worker: Worker) -> Mapping[Direction, Entry]:
    """Let each pod forward to its neighbours by MAC, the outermost ones to the tester."""
    left_macs = [worker.left.tester_mac, *(pod.interfaces["net2"].mac for pod in pods)]
    right_macs = [*(pod.interfaces["net1"].mac for pod in pods), worker.right.tester_mac]
    for index, pod in enumerate(pods):
        forward(
            pod,
            to_left=NextHop("net1", left_of(index), left_macs[index]),
            to_right=NextHop("net2", right_of(index + 1), right_macs[index + 1]),
        )
    return {
        Direction.LEFT_TO_RIGHT: Entry(mac=right_macs[0]),
        Direction.RIGHT_TO_LEFT: Entry(mac=left_macs[-1]),
    }


def parent_interfaces(worker: Worker, chain: Chain) -> list[str]:
    """For each segment the worker interface whose sub-interfaces the pods get: the ports, and veth ends in between."""
    inner = []
    for segment in range(1, chain.pods):
        near, far = f"parent{segment}", f"parent{segment}-end"
        add_veth(worker.host, near=near, far=far, mtu=worker.mtu)
        inner.append(near)
    return [worker.left.interface, *inner, worker.right.interface]
