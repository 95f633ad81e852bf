"""The names of a chain's interfaces in VPP, and the pairs of interfaces that make a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podperf.dataplanes.base import Worker, WorkerPort


@dataclass(frozen=True)
class VppInterface:
    """An interface of VPP. `neighbour` is the next MAC behind the interface.

    Behind a port this is the tester's MAC. Behind a pod it is the MAC of VPP's interface on the other side of the pod,
    because the pod forwards frames unchanged.
    """

    name: str
    mac: str
    neighbour: str


@dataclass(frozen=True)
class Segment:
    """The two interfaces of VPP at the ends of a segment. Segment 0 is the leftmost."""

    number: int
    left: VppInterface
    right: VppInterface


def host_interface(port: WorkerPort) -> str:
    """VPP's name of a port of the worker."""
    return f"host-{port.interface}"


def memif_name(pod: int, connection: int) -> str:
    """VPP's name of its end of net1 (connection 0) or net2 (connection 1) of a pod."""
    return f"memif{pod}/{connection}"


def memif_mac(pod: int, connection: int) -> str:
    """The MAC of VPP's end, a locally administered one."""
    return f"02:fe:00:00:{pod:02x}:{connection:02x}"


def segments(worker: Worker, ports: Sequence[str], pods: int) -> list[Segment]:
    """The segments of a chain, from left to right. `ports` are VPP's names of the worker's left and right port.

    A pod forwards frames unchanged. So the next MAC behind an interface is at the far side of the pod.
    """
    left, right = ports
    names, macs = [left], [worker.left.mac]
    for pod in range(1, pods + 1):
        names += [memif_name(pod, connection) for connection in (0, 1)]
        macs += [memif_mac(pod, connection) for connection in (0, 1)]
    names.append(right)
    macs.append(worker.right.mac)
    # Interfaces 2n and 2n + 1 make segment n. A pod joins interfaces 2n - 1 and 2n.
    beyond = [worker.left.peer_mac, *macs[1:-1], worker.right.peer_mac]
    for place in range(1, len(macs) - 1):
        beyond[place] = macs[place + 1] if place % 2 else macs[place - 1]
    ends = [VppInterface(*each) for each in zip(names, macs, beyond, strict=True)]
    return [Segment(place // 2, ends[place], ends[place + 1]) for place in range(0, len(ends), 2)]
