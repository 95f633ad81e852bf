"""The claim that chains beside each other have the same rate, for one data plane (draft section 4.2.4). Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from podperf.errors import PodperfError
from podperf.figures import count, percent
from podperf.model import Chain, FrameSize
from podperf.verdicts.findings import Contender, Finding, FindingVerdict
from podperf.verdicts.service_density import Layout, Rates, ServiceDensity

LAYOUTS = ("1x1", "2x1", "1x2", "2x2", "4x1")  # chains, and pods in each chain
_LAYOUT = re.compile(r"([1-9]\d?)x([1-9]\d?)(-common)?")


@dataclass(frozen=True)
class DensityClaim:
    """Chains of the same pods beside each other forward at the same rate. No order of the layouts is claimed."""

    data_plane: str
    layouts: Sequence[str] = LAYOUTS
    relevant_difference: float = 0.05
    frame: FrameSize = FrameSize("64B", (64,))  # noqa: RUF009 - frozen
    text: str = "Chains of the same pods beside each other on the same ports forward at the same rate"
    source: str | None = None
    pairs: Sequence[tuple[int, int]] = ()
    expects_difference: bool = False
    their_figures: str = ""
    caveat: str = ""

    @property
    def name(self) -> str:
        """`service-density-linux-bridge`. The layouts follow if they are not the usual ones."""
        layouts = () if tuple(self.layouts) == LAYOUTS else self.layouts
        return "-".join(("service-density", self.data_plane, *layouts))

    @property
    def contenders(self) -> Sequence[Contender]:
        """The layouts, in the testbed's usual placement."""
        return [Contender(layout(self.data_plane, each), self.frame, label=each) for each in self.layouts]


def layout(data_plane: str, name: str) -> Chain:
    """The chains of a layout: `2x1` is two chains of one pod each. In `2x2-common`, two chains have their last pod in
    common. Raises PodperfError for any other name."""
    found = _LAYOUT.fullmatch(name)
    if found is None:
        raise PodperfError(f"{name!r} is no layout of chains: 2x1 are two chains of one pod each")
    try:
        return Chain(data_plane, int(found[2]), chains=int(found[1]), common_pod=found[3] is not None)
    except ValueError as error:
        raise PodperfError(f"{name}: {error}") from error


def judge_density(claim: DensityClaim, rounds: Sequence[Rates], limited: Sequence[bool], *, doubt: str = "") -> Finding:
    """The verdict. `rounds` has the rates of each layout, and `limited` says where the tester was the limit.

    Confirmed: in every layout the slowest chain has the rate of the fastest one, except for a difference that does not
    count. Refuted: in at least one layout it has less. With a `doubt` about the tester (in words), it is neither.
    """
    layouts = tuple(
        Layout.of(each.chain, found, limited=limit)
        for each, found, limit in zip(claim.contenders, rounds, limited, strict=True)
    )
    beside = [each for each in layouts if each.chains > 1]
    severity: tuple[FindingVerdict, ...] = ("refuted", "inconclusive", "confirmed")
    verdict = min((_verdict(each, claim.relevant_difference) for each in beside), key=severity.index)
    sentences = [*filter(None, [doubt]), *(each.words for each in beside)]
    if names := [each.name for each in beside if each.limited]:
        sentences.append(f"the tester was the limit with {', '.join(names)}, so that no chain had to lose frames")
    turns = count(len(rounds[0]), "interleaved round")
    sentences.append(f"{turns} of {claim.frame.name} frames; more than {percent(claim.relevant_difference)} counts")
    detail = "; ".join(sentences)
    found = ServiceDensity(claim.data_plane, layouts)
    return Finding(claim.text, "inconclusive" if doubt else verdict, detail, claim.source, service_density=found)


def _verdict(layout: Layout, relevant_difference: float) -> FindingVerdict:
    """Whether the slowest chain is as fast as the fastest one, except for a difference that does not count."""
    least = 1 / (1 + relevant_difference)
    if layout.high < least:
        return "refuted"
    return "confirmed" if layout.low >= least and not layout.limited else "inconclusive"
