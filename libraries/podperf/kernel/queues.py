"""Receive queues of a card: which of them a frame goes to is the card's choice, and who reads one has no other's."""

from __future__ import annotations

from collections.abc import Mapping

from podperf.hosts.base import Host
from podperf.hosts.environment import parse_ethtool
from podperf.kernel.interrupts import affinities, steer


def receive_queues(host: Host, interface: str) -> dict[str, int]:
    """How many there are of each kind, `combined` or `rx` (ethtool(8)); empty for a driver that has no choice."""
    said = host.run("ethtool", "-l", interface, check=False).stdout.partition("Current hardware settings")[2]
    numbers = {key.lower(): value for key, value in parse_ethtool(said).items()}
    kinds = {kind: numbers.get(kind, "") for kind in ("combined", "rx")}
    return {kind: int(number) for kind, number in kinds.items() if number.isdigit() and int(number)}


def set_receive_queues(host: Host, interface: str, queues: Mapping[str, int]) -> None:
    """Have so many of each kind; a driver that refuses keeps what it has."""
    if queues and queues != receive_queues(host, interface):
        _change(host, interface, queues)


def leave_one_queue(host: Host, interface: str, pci: str, cpu: int) -> None:
    """Let all frames go to one queue, and this CPU serve it: a card may ask for its interrupts anew."""
    queues = receive_queues(host, interface)
    if any(number > 1 for number in queues.values()):
        _change(host, interface, dict.fromkeys(queues, 1))
    steer(host, list(affinities(host, pci)), cpu)


def _change(host: Host, interface: str, queues: Mapping[str, int]) -> None:
    words = [word for kind, number in queues.items() for word in (kind, str(number))]
    host.run("ethtool", "-L", interface, *words, check=False)
