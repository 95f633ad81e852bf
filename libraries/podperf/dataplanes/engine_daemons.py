"""A daemon of Docker or of Podman for one run, for the data planes whose networks the engine makes.

It runs in the network of the worker, so no network of the machine's own engine changes. The pods are containers of this
daemon, whatever makes the pods of other data planes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import ip_interface
from typing import Any, ClassVar

from podperf.dataplanes.base import Worker
from podperf.errors import PodperfError
from podperf.frames import AddressFamily
from podperf.hosts.base import Completed, Host, json_answer, shell_script
from podperf.hosts.linux import await_success
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.hosts.way_back import WayBack, unload_at_the_end
from podperf.pods import DockerPods, EngineInterface, EnginePods, PodmanPods

START_TIMEOUT = 60.0  # seconds, on an emulated CPU
# Docker makes its rules for IPv4 only by default. Before version 27, those for IPv6 are an experiment.
_IPV6 = {AddressFamily.IPV6: ("--experimental", "--ip6tables")}
# Mounts and processes end with the first process, also after a kill.
_ALONE = ("unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_PRIVATE = ("sh", "-ec", shell_script("private_engine.sh", beside=__file__), "sh")
_REMOVE_GROUPS = shell_script("remove_engine_groups.sh", beside=__file__)
_CONTROLLERS = "cat /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || :"
_NETAVARK = " || ".join(f"which {folder}/podman/netavark" for folder in ("/usr/lib", "/usr/libexec", "/usr/local/lib"))


class EngineDaemon(ABC):
    """The daemon of one set-up, in the network of the worker."""

    kind: ClassVar[type[EnginePods]]
    programs: ClassVar[Sequence[str]]
    shown: ClassVar[Sequence[str]]
    """The keys of a network in an answer of `network inspect` that the record has."""

    def __init__(self, worker: Worker, undo: ExitStack, *options: str) -> None:
        """`options` are further ones of the daemon's command line."""
        host, self.engine = worker.host, self.kind.engine
        folder, group = f"{worker.directory}/{self.engine}", f"podperf-{self.engine}"
        self._host, address = host, f"unix://{folder}/socket"
        unload_at_the_end(host, "br_netfilter", undo)
        before = host.ask("sh", "-c", _CONTROLLERS, assumed="").stdout.split()
        remove = ("sh", "-c", _REMOVE_GROUPS, "sh", group, *before)
        WayBack(host, undo).note(f"the control groups of {self.engine}'s containers", *remove)
        host.do("mkdir", "-p", folder)
        daemon = (*self._command(folder, address, worker.headers.family), *options)
        self._process = host.spawn(*_ALONE, *_PRIVATE, str(RUN_DIRECTORY), folder, *daemon)
        undo.callback(self._process.stop, 0.1)  # the daemon is alone with its processes and files
        self.pods = self.kind(host, host, *self._client(address), group=f"/{group}", started=worker.started)
        self.worker = replace(worker, pods=self.pods)
        answers = (*self.pods.command, *self.pods.probe)
        if not await_success(host, self._process, START_TIMEOUT, *answers):
            raise PodperfError(f"the daemon of {self.engine} did not start on {host.name}: {self._last_words()}")

    @classmethod
    def lacking(cls, host: Host) -> str | None:
        """The reason why this host cannot run the daemon, or None."""
        absent = [each for each in cls.programs if host.ask("which", each, check=False, assumed="").exit_code]
        if not absent:
            return None
        engine, package = cls.kind.engine.capitalize(), cls.kind.package
        return f"{', '.join(absent)} is not installed on {host.name}, and makes {engine}'s network (package {package})"

    @abstractmethod
    def _command(self, folder: str, address: str, family: AddressFamily) -> Sequence[str]:
        """The command line of the daemon, with all of its files in the folder."""

    @abstractmethod
    def _client(self, address: str) -> Sequence[str]:
        """The options of the command line for this address of the daemon."""

    @abstractmethod
    def _network_options(self, options: Mapping[str, str]) -> Sequence[str]:
        """The options of a new network, in the words of this engine. `options` are those of its driver."""

    def add_network(self, name: str, driver: str, segment: int, **options: str) -> None:
        """Make a network of this driver, with the addresses of a segment."""
        addresses = self.worker.addresses
        address = ip_interface(addresses.on_segment(addresses.gateway_of(segment)))
        self.do(
            *("network", "create", "--driver", driver),
            *(["--ipv6"] if address.version == 6 else []),
            *("--subnet", str(address.network), "--gateway", str(address.ip)),
            *self._network_options(options),
            name,
        )

    def ends_of(self, number: int, networks: Sequence[str]) -> tuple[EngineInterface, EngineInterface]:
        """The interfaces of a pod in the networks of the two segments beside it."""
        addresses, before = self.worker.addresses, number - 1
        left, right = map(addresses.on_segment, (addresses.right_of(before), addresses.left_of(number)))
        return EngineInterface("net1", networks[before], left), EngineInterface("net2", networks[number], right)

    def do(self, *words: str, assumed: str = "") -> Completed:
        """Let the daemon change something, by these words of the command line. `assumed` is the answer in a plan."""
        return self._host.do(*self.pods.command, *words, assumed=assumed)

    def check(self) -> None:
        """Raises PodperfError if the daemon has ended, with its last errors."""
        if not self._process.alive():
            raise PodperfError(f"the daemon of {self.engine} has ended on {self._host.name}: {self._last_words()}")

    def _last_words(self) -> str:
        return " ".join(self._process.errors().splitlines()[-3:])

    def describe(self, networks: Sequence[str]) -> dict[str, Any]:
        """The networks as `inspect` shows them, and the firewall in use."""
        said = self._host.ask(*self.pods.command, "network", "inspect", *networks, assumed="[]").stdout
        firewall = self._host.ask("iptables", "--version", check=False, assumed="").stdout.strip()
        found = json_answer(
            self._host, f"{self.engine} network inspect", said, lambda found: [self._network(each) for each in found]
        )
        return {"networks": found, "firewall": firewall}

    def _network(self, network: Mapping[str, Any]) -> dict[str, Any]:
        return {key: network.get(key) for key in self.shown}


