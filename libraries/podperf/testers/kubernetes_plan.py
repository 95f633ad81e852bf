"""The objects of the tester in two pods, as data. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podperf.kubernetes import manifests
from podperf.kubernetes.manifests import NodeOf, PodWishes
from podperf.testers.kubernetes_settings import KubernetesSettings
from podperf.testers.pod_port import DISCARDED, command

SIDES = ("left", "right")
SERVICE_PORT = 7  # UDP, as in RFC 2544 appendix C.2.6.4; the cluster translates it to the pods' own port

Owners = Sequence[Mapping[str, Any]]


def tester_pod(side: str, run: str, owners: Owners, wishes: PodWishes, place: NodeOf | None) -> dict[str, Any]:
    """The pod that is a port of the tester. `place` relates its node to the other pod's."""
    return manifests.pod(f"tester-{side}-{run}", run, owners, command(side), wishes, place)


def service(side: str, pod: str, run: str, owners: Owners) -> dict[str, Any]:
    """A Service before one of the tester's pods."""
    return manifests.service(f"service-{side}-{run}", run, owners, manifests.PodEndpoint(pod, DISCARDED), SERVICE_PORT)


def named_nodes(settings: KubernetesSettings) -> tuple[NodeOf | None, NodeOf | None]:
    """The nodes that the topology names for the left and the right pod."""
    if not settings.node_names:
        return None, None
    return NodeOf(settings.node_names[0]), NodeOf(settings.node_names[-1])


def planned(settings: KubernetesSettings) -> list[dict[str, Any]]:
    """The objects that a run would make, for a run that is called `plan`. Only the cluster knows the first pod's node,
    and the number (uid) of the owner."""
    run, unnamed = "plan", (None, NodeOf("the-node-of-the-left-pod", other=settings.nodes > 1))
    nodes = named_nodes(settings) if settings.node_names else unnamed
    owner = manifests.anchor(run, {})
    owners = manifests.owned_by(owner["metadata"]["name"], "of-the-config-map")
    pods = [tester_pod(side, run, owners, settings.wishes, place) for side, place in zip(SIDES, nodes, strict=True)]
    services = [
        service(side, pod["metadata"]["name"], run, owners)
        for side, pod in zip(SIDES, pods, strict=True)
        if settings.destination == "service"
    ]
    name = settings.namespace or f"{manifests.PREFIX}{run}"
    objects = [owner, *pods, *services]
    for each in objects:
        each["metadata"]["namespace"] = name
    return [*([] if settings.namespace else [manifests.namespace(name, run)]), *objects]
