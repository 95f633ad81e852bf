"""Open vSwitch with the kernel's datapath: veth pairs to the pods, OpenFlow between ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.openvswitch import PLAIN, OpenVSwitch, missing
from podperf.dataplanes.segments import forward_along, start_pods_on_veth
from podperf.hosts.base import Host
from podperf.hosts.linux import module_as_before
from podperf.hosts.way_back import unload_at_the_end
from podperf.kernel.poller_sharing import Turns
from podperf.kernel.thread_time import CpuUser
from podperf.model import Chain

BRIDGE = "ovs-br0"
MODULE = "openvswitch"


class OvsKernel(KernelPods):
    """One bridge; two flows for each segment of the chain."""

    name: ClassVar[str] = "ovs-kernel"
    datapath: ClassVar[str] = "system"

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        if reason := missing(host, PLAIN):
            return reason
        with module_as_before(host, MODULE):
            host.do("modprobe", "--quiet", MODULE, check=False)
            lacking = host.ask("genl", "ctrl", "get", "name", "ovs_datapath", check=False).exit_code
        return f"the kernel of {host.name} has no Open vSwitch datapath (module {MODULE})" if lacking else None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if self.datapath == "system":
            unload_at_the_end(worker.host, MODULE, undo)
            worker.host.do("modprobe", "--quiet", MODULE, check=False)
        switch = self._start(worker, undo)
        switch.vsctl("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, f"datapath_type={self.datapath}")
        if self.datapath == "system":  # the kernel's datapath does not end with the switch
            undo.callback(switch.vsctl, "--if-exists", "del-br", BRIDGE)
        switch.ofctl("del-flows", BRIDGE)

        pods = start_pods_on_veth(worker, chain, undo)
        inner = [f"pod{number}{end}" for number in range(1, chain.pods + 1) for end in "ab"]
        names = [worker.left.interface, *inner, worker.right.interface]
        switch.join(BRIDGE, switch.add_ports(BRIDGE, self._prepared(worker, names)))
        entries = forward_along(pods, worker)
        turns = self._take_turns(worker, switch, undo)

        def describe_switch() -> Mapping[str, Any]:
            return self._describe(worker, switch, turns)

        return running_pods(worker, pods, entries, describe_switch, [switch, turns], [turns.told(self._user(switch))])

    def _start(self, worker: Worker, undo: ExitStack) -> OpenVSwitch:
        return OpenVSwitch(worker.host, f"{worker.directory}/ovs", undo, cpus=worker.cpus.sut)

    def _prepared(self, worker: Worker, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Prepare the interfaces of the chain for the switch. Returns the switch's settings for each."""
        return {name: {} for name in names}

    def _take_turns(self, worker: Worker, switch: OpenVSwitch, undo: ExitStack) -> Turns:
        """Let the switch share its CPUs with the kernel's receive threads. The kernel's datapath has no poller."""
        return Turns()

    def _user(self, switch: OpenVSwitch) -> CpuUser:
        """The threads of the switch that take CPU time for frames."""
        return switch.whole()

    def _describe(self, worker: Worker, switch: OpenVSwitch, turns: Turns) -> Mapping[str, Any]:
        """The switch's own description, beside the kernel's description of the pods."""
        return {
            "version": switch.appctl("version").splitlines()[0],
            "datapath_type": switch.row("Bridge", BRIDGE)["datapath_type"],
            "datapath": switch.appctl("dpif/show").splitlines(),
            "flows": switch.flows(BRIDGE),
        }
