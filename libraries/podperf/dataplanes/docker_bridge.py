"""Docker's own networks of the driver `bridge`, with published ports.

A Docker daemon of the run makes them in the network of the worker, so no network of the machine's own daemon changes.
The pods are containers of this daemon, whatever makes the pods of other data planes. Data plane `docker` is the
look-alike for machines without Docker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import ip_interface
from typing import Any, ClassVar

from podperf.addressing import SERVICE_PORT
from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.docker import Docker, OutsideAddresses, nat_rules
from podperf.errors import PodperfError, Unavailable
from podperf.frames import AddressFamily
from podperf.hosts.base import Host, json_answer, shell_script
from podperf.hosts.linux import await_success
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.hosts.way_back import WayBack, unload_at_the_end
from podperf.model import Chain
from podperf.pods import DockerPods, EngineInterface

PROGRAMS = ("docker", "dockerd", "containerd", "runc", "iptables")
GROUP = "podperf-docker"  # the control group of all containers
START_TIMEOUT = 60.0  # seconds, on an emulated CPU
OTHER_PORT = SERVICE_PORT + 1  # of an only pod, at which frames from the right arrive
# Mounts and processes end with the first process, also after a kill.
_ALONE = ("unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_PRIVATE = ("sh", "-ec", shell_script("private_docker.sh", beside=__file__), "sh")
_REMOVE_GROUPS = shell_script("remove_docker_groups.sh", beside=__file__)
_CONTROLLERS = "cat /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || :"


class DockerBridge(Docker):
    """One network of Docker for each segment. Docker publishes the outermost pods at the worker's addresses."""

    name: ClassVar[str] = "docker-bridge"

    @staticmethod
    def unavailable(host: Host) -> str | None:
        absent = [each for each in PROGRAMS if host.ask("which", each, check=False, assumed="").exit_code]
        if not absent:
            return None
        return f"{', '.join(absent)} is not installed on {host.name}, and makes Docker's network (package docker.io)"

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        if worker.headers.family is not AddressFamily.IPV4:
            raise Unavailable(f"the networks of {self.name} have no IPv6")
        outside, addresses, last = OutsideAddresses.of(chain, worker), worker.addresses, chain.pods
        daemon = DockerDaemon(worker, undo)
        self.join_ports(worker, outside)
        networks = [_network(segment, last) for segment in range(last + 1)]
        for segment, network in enumerate(networks):
            daemon.add_network(network, f"bridge{segment}", addresses.on_segment(addresses.gateway_of(segment)))
        pods = []
        for number in range(1, last + 1):
            ends = (
                EngineInterface("net1", networks[number - 1], addresses.right_of(number - 1)),
                EngineInterface("net2", networks[number], addresses.left_of(number)),
            )
            published = [f"{outside.left}:{SERVICE_PORT}:{SERVICE_PORT}/udp"] if number == 1 else []
            if number == last:
                port = OTHER_PORT if last == 1 else SERVICE_PORT
                published.append(f"{outside.right}:{SERVICE_PORT}:{port}/udp")
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


class DockerDaemon:
    """The Docker daemon of one set-up, in the network of the worker."""

    def __init__(self, worker: Worker, undo: ExitStack) -> None:
        host, folder = worker.host, f"{worker.directory}/docker"
        self._host, self._mtu, address = host, worker.mtu, f"unix://{folder}/socket"
        unload_at_the_end(host, "br_netfilter", undo)
        before = host.ask("sh", "-c", _CONTROLLERS, assumed="").stdout.split()
        remove = ("sh", "-c", _REMOVE_GROUPS, "sh", GROUP, *before)
        WayBack(host, undo).note("the control groups of Docker's containers", *remove)
        host.do("mkdir", "-p", folder)
        daemon = [
            *("dockerd", "--host", address, "--pidfile", f"{folder}/pid", "--data-root", f"{folder}/data"),
            *("--exec-root", f"{folder}/exec", "--bridge", "none", "--storage-driver", "vfs"),
            *("--cgroup-parent", f"/{GROUP}", "--exec-opt", "native.cgroupdriver=cgroupfs"),
        ]
        self._process = host.spawn(*_ALONE, *_PRIVATE, str(RUN_DIRECTORY), folder, *daemon)
        undo.callback(self._process.stop, 0.1)  # the daemon is alone with its processes and files
        self.pods = DockerPods(host, host, "--host", address)
        answers = (*self.pods.command, *self.pods.probe)
        if not await_success(host, self._process, START_TIMEOUT, *answers):
            raise PodperfError(f"the Docker daemon did not start on {host.name}: {self._last_words()}")

    def add_network(self, name: str, bridge: str, gateway: str) -> None:
        """Make a network of the driver `bridge`. `gateway` is the worker's address there, with the prefix length."""
        address = ip_interface(gateway)
        options = {"com.docker.network.bridge.name": bridge, "com.docker.network.driver.mtu": str(self._mtu)}
        self._host.do(
            *(*self.pods.command, "network", "create", "--driver", "bridge"),
            *("--subnet", str(address.network), "--gateway", str(address.ip)),
            *(word for option, value in options.items() for word in ("--opt", f"{option}={value}")),
            name,
        )

    def check(self) -> None:
        """Raises PodperfError if the daemon has ended, with its last errors."""
        if not self._process.alive():
            raise PodperfError(f"dockerd has ended on {self._host.name}: {self._last_words()}")

    def _last_words(self) -> str:
        return " ".join(self._process.errors().splitlines()[-3:])

    def describe(self, networks: Sequence[str]) -> Mapping[str, Any]:
        """The networks as `inspect` shows them, and the firewall and the user-space proxy in use."""
        said = self._host.ask(*self.pods.command, "network", "inspect", *networks, assumed="[]").stdout
        firewall = self._host.ask("iptables", "--version", check=False, assumed="").stdout.strip()
        proxies = self._host.ask("ss", "--udp", "--listening", "--processes", check=False, assumed="").stdout
        shown = ("Name", "Driver", "EnableIPv6", "IPAM", "Internal", "Options")
        return {
            "networks": json_answer(
                self._host,
                "docker network inspect",
                said,
                lambda found: [{key: each.get(key) for key in shown} for each in found],
            ),
            "firewall": firewall,
            "userland_proxies": proxies.count("docker-proxy"),
        }
