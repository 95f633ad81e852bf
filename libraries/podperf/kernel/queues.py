"""Receive queues of a card, and the CPUs that serve its interrupts.

The card chooses the queue of each frame. A reader of one queue gets its frames only. The kernel documents interrupts in
core-api/irq/irq-affinity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podperf.hosts.base import Host, shell_script
from podperf.hosts.host_facts import parse_ethtool

_LIST = shell_script("list_interrupts.sh", beside=__file__)
_SET = shell_script("set_interrupts.sh", beside=__file__)

USUAL_QUEUES = 8  # of a card, in a plan
_CHANGED: dict[tuple[str, str], int] = {}  # the present number of queues that a plan assumes


def _port(host: Host, interface: str) -> tuple[str, str]:
    """The machine and the interface, in whichever network namespace."""
    return host.name.rpartition(" of ")[2], interface


def receive_queues(host: Host, interface: str, assumed: int = USUAL_QUEUES) -> dict[str, int]:
    """The number of queues of each kind, `combined` or `rx` (ethtool(8)); empty if the driver cannot change it."""
    settings = "Current hardware settings"
    answer = f"{settings}:\nCombined: {_CHANGED.get(_port(host, interface), assumed)}"
    said = host.ask("ethtool", "-l", interface, check=False, assumed=answer).stdout.partition(settings)[2]
    numbers = {key.lower(): value for key, value in parse_ethtool(said).items()}
    kinds = {kind: numbers.get(kind, "") for kind in ("combined", "rx")}
    return {kind: int(number) for kind, number in kinds.items() if number.isdigit() and int(number)}


def set_receive_queues(host: Host, interface: str, queues: Mapping[str, int]) -> None:
    """Set the number of queues of each kind. A driver that refuses keeps its number."""
    if queues and queues != receive_queues(host, interface):
        _change(host, interface, queues)


def leave_queues(host: Host, interface: str, pci: str, cpus: Sequence[int]) -> None:
    """Send all frames to as many queues as there are `cpus`, and let these CPUs serve the queues.

    The interrupts are moved last, because a card may request new ones when its queues change.
    """
    queues = receive_queues(host, interface)
    if any(number != len(cpus) for number in queues.values()):
        _change(host, interface, dict.fromkeys(queues, len(cpus)))
    interrupts = list(affinities(host, pci))
    for place, cpu in enumerate(cpus):
        steer(host, interrupts[place :: len(cpus)], cpu)


def _change(host: Host, interface: str, queues: Mapping[str, int]) -> None:
    _CHANGED[_port(host, interface)] = next(iter(queues.values()))
    words = [word for kind, number in queues.items() for word in (kind, str(number))]
    host.do("ethtool", "-L", interface, *words, check=False)


def affinities(host: Host, pci: str) -> dict[str, str]:
    """The interrupts of a device, and the CPUs that may serve each."""
    # Only the host knows the interrupts. In a plan, one line stands for all of them.
    assumed = f"<each-interrupt-of-{pci}> <CPUs-that-served-it-before>"
    lines = host.ask("sh", "-c", _LIST, "sh", pci, assumed=assumed).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def steer(host: Host, interrupts: Sequence[str], cpu: int) -> list[str]:
    """Let one CPU serve the interrupts. Returns those that the kernel moved; it refuses to move some."""
    return restore(host, {interrupt: str(cpu) for interrupt in interrupts})


def restore(host: Host, before: Mapping[str, str]) -> list[str]:
    """Let each interrupt be served by its CPU list again. Returns the interrupts that were moved."""
    if not before:
        return []
    pairs = [word for pair in before.items() for word in pair]
    return host.do("sh", "-c", _SET, "sh", *pairs).stdout.split()
