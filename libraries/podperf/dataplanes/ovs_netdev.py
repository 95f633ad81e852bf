"""Open vSwitch with its user-space datapath: packet sockets on veth pairs to the pods, whose kernels forward."""

from __future__ import annotations

from typing import ClassVar

from podperf.dataplanes.base import Receiving
from podperf.dataplanes.openvswitch import PLAIN, missing
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.hosts.base import Host
from podperf.model import NetworkingModel


class OvsNetdev(OvsKernel):
    """One thread of ovs-vswitchd reads and writes all ports, one system call a frame."""

    name: ClassVar[str] = "ovs-netdev"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    receiving: ClassVar[Receiving] = Receiving.POLLER
    datapath: ClassVar[str] = "netdev"

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return missing(host, PLAIN)
