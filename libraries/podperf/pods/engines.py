"""Pods as containers of Docker or Podman, of the engine that the worker has.

A container has no network of the engine (`--network none`), so CNI plug-ins attach its interfaces. Its image is empty:
like a container of runc, it has the worker's programs for reading only. A program that podperf starts in it may do what
root may do on the worker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.allocation import UNLIMITED, PodLimits
from podperf.errors import PodperfError
from podperf.hosts.base import ASSUMED_NUMBERS, Host, Process, json_answer
from podperf.hosts.linux import await_success, configure, ip, mac_address, sysctl
from podperf.hosts.namespaces import PREFIX, NetworkNamespace, name_namespace
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.hosts.way_back import WayBack
from podperf.kernel import control_groups
from podperf.kernel.control_groups import MIB, ControlGroup
from podperf.pods.base import Attachment, Pod, PodInterface, PodRuntime
from podperf.pods.networks import NetworkedPod, PodNetworks
from podperf.pods.runc import PROGRAMS, START_TIMEOUT, in_chroot

IMAGE = "localhost/podperf:empty"
LABEL = "podperf"  # of all containers of podperf: docker ps --filter label=podperf
DEFAULT_NETWORK = "bridge"  # the engine's own name for its default network
# Keys of a network in an answer of `inspect`: the address, the length of its prefix, and the gateway.
_GIVEN = {4: ("IPAddress", "IPPrefixLen", "Gateway"), 6: ("GlobalIPv6Address", "GlobalIPv6PrefixLen", "IPv6Gateway")}
_ASSUMED = {4: ("10.254.0.1", 24, "10.254.0.254"), 6: ("2001:2:0:fe00::2", 64, "2001:2:0:fe00::1")}
LEAST_MEMORY = 6  # MiB: Docker refuses less
# Folders with the devices of network cards, and hugepages. The engine makes /dev itself.
_DEVICES = ("/dev/hugepages", "/dev/infiniband", "/dev/net", "/dev/shm", "/dev/vfio")
_IMPORT = f'head --bytes=1024 /dev/zero | "$@" import - {IMAGE}'  # two blocks of zeros: an archive without files
_REMOVE = (
    f'containers=$("$@" ps --all --quiet --filter label={LABEL}); [ -z "$containers" ] || "$@" rm --force $containers; '
    f'"$@" rmi --force {IMAGE}'
)
_FIND = 'grep -lzxF -- "$1" /proc/[0-9]*/environ 2>/dev/null'
# A process that has ended has no `exe`, also if nobody has asked for its exit code yet.
_UNTIL_ENDED = 'while [ -e "/proc/$1/exe" ]; do sleep 0.02; done'
_ENDING = 10  # seconds
# An application starts as a child of nsenter, and ends with it. It gets no variable of podperf's environment.
_ALONE = (
    *("env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    *("setpriv", "--pdeathsig=TERM", "--"),
)
_ENTER = ("nsenter", "--mount", "--ipc", "--uts", "--pid", "--root", "--wd")


@dataclass(frozen=True)
class EngineInterface:
    """An interface of a pod in a network of the engine, with an address and the length of its prefix."""

    name: str
    network: str
    address: str

    @property
    def alone(self) -> str:
        """The address without the length of its prefix."""
        return self.address.partition("/")[0]

    @property
    def address_option(self) -> tuple[str, str]:
        """The option of the command line for the address."""
        return "--ip6" if ":" in self.address else "--ip", self.alone


class EnginePods(PodRuntime):
    """A pod runtime whose pods are containers of an engine with the command line of Docker."""

    engine: ClassVar[str]
    """The command."""

    package: ClassVar[str]
    """The Debian package."""

    probe: ClassVar[Sequence[str]]
    """The arguments of a question that only an engine that can run containers answers."""

    remedy: ClassVar[str]
    """The words that tell the user how to make the engine answer."""

    def __init__(
        self, machine: Host, worker: Host, *options: str, group: str = "", started: list[Pod] | None = None
    ) -> None:
        """`options` of the command line name another daemon than the usual one. The control groups of the containers
        are in `group`, or where the engine makes them. The pods are put into the list `started`."""
        self._machine, self._networks = machine, PodNetworks(machine, worker)
        self._started = [] if started is None else started
        self.command, self._group = (self.engine, *options), group
        self._running = 0

    @classmethod
    def unavailable(cls, host: Host) -> str | None:
        if host.ask("which", cls.engine, check=False, assumed="").exit_code:
            return f"{cls.engine}, which makes the pods, is not installed on {host.name} (Debian package {cls.package})"
        if in_chroot(host):
            return f"podperf runs in a chroot on {host.name}, and {cls.engine} makes containers outside of it"
        answer = host.ask(cls.engine, *cls.probe, check=False, assumed="")
        if answer.exit_code:
            said = (answer.stderr.strip().splitlines() or ["it says nothing"])[-1]
            return f"{cls.engine} does not answer on {host.name} ({said}): {cls.remedy}"
        return None

    @staticmethod
    def cannot_limit(host: Host, limits: PodLimits) -> str | None:
        if limits.memory is not None and limits.memory < LEAST_MEMORY:
            return f"a container needs {LEAST_MEMORY} MiB of memory or more, not {limits.memory}"
        return control_groups.missing(host, limits)

    @staticmethod
    def within(command: Sequence[str]) -> tuple[str, Sequence[str]] | None:
        command, start = control_groups.joined(command), len(_ENTER)
        if tuple(command[:start]) != _ENTER:
            return None
        namespace = command[start + 1].rpartition("/")[2]  # after the first process: the network, and --
        return namespace, command[start + 3 + len(_ALONE) :]

    def start(
        self, name: str, attachments: Sequence[Attachment], undo: ExitStack, limits: PodLimits = UNLIMITED
    ) -> EngineContainer:
        pod = self._start(name, ("--network", "none"), undo, limits)
        self._networks.attach(pod, attachments, undo)
        return pod

    def start_connected(
        self, name: str, ends: Sequence[EngineInterface], published: Sequence[str], undo: ExitStack
    ) -> EngineContainer:
        """Start a pod on networks of the engine itself. `published` are ports in the form of the option --publish."""
        first, *others = ends
        pod = self._start(name, ["--network", first.network, *first.address_option, *_publish(published)], undo)
        if any(":" in end.address for end in ends):
            sysctl(pod.host, net__ipv6__conf__default__disable_ipv6=0)  # Podman gives addresses to such interfaces only
        for end in others:
            connect = ("network", "connect", *end.address_option, end.network, PREFIX + name)
            self._machine.do(*self.command, *connect)
        for number, end in enumerate(ends):
            name_interface(pod, f"eth{number}", end)
        return pod

    def start_by_default(
        self, name: str, interface: str, version: int, published: Sequence[str], undo: ExitStack
    ) -> EngineContainer:
        """Start a pod on the engine's default network, where the engine chooses the addresses. The pod keeps the
        address and the default route of this `version` of the Internet Protocol."""
        pod = self._start(name, ["--network", DEFAULT_NETWORK, *_publish(published)], undo)
        keys = _GIVEN[version]
        assumed = dict(zip(keys, _ASSUMED[version], strict=True))
        question = ("inspect", "--format", f"{{{{json .NetworkSettings.Networks.{DEFAULT_NETWORK}}}}}", PREFIX + name)
        said = self._machine.ask(*self.command, *question, assumed=json.dumps(assumed)).stdout
        address, length, gateway = json_answer(
            self._machine, f"{self.engine} inspect", said, lambda found: [str(found[key]) for key in keys]
        )
        name_interface(pod, "eth0", EngineInterface(interface, DEFAULT_NETWORK, f"{address}/{length}"))
        ip(pod.host, f"-{version}", "route", "replace", "default", "via", gateway, "dev", interface)
        return pod

    def _start(
        self, name: str, network: Sequence[str], undo: ExitStack, limits: PodLimits = UNLIMITED
    ) -> EngineContainer:
        container = PREFIX + name
        self._import_image(undo)
        # The first process ends when its input does: with this program, however that ends. The engine then removes the
        # container.
        options = (*network, *self._options(container, limits))
        client = self._machine.spawn(*self.command, "run", *options, IMAGE, "cat")
        undo.callback(self._end, container, client)
        client.send("ready")
        client.receive(START_TIMEOUT, "ready")
        shown = self._inspect(container)
        process = self._first_process(container)
        group = control_groups.group_of(self._machine, process, limits) if limits else None
        inside = name_namespace(self._machine, name, process, undo)
        pod = EngineContainer(name, inside, self._machine, process, group, _limits_of(shown))
        self._started.append(pod)
        return pod

    def _import_image(self, undo: ExitStack) -> None:
        """Have the empty image until `undo`."""
        if self._running == 0:
            there = (*self.command, "image", "inspect", IMAGE)
            what = f"containers and image of podperf in {self.engine}"
            WayBack(self._machine, undo).note(what, "sh", "-c", _REMOVE, "sh", *self.command, of=there)
            self._machine.do("sh", "-c", _IMPORT, "sh", *self.command)
        self._running += 1
        undo.callback(self._one_less)

    def _one_less(self) -> None:
        self._running -= 1

    def _options(self, container: str, limits: PodLimits) -> Sequence[str]:
        writable = [*_existing(self._machine, _DEVICES), str(RUN_DIRECTORY)]
        options = [
            *("--interactive", "--rm", "--pull", "never", "--log-driver", "none"),
            *("--name", container, "--hostname", container, "--label", LABEL),
            *("--userns", "host", "--read-only", "--tmpfs", "/tmp", "--tmpfs", "/run"),
            # The first process may do nothing. A program that podperf starts in the container keeps podperf's rights.
            *("--cap-drop", "ALL", "--security-opt", "label=disable", "--device-cgroup-rule", "a *:* rwm"),
            # Podman would raise these limits, which podperf itself may not be allowed to do.
            *("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"),
        ]
        for folder in writable:
            options += ["--volume", f"{folder}:{folder}"]
        for folder in _existing(self._machine, PROGRAMS):
            options += ["--volume", f"{folder}:{folder}:ro"]
        if self._group:
            options += ["--cgroup-parent", self._group]
        if limits.cpu is not None:
            options += ["--cpus", f"{limits.cpu:g}"]
        if limits.memory is not None:  # the same limit for memory and swap together: without swap
            options += ["--memory", f"{limits.memory}m", "--memory-swap", f"{limits.memory}m"]
        return options

    def _inspect(self, container: str) -> Mapping[str, Any]:
        """The container, as the engine shows it."""
        assumed = json.dumps([{"HostConfig": {"NanoCpus": 0, "Memory": 0}}])
        said = self._machine.ask(*self.command, "inspect", container, assumed=assumed).stdout
        return json_answer(self._machine, f"{self.engine} inspect", said, lambda answer: dict(answer[0]))

    def _first_process(self, container: str) -> int:
        """The number that the worker gives to the first process of a container. An engine sets the variable HOSTNAME.

        `inspect` tells the number that the process has where the engine is, and this may be another machine.
        """
        assumed, name = f"/proc/{next(ASSUMED_NUMBERS)}/environ", f"HOSTNAME={container}"
        found = self._machine.ask("sh", "-c", _FIND, "sh", name, check=False, assumed=assumed).stdout.split()
        if len(found) != 1:
            raise PodperfError(f"the engine that {self.engine} asks has its containers not on {self._machine.name}")
        return int(found[0].split("/")[2])

    def _end(self, container: str, client: Process) -> None:
        self._machine.do(*self.command, "kill", container, check=False)  # it may have ended with its network
        _await_end(self._machine, client.pid)  # the client ends when the engine has removed the container
        client.stop()

    def describe(self) -> Mapping[str, Any]:
        said = self._machine.ask(*self.command, "info", "--format", "{{json .}}", assumed="{}").stdout
        return {
            "kind": f"containers of {self.engine}",
            **json_answer(self._machine, f"{self.engine} info", said, lambda found: found and self._facts(found)),
            "root_file_system": f"an empty image; for reading only, of the worker: {', '.join(PROGRAMS)}",
            **self._networks.describe(),
            "memory_limit": None,
        }

    @staticmethod
    def _facts(found: Mapping[str, Any]) -> Mapping[str, Any]:
        """The engine's own facts in the answer of `info`."""
        raise NotImplementedError


