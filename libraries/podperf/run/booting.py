"""Boots the machines of a testbed that a run makes itself: the virtual worker, or the counted machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from podperf.counted_machine.boot import boot as boot_counted
from podperf.counted_machine.inputs import change
from podperf.counted_machine.plugin import Plugin
from podperf.counted_machine.profile import Profiler
from podperf.hosts.base import Host
from podperf.topology import Topology
from podperf.virtual_worker.boot import boot as boot_virtual


def booted(
    topology: Topology, host: Host, say: Callable[[str], None], undo: ExitStack
) -> tuple[Topology, Plugin | None]:
    """The same testbed with its own machines up, as a lab behind SSH, until `undo`; a counted machine has a plug-in."""
    plugin: Plugin | None = None
    if topology.virtual:
        topology = boot_virtual(host, say, undo).as_lab(topology)
    if topology.counts_instructions:
        counted = boot_counted(host, topology.workers[0].counted, say, undo)
        topology, plugin = counted.as_lab(topology), counted.plugin
    return topology, plugin


def prepared(topology: Topology, plugin: Plugin | None, machine: Host) -> Profiler | None:
    """Change a counted machine that is up as the topology asks. Returns its profiler if it has a plug-in."""
    if topology.counts_instructions:
        change(machine, topology.workers[0].counted)
    return Profiler(plugin, machine) if plugin else None
