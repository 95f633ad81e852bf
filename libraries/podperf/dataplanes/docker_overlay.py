"""Docker's own networks of the driver `overlay`: a swarm of two nodes, with VXLAN (RFC 7348) between them.

The second node is a network namespace of the worker with a Docker daemon of its own, at the far end of a veth pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import ip_interface
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.docker import OutsideAddresses, nat_rules, published_entries
from podperf.dataplanes.docker_bridge import OTHER_PORT, DockerBridge, published_ports, send_along
from podperf.dataplanes.engine_daemons import DockerDaemon
from podperf.dataplanes.kernel_state import network_of, running_pods
from podperf.errors import Unavailable
from podperf.frames import AddressFamily
from podperf.hosts.base import Host
from podperf.hosts.linux import ip, missing_link_type, sysctl
from podperf.hosts.way_back import unload_at_the_end
from podperf.model import Chain
from podperf.pods import EngineInterface, name_interface
from podperf.pods.forwarders.kernel import NextHop, route_via

HEADERS = 50  # bytes of VXLAN: Ethernet 14, IPv4 20, UDP 8, VXLAN 8
UNDERLAY = "node"  # the name of the interface between the nodes, the same on both
NODES = ("10.254.255.1", "10.254.255.2")
NETWORK = "overlay"
OUTSIDE = "docker_gwbridge"  # Docker's name for the bridge that leads out of the containers of a node
FIRST_ADDRESS = 100  # of the pods in the overlay network: Docker takes the first addresses for load balancing


class DockerOverlay(DockerBridge):
    """One overlay network with all pods. The outermost pods are on the first node and all other pods on the second one,
    so each frame crosses the tunnel twice. Docker publishes the outermost pods at the worker's addresses."""

    name: ClassVar[str] = "docker-overlay"
    least_pods: ClassVar[int] = 3

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        return super().unavailable(host) or missing_link_type(host, "vxlan", "id", "100", "dstport", "4789")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if worker.addresses.family is not AddressFamily.IPV4:
            raise Unavailable("podperf builds Docker's overlay network for IPv4 only")
        outside, addresses, last = OutsideAddresses.of(chain, worker), worker.addresses, chain.pods
        for module in ("vxlan", "ip_vs_rr", "ip_vs"):
            unload_at_the_end(worker.host, module, undo)
        second = worker.pods.start("node2", [], undo)
        second.add_veth(UNDERLAY, worker.host, UNDERLAY, worker.mtu + HEADERS, f"{NODES[1]}/30")
        ip(worker.host, "address", "add", f"{NODES[0]}/30", "dev", UNDERLAY)
        sysctl(second.host, **addresses.forwarding)
        far = replace(worker, host=second.host, directory=f"{worker.directory}/node2")
        daemons = [DockerDaemon(worker, undo), DockerDaemon(far, undo)]
        self.join_ports(worker, outside)
        for segment, daemon in enumerate(daemons, start=1):
            named = {"com.docker.network.bridge.name": OUTSIDE}
            daemon.add_network(OUTSIDE, "bridge", segment, **named)
        _form_swarm(*daemons)
        network = ip_interface(addresses.on_segment(addresses.gateway_of(0))).network
        # Docker takes the headers of the tunnel off the MTU of an overlay network.
        mtu = f"com.docker.network.driver.mtu={worker.mtu + HEADERS}"
        create = ("network", "create", "--driver", "overlay", "--attachable", "--subnet", str(network), "--opt", mtu)
        daemons[0].do(*create, NETWORK)
        inner = [str(network[FIRST_ADDRESS + number]) for number in range(1, last + 1)]
        pods = []
        for number, address in enumerate(inner, start=1):
            daemon = daemons[0] if number in (1, last) else daemons[1]
            end = EngineInterface("net2" if number == 1 else "net1", NETWORK, addresses.on_segment(address))
            published = published_ports(number, last, worker, outside, OTHER_PORT)
            pods.append(daemon.pods.start_connected(f"pod{number}", [end], published, undo))
        for pod, name, tester in ((pods[0], "net1", outside.tester_left), (pods[-1], "net2", outside.tester_right)):
            name_interface(pod, "eth1", EngineInterface(name, OUTSIDE, ""))
            route_via(pod, addresses, {addresses.alone(tester): NextHop(name, addresses.gateway_of(1))})
        send_along(pods, addresses, outside, inner)

        def describe() -> Mapping[str, Any]:
            nodes = [daemon.describe([NETWORK, OUTSIDE]) for daemon in daemons]
            at_second = {"second_node": network_of(second.host, addresses), "docker_of_second_node": nodes[1]}
            return {**nat_rules(worker), "docker": nodes[0], **at_second}

        entries = published_entries(worker, outside, OTHER_PORT)
        return running_pods(daemons[0].worker, pods, entries, describe, daemons)


def _form_swarm(first: DockerDaemon, second: DockerDaemon) -> None:
    """Let the first daemon manage a swarm, and the second daemon join it."""
    own, other = ([f"--{each}-addr={node}" for each in ("advertise", "listen")] for node in NODES)
    first.do("swarm", "init", *own)
    token = first.do("swarm", "join-token", "--quiet", "worker", assumed="TOKEN").stdout.strip()
    second.do("swarm", "join", "--token", token, *other, NODES[0])
