"""The settings of a topology for a cluster: the login, and what all pods there have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from podperf import __version__
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.rights import Right

IMAGE = f"localhost/podperf/pod:{__version__}"  # `podperf image build` makes it
DPDK_IMAGE = f"localhost/podperf/dpdk:{__version__}"  # with DPDK's testpmd: `podperf image build --dpdk`
WHOLE_IMAGE = f"localhost/podperf/whole:{__version__}"  # with podperf: `podperf image build --whole`

SecurityLevel = Literal["privileged", "baseline", "restricted"]  # from the one that allows most to the strictest
SECURITY_LEVELS: tuple[SecurityLevel, ...] = get_args(SecurityLevel)

TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}
PROPERTIES: Mapping[str, Any] = {
    "kubeconfig": {"title": "a file with a login to the cluster", **TEXT},
    "context": {"title": "a context of the kubeconfig", **TEXT},
    "namespace": {"title": "a namespace for the pods, if the login may not make one", **TEXT},
    "image": {"title": "the image of the pods", "default": IMAGE, **TEXT},
    "pull_policy": {
        "title": "when the nodes fetch the image",
        "enum": ["Always", "IfNotPresent", "Never"],
        "default": "IfNotPresent",
    },
    "pull_secret": {"title": "a secret of the namespace for the registry", **TEXT},
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
    "runtime_class": {"title": "a runtime class", **TEXT},
}


@dataclass(frozen=True)
class ClusterSettings:
    """A login to a cluster, and what all pods there have in common. `key` has these settings in the topology."""

    wishes: PodWishes
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None

    key: ClassVar[str]

    @property
    def security_level(self) -> SecurityLevel:
        """The strictest pod security level that all pods satisfy."""
        return "restricted"

    @property
    def devices(self) -> Collection[str]:
        """The resources of device plug-ins that pods may ask for."""
        return self.wishes.further

    @property
    def further_rights(self) -> tuple[Right, ...]:
        """The rights in the namespace that a run needs beside those of every run."""
        return ()


def wishes(settings: Mapping[str, Any], cpus: int | None) -> PodWishes:
    """The settings for all pods. `cpus` is that of PodWishes."""
    return PodWishes(
        settings["image"],
        settings["pull_policy"],
        settings.get("pull_secret"),
        settings["node_selector"],
        settings["tolerations"],
        settings.get("runtime_class"),
        cpus,
    )


def kubeconfig_of(settings: Mapping[str, Any]) -> str | None:
    """The path of the kubeconfig. None: podperf looks for it."""
    found = settings.get("kubeconfig")
    return None if found is None else str(Path(found).expanduser())
