"""Pods as network namespaces of the worker. CNI plug-ins attach the interfaces that a data plane asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.hosts.base import Host
from podperf.hosts.linux import package_versions
from podperf.hosts.namespaces import add_namespace
from podperf.pods.base import Attachment, Pod
from podperf.pods.cni import PLUGIN_DIRECTORY, CniPlugins


class NamespacePods:
    """A pod runtime without containers: what a pod is to the network, and nothing else."""

    def __init__(self, host: Host, worker: Host) -> None:
        self._host = host
        self._plugins = CniPlugins(worker)
        self._attached: list[tuple[str, Attachment]] = []

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        namespace = add_namespace(self._host, name, undo)
        interfaces = {}
        for attachment in attachments:
            interfaces[attachment.interface] = self._plugins.add(name, namespace.namespace, attachment)
            undo.callback(self._plugins.delete, name, namespace.namespace, attachment)
            self._attached.append((name, attachment))
            undo.callback(self._attached.remove, (name, attachment))
        return Pod(name, namespace.namespace, namespace, interfaces)

    def describe(self) -> Mapping[str, Any]:
        versions = package_versions(self._host, ["containernetworking-plugins"])
        return {
            "kind": "network namespaces",
            "cni_directory": PLUGIN_DIRECTORY,
            "cni_plugins": versions.get("containernetworking-plugins"),
            "cni_networks": [
                {"pod": pod, "interface": each.interface, "network": each.network, "plugins": list(each.plugins)}
                for pod, each in self._attached
            ],
            "memory_limit": None,  # a namespace sets none
        }
