"""Pods as network namespaces of the worker. CNI plug-ins attach the interfaces that a data plane asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.hosts.base import Host
from podperf.hosts.namespaces import add_namespace
from podperf.pods.base import Attachment, PodRuntime
from podperf.pods.networks import NetworkedPod, PodNetworks


class NamespacePods(PodRuntime):
    """A pod runtime without containers: a pod has a network of its own, and shares everything else with the worker."""

    def __init__(self, machine: Host, worker: Host) -> None:
        self._machine, self._networks = machine, PodNetworks(machine, worker)

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return None

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> NetworkedPod:
        pod = NetworkedPod(name, add_namespace(self._machine, name, undo))
        self._networks.attach(pod, attachments, undo)
        return pod

    def describe(self) -> Mapping[str, Any]:
        # A namespace sets no limit.
        return {"kind": "network namespaces", **self._networks.describe(), "memory_limit": None}
