"""Chains whose neighbours share a layer 2 segment: each pod routes to the next pod's MAC.

Segments are counted from the left, and then on in the next chain that stands beside: in chains of two pods, the first
chain has the segments 0 to 2 and the second one 3 to 5. All first segments share the network of the worker's left
port, and all last segments the network of its right port. Each inner segment is a network of its own. A network has
the number of its first segment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from podperf.addressing import ChainAddresses
from podperf.dataplanes.base import Worker
from podperf.hosts.linux import add_veth, ip
from podperf.model import Chain, Direction, Entry
from podperf.pods.base import Attachment, Pod
from podperf.pods.forwarders.kernel import NextHop, forward, route_via


def static_address(address: str, gateway: str | None = None) -> dict[str, Any]:
    """An `ipam` section for the CNI plug-in `static`. The address has the length of its prefix: `10.254.0.2/24`."""
    of_gateway = {} if gateway is None else {"gateway": gateway}
    return {"type": "static", "addresses": [{"address": address, **of_gateway}]}


def start_pods(
    worker: Worker, chain: Chain, plugins: Callable[[int, str], Sequence[Mapping[str, Any]]], undo: ExitStack
) -> list[Pod]:
    """The pods of all chains, chain by chain. Each has net1 on the segment before it, and net2 on the one behind it.

    `plugins(network, address)` gives the CNI plug-ins that attach one interface with this address to this network.
    """
    left_of, right_of = worker.addresses.left_of, worker.addresses.right_of

    def attached(interface: str, segment: int, address: str) -> Attachment:
        network = network_of_segment(chain, segment)
        return Attachment(interface, f"segment{network}", plugins(network, worker.addresses.on_segment(address)))

    pods: list[Pod] = []
    for line in parallel_chains(chain):
        for before in line.segments[: line.own_pods]:
            attachments = [
                attached("net1", before, right_of(before)),
                attached("net2", before + 1, left_of(before + 1)),
            ]
            pods.append(worker.pods.start(f"pod{len(pods) + 1}", attachments, undo))
    if chain.common_pod:
        attachments = [
            attached(parallel_chain.into_common, parallel_chain.segments[-2], right_of(parallel_chain.segments[-2]))
            for parallel_chain in parallel_chains(chain)
        ]
        attachments.append(attached("net2", chain.pods, left_of(chain.pods)))
        pods.append(worker.pods.start(f"pod{len(pods) + 1}", attachments, undo))
    return pods


@dataclass(frozen=True)
class ParallelChain:
    """One of the chains that stand beside each other, counted from 0. It has `own_pods` pods that no other one has."""

    number: int
    own_pods: int
    segments: range

    @property
    def into_common(self) -> str:
        """The interface of a common pod on this chain's way into it."""
        return "net1" if self.number == 0 else f"net{self.number + 2}"

    def pods(self, of_all: Sequence[Pod]) -> Sequence[Pod]:
        """Its own ones of all pods."""
        return of_all[self.number * self.own_pods : (self.number + 1) * self.own_pods]


def parallel_chains(chain: Chain) -> list[ParallelChain]:
    own, each = chain.pods - chain.common_pod, chain.pods + 1
    return [ParallelChain(number, own, range(number * each, (number + 1) * each)) for number in range(chain.chains)]


def network_of_segment(chain: Chain, segment: int) -> int:
    place = segment % (chain.pods + 1)
    return place if place in (0, chain.pods) else segment


def start_pods_on_veth(worker: Worker, count: int, undo: ExitStack, before: int = 0) -> list[Pod]:
    """Start `count` pods. The first one has the number `before` + 1. Each interface is one end of a veth pair.

    The data plane on the worker takes the other end.
    """
    pods, addresses = [], worker.addresses
    for number in range(1, count + 1):
        name = f"pod{before + number}"
        pod = worker.pods.start(name, [], undo)
        ends = ("net1", "a", addresses.right_of(number - 1)), ("net2", "b", addresses.left_of(number))
        for interface, end, address in ends:
            pod.add_veth(interface, worker.host, f"{name}{end}", worker.mtu, addresses.on_segment(address))
        pods.append(pod)
    return pods


def take_all_frames(worker: Worker) -> None:
    """Let both ports receive frames for all MACs. Otherwise a card drops frames for a pod's MAC."""
    for port in (worker.left, worker.right):
        ip(worker.host, "link", "set", "dev", port.interface, "promisc", "on")


