"""Claims that a measurement can confirm or refute, as data, with their sources. A new claim is an entry in `CLAIMS`."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import MappingProxyType

from podperf.errors import PodperfError
from podperf.model import DRAFT, Chain, FrameSize
from podperf.third_party import with_third_party
from podperf.verdicts.findings import Contender


@dataclass(frozen=True)
class Claim:
    """A claim, and the chains that can show it.

    `sections` are the draft's sections of the chains. `chains` are in the order of the claim, the fastest first.
    `source` is the document that makes the claim, with the place in it, and `text` has its words. Without a source, the
    claim is podperf's own expectation. A difference counts if the rates differ by more than `relevant_difference`
    (0.05: 5 %). `their_figures` are the source's own figures in words, or empty. `caveat` names other differences
    between the chains.
    """

    name: str
    sections: tuple[str, ...]
    text: str
    chains: tuple[Chain, ...]
    source: str | None = None
    frame: FrameSize = FrameSize("64B", (64,))  # noqa: RUF009 - frozen
    relevant_difference: float = 0.05
    their_figures: str = ""
    caveat: str = ""
    expects_difference: bool = True

    def __post_init__(self) -> None:
        if len(set(self.chains)) != len(self.chains) or len(self.chains) < 2:
            raise ValueError(f"{self.name}: a claim orders two or more different chains")

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """The claim's chains, in the testbed's usual placement."""
        return tuple(Contender(chain, self.frame) for chain in self.chains)

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Each chain and the next one."""
        return tuple(itertools.pairwise(range(len(self.chains))))


HACKATHON = "BMWG: Containerized Infrastructure Benchmarking, IETF 113 hackathon, slide What we learned"

_KERNEL_IS_SLOWER = (
    "This design makes networking performance worse than other networking models which utilize packet acceleration "
    "techniques"
)

_MEMIF_IS_FASTER = (
    "vpp-memif has better performance that OVS-DPDK, which is came from the difference in the way to forward packets "
    "between vswitch and pod"
)


def _falls_with_length(data_plane: str, *pods: int) -> Claim:
    """Chains of these lengths: each forwards more than the next one."""
    return Claim(
        f"{data_plane}-by-length",
        ("4.2.4",),
        "A longer chain forwards less, because every pod of it handles every frame",
        tuple(Chain(data_plane, each) for each in pods or (1, 2, 4, 6)),
    )


_CLAIMS = (
    Claim(
        "macvlan-over-bridge",
        ("4.1", "4.1.1"),
        "MACVLAN forwards more than a Linux bridge, because its frames cross neither a veth pair nor a bridge's table",
        (Chain("macvlan", 1), Chain("linux-bridge", 1)),
        caveat="section 4.1.1 of the draft names both, and states no order between them",
    ),
    Claim(
        "shorter-chains-over-longer",
        ("4.2.4",),
        "Increase number of pod slightly reduce throughput 2% at small packet size (64,128)",
        (Chain("linux-bridge", 1), Chain("linux-bridge", 2), Chain("linux-bridge", 4)),
        HACKATHON,
        their_figures="2 % at 64 and 128 B",
        caveat="the slide is about chains of 2, 4 and 6 pods with SR-IOV and VPP",
    ),
    Claim(
        "ovs-dpdk-over-bridge",
        ("4.1.2",),
        "it can achieve high-rate packet processing than a kernel-space network with limited packet throughput",
        (Chain("ovs-dpdk", 1), Chain("linux-bridge", 1)),
        f"{DRAFT}, section 4.1.2",
        caveat="the polling threads of OVS-DPDK want a CPU each, and take turns where there are fewer",
    ),
    Claim(
        "vpp-memif-over-ovs-dpdk",
        ("4.1.2", "C.5"),
        _MEMIF_IS_FASTER,
        (Chain("vpp-l2patch", 2), Chain("ovs-dpdk", 2)),
        f"{DRAFT}, section C.5",
        frame=FrameSize("1518B", (1518,)),
        their_figures="59.96 to 33.47 % of line rate against 21.29 to 6.32 %, 2.6 to 7.1 times as much, in the six "
        "placements of appendix C.3",
    ),
    Claim(
        "memif-over-vhost-user",
        ("4.1.2",),
        _MEMIF_IS_FASTER,
        (Chain("memif", 2), Chain("ovs-dpdk", 2)),
        f"{DRAFT}, section C.5",
        frame=FrameSize("1518B", (1518,)),
        caveat="C.5 is about VPP; here memif joins the pods without a switch between them, OVS-DPDK is one",
    ),
    Claim(
        "tc-redirect-over-bridge",
        ("4.1.1", "4.1.3"),
        _KERNEL_IS_SLOWER,
        (Chain("tc-redirect", 1), Chain("linux-bridge", 1)),
        f"{DRAFT}, section 4.1.1",
    ),
    Claim(
        "tc-redirect-peer-over-tc-redirect",
        ("4.1.3",),
        "In case of Cilium CNI, context-switching process to the pod network namespace can also be bypassed",
        (Chain("tc-redirect-peer", 1), Chain("tc-redirect", 1)),
        f"{DRAFT}, section 4.1.3",
    ),
    Claim(
        "xdp-redirect-over-bridge",
        ("4.1.1", "4.1.3"),
        _KERNEL_IS_SLOWER,
        (Chain("xdp-redirect", 1), Chain("linux-bridge", 1)),
        f"{DRAFT}, section 4.1.1",
    ),
    Claim(
        "af-xdp-over-af-packet",
        ("4.1.3",),
        "This tunnel bypasses the network stack in kernel space to provide high-performance raw packet networking",
        (Chain("ovs-afxdp", 1), Chain("ovs-netdev", 1)),
        f"{DRAFT}, section 4.1.3",
        caveat="switch and pods are the same, but a thread polls AF_XDP ports; no thread polls AF_PACKET ports",
    ),
    *map(
        _falls_with_length,
        (
            *("linux-bridge", "ptp", "macvlan", "ipvlan", "routed", "ipip", "docker", "service", "routed-policy"),
            *("ovs-kernel", "ovs-dpdk", "ovs-netdev", "vpp-l2patch", "vpp-bridge-domain", "vpp-vrf"),
            *("tc-redirect", "tc-redirect-peer", "xdp-redirect", "af-xdp", "af-xdp-busy-poll", "ovs-afxdp"),
        ),
    ),
    _falls_with_length("memif", 2, 4, 6),  # two pods at least, because memif joins pods to each other
)

CLAIMS = MappingProxyType(with_third_party("podperf.claims", {each.name: each for each in _CLAIMS}))


def claim_named(name: str) -> Claim:
    """The claim of this name. For an unknown name, raises PodperfError with a list of all names."""
    try:
        return CLAIMS[name]
    except KeyError:
        raise PodperfError(f"there is no claim {name!r}; choose one of: {', '.join(CLAIMS)}") from None
