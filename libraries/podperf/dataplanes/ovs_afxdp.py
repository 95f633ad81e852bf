"""Open vSwitch on AF_XDP sockets: polling threads take frames at the XDP hook of each port, kernel pods forward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.buffers import refuse_large_frames
from podperf.dataplanes.openvswitch import PLAIN, OpenVSwitch, busy_threads, cpu_mask, missing
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.dataplanes.user_space_ports import leave_one_queue_each
from podperf.hosts.base import Host
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.kernel.thread_time import CpuUser
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Chain, NetworkingModel


class OvsAfxdp(OvsKernel):
    """Every port of the switch, to a pod or to the network, is of type afxdp. The switch polls all on its CPUs.

    The kernel's receive threads fill the sockets of the worker's ports. They take turns with the poller.
    """

    name: ClassVar[str] = "ovs-afxdp"
    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF
    switch_has_cpus: ClassVar[bool] = True
    datapath: ClassVar[str] = "netdev"

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        if reason := missing(host, PLAIN):
            return reason
        daemon = host.ask("sh", "-c", f'ldd "$(readlink -f "$(which {PLAIN})")"', check=False)
        return None if "libxdp" in daemon.stdout else "this Open vSwitch was built without AF_XDP (--enable-afxdp)"

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "an AF_XDP socket")
        leave_one_queue_each(worker)
        return super().set_up(worker, chain, undo)

    def _start(self, worker: Worker, undo: ExitStack) -> OpenVSwitch:
        configuration = {"pmd-cpu-mask": cpu_mask(worker.cpus.switch)}
        return OpenVSwitch(worker.host, f"{worker.directory}/ovs", undo, configuration=configuration)

    def _prepared(self, worker: Worker, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        for name in names:
            worker.host.do("ethtool", "-K", name, "gro", "on")  # only then a veth has a receive ring
        settings = {"type": "afxdp", "options:xdp-mode": "best-effort"}
        return {
            name: settings | {"other_config:pmd-rxq-affinity": f'"0:{cpu}"'}
            for name, cpu in zip(names, worker.cpus.pollers_of(len(names)), strict=True)
        }

    def _take_turns(self, worker: Worker, switch: OpenVSwitch, undo: ExitStack) -> Turns:
        switch.confine(worker.cpus.beside_switch)  # no pod polls
        return take_turns(worker.host, busy_threads(worker, switch.pollers()), undo)

    def _user(self, switch: OpenVSwitch) -> CpuUser:
        return switch.pmds()

    def _describe(self, worker: Worker, switch: OpenVSwitch, turns: Turns) -> Mapping[str, Any]:
        return {
            **super()._describe(worker, switch, turns),
            **switch.describe_pmds(),
            "sockets": describe_sockets(worker.host, switch.process.pid),
            "pollers": turns.describe(),
        }
