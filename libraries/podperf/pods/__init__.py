"""Pods: the runtimes that make them, and the forwarders that run in them.

A new runtime is one file and one line here, or an entry point of another package.
"""

from collections.abc import Iterator

from podperf.kubernetes.settings import ClusterSettings
from podperf.pods.base import PodRuntime, RuntimeOfTestbed
from podperf.pods.kubernetes import KubernetesPods
from podperf.pods.netns import NamespacePods
from podperf.pods.runc import RuncPods
from podperf.third_party import with_third_party
from podperf.topology import PodSettings, Topology

_OWN: dict[str, type[PodRuntime]] = {"namespaces": NamespacePods, "runc": RuncPods, "kubernetes": KubernetesPods}
POD_RUNTIMES = with_third_party("podperf.pod_runtimes", _OWN)


def runtime_of(settings: PodSettings, *, imaginary: bool = False) -> RuntimeOfTestbed:
    """The pod runtime that a topology names, with its settings. `imaginary`: for a plan, which asks nobody."""
    return POD_RUNTIMES[settings.runtime].of_testbed(settings.settings, imaginary=imaginary)


def clusters_of(topology: Topology) -> Iterator[ClusterSettings]:
    """The clusters in which the ports of the tester and the pods of chains are."""
    for settings in (topology.tester.kind, runtime_of(topology.pods).cluster):
        if isinstance(settings, ClusterSettings):
            yield settings