def _options(**options: object) -> list[str]:
    return [word for option, value in options.items() for word in ("--opt", f"{option}={value}")]


class DockerDaemon(EngineDaemon):
    """Docker's daemon. Without further options, it has no default bridge."""

    kind = DockerPods
    programs = ("docker", "dockerd", "containerd", "runc", "iptables")
    shown = ("Name", "Driver", "EnableIPv6", "IPAM", "Internal", "Options", "Peers")

    def __init__(self, worker: Worker, undo: ExitStack, *options: str) -> None:
        super().__init__(worker, undo, *(options or ("--bridge", "none")))

    def _command(self, folder: str, address: str, family: AddressFamily) -> Sequence[str]:
        return (
            *("dockerd", "--host", address, "--pidfile", f"{folder}/pid", "--data-root", f"{folder}/data"),
            *("--exec-root", f"{folder}/exec", "--storage-driver", "vfs"),
            *("--exec-opt", "native.cgroupdriver=cgroupfs", *_IPV6.get(family, ())),
        )

    def _client(self, address: str) -> Sequence[str]:
        return "--host", address

    def _network_options(self, options: Mapping[str, str]) -> Sequence[str]:
        return _options(**{"com.docker.network.driver.mtu": self.worker.mtu}, **options)

    def describe(self, networks: Sequence[str]) -> dict[str, Any]:
        """See EngineDaemon. `userland_proxies` counts the proxies of published ports."""
        proxies = self._host.ask("ss", "--udp", "--listening", "--processes", check=False, assumed="").stdout
        return {**super().describe(networks), "userland_proxies": proxies.count("docker-proxy")}

    def _network(self, network: Mapping[str, Any]) -> dict[str, Any]:
        """See EngineDaemon. The network has its containers by their names, with their MACs and addresses."""
        shown = ("MacAddress", "IPv4Address", "IPv6Address")
        containers = {each["Name"]: {key: each[key] for key in shown} for each in network["Containers"].values()}
        return {**super()._network(network), "Containers": containers}


class PodmanService(EngineDaemon):
    """Podman, which usually has no daemon, as the service that answers `podman --remote`."""

    kind = PodmanPods
    programs = ("podman", "conmon", "iptables")
    shown = ("name", "driver", "network_interface", "subnets", "ipv6_enabled", "internal", "dns_enabled", "options")

    @classmethod
    def lacking(cls, host: Host) -> str | None:
        if (reason := super().lacking(host)) is not None:
            return reason
        if host.ask("sh", "-c", _NETAVARK, check=False, assumed="").exit_code:
            return f"netavark is not installed on {host.name}, and makes Podman's network (package netavark)"
        return None

    def _command(self, folder: str, address: str, family: AddressFamily) -> Sequence[str]:
        return (
            *("podman", "--root", f"{folder}/data", "--runroot", f"{folder}/exec", "--tmpdir", f"{folder}/tmp"),
            *("--network-config-dir", f"{folder}/networks", "--storage-driver", "vfs"),
            *("--cgroup-manager", "cgroupfs", "--events-backend", "none"),
            *("system", "service", "--time", "0", address),
        )

    def _client(self, address: str) -> Sequence[str]:
        return "--remote", "--url", address

    def _network_options(self, options: Mapping[str, str]) -> Sequence[str]:
        return "--disable-dns", *_options(mtu=self.worker.mtu, **options)
