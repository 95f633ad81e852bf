"""Chains with virtual functions (VFs) at both ends, and a virtual switch between the pods.

Draft section 4.1.5 describes this combination. North/south frames cross the NIC's embedded switch, directly into the
first and the last pod. East/west frames cross the virtual switch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from podperf.dataplanes.base import DataPlane, RunningDataPlane, Worker
from podperf.dataplanes.virtual_functions import (
    LEFT,
    NO_END_IN_POD,
    RIGHT,
    VFIO_CAPABILITIES,
    describe_vfs,
    missing,
    on_to,
    vfs_along,
)
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.kernel import pci, sriov
from podperf.kernel.sriov import VirtualFunction
from podperf.model import Chain, Direction, Entry, NetworkingModel
from podperf.pods.forwarders.testpmd import TestpmdForwarder


@dataclass(frozen=True)
class FunctionsAtEnds:
    """The VF of the left port in the first pod, and the VF of the right port in the last pod."""

    worker: Worker
    first: VirtualFunction
    last: VirtualFunction

    def beside_switch(self, chain: Chain) -> Mapping[str, str]:
        """The ends of pods that the switch does not join, with their devices."""
        return {"pod1a": self.first.address, f"pod{chain.pods}b": self.last.address}

    def forwarder(self, devices: Sequence[str]) -> TestpmdForwarder:
        """The forwarder of a pod with these devices. It sets the destination MAC only of frames that leave by a VF,
        because the NIC's switch needs a MAC and the virtual switch does not."""
        peers = {self.first.address: self.worker.left.peer_mac, self.last.address: self.worker.right.peer_mac}
        return on_to({device: peers[device] for device in devices if device in peers})

    @property
    def entries(self) -> Mapping[Direction, Entry]:
        """The destination of frames that enter the chain, for each direction."""
        return {Direction.LEFT_TO_RIGHT: Entry(mac=self.first.mac), Direction.RIGHT_TO_LEFT: Entry(mac=self.last.mac)}

    def describe(self, applications: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """The VFs, and the frames of both kinds of hops, as the pods' `applications` count them."""
        statistics = [each["statistics"] for each in applications.values()]
        hops = frames_by_hop(statistics, {self.first.address, self.last.address})
        return {**describe_vfs(self.worker, [self.first, self.last]), "frames_by_hop": hops}


def frames_by_hop(
    statistics: Iterable[Mapping[str, Mapping[str, int]]], functions: Collection[str]
) -> dict[str, dict[str, int]]:
    """The frames that pods received and sent by these VFs (north/south), and by all other devices (east/west).

    `statistics` has the counts of each pod's devices.
    """
    hops: dict[str, Counter[str]] = {"north_south": Counter(), "east_west": Counter()}
    for devices in statistics:
        for device, counts in devices.items():
            hops["north_south" if device in functions else "east_west"].update(counts)
    return {hop: dict(counts) for hop, counts in hops.items()}


def functions_at_ends(worker: Worker, chain: Chain, undo: ExitStack) -> FunctionsAtEnds:
    """Both VFs, ready for DPDK, until `undo`. Raises Unavailable if this worker cannot have them."""
    if reason := missing(worker):
        raise Unavailable(reason)
    if worker.sriov.queues > 1:  # testpmd has the same number of queues on all its devices
        raise Unavailable(
            f"{chain.data_plane} has pods between a virtual function and a socket of the switch with one queue: "
            f"sriov.queues of the worker must be 1 for it, not {worker.sriov.queues}"
        )
    first, last = vfs_along(worker, {"pod1": [LEFT], f"pod{chain.pods}": [RIGHT]}, undo)
    for vf in (first, last):
        pci.give_to_user_space(worker.host, vf.address)
    return FunctionsAtEnds(worker, first, last)


class Switch(DataPlane, Protocol):
    """A data plane whose switch can work without the worker's ports."""

    def __init__(self, ends: FunctionsAtEnds | None = None) -> None:
        """With `ends` the switch has no port of the worker."""


class SriovAndSwitch(DataPlane):
    """Base class of data planes that combine VFs with a virtual switch. A subclass names the switch."""

    model: ClassVar[NetworkingModel] = NetworkingModel.COMBINATION
    least_pods: ClassVar[int] = 2
    forwarders: ClassVar[Sequence[str]] = ("testpmd-mac",)
    switch_has_cpus: ClassVar[bool] = True
    takes_tags: ClassVar[bool] = True
    uses_virtual_functions: ClassVar[bool] = True
    no_end_in_pod: ClassVar[str] = NO_END_IN_POD
    program_capabilities: ClassVar[tuple[str, ...]] = VFIO_CAPABILITIES
    switch: ClassVar[type[Switch]]

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return sriov.missing(host) or cls.switch.unavailable(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        ends = functions_at_ends(worker, chain, undo)  # before the pods, which start with them
        between = self.switch(ends).set_up(worker, chain, undo)

        def describe() -> Mapping[str, Any]:
            described = between.describe()
            return {**described, **ends.describe(described["applications"])}

        return replace(between, entries=ends.entries, describe=describe)
