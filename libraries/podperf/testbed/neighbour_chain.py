"""A neighbour that is another chain under load: a tester sends through one pod, as fast as the two can together.

The worker routes between the ports and the pod. Ports, pod and namespaces are the neighbour's own. Each frame is
received and forwarded on the CPU that sends it. So the whole chain is where its tester may run, and the tester's CPU
time is that of the chain. The rest is work that the kernel leaves to the thread `ksoftirqd` of the same CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.cpu_plan import plan_cpus
from podperf.dataplanes.base import Worker, WorkerPort
from podperf.dataplanes.routed import Routed
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import add_veth, await_success, mac_address
from podperf.hosts.namespaces import add_namespace
from podperf.hosts.programs import on_host
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel.receive_threads import receive_at_once
from podperf.model import BOTH_DIRECTIONS, Chain, FrameSize, Placement, TrafficProfile, VirtualFunctionSettings
from podperf.pods import POD_RUNTIMES
from podperf.pods.base import Attachment, Pod, PodStarter
from podperf.testers.software import TESTER_BINARY, SoftwareTester

PROGRAM = "podperf-tester, through one pod of the data plane routed, in both directions"
START_TIMEOUT = 30.0  # seconds, on a CPU that a poller keeps busy
_MTU = 1500
# A line of /proc/net/dev (proc(5)) about an interface of this name that has sent frames.
_HAS_SENT = r"^ *{}: *([0-9]+ +){{9}}[1-9]"


def start_loaded_chain(
    host: Host, number: int, cpus: Sequence[int], launcher: Sequence[str], undo: ExitStack
) -> Process:
    """Set the chain of this number up until `undo`. Returns its tester when frames have crossed in both directions.

    The tester is an ordinary process on `cpus`, which `launcher` starts. PodperfError if no frames cross.
    """
    name = f"neighbour{number}"
    outside, inside = (add_namespace(host, f"{name}-{part}", undo) for part in ("tester", "worker"))
    ends = {"near_namespace": outside.namespace, "far_namespace": inside.namespace}
    ports = []
    for port in ("left", "right"):
        add_veth(host, near=port, far=f"n-{port}", mtu=_MTU, **ends)
        ports.append(WorkerPort(f"n-{port}", mac_address(inside, f"n-{port}"), mac_address(outside, port)))
    left, right = ports
    receive_at_once(inside, left.interface, right.interface)
    pods = _OfNeighbour(POD_RUNTIMES["namespaces"](host, inside), name)
    roles = plan_cpus(Placement((), tuple(cpus)), 1, with_switch=False)
    where, sriov = str(RUN_DIRECTORY), VirtualFunctionSettings()
    worker = Worker(inside, inside.namespace, left, right, pods, _MTU, roles, where, sriov)
    entries = Routed().set_up(worker, Chain(Routed.name, 1), undo).entries
    tester = SoftwareTester(
        host,
        "left",
        "right",
        binary=on_host(host, TESTER_BINARY),
        cpus=cpus,
        left_namespace=outside.namespace,
        right_namespace=outside.namespace,
        ordinary=True,
        launcher=launcher,
    )
    undo.callback(tester.close)
    process = tester.send_without_end(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS, entries=entries))
    for interface in (left.interface, right.interface):
        crossed = ("grep", "-Eq", _HAS_SENT.format(interface), "/proc/net/dev")
        if not await_success(inside, process, START_TIMEOUT, *crossed):
            said = process.errors().strip() or f"no frame left {interface}"
            raise PodperfError(f"the neighbour did not start on {host.name}: {said}")
    return process


class _OfNeighbour(PodStarter):
    """Makes pods whose names begin with that of the neighbour, because the chain under test has the usual names."""

    def __init__(self, runtime: PodStarter, owner: str) -> None:
        self._runtime, self._owner = runtime, owner

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        return self._runtime.start(f"{self._owner}-{name}", attachments, undo)

    def describe(self) -> Mapping[str, Any]:
        return self._runtime.describe()
