"""Docker's own networks of the driver `macvlan` on the worker's ports."""

from __future__ import annotations

from contextlib import ExitStack
from typing import ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.engine_daemons import DockerDaemon
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along, parent_interfaces
from podperf.hosts.base import Host
from podperf.hosts.linux import missing_link_type
from podperf.model import Chain


class DockerMacvlan(KernelPods):
    """One network of Docker for each segment. Frames cross it as with `macvlan`, and pass no rule of Docker."""

    name: ClassVar[str] = "docker-macvlan"
    no_end_in_pod: ClassVar[str] = "its pods are containers that Docker itself attaches, and it attaches none at an end"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return DockerDaemon.lacking(host) or missing_link_type(host, "macvlan")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        parents = parent_interfaces(worker, chain)
        daemon = DockerDaemon(worker, undo)
        networks = [f"segment{segment}" for segment in range(chain.pods + 1)]
        for segment, network in enumerate(networks):
            daemon.add_network(network, "macvlan", segment, parent=parents[segment])
        pods = [
            daemon.pods.start_connected(f"pod{number}", daemon.ends_of(number, networks), (), undo)
            for number in range(1, chain.pods + 1)
        ]
        entries = forward_along(pods, worker)
        return running_pods(daemon.worker, pods, entries, lambda: {"docker": daemon.describe(networks)}, [daemon])
