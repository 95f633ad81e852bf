"""Docker's own networks of the driver `bridge`, with published ports: those that a user defines, and the default one.

Data plane `docker` is the look-alike for machines without Docker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from ipaddress import ip_interface
from typing import Any, ClassVar

from podperf.addressing import IPV4_ADDRESSES, SERVICE_PORT, ChainAddresses
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.docker import OutsideAddresses, TranslatingPods, nat_rules, published_entries
from podperf.dataplanes.engine_daemons import DockerDaemon, EngineDaemon
from podperf.dataplanes.kernel_state import running_pods
from podperf.frames import AddressFamily
from podperf.hosts.base import Host
from podperf.hosts.linux import sysctl
from podperf.model import Chain
from podperf.pods import DEFAULT_NETWORK
from podperf.pods.base import Pod
from podperf.pods.forwarders.kernel import translate

OTHER_PORT = SERVICE_PORT + 1  # of the worker for frames from the right, and of a pod with one interface for all frames


class DockerBridge(TranslatingPods):
    """One network of Docker for each segment. Docker publishes the outermost pods at the worker's addresses."""

    name: ClassVar[str] = "docker-bridge"
    daemon: ClassVar[type[EngineDaemon]] = DockerDaemon

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return cls.daemon.lacking(host)

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        outside, last = OutsideAddresses.of(chain, worker), chain.pods
        daemon = self.daemon(worker, undo)
        self.join_ports(worker, outside)
        networks = [_network(segment, last) for segment in range(last + 1)]
        for segment, network in enumerate(networks):
            daemon.add_network(network, "bridge", segment)
        pods = []
        for number in range(1, last + 1):
            ends = daemon.ends_of(number, networks)
            published = published_ports(number, last, worker, outside, OTHER_PORT if last == 1 else SERVICE_PORT)
            # Podman publishes the ports of a container in its first network.
            outer_first = ends if number < last or last == 1 else ends[::-1]
            pods.append(daemon.pods.start_connected(f"pod{number}", outer_first, published, undo))
        self.forward(worker, pods, outside)
        if last == 1:
            # An engine publishes all ports in one network of a container, here in the one of net1.
            _send_left(pods[0], worker.addresses, outside.tester_left, SERVICE_PORT)
        return _running(daemon, pods, outside, networks)


class DockerDefaultBridge(DockerBridge):
    """Docker's default bridge, `docker0`, with all pods. A pod has one interface, and the address that Docker gives it.

    The port tells the direction of a frame.
    """

    name: ClassVar[str] = "docker-default"

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        outside, addresses, last = OutsideAddresses.of(chain, worker), worker.addresses, chain.pods
        daemon = DockerDaemon(worker, undo, *_default_bridge(worker))
        self.join_ports(worker, outside)
        pods = []
        for number in range(1, last + 1):
            published = published_ports(number, last, worker, outside, OTHER_PORT)
            start = daemon.pods.start_by_default
            pods.append(start(f"pod{number}", "net1", addresses.version, published, undo))
        send_along(pods, addresses, outside, [str(pod.interfaces["net1"].address) for pod in pods])
        return _running(daemon, pods, outside, [DEFAULT_NETWORK])


def _default_bridge(worker: Worker) -> Sequence[str]:
    """The daemon's options for a default bridge with the networks of the first segment."""
    gateway = IPV4_ADDRESSES.on_segment(IPV4_ADDRESSES.gateway_of(0))
    options = ("--bip", gateway, "--mtu", str(worker.mtu))
    if worker.headers.family is AddressFamily.IPV4:
        return options
    network = ip_interface(worker.addresses.on_segment(worker.addresses.gateway_of(0))).network
    return (*options, "--ipv6", "--fixed-cidr-v6", str(network))


def published_ports(number: int, last: int, worker: Worker, outside: OutsideAddresses, from_right: int) -> list[str]:
    """The ports of a pod that the engine publishes. Frames from the right arrive at port `from_right` of the last pod.

    The outermost pods are published at different ports: Podman has a chain of rules for each network, and enters the
    first one with a rule for the port. There, it publishes also a pod for which this network is not the first.
    """
    ports = [(outside.left, SERVICE_PORT, SERVICE_PORT)] if number == 1 else []
    ports += [(outside.right, OTHER_PORT, from_right)] if number == last else []
    return [f"{worker.addresses.with_port(address, outer)}:{inner}/udp" for address, outer, inner in ports]


def send_along(pods: Sequence[Pod], addresses: ChainAddresses, outside: OutsideAddresses, inner: Sequence[str]) -> None:
    """Let pods that are all in one network send frames on. `inner` are their addresses there. The port of a frame tells
    its direction."""
    hops = [outside.tester_left, *inner, outside.tester_right]
    for pod, next_left, next_right in zip(pods, hops, hops[2:], strict=False):
        sysctl(pod.host, **addresses.forwarding)
        translate(pod, addresses, next_left, next_right, masquerade=True)
        _send_left(pod, addresses, next_left, SERVICE_PORT if pod is pods[0] else OTHER_PORT)


def _send_left(pod: Pod, addresses: ChainAddresses, next_left: str, port: int) -> None:
    """Let a pod send frames that arrive from the right to this port of its neighbour on the left."""
    rule = f"udp dport {OTHER_PORT} dnat to {addresses.with_port(next_left, port)}"
    pod.host.do("nft", "add", "rule", addresses.ip, "podperf", "incoming", rule)


def _running(
    daemon: EngineDaemon, pods: Sequence[Pod], outside: OutsideAddresses, networks: Sequence[str]
) -> RunningDataPlane:
    worker = daemon.worker

    def describe() -> Mapping[str, Any]:
        return {**nat_rules(worker), daemon.engine: daemon.describe(networks)}

    return running_pods(worker, pods, published_entries(worker, outside, OTHER_PORT), describe, [daemon])


def _network(segment: int, last: int) -> str:
    """The name of the network of a segment. Docker publishes the ports of a container in its network whose name comes
    first in the alphabet, so the outer networks come before the inner ones."""
    return {0: "a-left", last: "a-right"}.get(segment, f"b-{segment}")
