"""Pods: the runtimes that make them, and the forwarders that run in them.

A new runtime is one file and one line here, or an entry point of another package.
"""

from podperf.pods.base import PodRuntime
from podperf.pods.netns import NamespacePods
from podperf.pods.runc import RuncPods
from podperf.third_party import with_third_party

_OWN: dict[str, type[PodRuntime]] = {"namespaces": NamespacePods, "runc": RuncPods}
POD_RUNTIMES = with_third_party("podperf.pod_runtimes", _OWN)
