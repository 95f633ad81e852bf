"""A Docker daemon of the run, for the data planes whose networks Docker makes.

It runs in the network of the worker, so no network of the machine's own daemon changes. The pods are containers of this
daemon, whatever makes the pods of other data planes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from ipaddress import ip_interface
from typing import Any

from podperf.dataplanes.base import Worker
from podperf.errors import PodperfError
from podperf.frames import AddressFamily
from podperf.hosts.base import Host, json_answer, shell_script
from podperf.hosts.linux import await_success
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.hosts.way_back import WayBack, unload_at_the_end
from podperf.pods import DockerPods

PROGRAMS = ("docker", "dockerd", "containerd", "runc", "iptables")
GROUP = "podperf-docker"  # the control group of all containers
START_TIMEOUT = 60.0  # seconds, on an emulated CPU
# Docker makes its rules for IPv4 only by default. Before version 27, those for IPv6 are an experiment.
_IPV6 = {AddressFamily.IPV6: ("--experimental", "--ip6tables")}
# Mounts and processes end with the first process, also after a kill.
_ALONE = ("unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child", "--mount-proc", "--")
_PRIVATE = ("sh", "-ec", shell_script("private_docker.sh", beside=__file__), "sh")
_REMOVE_GROUPS = shell_script("remove_docker_groups.sh", beside=__file__)
_CONTROLLERS = "cat /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null || :"


def lacking(host: Host) -> str | None:
    """The reason why this host cannot run the daemon, or None."""
    absent = [each for each in PROGRAMS if host.ask("which", each, check=False, assumed="").exit_code]
    if not absent:
        return None
    return f"{', '.join(absent)} is not installed on {host.name}, and makes Docker's network (package docker.io)"


class DockerDaemon:
    """The Docker daemon of one set-up, in the network of the worker."""

    def __init__(self, worker: Worker, undo: ExitStack, default_bridge: Sequence[str] = ("--bridge", "none")) -> None:
        """`default_bridge` are the daemon's options for its default bridge. Usually there is none."""
        host, folder = worker.host, f"{worker.directory}/docker"
        self._host, self._mtu, address = host, worker.mtu, f"unix://{folder}/socket"
        unload_at_the_end(host, "br_netfilter", undo)
        before = host.ask("sh", "-c", _CONTROLLERS, assumed="").stdout.split()
        remove = ("sh", "-c", _REMOVE_GROUPS, "sh", GROUP, *before)
        WayBack(host, undo).note("the control groups of Docker's containers", *remove)
        host.do("mkdir", "-p", folder)
        daemon = [
            *("dockerd", "--host", address, "--pidfile", f"{folder}/pid", "--data-root", f"{folder}/data"),
            *("--exec-root", f"{folder}/exec", *default_bridge, "--storage-driver", "vfs"),
            *("--cgroup-parent", f"/{GROUP}", "--exec-opt", "native.cgroupdriver=cgroupfs"),
            *_IPV6.get(worker.headers.family, ()),
        ]
        self._process = host.spawn(*_ALONE, *_PRIVATE, str(RUN_DIRECTORY), folder, *daemon)
        undo.callback(self._process.stop, 0.1)  # the daemon is alone with its processes and files
        self.pods = DockerPods(host, host, "--host", address)
        answers = (*self.pods.command, *self.pods.probe)
        if not await_success(host, self._process, START_TIMEOUT, *answers):
            raise PodperfError(f"the Docker daemon did not start on {host.name}: {self._last_words()}")

    def add_network(self, name: str, driver: str, gateway: str, options: Mapping[str, str]) -> None:
        """Make a network of this driver. `gateway` is the address of its gateway, with the prefix length."""
        address, mtu = ip_interface(gateway), {"com.docker.network.driver.mtu": self._mtu}
        self._host.do(
            *(*self.pods.command, "network", "create", "--driver", driver),
            *(["--ipv6"] if address.version == 6 else []),
            *("--subnet", str(address.network), "--gateway", str(address.ip)),
            *(word for option, value in {**mtu, **options}.items() for word in ("--opt", f"{option}={value}")),
            name,
        )

    def check(self) -> None:
        """Raises PodperfError if the daemon has ended, with its last errors."""
        if not self._process.alive():
            raise PodperfError(f"dockerd has ended on {self._host.name}: {self._last_words()}")

    def _last_words(self) -> str:
        return " ".join(self._process.errors().splitlines()[-3:])

    def describe(self, networks: Sequence[str]) -> Mapping[str, Any]:
        """The networks and containers as `inspect` shows them, the firewall, and the user-space proxies in use."""
        said = self._host.ask(*self.pods.command, "network", "inspect", *networks, assumed="[]").stdout
        firewall = self._host.ask("iptables", "--version", check=False, assumed="").stdout.strip()
        proxies = self._host.ask("ss", "--udp", "--listening", "--processes", check=False, assumed="").stdout
        shown = ("Name", "Driver", "EnableIPv6", "IPAM", "Internal", "Options")
        return {
            "networks": json_answer(
                self._host,
                "docker network inspect",
                said,
                lambda found: [{key: each.get(key) for key in shown} | _containers(each) for each in found],
            ),
            "firewall": firewall,
            "userland_proxies": proxies.count("docker-proxy"),
        }


def _containers(network: Mapping[str, Any]) -> dict[str, Any]:
    """The containers of a network with their MACs and addresses, by their names."""
    shown = ("MacAddress", "IPv4Address", "IPv6Address")
    return {"Containers": {each["Name"]: {key: each[key] for key in shown} for each in network["Containers"].values()}}
