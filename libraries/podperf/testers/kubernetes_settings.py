"""The settings of the tester whose two ports are pods of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

from podperf.kubernetes.pods import START_TIMEOUT
from podperf.kubernetes.rights import OF_POLICIES, OF_SERVICES, Right
from podperf.kubernetes.settings import (
    PROPERTIES,
    TEXT,
    ClusterSettings,
    SecurityLevel,
    kubeconfig_of,
    wishes,
)
from podperf.testers.base import TesterPort
from podperf.topology import Engine, WrongSetting

MOST_POLICIES = 10_000  # each one takes a request to the API server

Destination = Literal["pod", "service", "host"]

SCHEMA: Mapping[str, Any] = {
    "additionalProperties": False,
    "properties": {
        **PROPERTIES,
        "nodes": {"title": "the number of nodes on which the two pods are", "enum": [1, 2], "default": 1},
        "node_names": {
            "title": "the names of the node or of the two nodes for the pods; by default the scheduler chooses",
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
            "items": {"title": "the name of a node", **TEXT},
        },
        "alone": {
            "title": "whether the pods wait until no pod of another run of podperf is on their nodes",
            "type": "boolean",
            "default": False,
        },
        "start_timeout": {
            "title": "seconds for a pod to start, in which it may wait for other runs",
            "type": "integer",
            "minimum": 1,
            "default": int(START_TIMEOUT),
        },
        "destination": {
            "title": "the address to which frames are sent: the other pod's, that of a Service before it, or a host's",
            "enum": ["pod", "service", "host"],
            "default": "pod",
        },
        "receive_threads": {
            "title": "let a privileged pod on the node give each pod's interface a receive thread of its own",
            "type": "boolean",
            "default": False,
        },
        "host": {
            "title": "an interface of the tester's machine, outside of the cluster, for `destination: host`",
            "type": "object",
            "additionalProperties": False,
            "required": ["interface"],
            "properties": {
                "interface": {"title": "an interface with an IPv4 address", **TEXT},
                "namespace": {"title": "the network namespace of the interface", **TEXT},
            },
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
    node_names: tuple[str, ...] = ()  # of the left and the right pod, or of both; empty: the scheduler chooses
    start_timeout: float = START_TIMEOUT  # seconds
    host: TesterPort | None = None  # of the tester's machine, for the destination `host`

    key: ClassVar[str] = "tester.settings"
    type: ClassVar[str] = "kubernetes"
    engine: ClassVar[Engine] = "packet-ring"
    has_ports_of_its_own: ClassVar[bool] = True

    @property
    def runs_already(self) -> bool:
        """See KindSettings. Pods run on CPUs of the cluster's nodes, and on none of the tester's machine."""
        return self.host is None

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
        """The settings from `tester.settings` of a topology. WrongSetting for settings that contradict each other."""
        _refuse_contradictions(settings)
        host, names = settings.get("host"), tuple(settings.get("node_names", ()))
        return cls(
            replace(wishes(settings, settings["cpus"]), alone=settings["alone"]),
            kubeconfig_of(settings),
            settings.get("context"),
            settings.get("namespace"),
            len(names) or settings["nodes"],
            settings["destination"],
            settings["receive_threads"],
            settings["network_policies"],
            names,
            float(settings["start_timeout"]),
            None if host is None else TesterPort(host["interface"], host.get("namespace")),
        )


def _refuse_contradictions(settings: Mapping[str, Any]) -> None:
    if settings["destination"] != "host":
        if "host" in settings:
            raise WrongSetting("host", allowed="only with `destination: host`")
        return
    if "host" not in settings:
        raise WrongSetting("destination", allowed="host only with the settings `host` beside it")
    if settings["nodes"] != 1 or len(settings.get("node_names", ())) > 1:
        raise WrongSetting("nodes", allowed="1 with `destination: host`, as there is one pod")
    if settings["network_policies"]:
        raise WrongSetting("network_policies", allowed="0 with `destination: host`, as policies select pods")
