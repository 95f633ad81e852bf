"""Open vSwitch with its user-space datapath: packet sockets on veth pairs to the pods, whose kernels forward."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.dataplanes.openvswitch import PLAIN, OpenVSwitch, busy_threads, missing
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.hosts.base import Host
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.model import NetworkingModel


class OvsNetdev(OvsKernel):
    """One thread of ovs-vswitchd reads and writes all ports, with one system call a frame.

    The kernel's receive threads fill the sockets of this thread. Under load they would keep it off the CPU, so they
    take turns with it.
    """

    name: ClassVar[str] = "ovs-netdev"
    model: ClassVar[NetworkingModel] = NetworkingModel.USER_SPACE
    switch_has_cpus: ClassVar[bool] = True
    datapath: ClassVar[str] = "netdev"

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return missing(host, PLAIN)

    def _take_turns(self, worker: Worker, switch: OpenVSwitch, undo: ExitStack) -> Turns:
        (cpu,), process = worker.cpus.pollers_of(1), switch.process.pid
        worker.host.run("taskset", "--cpu-list", "--pid", str(cpu), str(process))
        return take_turns(worker.host, busy_threads(worker, {cpu: [process]}), undo)

    def _describe(self, worker: Worker, switch: OpenVSwitch, turns: Turns) -> Mapping[str, Any]:
        return {**super()._describe(worker, switch, turns), "pollers": turns.describe()}
