"""The virtual worker for QEMU: its parts as data, and the command line that QEMU needs. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from podperf.virtual_worker.image import Image

Accelerator = Literal["kvm", "tcg"]
QEMU = "qemu-system-x86_64"


@dataclass(frozen=True)
class NumaNode:
    """A socket with its memory and one port: an Intel 82576 (`igb`), which has virtual functions.

    `bus` is the PCI bus of the port. The tap interface `tap` of this machine is the other end of the port's cable.
    """

    cpus: tuple[int, ...]
    memory_mib: int
    hugepages: int  # of 2 MiB
    bus: int
    tap: str
    mac: str

    @property
    def interface(self) -> str:
        """The port's name on the worker, as udev would name it."""
        return f"enp{self.bus}s0"

    @property
    def pci(self) -> str:
        """The port's PCI address on the worker."""
        return f"0000:{self.bus:02x}:00.0"


# Four CPUs each: a published placement puts a switch, two pods and all other work on one node.
LEFT = NumaNode((0, 1, 2, 3), 1536, 256, 0x21, "podperf-left", "52:54:00:70:66:00")
RIGHT = NumaNode((4, 5, 6, 7), 1536, 256, 0x41, "podperf-right", "52:54:00:70:66:01")
ISOLATED = "6-7"  # The kernel moves no process to these CPUs by itself, as on the measuring CPUs of a lab.


@dataclass(frozen=True)
class Machine:
    """One virtual worker. `ssh_port` of this machine's loopback leads to its SSH server. It has no other network."""

    image: Image
    accelerator: Accelerator
    ssh_port: int
    nodes: tuple[NumaNode, ...] = (LEFT, RIGHT)


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
        yield from _node_words(number, node)
    yield from ("-numa", "dist,src=0,dst=1,val=21")
    forward = f"hostfwd=tcp:127.0.0.1:{machine.ssh_port}-:22"
    yield from ("-netdev", f"user,id=management,restrict=on,ipv6=off,{forward}")
    yield from ("-device", "virtio-net-pci,netdev=management,romfile=,bus=pcie.0,addr=2")
    yield from ("-device", "virtio-rng-pci,bus=pcie.0,addr=3")
    yield from ("-drive", f"file={image.disk},format=raw,if=none,id=disk,snapshot=on")
    yield from ("-device", "virtio-blk-pci,drive=disk,bus=pcie.0,addr=5")
    yield from ("-kernel", str(image.kernel), "-initrd", str(image.initramfs), "-append", _kernel_words(nodes))


def _node_words(number: int, node: NumaNode) -> Iterator[str]:
    memory = f"memory-backend-ram,id=memory{number},size={node.memory_mib}M"
    yield from ("-object", memory)
    yield from ("-numa", f"node,nodeid={number},cpus={node.cpus[0]}-{node.cpus[-1]},memdev=memory{number}")
    root_port = f"pcie-root-port,id=port{number},bus=bus{number},chassis={number + 1},slot={number + 1}"
    # The root port alone uses the bus number before the NIC port's. So the bus behind the root port is the NIC port's.
    bridge = f"pxb-pcie,id=bus{number},bus=pcie.0,bus_nr={node.bus - 1},numa_node={number},addr={8 + number}"
    yield from ("-device", bridge, "-device", root_port)
    yield from ("-netdev", f"tap,id=tap{number},ifname={node.tap},script=no,downscript=no")
    yield from ("-device", f"igb,bus=port{number},netdev=tap{number},mac={node.mac},romfile=")


def _kernel_words(nodes: tuple[NumaNode, ...]) -> str:
    hugepages = ",".join(f"{number}:{node.hugepages}" for number, node in enumerate(nodes))
    # Emulated CPUs read the clock (TSC) of this machine, so their clocks agree. The kernel's test does not find this.
    # Without `tsc=reliable` the kernel then reads the time from a device, which is slow and may stop the machine.
    return (
        "console=ttyS0 root=/dev/vda rw init=/podperf-init quiet panic=-1 audit=0 net.ifnames=0 tsc=reliable "
        f"intel_iommu=on iommu=pt mitigations=off nopti hugepagesz=2M hugepages={hugepages} isolcpus={ISOLATED}"
    )
