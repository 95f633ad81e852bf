"""Pods as containers of runc: each has its own root file system, process numbers and network.

The root file system has the worker's programs, read-only. The application of a pod drives network cards. So a container
has all rights of root on the worker (docker calls such a container privileged).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from typing import Any

from podperf.allocation import UNLIMITED, PodLimits
from podperf.errors import PodperfError
from podperf.hosts.base import ASSUMED_NUMBERS, Host, Process, shell_script
from podperf.hosts.linux import await_success, package_versions
from podperf.hosts.namespaces import PREFIX, NetworkNamespace, name_namespace
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel import control_groups
from podperf.kernel.control_groups import ControlGroup
from podperf.pods.base import Attachment, Pod, PodRuntime
from podperf.pods.networks import NetworkedPod, PodNetworks

BUNDLES, STATE = f"{RUN_DIRECTORY}/runc/bundles", f"{RUN_DIRECTORY}/runc/state"
START_TIMEOUT = 30.0  # seconds, on an emulated CPU
# Folders of the worker that a pod reads its programs and their settings from.
PROGRAMS = ("/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/usr")
# runc makes no control groups. For a group, it would switch on controllers for the whole machine. A poller in a group
# could not have real-time priority, which it needs to take turns. A killed run would leave its groups behind. If runc
# cannot write control groups, it works without them, as for users who are not root. The applications of a pod with
# limits start in a group that podperf makes.
_RUNC = shell_script("runc_without_groups.sh", beside=__file__)
# `runc exec` enters the container's mount namespace. A process that enters a namespace has the namespace's root.
_OUTSIDE_OF_A_CHROOT = 'nsenter --mount=/proc/self/ns/mnt -- test / -ef "/proc/$$/root/"; exit $?'


def in_chroot(host: Host) -> bool:
    """Whether podperf runs in a chroot on this host."""
    return bool(host.ask("sh", "-c", _OUTSIDE_OF_A_CHROOT, check=False, assumed="").exit_code)


class RuncPods(PodRuntime):
    """A pod runtime whose pods are containers."""

    def __init__(self, machine: Host, worker: Host) -> None:
        self._machine, self._networks = machine, PodNetworks(machine, worker)

    @staticmethod
    def unavailable(host: Host) -> str | None:
        if host.ask("which", "runc", check=False, assumed="").exit_code:
            return f"runc, which makes the pods, is not installed on {host.name} (Debian package runc)"
        if in_chroot(host):
            return f"podperf runs in a chroot on {host.name}, and runc starts applications outside of it"
        return None

    @staticmethod
    def cannot_limit(host: Host, limits: PodLimits) -> str | None:
        return control_groups.missing(host, limits)

    @staticmethod
    def within(command: Sequence[str]) -> tuple[str, Sequence[str]] | None:
        command, start = control_groups.joined(command), len(_EXECUTE)
        if tuple(command[:start]) != _EXECUTE or len(command) < start + 2:
            return None
        return command[start + 1], command[start + 2 :]  # after the file for the process number

    def start(
        self, name: str, attachments: Sequence[Attachment], undo: ExitStack, limits: PodLimits = UNLIMITED
    ) -> RuncContainer:
        group = control_groups.make_group(self._machine, PREFIX + name, limits, undo) if limits else None
        process = self._start(name, configuration(self._machine), undo)
        pod = RuncContainer(name, name_namespace(self._machine, name, process, undo), self._machine, group)
        self._networks.attach(pod, attachments, undo)
        return pod

    def start_beside(self, pod: Pod, name: str, undo: ExitStack) -> RuncContainer:
        self._start(name, configuration(self._machine, pod.host), undo)
        return RuncContainer(name, pod.host, self._machine)

    def _start(self, name: str, settings: Mapping[str, Any], undo: ExitStack) -> int:
        """Start a container until `undo`. Returns its first process, by the number that the worker gives it."""
        bundle = f"{BUNDLES}/{name}"
        # A file of an earlier container of this name would have the number of a process that is somebody else's now.
        self._machine.do("rm", "-rf", bundle)
        self._machine.do("mkdir", "-p", f"{bundle}/rootfs")
        self._machine.put(json.dumps(settings).encode(), f"{bundle}/config.json")
        # The first process ends when its input does: with this program, however that ends. The kernel then ends all
        # other processes of the container, and runc forgets the container. So runc must not be killed before that.
        arguments = ("run", "--bundle", bundle, "--pid-file", f"{bundle}/pid", PREFIX + name)
        runc = self._machine.spawn("setpriv", "--pdeathsig=clear", "--", *_runc(*arguments))
        undo.callback(self._end, name, runc)
        return _number(self._machine, runc, f"{bundle}/pid")

    def _end(self, name: str, runc: Process) -> None:
        self._machine.do(*_runc("kill", PREFIX + name, "KILL"), check=False)  # it may have ended with its network
        runc.stop()
        self._machine.do(*_runc("delete", "--force", PREFIX + name))

    def describe(self) -> Mapping[str, Any]:
        return {
            "kind": "containers of runc",
            "runc": package_versions(self._machine, ["runc"]).get("runc"),
            "root_file_system": f"its own; for reading only, of the worker: {', '.join(PROGRAMS)}",
            **self._networks.describe(),
            "memory_limit": None,
        }


class RuncContainer(NetworkedPod):
    """A pod that is a container."""

    def __init__(self, name: str, host: NetworkNamespace, machine: Host, group: ControlGroup | None = None) -> None:
        super().__init__(name, host, group)
        self._machine, self._numbers = machine, count(1)

    def start_application(self, command: Sequence[str], undo: ExitStack) -> Process:
        pid_file = f"{BUNDLES}/{self.name}/application{next(self._numbers)}.pid"
        process = self._machine.spawn(*self._limited([*_EXECUTE, pid_file, PREFIX + self.name, *command]))
        undo.callback(process.stop)
        # `runc exec` passes input and signals on to the application, and passes its output back.
        process.pid = _number(self._machine, process, pid_file)
        return process


def configuration(machine: Host, network: NetworkNamespace | None = None) -> dict[str, Any]:
    """The `config.json` of a container (OCI runtime specification 1.0.2). It has a network of its own, or this one."""
    folders = machine.ask("ls", "-d", *PROGRAMS, check=False, assumed="").stdout.split()
    capabilities = _capabilities(machine.ask("setpriv", "--dump", assumed="").stdout)
    network_namespace = {"type": "network", **({} if network is None else {"path": f"/run/netns/{network.namespace}"})}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["cat"],  # ends with its input
            "env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/sys", "type": "sysfs", "source": "sysfs"},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/run", "type": "tmpfs", "source": "tmpfs"},
            _bind("/dev", "rw"),  # devices of network cards, and hugepages
            _bind(str(RUN_DIRECTORY), "rw"),  # sockets between pods, and to the switch
            *(_bind(folder, "ro") for folder in folders),
        ],
        "linux": {"namespaces": [network_namespace, *({"type": kind} for kind in ("pid", "mount", "ipc", "uts"))]},
    }


def _bind(folder: str, option: str) -> dict[str, Any]:
    return {"destination": folder, "type": "bind", "source": folder, "options": ["rbind", option]}


def _capabilities(dump: str) -> list[str]:
    """The names of the capabilities that a process may have at most, as setpriv(1) tells them."""
    found = re.search(r"^Capability bounding set: (.*)$", dump, re.MULTILINE)
    names = found[1].split(",") if found else []
    return [f"CAP_{name.upper()}" for name in names if not name.startswith("cap_")]  # those it has no name for


def _runc(*arguments: str) -> tuple[str, ...]:
    return ("unshare", "--mount", "sh", "-c", _RUNC, "sh", "--root", STATE, *arguments)


_EXECUTE = _runc("exec", "--pid-file")


def _number(machine: Host, runc: Process, pid_file: str) -> int:
    """The number that the worker's kernel gives to the process that runc has started."""
    if not await_success(machine, runc, START_TIMEOUT, "test", "-s", pid_file):
        said = " ".join(runc.errors().split())
        raise PodperfError(f"on {machine.name}, runc did not start a process of a pod{': ' if said else ''}{said}")
    return int(machine.get(pid_file, str(next(ASSUMED_NUMBERS)).encode()))
