"""The settings of the tester whose two ports are pods of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from podperf import __version__
from podperf.kubernetes.manifests import PodWishes
from podperf.testers.base import TesterPort
from podperf.topology import Engine, WrongSetting

IMAGE = f"localhost/podperf/pod:{__version__}"  # `podperf image build` makes it

MOST_POLICIES = 10_000  # each one takes a request to the API server

Destination = Literal["pod", "service", "host"]

_TEXT = {"type": "string", "minLength": 1}
SCHEMA: Mapping[str, Any] = {
    "additionalProperties": False,
    "properties": {
        "kubeconfig": {"title": "a file with a login to the cluster", **_TEXT},
        "context": {"title": "a context of the kubeconfig", **_TEXT},
        "namespace": {"title": "a namespace for the pods, if the login may not make one", **_TEXT},
        "image": {"title": "the image of the pods", "default": IMAGE, **_TEXT},
        "pull_policy": {
            "title": "when the nodes fetch the image",
            "enum": ["Always", "IfNotPresent", "Never"],
            "default": "IfNotPresent",
        },
        "pull_secret": {"title": "a secret of the namespace for the registry", **_TEXT},
        "node_selector": {
            "title": "labels of the nodes",
            "type": "object",
            "additionalProperties": {"title": "value of a label", "type": "string"},
            "default": {},
        },
        "tolerations": {
            "title": "tolerations of the pods, as in a pod's specification",
            "type": "array",
            "items": {"title": "a toleration", "type": "object"},
            "default": [],
        },
        "runtime_class": {"title": "a runtime class", **_TEXT},
        "nodes": {"title": "the number of nodes on which the two pods are", "enum": [1, 2], "default": 1},
        "destination": {
            "title": "the address to which frames are sent: the other pod's, that of a Service before it, or a host's",
            "enum": ["pod", "service", "host"],
            "default": "pod",
        },
        "host": {
            "title": "an interface of the tester's machine, outside of the cluster, for `destination: host`",
            "type": "object",
            "additionalProperties": False,
            "required": ["interface"],
            "properties": {
                "interface": {"title": "an interface with an IPv4 address", **_TEXT},
                "namespace": {"title": "the network namespace of the interface", **_TEXT},
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
class KubernetesSettings:
    """A login to a cluster, and what all pods there have in common."""

    wishes: PodWishes
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    nodes: int = 1  # on which the two pods are
    destination: Destination = "pod"
    network_policies: int = 0
    host: TesterPort | None = None  # of the tester's machine, for the destination `host`

    type: ClassVar[str] = "kubernetes"
    engine: ClassVar[Engine] = "packet-ring"
    has_ports_of_its_own: ClassVar[bool] = True

    @property
    def runs_already(self) -> bool:
        """See KindSettings. Pods run on CPUs of the cluster's nodes, and on none of the tester's machine."""
        return self.host is None

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from `tester.settings` of a topology. WrongSetting for settings that contradict each other."""
        kubeconfig, host = settings.get("kubeconfig"), settings.get("host")
        _refuse_contradictions(settings)
        return cls(
            PodWishes(
                settings["image"],
                settings["pull_policy"],
                settings.get("pull_secret"),
                settings["node_selector"],
                settings["tolerations"],
                settings.get("runtime_class"),
                settings["cpus"],
            ),
            None if kubeconfig is None else str(Path(kubeconfig).expanduser()),
            settings.get("context"),
            settings.get("namespace"),
            settings["nodes"],
            settings["destination"],
            settings["network_policies"],
            None if host is None else TesterPort(host["interface"], host.get("namespace")),
        )


def _refuse_contradictions(settings: Mapping[str, Any]) -> None:
    if settings["destination"] != "host":
        if "host" in settings:
            raise WrongSetting("host", allowed="only with `destination: host`")
        return
    if "host" not in settings:
        raise WrongSetting("destination", allowed="host only with the settings `host` beside it")
    if settings["nodes"] != 1:
        raise WrongSetting("nodes", allowed="1 with `destination: host`, as there is one pod")
    if settings["network_policies"]:
        raise WrongSetting("network_policies", allowed="0 with `destination: host`, as policies select pods")
