"""Reads and sets the CPUs that serve a device's interrupts (kernel documentation: core-api/irq/irq-affinity)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podperf.hosts.base import Host

# `sh -c` runs this with a PCI address. It prints each interrupt of the device that is in use, and its CPU list.
_LIST = (
    'for i in $(ls "/sys/bus/pci/devices/$1/msi_irqs" 2>/dev/null || cat "/sys/bus/pci/devices/$1/irq"); do'
    ' [ -r "/proc/irq/$i/smp_affinity_list" ] && echo "$i $(cat "/proc/irq/$i/smp_affinity_list")"; done; :'
)
# `sh -c` runs this with pairs of an interrupt and a CPU list. It prints the interrupts that the kernel moved.
_SET = (
    'while [ $# -gt 1 ]; do { echo "$2" >"/proc/irq/$1/smp_affinity_list"; } 2>/dev/null && echo "$1"; shift 2; done; :'
)


def affinities(host: Host, pci: str) -> dict[str, str]:
    """The interrupts of a device, and the CPUs that may serve each."""
    lines = host.ask("sh", "-c", _LIST, "sh", pci).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def steer(host: Host, interrupts: Sequence[str], cpu: int) -> list[str]:
    """Let one CPU serve the interrupts. Returns those that the kernel moved; it refuses to move some."""
    return restore(host, {each: str(cpu) for each in interrupts})


def restore(host: Host, before: Mapping[str, str]) -> list[str]:
    """Let each interrupt be served by its CPU list again. Returns the interrupts that were moved."""
    if not before:
        return []
    pairs = [word for pair in before.items() for word in pair]
    return host.do("sh", "-c", _SET, "sh", *pairs).stdout.split()
