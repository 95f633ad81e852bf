"""Boots virtual workers, and describes them as workers in a lab: each has an address, a key and two ports."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import add_veth, ip
from podperf.hosts.namespaces import add_namespace
from podperf.pods.forwarders.base import ORDINARY_MTU
from podperf.topology import PortSettings, SshSettings, Topology, WorkerPortSettings, WorkerSettings
from podperf.virtual_worker.image import BUILD_COMMANDS, REMEDY, Image, missing, ready_image

Accelerator = Literal["kvm", "tcg"]
Side = Literal["left", "right"]
QEMU = "qemu-system-x86_64"


@dataclass(frozen=True)
class NumaNode:
    """A socket with its memory and one port: an Intel 82576 (`igb`), which has virtual functions.

    `bus` is the PCI bus of the port. `side` is the side of the worker that the port is on.
    """

    cpus: tuple[int, ...]
    memory_mib: int
    hugepages: int  # of 2 MiB
    bus: int
    side: Side

    @property
    def interface(self) -> str:
        return f"enp{self.bus}s0"

    @property
    def pci(self) -> str:
        return f"0000:{self.bus:02x}:00.0"


# Four CPUs each: a published placement puts a switch, two pods and all other work on one node.
LEFT = NumaNode((0, 1, 2, 3), 1536, 256, 0x21, "left")
RIGHT = NumaNode((4, 5, 6, 7), 1536, 256, 0x41, "right")
ISOLATED = "6-7"  # The kernel moves no process to these CPUs by itself, as on the measuring CPUs of a lab.


@dataclass(frozen=True)
class WorkerRow:
    """Workers from left to right: whether each is virtual. The others are this machine, which also has the tester."""

    virtual: tuple[bool, ...] = (True,)

    def beside(self, number: int, side: Side) -> int | None:
        """The virtual worker at the other end of the cable of worker `number` on this side. None: this machine."""
        other = number - 1 if side == "left" else number + 1
        return other if 0 <= other < len(self.virtual) and self.virtual[other] else None

    def interface(self, number: int, side: Side) -> str:
        """The interface of this machine that is the port of its worker `number`: the tap of the next virtual worker, or
        an end of a pair whose other end is the tester's."""
        other = self.beside(number, side)
        return tap(number, side) if other is None else tap(other, "right" if side == "left" else "left")


def tap(number: int, side: Side) -> str:
    """The interface of this machine at the other end of the cable of worker `number` on this side."""
    return f"podperf-{number}-{side}"


@dataclass(frozen=True)
class Machine:
    """A virtual worker. It has the `number` from the left in a row of workers.

    `ssh_port` of this machine's loopback leads to its SSH server. The cables lead to the next workers, and from the
    outermost workers to the tester. It has no other network.
    """

    image: Image
    accelerator: Accelerator
    ssh_port: int
    number: int = 0
    row: WorkerRow = WorkerRow()
    nodes: tuple[NumaNode, ...] = (LEFT, RIGHT)

    def mac(self, node: NumaNode) -> str:
        """The MAC of a port."""
        return f"52:54:00:70:{0x66 + self.number:02x}:{self.nodes.index(node):02x}"

    def cable(self, node: NumaNode) -> str:
        """The cable of a port, as QEMU's -netdev has it: a tap of this machine, or a socket between virtual ones."""
        other, far = self.row.beside(self.number, node.side), RIGHT if node.side == "left" else LEFT
        if other is None:
            return f"tap,id={node.side},ifname={tap(self.number, node.side)},script=no,downscript=no"
        own, remote = self.socket(node), replace(self, number=other).socket(far)
        return f"dgram,id={node.side},local.type=unix,local.path={own},remote.type=unix,remote.path={remote}"

    def socket(self, node: NumaNode) -> Path:
        """The file of a port's socket. A killed run leaves it, and the next QEMU makes it anew."""
        return self.image.folder / f"cable-{self.number}-{node.side}"


def qemu_command(machine: Machine) -> list[str]:
    """The command that runs the machine. Its standard output is the worker's console."""
    return list(_words(machine))