class DockerPods(EnginePods):
    """A pod runtime whose pods are containers of Docker."""

    engine = "docker"
    package = "docker.io"
    probe = ("version", "--format", "{{.Server.Version}}")
    remedy = "start its daemon (systemctl start docker), or name the daemon in DOCKER_HOST"

    @staticmethod
    def _facts(found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            "docker": found["ServerVersion"],
            "containerd": found.get("ContainerdCommit", {}).get("ID"),
            "oci_runtime": found["DefaultRuntime"],
            "oci_runtime_version": found.get("RuncCommit", {}).get("ID"),
            "storage_driver": found["Driver"],
            "cgroup_manager": found["CgroupDriver"],
            "cgroup_version": found.get("CgroupVersion"),
            "security_options": found.get("SecurityOptions"),
        }


class PodmanPods(EnginePods):
    """A pod runtime whose pods are containers of Podman."""

    engine = "podman"
    package = "podman"
    probe = ("info", "--format", "{{.Version.Version}}")
    remedy = "see `podman info`"

    @staticmethod
    def _facts(found: Mapping[str, Any]) -> Mapping[str, Any]:
        host = found["host"]
        return {
            "podman": found["version"]["Version"],
            "conmon": host["conmon"]["version"],
            "oci_runtime": host["ociRuntime"]["name"],
            "oci_runtime_version": host["ociRuntime"]["version"].splitlines()[0],
            "storage_driver": found["store"]["graphDriverName"],
            "cgroup_manager": host["cgroupManager"],
            "cgroup_version": host["cgroupVersion"],
            "network_backend": host.get("networkBackend"),
        }


