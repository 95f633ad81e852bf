"""Open vSwitch with its user-space datapath: packet sockets on veth pairs to the pods, whose kernels forward."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.openvswitch import PLAIN, busy_threads, missing
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.hosts.base import Host
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.model import Chain, Direction, Entry, NetworkingModel


class OvsNetdev(OvsKernel):
    """One thread of ovs-vswitchd reads and writes all ports, one system call a frame.

    The kernel's receive threads, which fill its sockets, would not let it run under load: they take turns with it.
    """

    name: ClassVar[str] = "ovs-netdev"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    switch_has_cpus: ClassVar[bool] = True
    datapath: ClassVar[str] = "netdev"

    _turns: Turns

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return missing(host, PLAIN)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> Mapping[Direction, Entry]:
        entries = super().set_up(worker, chain, undo)
        cpu, switch = worker.placement.switch[0], self._switch.process.pid
        worker.host.run("taskset", "--cpu-list", "--pid", str(cpu), str(switch))
        self._turns = take_turns(worker.host, busy_threads(worker, {cpu: [switch]}), undo)
        return entries

    def check(self) -> None:
        super().check()
        self._turns.check()

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "pollers": self._turns.describe()}
