"""The table of networks of a cluster: as one HTML page with plots, as Markdown, and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import podperf
from podperf.experiments.host_share import NOTHING, HostShare
from podperf.figures import percent
from podperf.metrics import IN_TEXT, METRICS, ON_PAGE, Measured, Metrics, Signs
from podperf.report import svg
from podperf.report.clusters import LATENCIES
from podperf.report.html import TableRow, element, framed, plots, table
from podperf.report.results import figure_text

FIGURES = ("ndr", "pdr", "cpu_time", *LATENCIES)  # those of them it has
OF_WORDS = ("Network", "as the cluster shows it")  # the columns without numbers
HOW_TO_READ = (
    "A share is the rate of the pods divided by that of pods in the networks of the same two nodes. Both are measured "
    "by turns, and the share has the interval of the comparison (95 % confidence). An arrow in a plot is an open end "
    "of an interval. The CPU of the sending pod does the network's work for each frame, so a rate includes the cost of "
    "sending. Two networks were not up at the same time: the order of two rows is no finding. A figure with ≥ is a "
    "lower bound: the tester or the CPU of the sending pod was the limit, and the true figure may be higher. The true "
    "figure is below one with <. A search with * was cut short, and a figure with ? is in doubt. The network's own "
    "programs: idle is the first 5 seconds after the nodes are ready, in which they may still finish their start. "
    "Under load is the time of the loss-free rates and latencies, in which three pairs of pods start, each in place of "
    "the pair before it. So the CPU time of the agents also has the work for starting pods."
)


@dataclass(frozen=True)
class RowFigures:
    """The figures of one row of a suite. `reason` says why others are missing."""

    values: Metrics = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class AgentUse:
    """Memory and CPUs of the network's own programs on all nodes in some time: bytes at its end, and CPU time divided
    by the time."""

    memory: int
    cpus: float


@dataclass
class NetworkRow:
    """One network, as far as it is measured: the seconds until pods can reach each other, bytes of memory of the whole
    cluster, its shares by the way of the frames, and the figures of rows by their place. `network` is what the cluster
    shows of it. `encapsulation_bytes` are those that a frame between two nodes has more on the wire, or None if that is
    not known, and `mtu` is that of frames between two nodes. `pod_start` are the seconds from the request for a pod
    until it runs, with its network: the longer one of two pods. `agent` is what its agent uses, by the load. A network
    without an agent has none.

    `reason` says why the rest is not measured.
    """

    title: str
    ready: float = 0.0
    memory: int = 0
    shares: dict[str, HostShare] = field(default_factory=dict)
    figures: dict[str, RowFigures] = field(default_factory=dict)
    agent: dict[str, AgentUse] = field(default_factory=dict)
    seconds: float = 0.0
    network: str = ""
    encapsulation_bytes: int | None = None
    mtu: int = 0
    pod_start: float | None = None
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """In JSON types only."""
        return asdict(self)


def tables(
    rows: Sequence[NetworkRow], signs: Signs = IN_TEXT
) -> Iterator[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """The tables, each with its title, heads and rows of cells."""
    measured = [row for row in rows if row.shares or row.figures]
    ways = list(dict.fromkeys(way for row in measured for way in row.shares))
    heads = ("Network", *ways)
    yield "Share of the nodes' own network, MRR", heads, [(row.title, *_shares(row, ways)) for row in measured]
    rates = [(row.title, *(_rates(row, way) for way in ways)) for row in measured]
    yield "MRR, kpps: pods / network of their nodes", heads, rates
    for place in dict.fromkeys(place for row in measured for place in row.figures):
        names = [name for name in FIGURES if any(_found(row, place, name) for row in measured)]
        heads = ("Network", *(f"{METRICS[name].head}, {METRICS[name].quantity.unit}" for name in names))
        figures = [(row.title, *(_figure(row, place, name, signs) for name in names)) for row in measured]
        yield f"Loss-free rates and latency, {place}", heads, figures
    yield (
        "The networks",
        (
            *OF_WORDS,
            "encapsulation, B",
            "MTU",
            "ready, s",
            "pod start, s",
            "memory of the cluster, MB",
            "measured in, s",
        ),
        [
            (
                *(row.title, row.network or NOTHING),
                NOTHING if row.encapsulation_bytes is None else str(row.encapsulation_bytes),
                str(row.mtu or NOTHING),
                f"{row.ready:.0f}",
                NOTHING if row.pod_start is None else f"{row.pod_start:.1f}",
                *(f"{n:.0f}" for n in (row.memory / 1e6, row.seconds)),
            )
            for row in measured
        ],
    )
    loads = list(dict.fromkeys(load for row in measured for load in row.agent))
    heads = ("Network", *(f"{what}, {load}" for load in loads for what in ("memory, MB", "CPUs")))
    yield "The network's own programs, on both nodes", heads, [(row.title, *_agent(row, loads)) for row in measured]


def reasons(rows: Sequence[NetworkRow]) -> list[str]:
    """A sentence for each figure that is not there, or that is in doubt."""
    found = []
    for row in rows:
        named = {"": row.reason, **{way: share.reason or share.doubt for way, share in row.shares.items()}}
        named |= {f"loss-free rates and latency, {place}": figures.reason for place, figures in row.figures.items()}
        named |= {
            f"{place}, {METRICS[name].label}": each.doubt
            for place, figures in row.figures.items()
            for name, each in figures.values.items()
        }
        found += [f"{row.title}{f', {what}' if what else ''}: {reason}" for what, reason in named.items() if reason]
    return found


def _shares(row: NetworkRow, ways: Sequence[str]) -> list[str]:
    return [str(row.shares.get(way, HostShare())) for way in ways]


def _rates(row: NetworkRow, way: str) -> str:
    share = row.shares.get(way, HostShare())
    return " / ".join(f"{amount}{share.mark}" for amount in share.amounts) if share.rounds else NOTHING


def _agent(row: NetworkRow, loads: Sequence[str]) -> Iterator[str]:
    for load in loads:
        use = row.agent.get(load)
        yield from (f"{use.memory / 1e6:.0f}", f"{use.cpus:.3f}") if use else (NOTHING, NOTHING)


def _found(row: NetworkRow, place: str, name: str) -> Measured | None:
    return row.figures.get(place, RowFigures()).values.get(name)


def _figure(row: NetworkRow, place: str, name: str, signs: Signs) -> str:
    found = _found(row, place, name)
    return figure_text(found, METRICS[name].quantity, signs) if found else NOTHING


def cni_text(rows: Sequence[NetworkRow], width: int) -> str:
    """All tables as text."""
    lines: list[str] = []
    for title, heads, cells in tables(rows):
        sizes = [max(len(line[column]) for line in (heads, *cells)) for column in range(len(heads))]
        if sum(sizes) + 2 * len(sizes) > width:  # one line for each figure
            lines += [title, *(f"  {line[0]}, {head}: {cell}" for line in cells for head, cell in _pairs(heads, line))]
        else:
            lines += [title, *("  ".join(map(str.ljust, line, sizes)).rstrip() for line in (heads, *cells))]
        lines.append("")
    return "\n".join([*lines, *reasons(rows)])


def _pairs(heads: Sequence[str], line: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(heads[1:], line[1:], strict=True)


def cni_markdown(rows: Sequence[NetworkRow]) -> str:
    """All tables for a page of the documentation."""
    lines: list[str] = []
    for title, heads, cells in tables(rows):
        lines += [f"**{title}**", ""]
        lines += [f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *cells)]
        lines.append("")
    return "\n".join([*lines, *(f"- {reason}" for reason in reasons(rows))]).rstrip() + "\n"


def cni_page(rows: Sequence[NetworkRow]) -> str:
    """The whole page."""
    return framed("What a cluster's network costs", *_body(rows))


def _body(rows: Sequence[NetworkRow]) -> Iterator[Any]:
    yield element("h1", "What a cluster's network costs")
    yield element("p", HOW_TO_READ)
    ways = dict.fromkeys(way for row in rows for way in row.shares)
    yield plots(shares_plot(way, rows) for way in ways)
    for title, heads, cells in tables(rows, ON_PAGE):
        yield element("h2", title)
        yield table(heads, map(TableRow, cells), numeric=[at for at, head in enumerate(heads) if head not in OF_WORDS])
    if left_out := reasons(rows):
        yield element("h2", "Not measured, or in doubt")
        yield element("ul", *(element("li", reason) for reason in left_out))
    yield element("footer", f"podperf {podperf.__version__}")


_WIDTH, _LABEL, _BAR, _GAP, _TOP = 720, 220, 14, 8, 30


def shares_plot(way: str, rows: Sequence[NetworkRow]) -> str:
    """An SVG with a bar and an interval for each network's share. Empty without any share."""
    drawn = [(row.title, share) for row in rows if (share := row.shares.get(way, HostShare())).share is not None]
    if not drawn:
        return ""
    scale = svg.ticks(max(1.0, *(share.high or share.share or 0 for _, share in drawn)))

    def x(share: float) -> float:
        return _LABEL + min(share, scale[-1]) / scale[-1] * (_WIDTH - _LABEL - 20)

    floor = _TOP + len(drawn) * (_BAR + _GAP)
    shapes = [*svg.columns(((x(each), percent(each)) for each in scale), _TOP, floor)]
    for place, (title, share) in enumerate(drawn):
        y = _TOP + place * (_BAR + _GAP)
        middle = y + _BAR / 2
        assert share.share is not None
        shapes.append(svg.text(_LABEL - 8, middle + 4, title, anchor="end"))
        shapes.append(svg.box(x(0), y, x(share.share) - x(0), _BAR, "#364fc7", title=f"{title}: {share}"))
        left, right = x(share.low or 0.0), x(scale[-1] if share.high is None else share.high)
        shapes.append(svg.line(left, middle, right, middle, svg.INK, width=1.4))
        shapes += _end(left, middle, 0 if share.low is not None else 6)
        shapes += _end(right, middle, 0 if share.high is not None else -6)
    shapes.append(svg.line(x(1), _TOP, x(1), floor, svg.INK, dash="3 3"))
    head = svg.text(0, 14, f"{way}: share of the nodes' own network", weight="bold")
    return svg.document(_WIDTH, floor + 26, f"share of the nodes' own network, {way}", head, *shapes)


def _end(x: float, middle: float, tail: float) -> Iterator[str]:
    """An end of an interval: a line across, or an arrow with this tail at an open end."""
    yield from (svg.line(x, middle, x + tail, middle + side, svg.INK, width=1.4) for side in (-4, 4))
