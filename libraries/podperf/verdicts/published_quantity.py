"""A published figure beside a measured one, in the unit of the publication. Pure. docs/appendices.md explains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from podperf.figures import percent
from podperf.metrics import Measured
from podperf.model import FrameSize, l1_bit_rate, l2_bit_rate, line_rate

PublishedUnit = Literal["Gbit/s", "percent of line rate"]


@dataclass(frozen=True)
class PublishedQuantity:
    """What the figures of a published table are.

    `loss_ratio` is the loss goal of an NDR. None: the document gives none. `frame` is the size of the frames of the
    figures, and None if the document gives no size. Without `unit` the table has no figures.
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

    `in_unit` is None if the row cannot be told in this unit. `ratio` is `in_unit` divided by `published`. It is None if
    one of them is, or if the figures are for other frames; `remark` then says why. `rate` is in frames/s and direction.
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
    remark = _why_no_ratio(quantity, published, frame, in_unit)
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
