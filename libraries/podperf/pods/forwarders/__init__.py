"""Forwarders: what moves frames from one interface of a pod to the other. A new one is one file and one line here.

Data planes without pods call their forwarder `none`.
"""

from podperf.model import Chain
from podperf.pods.forwarders.base import Forwarder
from podperf.pods.forwarders.l2fwd import L2fwd
from podperf.pods.forwarders.testpmd import TestpmdForwarder

FORWARDERS: dict[str, Forwarder] = {
    "testpmd": TestpmdForwarder("io"),
    "testpmd-mac": TestpmdForwarder("mac"),
    "testpmd-macswap": TestpmdForwarder("macswap"),
    "l2fwd": L2fwd(),
}
USUAL = "testpmd"
IN_KERNEL = "kernel"  # no application: the kernel forwards between the pod's interfaces
TRANSPARENT = ("testpmd", "l2fwd")  # those that leave frames as they are


def forwarder_of(chain: Chain) -> Forwarder:
    """The application that the pods of this chain are to run."""
    return FORWARDERS[chain.forwarder or USUAL]
