"""Pods: the runtimes that make them, and the forwarders that run in them.

A new runtime is one file and one line here, or an entry point of another package.
"""

from podperf.pods.base import PodRuntime, RuntimeOfTestbed
from podperf.pods.engines import DEFAULT_NETWORK, DockerPods, EngineInterface, EnginePods, PodmanPods, name_interface
from podperf.pods.networks import NamespacePods
from podperf.pods.runc import RuncPods
from podperf.third_party import with_third_party
from podperf.topology import PodSettings

__all__ = [
    "DEFAULT_NETWORK",
    "POD_RUNTIMES",
    "DockerPods",
    "EngineInterface",
    "EnginePods",
    "PodRuntime",
    "PodmanPods",
    "RuntimeOfTestbed",
    "name_interface",
    "runtime_of",
]

_OWN: dict[str, type[PodRuntime]] = {
    "namespaces": NamespacePods,
    "runc": RuncPods,
    "docker": DockerPods,
    "podman": PodmanPods,
}
_ABOVE = {"kubernetes": "podperf.kubernetes.pods:KubernetesPods"}
POD_RUNTIMES = with_third_party("podperf.pod_runtimes", _OWN, _ABOVE)


def runtime_of(settings: PodSettings) -> RuntimeOfTestbed:
    """The pod runtime that a topology names, with its settings."""
    return POD_RUNTIMES[settings.runtime].of_testbed(settings.settings)
