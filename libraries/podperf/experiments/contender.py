"""Describes one side of an experiment: a chain, its frames, the placement of its parts, a published figure of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from podperf.cpu_lists import format_cpu_list
from podperf.figures import percent
from podperf.frames import AddressFamily
from podperf.metrics import Measured
from podperf.model import Chain, FrameSize, PageSize, l1_bit_rate, l2_bit_rate, line_rate
from podperf.testbed.scenarios import Scenario
from podperf.topology import Hook

PublishedUnit = Literal["Gbit/s", "percent of line rate"]


@dataclass(frozen=True)
class PublishedQuantity:
    """The kind of the figures of a published table. Without `unit` the table has no figures.

    `loss_ratio` is the loss goal of an NDR. None: the document gives none. `frame` is None if the document gives no
    size.
    """

    name: Literal["throughput", "NDR"]
    unit: PublishedUnit | None = None
    frame: FrameSize | None = None
    loss_ratio: float | None = None

    @property
    def sought_loss_ratio(self) -> float:
        """The loss goal of the search: the document's, or no loss, as the name "non drop rate" says."""
        return self.loss_ratio or 0.0

    def searched_with(self, frame: FrameSize) -> bool:
        """Whether a row is searched with this frame size: the quantity is an NDR, and no figure is for other frames."""
        return self.name == "NDR" and self.frame in (None, frame)

    @property
    def words(self) -> str:
        """`NDR, percent of line rate, 1518B frames, published without a loss goal`."""
        goal = f"loss of at most {percent(self.loss_ratio)}" if self.loss_ratio else "published without a loss goal"
        frames = f"{self.frame.name} frames" if self.frame else "published without a frame size"
        figures = (self.unit, frames) if self.unit else ("published without figures",)
        return ", ".join((self.name, *figures, goal))


@dataclass(frozen=True)
class BesidePublished:
    """A row of a published table: the published figure, and the figure measured here in the same unit.

    `in_unit` is None if the row cannot be told in this unit. `ratio` is `in_unit` divided by `published`; None if it
    means nothing: `remark` then says why. `rate` is in frames/s and direction.
    """

    name: str
    published: float | None
    frame: FrameSize
    rate: Measured
    l1_gigabits: float
    l2_gigabits: float
    percent_of_line_rate: float | None
    in_unit: float | None
    ratio: float | None
    remark: str


def beside_published(
    quantity: PublishedQuantity,
    name: str,
    published: float | None,
    frame: FrameSize,
    rate: Measured,
    link_bits_per_second: float | None,
) -> BesidePublished:
    """The row with `rate` in frames/s and direction. Gbit/s are counted on L2; no document says on which layer."""
    l1, l2 = (each(rate.value, frame) / 1e9 for each in (l1_bit_rate, l2_bit_rate))
    share = 100 * rate.value / line_rate(link_bits_per_second, frame) if link_bits_per_second else None
    in_unit = {"Gbit/s": l2, "percent of line rate": share, None: None}[quantity.unit]
    remark = _why_no_ratio(quantity, published, frame, in_unit) or rate.doubt
    ratio = None if remark or published is None or in_unit is None else in_unit / published
    return BesidePublished(name, published, frame, rate, l1, l2, share, in_unit, ratio, remark)


def _why_no_ratio(quantity: PublishedQuantity, published: float | None, frame: FrameSize, in_unit: float | None) -> str:
    if published is None:
        return "no figure was published"
    if quantity.frame is None:
        return "published without a frame size"
    if quantity.frame != frame:
        return f"published for {quantity.frame.name}"
    return "the ports have no link speed" if in_unit is None else ""


SMALLEST = FrameSize.parse(64)


@dataclass(frozen=True)
class WantedPlacement:
    """The CPUs of a contender's system under test: those of a scenario, or the named ones. Neither: the topology's.

    `pages` is the size of the pages of its memory. None: the usual one.
    """

    scenario: Scenario | None = None
    cpus: tuple[int, ...] | None = None
    switch_cpus: tuple[int, ...] | None = None
    pages: PageSize | None = None

    def __str__(self) -> str:
        named = {"CPUs": self.cpus, "switch on": self.switch_cpus}
        words = [self.scenario.name] if self.scenario else []
        return ", ".join([*words, *(f"{word} {format_cpu_list(cpus)}" for word, cpus in named.items() if cpus)])


@dataclass(frozen=True)
class Contender:
    """One of the set-ups that an experiment measures by turns.

    Without `flows` the topology's number is sent. `topology` is a counted machine of its own. `figure` is the published
    figure of this set-up, of the kind `quantity`.
    """

    name: str
    chain: Chain
    placement: WantedPlacement = WantedPlacement()
    hooks: tuple[Hook, ...] = ()
    topology: Path | None = None
    frame: FrameSize = SMALLEST
    flows: int | None = None
    family: AddressFamily | None = None  # of the addresses in test frames; None: the topology's
    vlan: int | None = None  # the tag of test frames; None: the topology's
    figure: float | None = None
    quantity: PublishedQuantity | None = None
    tester: Mapping[str, Any] = field(default_factory=dict, hash=False)  # settings in place of the topology's

    @property
    def traffic(self) -> str:
        """The headers of its test frames that the topology does not choose, in words. Empty without such headers."""
        tag = "" if self.vlan is None else f"VLAN {self.vlan}"
        return ", ".join(filter(None, (self.family or "", tag)))

    @classmethod
    def in_scenario(
        cls, name: str, chain: Chain, scenario: Scenario | None, frame: FrameSize = SMALLEST, flows: int | None = None
    ) -> Contender:
        """A chain in the placement of a scenario."""
        return cls(name, chain, WantedPlacement(scenario), frame=frame, flows=flows)
