"""What the commands that measure must know of a topology before they begin."""

from __future__ import annotations

from pathlib import Path

from podperf.errors import PodperfError
from podperf.testers import TESTERS
from podperf.topology import load_topology


def boots_a_machine(path: str | Path) -> bool:
    """Whether a run on this topology boots a machine in QEMU. False for a wrong file: the run reports its errors."""
    try:
        topology = load_topology(path, testers=TESTERS)
    except PodperfError:
        return False
    return topology.virtual or topology.counts_instructions
