"""A plot of rates over the number of pods in a chain: a line for each data plane."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from podperf.dataplanes import DATA_PLANES
from podperf.experiments.chain_length import ChainLengths
from podperf.figures import count, kpps, percent, short
from podperf.model import NetworkingModel
from podperf.records import Record
from podperf.report import svg

COLOURS: Mapping[NetworkingModel, str] = MappingProxyType(
    {
        NetworkingModel.KERNEL_SPACE: "#364fc7",
        NetworkingModel.USER_SPACE: "#c2410c",
        NetworkingModel.EBPF: "#0b7285",
        NetworkingModel.SMART_NIC: "#7b2cbf",
        NetworkingModel.COMBINATION: "#5c940d",
        NetworkingModel.NONE: "#495057",  # also of a data plane that this version does not know
    }
)
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 66, 190, 34, 70
_LEAST_HEIGHT = 180  # pixels of the axes
_LABEL = 14  # pixels of a name beside the end of its line


@dataclass(frozen=True)
class Line:
    """The chains of one data plane: pods, rates in frames/s and direction, and the words for a further pod."""

    name: str
    pods: tuple[int, ...]
    rates: tuple[float, ...]
    words: str

    @property
    def model(self) -> NetworkingModel:
        """The networking model of the data plane. NONE if this version does not know the data plane."""
        kind = DATA_PLANES.get(self.name)
        return NetworkingModel.NONE if kind is None else kind.model

    @property
    def colour(self) -> str:
        """The colour of the networking model."""
        return COLOURS[self.model]


def lines_of(records: Sequence[Record]) -> list[Line]:
    """The lines of these records, the highest last rate first. Of two lines of one data plane, the longer one."""
    found: dict[str, Line] = {}
    for each in (finding.chain_lengths for record in records for finding in record.findings):
        if each is not None and len(each.pods) == len(each.rates):
            line = _line(each)
            known = found.get(line.name)
            if known is None or len(line.pods) > len(known.pods):
                found[line.name] = line
    return sorted(found.values(), key=lambda each: -each.rates[-1])


def _line(found: ChainLengths) -> Line:
    low, high = ("open" if math.isinf(end) else percent(end) for end in (found.low, found.high))
    words = f"each further pod takes {percent(found.estimate)} ({low} to {high})"
    return Line(found.data_plane, found.pods, found.rates, words)


def chain_length_plot(records: Sequence[Record]) -> str:
    """An SVG. Empty if no record is about chains of several lengths.

    The axis of rates is logarithmic: where each pod takes the same share of the rate, the line is straight.
    """
    lines = lines_of(records)
    if not lines:
        return ""
    frame = _Frame(lines)
    shapes = list(frame.axes())
    for each, height in zip(lines, frame.label_heights(lines), strict=True):
        points = [(frame.x(pods), frame.y(rate)) for pods, rate in zip(each.pods, each.rates, strict=True)]
        shapes += svg.path(points, each.colour, width=1.6)
        for (x, y), pods, rate in zip(points, each.pods, each.rates, strict=True):
            title = f"{each.name}, {count(pods, 'pod')}: {kpps(rate)} kpps; {each.words}"
            shapes.append(svg.dot(x, y, 3.5, fill=each.colour, stroke=svg.INK, title=title))
        end, y = points[-1]
        shapes.append(svg.line(end + 6, y, frame.edge + 10, height - 4, each.colour, dash="2 2"))
        shapes.append(svg.text(frame.edge + 14, height, each.name, size=11, fill=each.colour))
    head = svg.text(0, 14, "Rate by the number of pods, kpps per direction", weight="bold")
    drawn = [model for model in COLOURS if any(line.model is model for line in lines)]
    names = {"other" if model is NetworkingModel.NONE else str(model): COLOURS[model] for model in drawn}
    shapes += svg.legend(names, _LEFT, frame.height - 8)
    return svg.document(_WIDTH, frame.height, "rate of each data plane by the number of pods", head, *shapes)


class _Frame:
    """The axes: pods to the right, rates upwards."""

    edge = _WIDTH - _RIGHT  # where the axes end, and names begin

    def __init__(self, lines: Sequence[Line]) -> None:
        self._pods = sorted({pods for line in lines for pods in line.pods})
        rates = [rate for line in lines for rate in line.rates]
        self._low, self._high = min(rates) / 1.3, max(rates) * 1.3
        self._floor = _TOP + max(_LEAST_HEIGHT, len(lines) * _LABEL)
        self.height = self._floor + _BOTTOM

    def x(self, pods: int) -> float:
        """The place of a number of pods."""
        first, last = self._pods[0], self._pods[-1]
        return _LEFT + 16 + (pods - first) / (last - first) * (self.edge - _LEFT - 32)

    def y(self, rate: float) -> float:
        """The height of a rate."""
        share = math.log(rate / self._low) / math.log(self._high / self._low)
        return self._floor - share * (self._floor - _TOP)

    def axes(self) -> Iterator[str]:
        """The grid, with labels."""
        ticks = svg.log_ticks(self._low, self._high)
        yield from svg.rows(((self.y(tick), short(tick / 1e3)) for tick in ticks), _LEFT, self.edge)
        yield svg.line(_LEFT, self._floor, self.edge, self._floor, svg.MUTED)
        yield from svg.columns(((self.x(pods), str(pods)) for pods in self._pods), _TOP, self._floor)
        yield svg.text(self.edge, self._floor + 32, "pods in the chain", size=11, fill=svg.MUTED, anchor="end")

    def label_heights(self, lines: Sequence[Line]) -> list[float]:
        """The height of each name, from the top: as near to the end of its line as the other names allow."""
        wanted = [self.y(line.rates[-1]) + 4 for line in lines]
        heights: list[float] = []
        for height in wanted:
            heights.append(max(height, heights[-1] + _LABEL) if heights else max(height, _TOP + 4.0))
        lowest = self._floor + 4.0
        for place in reversed(range(len(heights))):
            heights[place] = min(heights[place], lowest)
            lowest = heights[place] - _LABEL
        return heights