class EngineContainer(NetworkedPod):
    """A pod that is a container of an engine."""

    def __init__(
        self,
        name: str,
        host: NetworkNamespace,
        machine: Host,
        process: int,
        group: ControlGroup | None,
        limits: Mapping[str, Any],
    ) -> None:
        super().__init__(name, host, group)
        self._machine, self._limits = machine, limits
        network = f"--net=/run/netns/{host.namespace}"
        self._enter = (*_ENTER, f"--target={process}", network, "--", *_ALONE)

    def start_application(self, command: Sequence[str], undo: ExitStack) -> Process:
        # `exec` of an engine passes no signals on, and does not tell the number of the process.
        process = self._machine.spawn(*self._limited([*self._enter, *command]))
        undo.callback(self._end, process)
        process.pid = self._child_of(process)
        return process

    def _child_of(self, nsenter: Process) -> int:
        children = f"/proc/{nsenter.pid}/task/{nsenter.pid}/children"
        if not await_success(self._machine, nsenter, START_TIMEOUT, "grep", "-q", "[0-9]", children):
            raise PodperfError(f"on {self._machine.name}, a program of {self.name} did not start: {nsenter.errors()}")
        return int(self._machine.ask("cat", children, assumed=str(next(ASSUMED_NUMBERS))).stdout)

    def _end(self, process: Process) -> None:
        process.stop()
        _await_end(self._machine, process.pid)

    def read_limits(self) -> Mapping[str, Any]:
        """See Pod. `inspected` are the limits that the engine shows. `processes` counts the programs that start the
        applications, too, and not the first process, for which the limits also hold."""
        found = super().read_limits()
        return {**found, "processes": found["processes"] - 1, "inspected": self._limits} if found else {}


