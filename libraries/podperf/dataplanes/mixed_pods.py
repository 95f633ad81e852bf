"""Chains of two kinds of pods on a user-space switch: applications forward in the first ones, kernels in the others.

The applications leave frames unchanged. So a pod whose kernel forwards has the tester and other such pods as its
neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from podperf.addressing import PREFIX_LENGTH, left_of, right_of
from podperf.dataplanes.base import Worker
from podperf.errors import Unavailable
from podperf.model import Chain
from podperf.pods.base import Pod
from podperf.pods.forwarders import MIXED


def pods_in_kernel(chain: Chain) -> int:
    """How many of the chain's pods the kernel forwards for: the second half, if the chain is mixed."""
    if chain.forwarder != MIXED:
        return 0
    if chain.pods < 2 or chain.chains > 1:
        raise Unavailable(f"{chain}: a mixed chain has two pods or more, and stands alone")
    return chain.pods // 2


def start_kernel_pods(worker: Worker, chain: Chain, undo: ExitStack) -> list[Pod]:
    """The pods for which the kernel forwards, each with two veth pairs. The switch takes the other ends."""
    pods = []
    for place in range(pods_in_kernel(chain)):
        number = chain.pods - pods_in_kernel(chain) + place + 1
        pod = worker.pods.start(f"pod{number}", [], undo)
        for interface, end, address in (("net1", "a", right_of(place)), ("net2", "b", left_of(place + 1))):
            pod.add_veth(interface, worker.host, f"pod{number}{end}", worker.mtu, f"{address}/{PREFIX_LENGTH}")
            worker.host.do("ethtool", "-K", f"pod{number}{end}", "gro", "on")  # only then a veth has a receive ring
        pods.append(pod)
    return pods


def switch_ends(pods: Sequence[Pod]) -> list[str]:
    """The worker's interfaces of these pods, from left to right."""
    ends = [pod.interfaces[name].host_interface for pod in pods for name in ("net1", "net2")]
    return [each for each in ends if each is not None]
