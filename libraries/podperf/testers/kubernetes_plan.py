"""The objects of the tester in two pods, as data. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from podperf.kubernetes import manifests, receive_threads
from podperf.kubernetes.manifests import NodeOf, PodWishes
from podperf.testers.kubernetes_settings import KubernetesSettings
from podperf.testers.pod_port import DISCARDED, command

SIDES = ("left", "right")
SERVICE_PORT = 7  # UDP, as in RFC 2544 appendix C.2.6.4; the cluster translates it to the pods' own port
NOBODY = IPv4Address("198.18.0.0")  # the first one of the addresses for tests (RFC 2544), which no pod has

Owners = Sequence[Mapping[str, Any]]


def tester_pod(
    side: str, run: str, owners: Owners, settings: KubernetesSettings, place: NodeOf | None
) -> dict[str, Any]:
    """The pod that is a port of the tester. `place` relates its node to the other pod's."""
    security = receive_threads.WITH_NET_ADMIN if settings.receive_threads else manifests.OF_TESTER
    return manifests.pod(f"tester-{side}-{run}", run, owners, command(side), settings.wishes, place, security)


def pods_of(settings: KubernetesSettings) -> tuple[str, ...]:
    """The sides of the tester that are pods. The other side is a host outside of the cluster."""
    return SIDES if settings.host is None else SIDES[:1]


def service(side: str, pod: str, run: str, owners: Owners) -> dict[str, Any]:
    """A Service before one of the tester's pods."""
    return manifests.service(f"service-{side}-{run}", run, owners, manifests.PodEndpoint(pod, DISCARDED), SERVICE_PORT)


def thread_starter(
    side: str, run: str, owners: Owners, wishes: PodWishes, node: str, indices: Sequence[str]
) -> dict[str, Any]:
    """The pod that gives one of the tester's pods a receive thread on its node."""
    return receive_threads.starter(f"thread-{side}-{run}", run, owners, wishes, node, indices)


def policies(number: int, run: str, owners: Owners) -> Iterator[dict[str, Any]]:
    """So many NetworkPolicies for the tester's pods. The last one admits test frames. Each other one admits the same
    frames from an address of its own that nobody has, so the cluster can answer no two of them by one rule."""
    for each in range(1, number):
        nobody = {"ipBlock": {"cidr": f"{NOBODY + each}/32"}}
        yield manifests.network_policy(f"other-{each}-{run}", run, owners, nobody, DISCARDED)
    if number:
        pods_of_the_run = {"podSelector": {"matchLabels": {manifests.RUN: run}}}
        yield manifests.network_policy(f"admitting-{run}", run, owners, pods_of_the_run, DISCARDED)


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
    pods = [
        tester_pod(side, run, owners, settings, place) for side, place in zip(pods_of(settings), nodes, strict=False)
    ]
    services = [
        service(side, pod["metadata"]["name"], run, owners)
        for side, pod in zip(pods_of(settings), pods, strict=True)
        if settings.destination == "service"
    ]
    starters = [
        thread_starter(
            side, run, owners, settings.wishes, "the-node-of-its-pod", ("index-of-its-end", "index-of-the-pods-end")
        )
        for side in pods_of(settings)
        if settings.receive_threads
    ]
    name = settings.namespace or f"{manifests.PREFIX}{run}"
    objects = [owner, *pods, *services, *starters, *policies(settings.network_policies, run, owners)]
    for each in objects:
        each["metadata"]["namespace"] = name
    return [*([] if settings.namespace else [manifests.namespace(name, run)]), *objects]
