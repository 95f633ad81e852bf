"""Pods as network namespaces of the worker, and the interfaces of pods whose networks are such namespaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.allocation import UNLIMITED, PodLimits
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import add_address, add_veth, mac_address, package_versions
from podperf.hosts.namespaces import PREFIX, NetworkNamespace, add_namespace
from podperf.kernel import control_groups
from podperf.kernel.control_groups import ControlGroup
from podperf.pods.base import Attachment, Pod, PodInterface, PodRuntime
from podperf.pods.cni import PLUGIN_DIRECTORY, CniPlugins


class NetworkedPod:
    """A pod whose applications are processes of the worker in the pod's network."""

    def __init__(self, name: str, host: NetworkNamespace, group: ControlGroup | None = None) -> None:
        self.name, self.host, self._group = name, host, group
        self.interfaces: dict[str, PodInterface] = {}
        self.own_cpus: Sequence[int] = ()

    def add_veth(self, interface: str, host: Host, host_interface: str, mtu: int, address: str | None = None) -> None:
        add_veth(host, near=host_interface, far=interface, mtu=mtu, far_namespace=self.host.namespace)
        if address is not None:
            add_address(self.host, interface, address)
        plain = None if address is None else address.split("/")[0]
        self.interfaces[interface] = PodInterface(interface, mac_address(self.host, interface), plain, host_interface)

    def add_device(self, name: str, mac: str) -> None:
        self.interfaces[name] = PodInterface(name, mac)

    def start_application(self, command: Sequence[str], undo: ExitStack) -> Process:
        process = self.host.spawn(*self._limited(command))
        undo.callback(process.stop)
        return process

    def _limited(self, command: Sequence[str]) -> Sequence[str]:
        """A command line that runs this command in the pod's control group, if the pod has one."""
        return command if self._group is None else self._group.joining(command)

    def read_limits(self) -> Mapping[str, Any]:
        return {} if self._group is None else self._group.describe()


class PodNetworks:
    """The networks to which CNI plug-ins attach a worker's pods."""

    def __init__(self, machine: Host, worker: Host) -> None:
        self._machine, self._plugins = machine, CniPlugins(worker)
        self._attached: list[tuple[str, Attachment]] = []

    def attach(self, pod: NetworkedPod, attachments: Sequence[Attachment], undo: ExitStack) -> None:
        """Give a pod these interfaces until `undo`."""
        for attachment in attachments:
            where = (pod.name, pod.host, attachment)
            interface = self._plugins.add(*where)
            undo.callback(self._plugins.delete, *where)
            self.has(pod, attachment, interface, undo)

    def has(self, pod: NetworkedPod, attachment: Attachment, interface: PodInterface, undo: ExitStack) -> None:
        """A pod has this interface until `undo`, whoever gave it."""
        pod.interfaces[attachment.interface] = interface
        self._attached.append((pod.name, attachment))
        undo.callback(self._attached.remove, (pod.name, attachment))

    def describe(self) -> Mapping[str, Any]:
        """The plug-ins, and the present networks of the pods."""
        versions = package_versions(self._machine, ["containernetworking-plugins"])
        return {
            "cni_directory": PLUGIN_DIRECTORY,
            "cni_plugins": versions.get("containernetworking-plugins"),
            "cni_networks": [
                {"pod": pod, "interface": each.interface, "network": each.network, "plugins": list(each.plugins)}
                for pod, each in self._attached
            ],
        }


class NamespacePods(PodRuntime):
    """A pod runtime without containers: a pod has a network of its own, and shares everything else with the worker."""

    def __init__(self, machine: Host, worker: Host) -> None:
        self._machine, self._networks = machine, PodNetworks(machine, worker)

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    @staticmethod
    def cannot_limit(host: Host, limits: PodLimits) -> str | None:
        return control_groups.missing(host, limits)

    def start(
        self, name: str, attachments: Sequence[Attachment], undo: ExitStack, limits: PodLimits = UNLIMITED
    ) -> NetworkedPod:
        group = control_groups.make_group(self._machine, PREFIX + name, limits, undo) if limits else None
        pod = NetworkedPod(name, add_namespace(self._machine, name, undo), group)
        self._networks.attach(pod, attachments, undo)
        return pod

    def start_beside(self, pod: Pod, name: str, undo: ExitStack) -> NetworkedPod:
        return NetworkedPod(name, pod.host)

    def describe(self) -> Mapping[str, Any]:
        # A pod with limits tells them itself.
        return {"kind": "network namespaces", **self._networks.describe(), "memory_limit": None}
