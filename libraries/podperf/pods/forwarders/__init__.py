"""Forwarders: what moves frames from one interface of a pod to the other. A new one is one file and one line here.

Data planes whose pods forward in the kernel call that `kernel`, and those without pods `none`.
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
TRANSPARENT = ("testpmd", "l2fwd")  # those that leave frames as they are


def forwarder_of(chain: Chain) -> Forwarder:
    """The application that the pods of this chain are to run."""
    return FORWARDERS[chain.forwarder or USUAL]
