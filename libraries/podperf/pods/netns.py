"""Pods as network namespaces of the worker. CNI plug-ins attach the interfaces that a data plane asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from podperf.allocation import UNLIMITED, PodLimits
from podperf.hosts.base import Host
from podperf.hosts.namespaces import PREFIX, add_namespace
from podperf.kernel import control_groups
from podperf.pods.base import Attachment, PodRuntime
from podperf.pods.networks import NetworkedPod, PodNetworks


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

    def describe(self) -> Mapping[str, Any]:
        # A pod with limits tells them itself.
        return {"kind": "network namespaces", **self._networks.describe(), "memory_limit": None}