def _words(machine: Machine) -> Iterator[str]:
    image, nodes = machine.image, machine.nodes
    yield from (QEMU, "-name", "podperf-worker", "-nodefaults", "-no-user-config", "-no-reboot")
    yield from ("-display", "none", "-monitor", "none", "-serial", "stdio")
    # Without these two options, QEMU places the memory of virtual functions above 4 GB, where they do not answer.
    yield from ("-machine", "q35", "-global", "q35-pcihost.pci-hole64-size=0", "-cpu", "max,phys-bits=36")
    # The kernel's interrupt controller cannot remap interrupts for an emulated IOMMU by itself.
    kvm, tcg = "kvm,kernel-irqchip=split", "tcg,thread=multi,tb-size=512"
    yield from ("-accel", kvm if machine.accelerator == "kvm" else tcg)
    # With `eim`, CPUs use instructions (x2APIC) for their interrupt controllers, not memory. If an emulated CPU uses
    # memory for this while devices change the memory map, QEMU can abort (10.0: iotlb_to_section).
    yield from ("-device", "intel-iommu,intremap=on,eim=on,caching-mode=on")
    yield from ("-smp", f"{sum(len(node.cpus) for node in nodes)},sockets={len(nodes)}")
    yield from ("-m", str(sum(node.memory_mib for node in nodes)))
    for number, node in enumerate(nodes):
        yield from _node_words(machine, number, node)
    yield from ("-numa", "dist,src=0,dst=1,val=21")
    forward = f"hostfwd=tcp:127.0.0.1:{machine.ssh_port}-:22"
    yield from ("-netdev", f"user,id=management,restrict=on,ipv6=off,{forward}")
    yield from ("-device", "virtio-net-pci,netdev=management,romfile=,bus=pcie.0,addr=2")
    yield from ("-device", "virtio-rng-pci,bus=pcie.0,addr=3")
    yield from ("-drive", f"file={image.disk},format=raw,if=none,id=disk,snapshot=on")
    yield from ("-device", "virtio-blk-pci,drive=disk,bus=pcie.0,addr=5")
    yield from ("-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", _kernel_words(nodes))


def _node_words(machine: Machine, number: int, node: NumaNode) -> Iterator[str]:
    memory = f"memory-backend-ram,id=memory{number},size={node.memory_mib}M"
    yield from ("-object", memory)
    yield from ("-numa", f"node,nodeid={number},cpus={node.cpus[0]}-{node.cpus[-1]},memdev=memory{number}")
    root_port = f"pcie-root-port,id=port{number},bus=bus{number},chassis={number + 1},slot={number + 1}"
    # The root port alone uses the bus number before the NIC port's. So the bus behind the root port is the NIC port's.
    bridge = f"pxb-pcie,id=bus{number},bus=pcie.0,bus_nr={node.bus - 1},numa_node={number},addr={8 + number}"
    yield from ("-device", bridge, "-device", root_port)
    yield from ("-netdev", machine.cable(node))
    yield from ("-device", f"igb,bus=port{number},netdev={node.side},mac={machine.mac(node)},romfile=")


def _kernel_words(nodes: tuple[NumaNode, ...]) -> str:
    hugepages = ",".join(f"{number}:{node.hugepages}" for number, node in enumerate(nodes))
    # Emulated CPUs read the clock (TSC) of this machine, so their clocks agree. The kernel's test does not find this.
    # Without `tsc=reliable` the kernel then reads the time from a device, which is slow and may stop the machine.
    return (
        "console=ttyS0 root=/dev/vda rw init=/podperf-init quiet panic=-1 audit=0 net.ifnames=0 tsc=reliable "
        f"intel_iommu=on iommu=pt mitigations=off nopti hugepagesz=2M hugepages={hugepages} isolcpus={ISOLATED}"
    )


COMMANDS = (*BUILD_COMMANDS, (QEMU, "qemu-system-x86"))
ADDRESS = "127.0.0.1"
NAMESPACE = "ports"  # has the tester's two ports
READY = "podperf virtual worker: ready"  # the line that init.sh prints
NOT_COMPARABLE = (
    "the worker is a virtual machine whose CPUs and network cards are emulated, so only that frames cross counts"
)
MAXIMUM_LOAD = 5000.0  # frames/s and direction; the emulated network cards lose frames above this load
ATTEMPTS = 3  # of booting: emulated CPUs may stand still on a busy machine
KVM = Path("/dev/kvm")
KVM_GAVE_UP = "KVM internal error"
PATIENCE: dict[Accelerator, float] = {"kvm": 30.0, "tcg": 120.0}  # seconds from the start of QEMU to READY


