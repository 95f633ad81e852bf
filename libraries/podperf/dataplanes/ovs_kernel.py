"""Open vSwitch without DPDK: veth pairs to pods whose kernels forward, OpenFlow between ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker, refuse_large_frames
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.openvswitch import PLAIN, OpenVSwitch, busy_threads, cpu_mask, missing
from podperf.dataplanes.segments import forward_along, start_pods_on_veth
from podperf.dataplanes.user_space_ports import leave_queues_each
from podperf.errors import Unavailable
from podperf.frames import Headers
from podperf.hosts.base import Host
from podperf.hosts.linux import module_as_before
from podperf.hosts.way_back import unload_at_the_end
from podperf.kernel.poller_sharing import Turns, take_turns
from podperf.kernel.thread_time import CpuUser
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.model import Chain, NetworkingModel

BRIDGE = "ovs-br0"
MODULE = "openvswitch"


class OvsKernel(KernelPods):
    """One bridge; two flows for each segment of the chain. For frames with a tag, the worker's ports are trunks."""

    name: ClassVar[str] = "ovs-kernel"
    takes_tags: ClassVar[bool] = True
    datapath: ClassVar[str] = "system"

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        if reason := missing(host, PLAIN):
            return reason
        with module_as_before(host, MODULE):
            host.do("modprobe", "--quiet", MODULE, check=False)
            lacking = host.ask("genl", "ctrl", "get", "name", "ovs_datapath", check=False, assumed="").exit_code
        return f"the kernel of {host.name} has no Open vSwitch datapath (module {MODULE})" if lacking else None

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        tags = _ids(worker.headers)
        if self.datapath == "system":
            unload_at_the_end(worker.host, MODULE, undo)
            worker.host.do("modprobe", "--quiet", MODULE, check=False)
        switch = self._start(worker, undo)
        switch.vsctl("add-br", BRIDGE, "--", "set", "bridge", BRIDGE, f"datapath_type={self.datapath}")
        if self.datapath == "system":  # the kernel's datapath does not end with the switch
            undo.callback(switch.vsctl, "--if-exists", "del-br", BRIDGE)
        switch.ofctl("del-flows", BRIDGE)

        pods = start_pods_on_veth(worker, chain.pods, undo)
        inner = [f"pod{number}{end}" for number in range(1, chain.pods + 1) for end in "ab"]
        names = [worker.left.interface, *inner, worker.right.interface]
        switch.join(BRIDGE, switch.add_ports(BRIDGE, self._prepared(worker, names)), tags)
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


def _ids(headers: Headers) -> tuple[int, int] | None:
    """The VLAN IDs of frames at the left and at the right port. None without tags."""
    if len(headers.left) > 1:
        raise Unavailable("the flows of podperf for Open vSwitch take one VLAN tag off for the pods' kernels, not two")
    return (headers.left[0].id, headers.right[0].id) if headers.left else None


class OvsNetdev(OvsKernel):
    """The user-space datapath: one thread of ovs-vswitchd reads and writes all ports, with one system call a frame.

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
        worker.host.do("taskset", "--cpu-list", "--pid", str(cpu), str(process))
        return take_turns(worker.host, busy_threads(worker, {cpu: [process]}), undo)

    def _describe(self, worker: Worker, switch: OpenVSwitch, turns: Turns) -> Mapping[str, Any]:
        return {**super()._describe(worker, switch, turns), "pollers": turns.describe()}


class OvsAfxdp(OvsNetdev):
    """Every port of the switch, to a pod or to the network, is an AF_XDP socket at the XDP hook.

    The switch polls all on its CPUs. The kernel's receive threads fill the sockets of the worker's ports, and take
    turns with the pollers.
    """

    name: ClassVar[str] = "ovs-afxdp"
    model: ClassVar[NetworkingModel] = NetworkingModel.EBPF

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        if reason := super().unavailable(host):
            return reason
        daemon = host.ask("sh", "-c", f'ldd "$(readlink -f "$(which {PLAIN})")"', check=False, assumed="libxdp.so.1")
        return None if "libxdp" in daemon.stdout else "this Open vSwitch was built without AF_XDP (--enable-afxdp)"

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        refuse_large_frames(worker.mtu, "an AF_XDP socket")
        leave_queues_each(worker)
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
        }