def _publish(ports: Sequence[str]) -> list[str]:
    return [word for port in ports for word in ("--publish", port)]


def name_interface(pod: EngineContainer, given: str, end: EngineInterface) -> None:
    """Give an interface with a name of the engine's choice the name of this end."""
    link = ("link", "set", "dev")
    down, rename, up = (*link, given, "down"), (*link, given, "name", end.name), (*link, end.name, "up")
    unlike_default = {f"net__ipv4__conf__{given}__{each}": 0 for each in ("rp_filter", "send_redirects")}
    # Docker 20 switches IPv6 off on an interface when it connects a further one, and addresses go.
    again = [("address", "replace", end.address, "dev", end.name, "nodad")] if ":" in end.address else []
    unlike_default |= {f"net__ipv6__conf__{given}__disable_ipv6": 0} if again else {}
    configure(pod.host, down, rename, up, *again, **unlike_default)
    pod.interfaces[end.name] = PodInterface(end.name, mac_address(pod.host, end.name), end.alone)


def _limits_of(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """The limits in an answer of `inspect`. None: no limit."""
    config = shown["HostConfig"]
    cpu, memory = config.get("NanoCpus", 0) / 1e9, config.get("Memory", 0) / MIB
    return {"cpu": cpu or None, "memory_mib": memory or None}


def _existing(machine: Host, folders: Sequence[str]) -> Sequence[str]:
    return machine.ask("ls", "-d", *folders, check=False, assumed="").stdout.split()


def _await_end(machine: Host, process: int) -> None:
    """Wait until a process has ended, but not for ever."""
    wait = ("timeout", str(_ENDING), "sh", "-c", _UNTIL_ENDED, "sh", str(process))
    machine.ask(*wait, check=False, timeout=_ENDING + 5, assumed="")
