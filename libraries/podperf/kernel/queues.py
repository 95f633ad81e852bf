"""Receive queues of a card. The card chooses the queue of each frame. A reader of one queue gets its frames only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podperf.hosts.base import Host
from podperf.hosts.host_facts import parse_ethtool
from podperf.kernel.interrupts import affinities, steer


def receive_queues(host: Host, interface: str) -> dict[str, int]:
    """The number of queues of each kind, `combined` or `rx` (ethtool(8)); empty if the driver cannot change it."""
    said = host.ask("ethtool", "-l", interface, check=False).stdout.partition("Current hardware settings")[2]
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
    words = [word for kind, number in queues.items() for word in (kind, str(number))]
    host.do("ethtool", "-L", interface, *words, check=False)
