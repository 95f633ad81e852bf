"""The claims about hugepages, for one data plane (draft section 4.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from podperf.errors import PodperfError
from podperf.model import DRAFT, Chain, FrameSize, PageSize
from podperf.verdicts.findings import Contender

_BETTER = (
    "In the case of using the DPDK application, as reported in [Intel-EPA], it was verified to improve network "
    "performance because packet handling processes are running in the application together"
)
_NEGLIGIBLE = (
    "From a network benchmark point of view, however, the impact on general packet processing can be relatively "
    "negligible"
)


@dataclass(frozen=True)
class HugepagesClaim:
    """A chain whose memory is in pages of the first of `sizes` forwards more than with each next one.

    With `control`, the kernel forwards in the pods and uses no page of its own: the claim is then that the rates do not
    differ. The pages are reserved, as they are for pods that use them.
    """

    chain: Chain
    sizes: tuple[PageSize, ...]
    control: bool = False
    relevant_difference: float = 0.05
    frame: FrameSize = FrameSize("64B", (64,))  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        if len(set(self.sizes)) != len(self.sizes) or len(self.sizes) < 2:
            raise PodperfError("a claim about hugepages orders two or three different sizes: NONE, TWO_MIB, ONE_GIB")

    @property
    def name(self) -> str:
        """`hugepages-af-xdp-two-mib-none`."""
        return "-".join(("hugepages", self.chain.data_plane, *(_word(each) for each in self.sizes)))

    @property
    def text(self) -> str:
        """The words of the draft."""
        return _NEGLIGIBLE if self.control else _BETTER

    @property
    def source(self) -> str:
        """The section of the draft."""
        return f"{DRAFT}, section 4.2.2"

    @property
    def contenders(self) -> Sequence[Contender]:
        """The chain with each size of pages, on the same CPUs."""
        return [
            Contender(self.chain, self.frame, label=f"{self.chain.data_plane} with {each.words}", pages=each)
            for each in self.sizes
        ]

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """Each size and the next one."""
        return tuple(pairwise(range(len(self.sizes))))

    @property
    def expects_difference(self) -> bool:
        """Whether the claim is that the rates differ."""
        return not self.control

    @property
    def their_figures(self) -> str:
        """The draft has no figure for hugepages."""
        return ""

    @property
    def caveat(self) -> str:
        """What else there is to know of the pages."""
        if self.control:
            return "the kernel forwards in the pods: pages are reserved, and no process uses them"
        return "the kernel's own memory for frames is in ordinary pages with all sizes"


def _word(size: PageSize) -> str:
    return size.name.lower().replace("_", "-")