Ports = tuple[WorkerPortSettings, WorkerPortSettings]  # the left and the right one of a worker


@dataclass(frozen=True)
class VirtualWorker:
    """A worker that is up: its SSH settings, its left and right port, and its QEMU."""

    ssh: SshSettings
    ports: Ports
    process: Process

    def in_a_lab(self, settings: WorkerSettings) -> WorkerSettings:
        """The settings of this worker, as one behind SSH."""
        return replace(settings, connection="ssh", ssh=self.ssh, left=self.ports[0], right=self.ports[1])

    @property
    def ssh_command(self) -> list[str]:
        options = (f"UserKnownHostsFile={self.ssh.known_hosts}", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes")
        words = [word for option in options for word in ("-o", option)]
        return ["ssh", "-p", str(self.ssh.port), "-i", str(self.ssh.key), *words, f"{self.ssh.user}@{self.ssh.address}"]


@dataclass(frozen=True)
class ThisMachine:
    """This machine as a worker beside virtual ones: its left and right port."""

    ports: Ports

    def in_a_lab(self, settings: WorkerSettings) -> WorkerSettings:
        """The settings of this worker, with its ports."""
        return replace(settings, left=self.ports[0], right=self.ports[1])


@dataclass(frozen=True)
class VirtualLab:
    """Workers that are up, from left to right, and the tester's ports at the outer ends of their cables."""

    workers: tuple[VirtualWorker | ThisMachine, ...]
    tester_ports: tuple[PortSettings, PortSettings]

    def as_lab(self, topology: Topology) -> Topology:
        """The topology of a lab with these workers. The rest of podperf does not know that they are virtual.

        This topology limits the load to the maximum of the emulated cards, and says that figures are not comparable. A
        load or a reason in the given topology has precedence.
        """
        left, right = (
            replace(settings, interface=port.interface, namespace=port.namespace)
            for settings, port in zip((topology.tester.left, topology.tester.right), self.tester_ports, strict=True)
        )
        workers = tuple(
            worker.in_a_lab(settings) for settings, worker in zip(topology.workers, self.workers, strict=True)
        )
        load = topology.tester.maximum_load or MAXIMUM_LOAD
        tester = replace(topology.tester, left=left, right=right, maximum_load=load)
        reason = topology.not_comparable or NOT_COMPARABLE
        return replace(topology, tester=tester, workers=workers, not_comparable=reason)


def unavailable(host: Host) -> str | None:
    """The reason why this machine cannot run the virtual worker, with the remedy, or None."""
    if reason := missing(host, COMMANDS):
        return reason
    if 'name "igb"' not in host.ask(QEMU, "-device", "help").stdout:
        return f"this QEMU has no igb, a network card with virtual functions: version 8.0 or later has; {REMEDY}"
    return None


def boot(host: Host, say: Callable[[str], None], undo: ExitStack, row: WorkerRow = WorkerRow()) -> VirtualLab:
    """Boot the virtual workers of this row until `undo`. Builds their image first if there is none.

    QEMU uses KVM if KVM really boots a worker, and otherwise emulates the CPUs. Unavailable if a package is missing.
    PodperfError, with the last lines of the console, if a worker does not come up.
    """
    if reason := unavailable(host):
        raise Unavailable(reason)
    image = ready_image(host, say)
    namespace = add_namespace(host, NAMESPACE, undo).namespace
    machines = {
        number: Machine(image, "tcg", _free_port(), number, row)
        for number, virtual in enumerate(row.virtual)
        if virtual
    }
    known_hosts = _known_hosts(image, [machine.ssh_port for machine in machines.values()])
    inside = WorkerPortSettings(LEFT.interface, LEFT.pci), WorkerPortSettings(RIGHT.interface, RIGHT.pci)
    workers: list[VirtualWorker | ThisMachine] = []
    for number in range(len(row.virtual)):
        if machine := machines.get(number):
            ssh = SshSettings(ADDRESS, machine.ssh_port, "root", str(image.key), known_hosts)
            workers.append(VirtualWorker(ssh, inside, _switch_on(host, machine, say, undo)))
        else:
            near = row.interface(number, "left"), row.interface(number, "right")
            workers.append(ThisMachine((WorkerPortSettings(near[0]), WorkerPortSettings(near[1]))))
    left = _cable_to_tester(host, namespace, "left", 0, row)
    right = _cable_to_tester(host, namespace, "right", len(row.virtual) - 1, row)
    return VirtualLab(tuple(workers), (left, right))


def _cable_to_tester(host: Host, namespace: str, side: Side, number: int, row: WorkerRow) -> PortSettings:
    """The tester's port at the other end of the cable of this outermost worker.

    It is the worker's tap, which ends with QEMU, or an end of a pair, which ends with the namespace of the tester.
    """
    near = tap(number, side)
    if row.virtual[number]:  # after the start of QEMU, because QEMU looks for its taps in its own namespace
        ip(host, "link", "set", "dev", near, "netns", namespace, "name", side)
        ip(host, "-n", namespace, "link", "set", "dev", side, "up")
    else:
        add_veth(host, near=side, near_namespace=namespace, far=near, mtu=ORDINARY_MTU)
    return PortSettings(side, namespace)


def _known_hosts(image: Image, ports: Sequence[int]) -> str:
    path = image.folder / "known_hosts"  # only one run at a time uses this file
    path.write_text("".join(f"[{ADDRESS}]:{port} {image.host_key}\n" for port in ports))
    return str(path)


def _free_port() -> int:
    """A free port of the loopback. If another program takes the port first, QEMU reports an error."""
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return int(probe.getsockname()[1])


def _switch_on(host: Host, machine: Machine, say: Callable[[str], None], undo: ExitStack) -> Process:
    """The machine, ready. /dev/kvm may exist and not work, so only a boot shows whether KVM works.

    A KVM that gave up is not tried again before the next boot of this machine, because each attempt takes 15 s.
    """
    gave_up = machine.image.folder / "kvm-gave-up"
    this_boot = host.get("/proc/sys/kernel/random/boot_id").decode()
    if KVM.exists() and not (gave_up.exists() and gave_up.read_text() == this_boot):
        try:
            return _started(host, replace(machine, accelerator="kvm"), say, undo)
        except PodperfError as error:
            say(f"virtual worker: KVM cannot boot it here ({error}); emulating its CPUs, which is slower")
            if KVM_GAVE_UP in str(error):
                gave_up.write_text(this_boot)
    for _ in range(ATTEMPTS - 1):
        try:
            return _started(host, machine, say, undo)
        except PodperfError as error:
            say(f"{error}; once more")
    return _started(host, machine, say, undo)


def _started(host: Host, machine: Machine, say: Callable[[str], None], undo: ExitStack) -> Process:
    began = time.monotonic()
    say(f"virtual worker: booting it by {machine.accelerator.upper()}")
    process = host.spawn(*qemu_command(machine))
    undo.callback(process.stop)
    for node in machine.nodes:
        undo.callback(machine.socket(node).unlink, missing_ok=True)
    last: list[str] = []
    try:
        while (line := _console_line(process, began + PATIENCE[machine.accelerator])) != READY:
            last = [*last[-3:], line] if line else last
    except PodperfError as error:
        process.stop()
        errors = [each for each in process.errors().splitlines() if "warning" not in each]
        said = " / ".join([*errors[:1], *last]) or "nothing"
        raise PodperfError(f"the virtual worker did not come up: {error}; it said: {said}") from error
    say(f"virtual worker: up after {time.monotonic() - began:.0f} s")
    return process


def _console_line(process: Process, deadline: float) -> str:
    """The next line of the console. PodperfError at `deadline`, or as soon as QEMU cannot print another line."""
    while True:
        try:
            return process.receive(1).strip()
        except PodperfError as silence:
            if KVM_GAVE_UP in process.errors():  # QEMU stops such a guest, but QEMU itself goes on
                raise PodperfError(KVM_GAVE_UP) from silence
            if not process.alive():
                raise PodperfError("QEMU has ended") from silence
            if time.monotonic() > deadline:
                raise PodperfError("it took too long") from silence
