"""The worker's two ports for a program in user space, which drives them by DPDK or uses them through AF_XDP."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from podperf.dataplanes.base import Worker, WorkerPort
from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import ip
from podperf.hosts.way_back import WayBack
from podperf.kernel import pci
from podperf.kernel.queues import leave_queues
from podperf.pods.base import Attachment, Pod

# The program of a pod needs these for an AF_XDP socket: NET_RAW for the socket, IPC_LOCK for its memory, NET_ADMIN for
# the XDP program that fills it. libxdp asks the kernel for XDP programs by their number, which needs SYS_ADMIN (bpf(2),
# BPF_PROG_GET_FD_BY_ID).
AF_XDP_CAPABILITIES = ("IPC_LOCK", "NET_ADMIN", "NET_RAW", "SYS_ADMIN")


_NAMES = {"left": "net1", "right": "net2"}  # of the worker's ports in pods


def take_ports(worker: Worker, undo: ExitStack) -> Mapping[str, str]:
    """Take both ports from the kernel until `undo`. Returns the PCI addresses of `left` and `right`.

    The result is empty if the ports stay with the kernel: a port has no card behind it, there is no IOMMU, or DPDK
    works through the kernel's driver. Raises Unavailable if a port has virtual functions, which would end with its
    driver.
    """
    ports = {"left": worker.left, "right": worker.right}
    addresses = {name: port.pci for name, port in ports.items() if port.pci and _can_be_had(worker.host, port)}
    if len(addresses) < len(ports):
        return {}
    for port in ports.values():
        _refuse_virtual_functions(worker.host, port)
    for port in ports.values():
        # The ports come back into the first network namespace, but the testbed's undo expects them in the worker's. A
        # port that could not be taken is there already.
        arguments = (worker.host, port.interface, worker.namespace, port.interface)
        undo.callback(pci.move_into_namespace, *arguments, check=False)
    way_back = WayBack(worker.host, undo)
    for name, address in addresses.items():
        pci.remember(worker.host, address, ports[name].driver, way_back, ports[name].interface)
        pci.give_to_user_space(worker.host, address)
    return addresses


def start_pods_with_ports(worker: Worker, count: int, undo: ExitStack) -> tuple[list[Pod], Mapping[str, Host]]:
    """The pods with those at the ends, and the hosts of the worker's ports now. The first pod has the left port as its
    net1, and the last pod the right port as its net2. One pod alone has both.

    The CNI plug-in `host-device` moves a port. The port's receive thread ends, and a new one starts on any CPU.
    """
    at_ends, pods = worker.ports_to_ends, []
    for number in range(1, count + 1):
        attachments = [_attachment("net1", worker.left)] if number == 1 and "left" not in at_ends else []
        attachments += [_attachment("net2", worker.right)] if number == count and "right" not in at_ends else []
        pods.append(worker.pods.start(f"pod{number}", attachments, undo))
    for side, (port, pod) in at_ends.items():
        move_into_pod(worker, port, pod, _NAMES[side])
        pods.insert(0 if side == "left" else len(pods), pod)
    if not pods:
        raise Unavailable("a worker has no pod, and no program carries frames between its ports")
    if not count and len(pods) == 1:
        (side,) = _NAMES.keys() - at_ends
        move_into_pod(worker, worker.left if side == "left" else worker.right, pods[0], _NAMES[side])
    return pods, {"net1": pods[0].host, "net2": pods[-1].host}


def move_into_pod(worker: Worker, port: WorkerPort, pod: Pod, name: str) -> None:
    """Move a port of the worker into the pod at the other end of its cable, under this name.

    Both ends of the cable are then in the pod: one for the tester's program, and one for the pod's own program. The
    port's receive thread ends, and a new one starts on any CPU.
    """
    ip(worker.host, "link", "set", "dev", port.interface, "netns", pod.host.namespace, "name", name)
    ip(pod.host, "link", "set", "dev", name, "up")


def _attachment(interface: str, port: WorkerPort) -> Attachment:
    return Attachment(interface, port.interface, [{"type": "host-device", "device": port.interface}])


def leave_queues_each(worker: Worker, queues: int = 1) -> None:
    """Distribute the frames of a port to this number of queues, for programs that use the ports by AF_XDP.

    A socket serves one queue.

    With several, the pod's CPUs serve the queues in their order. The port gets its queues back when the worker gets the
    port back.
    """
    for port, cpu in worker.receiving:
        if port.pci is not None:
            own = (cpu,) if queues == 1 else (worker.cpus.pods[0], *worker.cpus.further_of(0))
            leave_queues(worker.host, port.interface, port.pci, own)


def _refuse_virtual_functions(host: Host, port: WorkerPort) -> None:
    number = pci.attribute(host, port.pci, "sriov_numvfs", assumed="0") if port.pci is not None else None
    if number not in {None, "", "0"}:
        raise Unavailable(
            f"{port.interface} of {host.name} has {number} virtual functions, which taking it from the kernel would "
            f"remove: echo 0 > {pci.DEVICES}/{port.pci}/sriov_numvfs, where nobody needs them"
        )


def _can_be_had(host: Host, port: WorkerPort) -> bool:
    return port.pci is not None and not pci.missing_user_space_driver(host) and port.driver not in pci.BIFURCATED
