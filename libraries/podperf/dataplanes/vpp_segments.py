"""What a chain's interfaces are called in VPP, and which two of them make a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podperf.dataplanes.base import Worker, WorkerPort


@dataclass(frozen=True)
class VppInterface:
    """An interface of VPP, and the MAC of whoever is next behind it: the tester, or beyond a pod VPP itself again."""

    name: str
    mac: str
    neighbour: str


@dataclass(frozen=True)
class Segment:
    """The two interfaces of VPP between which a segment's frames pass; number 0 is the leftmost."""

    number: int
    left: VppInterface
    right: VppInterface


def host_interface(port: WorkerPort) -> str:
    """What VPP calls a port of the worker."""
    return f"host-{port.interface}"


def memif_name(pod: int, connection: int) -> str:
    """What VPP calls its end of net1 (0) or net2 (1) of a pod."""
    return f"memif{pod}/{connection}"


def memif_mac(pod: int, connection: int) -> str:
    """The MAC of VPP's end; locally administered."""
    return f"02:fe:00:00:{pod:02x}:{connection:02x}"


def segments(worker: Worker, ports: Sequence[str], pods: int) -> list[Segment]:
    """The segments of a chain, from left to right; `ports` is what VPP calls the worker's two.

    A pod passes frames on as they are, so its far side is the next.
    """
    left, right = ports
    names, macs = [left], [worker.left.mac]
    for pod in range(1, pods + 1):
        names += [memif_name(pod, connection) for connection in (0, 1)]
        macs += [memif_mac(pod, connection) for connection in (0, 1)]
    names.append(right)
    macs.append(worker.right.mac)
    # Interfaces 2n and 2n + 1 make segment n; beyond 2n, through a pod, lies 2n - 1, and beyond 2n + 1 lies 2n + 2.
    beyond = [worker.left.peer_mac, *macs[1:-1], worker.right.peer_mac]
    for place in range(1, len(macs) - 1):
        beyond[place] = macs[place + 1] if place % 2 else macs[place - 1]
    ends = [VppInterface(*each) for each in zip(names, macs, beyond, strict=True)]
    return [Segment(place // 2, ends[place], ends[place + 1]) for place in range(0, len(ends), 2)]
