"""Interfaces of the worker for VLANs. Data planes that do not know tags use them in place of the worker's ports."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from podperf.dataplanes.base import WorkerPort
from podperf.errors import Unavailable
from podperf.frames import C_TAG, Vlan
from podperf.hosts.base import Host
from podperf.hosts.linux import configure, missing_link_type
from podperf.hosts.way_back import unload_at_the_end

KIND, MODULE = "vlan", "8021q"


def refuse_tags(host: Host, undo: ExitStack) -> None:
    """Raises Unavailable if the kernel has no interfaces for VLANs. A module that the kernel loads for them is unloaded
    by `undo`."""
    unload_at_the_end(host, MODULE, undo)
    if reason := missing_link_type(host, KIND, "id", "1"):
        raise Unavailable(f"test frames have VLAN tags, and {reason}")


def interface_for(host: Host, port: WorkerPort, side: str, tags: Sequence[Vlan]) -> WorkerPort:
    """The port's interface for frames with these tags, the outermost first. Frames have no tags behind it."""
    below, name = port.interface, side
    for tag in tags:
        name += f"-{tag.id}"
        protocol = "802.1Q" if tag.number == C_TAG else "802.1ad"
        link = ("link", "add", "link", below, "name", name, "up", "type", KIND, "protocol", protocol, "id", str(tag.id))
        configure(host, link)
        below = name
    return replace(port, interface=name, trunk=port.interface)
