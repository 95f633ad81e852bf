"""The settings of the tester whose two ports are pods of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from podperf.kubernetes.rights import OF_POLICIES, OF_SERVICES, Right
from podperf.kubernetes.settings import IMAGE, PROPERTIES, ClusterSettings, SecurityLevel, kubeconfig_of, wishes
from podperf.topology import Engine

__all__ = ["IMAGE", "SCHEMA", "Destination", "KubernetesSettings"]

MOST_POLICIES = 10_000  # each one takes a request to the API server

Destination = Literal["pod", "service"]

SCHEMA: Mapping[str, Any] = {
    "additionalProperties": False,
    "properties": {
        **PROPERTIES,
        "nodes": {"title": "the number of nodes on which the two pods are", "enum": [1, 2], "default": 1},
        "destination": {
            "title": "the address to which frames are sent: the other pod's, or that of a Service before it",
            "enum": ["pod", "service"],
            "default": "pod",
        },
        "receive_threads": {
            "title": "let a privileged pod on the node give each pod's interface a receive thread of its own",
            "type": "boolean",
            "default": False,
        },
        "network_policies": {
            "title": "the number of NetworkPolicies that select the two pods",
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_POLICIES,
            "default": 0,
        },
        "cpus": {"title": "whole CPUs for each pod alone; 0: shared", "type": "integer", "minimum": 0, "default": 0},
    },
}


@dataclass(frozen=True)
class KubernetesSettings(ClusterSettings):
    """A login to a cluster, and the two pods there."""

    nodes: int = 1  # on which the two pods are
    destination: Destination = "pod"
    receive_threads: bool = False  # started by a privileged pod
    network_policies: int = 0

    key: ClassVar[str] = "tester.settings"
    type: ClassVar[str] = "kubernetes"
    engine: ClassVar[Engine] = "packet-ring"
    runs_already: ClassVar[bool] = True  # on CPUs of the cluster's nodes, and on none of this machine's
    has_ports_of_its_own: ClassVar[bool] = True

    @property
    def security_level(self) -> SecurityLevel:
        """See ClusterSettings. The tester needs CAP_NET_RAW, which `restricted` forbids."""
        return "privileged" if self.receive_threads else "baseline"

    @property
    def further_rights(self) -> tuple[Right, ...]:
        """See ClusterSettings."""
        of_services = OF_SERVICES if self.destination == "service" else ()
        return (*of_services, *(OF_POLICIES if self.network_policies else ()))

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from `tester.settings` of a topology."""
        return cls(
            wishes(settings, settings["cpus"]),
            kubeconfig_of(settings),
            settings.get("context"),
            settings.get("namespace"),
            settings["nodes"],
            settings["destination"],
            settings["receive_threads"],
            settings["network_policies"],
        )