def patches(worker: Worker, pods: Sequence[Pod]) -> list[tuple[str, str]]:
    """For each of the worker's interfaces along the chain: the interface where frames arrive, and their next interface.

    Each segment joins two interfaces in both directions: the left port and net1 of the first pod; net2 of a pod and
    net1 of the next pod; net2 of the last pod and the right port.
    """
    pod_ends = [pod.interfaces[name].host_interface for pod in pods for name in ("net1", "net2")]
    line = [worker.left.interface, *(end for end in pod_ends if end is not None), worker.right.interface]
    pairs = list(zip(line[::2], line[1::2], strict=True))
    return [way for one, other in pairs for way in ((one, other), (other, one))]


def neighbours(pods: Sequence[Pod], worker: Worker) -> tuple[list[str], list[str]]:
    """The MACs at the left ends and at the right ends of all segments."""
    left_macs = [worker.left.peer_mac, *(pod.interfaces["net2"].mac for pod in pods)]
    right_macs = [*(pod.interfaces["net1"].mac for pod in pods), worker.right.peer_mac]
    return left_macs, right_macs


def entries(pods: Sequence[Pod], worker: Worker) -> Mapping[Direction, Entry]:
    """The destination of frames that enter the chain: the MACs of its outermost interfaces."""
    left_macs, right_macs = neighbours(pods, worker)
    return {
        Direction.LEFT_TO_RIGHT: Entry(mac=right_macs[0]),
        Direction.RIGHT_TO_LEFT: Entry(mac=left_macs[-1]),
    }


def forward_along(pods: Sequence[Pod], worker: Worker, first: int = 0) -> Mapping[Direction, Entry]:
    """Let each pod of a chain forward to the MACs of its neighbours, and the outermost pods to the tester's MACs.

    `first` is the chain's first segment.
    """
    left_macs, right_macs = neighbours(pods, worker)
    _forward(pods, worker.addresses, first, left_macs, right_macs)
    return entries(pods, worker)


def _forward(
    pods: Sequence[Pod], addresses: ChainAddresses, first: int, left_macs: Sequence[str], right_macs: Sequence[str]
) -> None:
    for index, pod in enumerate(pods):
        forward(
            pod,
            addresses,
            to_left=NextHop("net1", addresses.left_of(first + index), left_macs[index]),
            to_right=NextHop("net2", addresses.right_of(first + index + 1), right_macs[index + 1]),
        )


def forward_along_each(chain: Chain, pods: Sequence[Pod], worker: Worker) -> list[Mapping[Direction, Entry]]:
    """As `forward_along`, for each of the chains that stand beside each other. The entries of each chain."""
    if chain.common_pod:
        return _forward_by_common_pod(chain, pods, worker)
    return [
        forward_along(parallel_chain.pods(pods), worker, parallel_chain.segments[0])
        for parallel_chain in parallel_chains(chain)
    ]


def _forward_by_common_pod(chain: Chain, pods: Sequence[Pod], worker: Worker) -> list[Mapping[Direction, Entry]]:
    """Chains whose last pod is the same one. From right to left, it finds the chain by the frame's destination address.

    Frames of the other chains come from addresses that the pod's routes have elsewhere. So it checks no sources.
    """
    common, found, addresses = pods[-1], list[Mapping[Direction, Entry]](), worker.addresses
    unchecked = {f"net__ipv4__conf__{name}__rp_filter": 0 for name in ("all", *common.interfaces)}
    hops = {addresses.right: NextHop("net2", addresses.right_of(chain.pods), worker.right.peer_mac)}
    for line in parallel_chains(chain):
        own, into, destination = line.pods(pods), line.into_common, addresses.chain_from_right(line.number)
        left_macs = [worker.left.peer_mac, *(pod.interfaces["net2"].mac for pod in own)]
        right_macs = [*(pod.interfaces["net1"].mac for pod in own), common.interfaces[into].mac]
        _forward(own, addresses, line.segments[0], left_macs, right_macs)
        hops[addresses.alone(destination)] = NextHop(into, addresses.left_of(line.segments[-2]), left_macs[-1])
        back = Entry(mac=common.interfaces["net2"].mac, address=destination)
        found.append({Direction.LEFT_TO_RIGHT: Entry(mac=right_macs[0]), Direction.RIGHT_TO_LEFT: back})
    route_via(common, addresses, hops, **unchecked)
    return found


def parent_interfaces(worker: Worker, chain: Chain) -> dict[int, str]:
    """The worker's parent interface for each network; pods get its sub-interfaces. The outer networks have the ports,
    and inner networks the end of a veth pair."""
    parents = {0: worker.left.interface, chain.pods: worker.right.interface}
    for segment in range(chain.chains * (chain.pods + 1)):
        if network_of_segment(chain, segment) not in parents:
            near, far = f"parent{segment}", f"parent{segment}-end"
            add_veth(worker.host, near=near, far=far, mtu=worker.mtu)
            parents[segment] = near
    return parents
