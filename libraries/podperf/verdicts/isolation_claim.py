"""The claim that isolated CPUs keep a noisy neighbour away, for one data plane (draft section 4.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from podperf.errors import PodperfError
from podperf.figures import short
from podperf.model import DRAFT, Chain, FrameSize
from podperf.testbed.neighbour import NeighbourKind
from podperf.testbed.scenarios import CpuIsolation, Node, Scenario
from podperf.verdicts.findings import Contender
from podperf.verdicts.published_files import published_table

_THEIRS = "appendix_b_sriov_dpdk"
_MODES = {CpuIsolation.EXCLUSIVE: "exclusive", CpuIsolation.SHARED: "shared", CpuIsolation.NONE: "without CMK"}


@dataclass(frozen=True)
class IsolationClaim:
    """A chain of one pod forwards most at the first of `levels`, and less at each next one, beside a neighbour.

    Each level is also measured without the neighbour. The claim does not order these rates (see Order).
    """

    data_plane: str
    neighbour: NeighbourKind
    levels: tuple[CpuIsolation, ...]
    relevant_difference: float = 0.05
    frame: FrameSize = FrameSize("64B", (64,))  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        if len(set(self.levels)) != len(self.levels) or len(self.levels) < 2:
            raise PodperfError("a claim about isolation orders two or three different levels: EXCLUSIVE, SHARED, NONE")

    @property
    def name(self) -> str:
        """`isolation-af-xdp-busy-exclusive-none`."""
        words = (self.data_plane, self.neighbour.replace(" ", "-"), *(each.name.lower() for each in self.levels))
        return "-".join(("isolation", *words))

    @property
    def text(self) -> str:
        """The words of the draft."""
        return 'CPU pinning … This technology is very effective in avoiding the "noisy neighbor" problem'

    @property
    def source(self) -> str:
        """The section of the draft."""
        return f"{DRAFT}, section 4.2.1"

    @property
    def contenders(self) -> Sequence[Contender]:
        """Each level alone, and then beside the neighbour."""
        return [self._contender(level, beside) for level in self.levels for beside in (None, self.neighbour)]

    def _contender(self, level: CpuIsolation, neighbour: NeighbourKind | None) -> Contender:
        word = level.name.lower()
        label = f"{word}, alone" if neighbour is None else f"{word}, beside a {neighbour}"
        label += " neighbour" if neighbour is NeighbourKind.BUSY else ""
        # A pod whose CPUs are its own goes before others there. Where nobody manages CPUs, it is one process of many.
        own = level is CpuIsolation.EXCLUSIVE
        scenario = Scenario(label, Node.ANY, (Node.ANY,), level, neighbour, precedence=own)
        return Contender(Chain(self.data_plane, 1), self.frame, scenario, label)

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """Each level and the next one, beside the neighbour."""
        return [(2 * one + 1, 2 * other + 1) for one, other in pairwise(range(len(self.levels)))]

    @property
    def expects_difference(self) -> bool:
        """The levels rank."""
        return True

    @property
    def their_figures(self) -> str:
        """The figures that the draft published for these levels."""
        table = published_table(_THEIRS)
        figures = {row.name: row.figure for row in table.rows}
        shown = ", ".join(f"{each.name.lower()} {short(figures[_MODES[each]] or 0)}" for each in self.levels)
        return f"{shown} {table.quantity.unit} ({table.section}, SR-IOV with DPDK, without a word about neighbours)"

    @property
    def caveat(self) -> str:
        """What else differs between the levels."""
        return (
            "at other levels than exclusive the pod is an ordinary process: its pollers do not take turns, and its "
            "receive threads have no precedence, as the rates without a neighbour show"
        )
