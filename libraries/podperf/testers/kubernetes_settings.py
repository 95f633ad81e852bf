"""The settings of the tester whose two ports are pods of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from podperf import __version__
from podperf.kubernetes.manifests import PodWishes
from podperf.topology import Engine

IMAGE = f"localhost/podperf/pod:{__version__}"  # `podperf image build` makes it
WHOLE_IMAGE = f"localhost/podperf/whole:{__version__}"  # with podperf: `podperf image build --whole`

Destination = Literal["pod", "service"]

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
        "node_names": {
            "title": "the names of the node or of the two nodes for the pods; by default the scheduler chooses",
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
            "items": {"title": "the name of a node", **_TEXT},
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
            "default": 120,
        },
        "destination": {
            "title": "the address to which frames are sent: the other pod's, or that of a Service before it",
            "enum": ["pod", "service"],
            "default": "pod",
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
    node_names: tuple[str, ...] = ()  # of the left and the right pod, or of both; empty: the scheduler chooses
    start_timeout: float = 120.0  # seconds

    type: ClassVar[str] = "kubernetes"
    engine: ClassVar[Engine] = "packet-ring"
    runs_already: ClassVar[bool] = True  # on CPUs of the cluster's nodes, and on none of this machine's
    has_ports_of_its_own: ClassVar[bool] = True

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from `tester.settings` of a topology."""
        kubeconfig, names = settings.get("kubeconfig"), tuple(settings.get("node_names", ()))
        return cls(
            PodWishes(
                settings["image"],
                settings["pull_policy"],
                settings.get("pull_secret"),
                settings["node_selector"],
                settings["tolerations"],
                settings.get("runtime_class"),
                settings["cpus"],
                alone=settings["alone"],
            ),
            None if kubeconfig is None else str(Path(kubeconfig).expanduser()),
            settings.get("context"),
            settings.get("namespace"),
            len(names) or settings["nodes"],
            settings["destination"],
            names,
            float(settings["start_timeout"]),
        )
