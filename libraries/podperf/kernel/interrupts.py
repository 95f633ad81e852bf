"""Reads and sets the CPUs that serve a device's interrupts (kernel documentation: core-api/irq/irq-affinity)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podperf.hosts.base import Host
from podperf.hosts.shell_script import shell_script

_LIST = shell_script("list_interrupts.sh", beside=__file__)
_SET = shell_script("set_interrupts.sh", beside=__file__)


def affinities(host: Host, pci: str) -> dict[str, str]:
    """The interrupts of a device, and the CPUs that may serve each."""
    lines = host.run("sh", "-c", _LIST, "sh", pci).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def steer(host: Host, interrupts: Sequence[str], cpu: int) -> list[str]:
    """Let one CPU serve the interrupts. Returns those that the kernel moved; it refuses to move some."""
    return restore(host, {each: str(cpu) for each in interrupts})


def restore(host: Host, before: Mapping[str, str]) -> list[str]:
    """Let each interrupt be served by its CPU list again. Returns the interrupts that were moved."""
    if not before:
        return []
    pairs = [word for pair in before.items() for word in pair]
    return host.run("sh", "-c", _SET, "sh", *pairs).stdout.split()
