"""Lists the parts of podperf's own cluster. A new part is a file in this folder, and a line in NETWORKS or in PARTS."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TypeVar

from podperf.cluster.layout import ClusterNetwork, ClusterPart, ClusterPrograms
from podperf.cluster.parts.bird import Bird
from podperf.cluster.parts.cilium import Cilium
from podperf.cluster.parts.flannel import Flannel
from podperf.cluster.parts.kube_proxy import KubeProxy
from podperf.cluster.parts.kube_router import KubeRouter
from podperf.cluster.parts.multus import Multus
from podperf.cluster.parts.network_policies import NetworkPolicies
from podperf.cluster.parts.ovn import Ovn
from podperf.cluster.parts.plain import Plain
from podperf.cluster.programs import KUBERNETES, PACKAGES, built, unpacked
from podperf.errors import BadArguments
from podperf.hosts.base import Host

Part = TypeVar("Part", bound=ClusterPart)
NETWORKS: tuple[type[ClusterNetwork], ...] = (Plain, Flannel, Cilium, KubeRouter, Bird, Ovn)  # the first: the default
PARTS: tuple[type[ClusterPart], ...] = (KubeProxy, NetworkPolicies, Multus)  # in the order of their start
ALL_NETWORKS = tuple(kind(mode=mode) for kind in NETWORKS for mode in kind.modes)
DEFAULT = ALL_NETWORKS[0]


def network_named(wanted: str) -> ClusterNetwork:
    """The network for this value of `cluster up --network`: a name, or NAME:MODE. BadArguments if there is none."""
    for each in ALL_NETWORKS:
        if wanted in {each.title, each.name}:  # the first mode of a name is the default
            return each
    raise BadArguments(
        f"there is no network {wanted!r}; choose one of {', '.join(each.title for each in ALL_NETWORKS)}"
    )


def chosen(network: ClusterNetwork, options: Collection[str]) -> list[ClusterPart]:
    """The parts of a cluster beside its network. BadArguments if the network does not take one of these options."""
    for option in options:
        if option not in network.takes:
            able = ", ".join(each.title for each in ALL_NETWORKS if option in each.takes)
            raise BadArguments(f"--{option} does not go with --network {network.title}, but with {able}")
    kinds = (kind for kind in PARTS if kind.option is None or kind.option[0] in options)
    return [kind() for kind in kinds if kind.name not in network.replaces()]


def ready_programs(
    host: Host, say: Callable[[str], None], options: Collection[str] = (), network: ClusterNetwork = DEFAULT
) -> ClusterPrograms:
    """All programs of a cluster with this network and these options of `cluster up`, from the cache, or made now.

    Unavailable, with the remedy, if something for it is missing here.
    """
    others = chosen(network, options)
    for part in (network, *others):
        part.demand(host)

    def with_programs(part: Part) -> Part:
        debian = unpacked(host, part.packages, say, part.links) if part.packages else None
        return replace(part, debian=debian, programs=tuple(built(host, module, say) for module in part.modules))

    debian, kubernetes = unpacked(host, PACKAGES, say), built(host, KUBERNETES, say)
    return ClusterPrograms(debian, kubernetes, with_programs(network), tuple(map(with_programs, others)))
