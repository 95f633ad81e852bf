"""Forwarders move frames from one interface of a pod to the other one. A new forwarder is one file and one line here.

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
MIXED = "testpmd+kernel"  # testpmd in the first half of the pods, and the kernel in the others
IN_KERNEL = "kernel"  # no application: the kernel forwards between the pod's interfaces
TRANSPARENT = tuple(name for name, each in FORWARDERS.items() if each.transparent)


def application_named(forwarder: str) -> Forwarder | None:
    """The application of this forwarder. A mixed chain has one in its first pods. None if the kernel forwards."""
    return FORWARDERS.get(USUAL if forwarder == MIXED else forwarder)


def forwarder_of(chain: Chain) -> Forwarder:
    """The application for the pods of this chain that have one."""
    found = application_named(chain.forwarder or USUAL)
    assert found is not None
    return found
