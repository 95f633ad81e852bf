"""Docker's own networks of the driver `bridge`, with published ports.

Data plane `docker` is the look-alike for machines without Docker.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

from podperf.addressing import SERVICE_PORT
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.docker import Docker, OutsideAddresses, nat_rules
from podperf.dataplanes.docker_daemon import DockerDaemon, lacking
from podperf.hosts.base import Host
from podperf.model import Chain
from podperf.pods import EngineInterface

OTHER_PORT = SERVICE_PORT + 1  # of an only pod, at which frames from the right arrive


class DockerBridge(Docker):
    """One network of Docker for each segment. Docker publishes the outermost pods at the worker's addresses."""

    name: ClassVar[str] = "docker-bridge"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return lacking(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        outside, addresses, last = OutsideAddresses.of(chain, worker), worker.addresses, chain.pods
        daemon = DockerDaemon(worker, undo)
        self.join_ports(worker, outside)
        networks = [_network(segment, last) for segment in range(last + 1)]
        for segment, network in enumerate(networks):
            gateway = addresses.on_segment(addresses.gateway_of(segment))
            daemon.add_network(network, "bridge", gateway, {"com.docker.network.bridge.name": f"bridge{segment}"})
        pods = []
        for number in range(1, last + 1):
            ends = (
                EngineInterface("net1", networks[number - 1], addresses.on_segment(addresses.right_of(number - 1))),
                EngineInterface("net2", networks[number], addresses.on_segment(addresses.left_of(number))),
            )
            published = [f"{addresses.with_port(outside.left, SERVICE_PORT)}:{SERVICE_PORT}/udp"] if number == 1 else []
            if number == last:
                port = OTHER_PORT if last == 1 else SERVICE_PORT
                published.append(f"{addresses.with_port(outside.right, SERVICE_PORT)}:{port}/udp")
            pods.append(daemon.pods.start_connected(f"pod{number}", ends, published, undo))
        running = self.forward(replace(worker, pods=daemon.pods), pods, outside)
        if last == 1:
            # Docker publishes all ports in one network of a container, here in the one of net1.
            to_left = addresses.with_port(outside.tester_left, SERVICE_PORT)
            rule = f'iifname "net1" udp dport {OTHER_PORT} dnat to {to_left}'
            pods[0].host.do("nft", "add", "rule", addresses.ip, "podperf", "incoming", rule)
        return replace(
            running, parts=[daemon], describe=lambda: {**running.describe(), "docker": daemon.describe(networks)}
        )

    def rules(self, worker: Worker) -> Mapping[str, Any]:
        return nat_rules(worker)


def _network(segment: int, last: int) -> str:
    """The name of the network of a segment. Docker publishes the ports of a container in its network whose name comes
    first in the alphabet, so the outer networks come before the inner ones."""
    return {0: "a-left", last: "a-right"}.get(segment, f"b-{segment}")
