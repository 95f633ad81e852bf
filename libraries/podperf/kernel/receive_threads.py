"""Tries whether the kernel's receive threads of veth pairs can be pinned to a CPU of a host."""

from __future__ import annotations

from contextlib import ExitStack

from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, dedicate_receive_processing
from podperf.hosts.namespaces import add_namespace


def refuse_unpinnable(host: Host, cpu: int) -> None:
    """Raises PodperfError with the remedy if the receive thread of a veth cannot be pinned to this CPU.

    The trial needs a namespace, which is removed afterwards. Call this under the run lock.
    """
    with ExitStack() as undo:
        probe = add_namespace(host, "probe", undo)
        add_veth(probe, near="probe-left", far="probe-right", mtu=1500)
        dedicate_receive_processing(probe, "probe-left", cpu)
