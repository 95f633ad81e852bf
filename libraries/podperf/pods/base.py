"""The pod seam: a runtime makes a pod and attaches its interfaces through CNI network configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from podperf.hosts.base import Host


@dataclass(frozen=True)
class PodInterface:
    """An interface of a pod, as the CNI plug-in reported it. Addresses are plain, without a prefix length."""

    name: str
    mac: str
    address: str | None = None
    host_interface: str | None = None  # the worker's end, where there is one


@dataclass(frozen=True)
class Attachment:
    """A network that a pod is to be attached to: the plug-ins of its CNI configuration list, in their order.

    `capabilities` go to the plug-ins that declare them, as `runtimeConfig` (CNI specification, section 2).
    """

    interface: str
    network: str
    plugins: Sequence[Mapping[str, Any]]
    capabilities: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Pod:
    """A running pod. `host` runs commands inside its network."""

    name: str
    namespace: str
    host: Host
    interfaces: Mapping[str, PodInterface]


class PodRuntime(Protocol):
    """Whatever makes pods."""

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        """A pod with these interfaces; what must be undone goes onto `undo`."""

    def describe(self) -> Mapping[str, Any]:
        """Kind and versions of the runtime and of its CNI plug-ins."""
