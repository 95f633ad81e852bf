"""Fills docs/comparison.md with the figures of a run: `.venv/bin/python docs/make_comparison.py RESULTS...`.

If a test has records in several runs, the latest record counts. The program writes the tables between the page's
markers, and a plot for each frame size into docs/images.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.figures import short
from podperf.metrics import RATE, Metric, rates
from podperf.model import Chain
from podperf.records import Figure, Record
from podperf.report import svg
from podperf.report.cells import typeset
from podperf.report.conformance import latest_of
from podperf.report.facts import environment_facts
from podperf.report.results import RunResults, explanation, figure_text, noisy, read_runs, shown
from podperf.report.summary import figure_cell

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "comparison.md"
MODELS = ("kernel-space", "user-space", "ebpf")
SIZES = ("64B", "1518B")
FACTS = ("CPU", "Virtualisation", "Distribution", "Kernel", "Placement", "podperf")
_WIDTH, _LABEL, _VALUE = 760, 200, 92
_BAR, _GAP, _GROUP_GAP = 11, 2, 12


def compared(records: Sequence[Record], size: str) -> list[Record]:
    """The records with figures for one direction and this frame size, by networking model, the fastest first."""
    found = [
        each
        for each in records
        if any(section.startswith("4.1.") for section in each.test.sections)
        and each.networking_model in MODELS
        and each.figures.get("mrr")
        and each.traffic is not None
        and each.traffic.frame.name == size
        and len(each.traffic.directions) == 1
    ]
    return sorted(found, key=lambda each: (MODELS.index(model_of(each)), chain_of(each).pods, -mrr(each)))


def model_of(record: Record) -> str:
    """The networking model of a record of a chain."""
    return str(record.networking_model)


def chain_of(record: Record) -> Chain:
    """The chain of a record with a rate."""
    assert record.chain is not None
    return record.chain


def mrr(record: Record) -> float:
    """The MRR of a record, in frames/s."""
    return record.figures["mrr"].value


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [list(heads), ["---"] * len(heads), *map(list, rows)]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines] + [""]


def figures(records: Sequence[Record]) -> list[str]:
    """One row for each chain. MRR is also a multiple of the MRR of the Linux bridge with the same number of pods."""
    bridges = {chain_of(each).pods: mrr(each) for each in records if chain_of(each).data_plane == "linux-bridge"}
    others = [each for each in shown(records) if each.quantity is not RATE]
    rows = []
    for record in records:
        chain = chain_of(record)
        bridge = bridges.get(chain.pods)
        rows.append(
            [
                model_of(record),
                f"`{chain.data_plane}`",
                str(chain.pods),
                *(figure_cell(record, each) for each in rates()),
                f"{mrr(record) / bridge:.2g} x" if bridge else "-",
                *(figure_cell(record, each) for each in others),
                "noisy" if noisy(record) else "",
            ]
        )
    heads = (
        *("model", "data plane", "pods", *(each.head for each in rates()), "MRR, bridge = 1"),
        *(f"{each.head} {typeset(each.quantity.unit)}" for each in others),
        "",
    )
    return table(heads, rows)


def filled(runs: Sequence[RunResults]) -> str:
    """The text between the markers."""
    records = latest_of(runs)
    environment = environment_facts(next(each for each in reversed(records) if each.placement))
    days = " and ".join(dict.fromkeys(run.started[:10] for run in runs))
    lines = [f"Measured on {days}:", "", *(f"- {name}: {environment[name]}" for name in FACTS), ""]
    for size in SIZES:
        if shown := compared(records, size):
            plot = DOCS / "images" / f"comparison-{size}.svg"
            plot.parent.mkdir(exist_ok=True)
            plot.write_text(comparison(shown, f"{size} frames"), encoding="utf-8")
            lines += [f"### {size} frames, kpps", "", f"![{size}](images/{plot.name})", "", *figures(shown)]
    found = [(record, each) for record in records for each in record.findings]
    if found:
        rows = [[record.test.name, each.verdict, each.detail] for record, each in found]
        lines += ["### Findings", "", *table(("claim", "verdict", "measured"), rows)]
    skipped = [each for each in records if each.outcome == "skipped"]
    if skipped:
        rows = [[each.test.name, explanation(each)] for each in skipped]
        lines += ["### Not measured here", "", *table(("test", "reason"), rows)]
    return "\n".join(lines)


def main() -> None:
    """Fill the page."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        runs, unread = read_runs([Path(each) for each in sys.argv[1:]])
        made = filled(runs)
    except PodperfError as error:
        sys.exit(str(error))
    for each in unread:
        print(f"not read: {each}", file=sys.stderr)
    page = PAGE.read_text(encoding="utf-8")
    begin, end = "<!-- begin: made by docs/make_comparison.py -->", "<!-- end -->"
    page = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n\n{made}\n{end}", page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


def comparison(records: Sequence[Record], caption: str) -> str:
    """An SVG with a group of bars for each record with rates, one bar for each rate. Empty without any rate."""
    drawn = [each for each in records if _group(each)]
    if not drawn:
        return ""
    tops = [_top(rate) for each in drawn for rate in _group(each).values()]
    scale = svg.ticks(max(*tops, 1.0), about=6)
    top, shapes = 34.0, []

    def x(rate: float) -> float:
        return _LABEL + rate / scale[-1] * (_WIDTH - _LABEL - _VALUE)

    at = top + 4
    for record, label in zip(drawn, _labels(drawn), strict=True):
        group = _group(record)
        height = len(group) * (_BAR + _GAP)
        shapes.append(svg.text(_LABEL - 8, at + height / 2 + 3, label, anchor="end"))
        for metric, rate in group.items():
            shapes += _bar(rate, metric, at, x)
            at += _BAR + _GAP
        at += _GROUP_GAP
    floor = at - _GROUP_GAP + 4
    grid = [svg.line(x(each), top, x(each), floor) for each in scale]
    numbers = [
        svg.text(x(each), floor + 15, short(each / 1e3), size=11, fill=svg.MUTED, anchor="middle") for each in scale
    ]
    unit = svg.text(_WIDTH - 6, floor + 15, "kpps", size=11, fill=svg.MUTED, anchor="end")
    metrics = [each for each in rates() if any(each in _group(record) for record in drawn)]
    head = [svg.text(0, 14, caption, weight="bold"), *_legend(metrics)]
    title = f"{caption}: {', '.join(each.label for each in metrics)}"
    return svg.document(_WIDTH, int(floor + 22), title, *grid, *head, *shapes, *numbers, unit)


def _group(record: Record) -> dict[Metric, Figure]:
    return {each: record.figures[each.name] for each in rates() if each.name in record.figures}


def _top(rate: Figure) -> float:
    return max(rate.value, rate.high or 0.0)


def _labels(records: Sequence[Record]) -> list[str]:
    """The name of each chain. If chains differ only in their forwarder, the name includes the forwarder."""
    chains = [chain_of(each) for each in records]
    labels = [str(replace(chain, forwarder=None)) for chain in chains]
    return [
        label if labels.count(label) == 1 else f"{label}, {chain.forwarder}"
        for label, chain in zip(labels, chains, strict=True)
    ]


def _bar(rate: Figure, metric: Metric, y: float, x: Callable[[float], float]) -> list[str]:
    value, low, high = rate.value, rate.low, rate.high
    end, middle = x(value), y + _BAR / 2
    words = figure_text(rate, RATE)
    shapes = [svg.box(x(0), y, end - x(0), _BAR, metric.colour, title=f"{metric.label} {words} kpps")]
    if low is not None and high is not None and high > low:
        shapes.append(svg.line(x(low), middle, x(high), middle, svg.INK, width=1.2))
        shapes += [svg.line(x(edge), middle - 3, x(edge), middle + 3, svg.INK, width=1.2) for edge in (low, high)]
        end = max(end, x(high))
    return [*shapes, svg.text(end + 6, y + _BAR - 2, words, size=10, fill=svg.MUTED)]


def _legend(metrics: Sequence[Metric]) -> list[str]:
    shapes, at = [], float(_WIDTH + 2 - 54 * len(metrics))
    for each in metrics:
        shapes += [svg.box(at, 5, 10, 10, each.colour), svg.text(at + 14, 14, each.label, size=11, fill=svg.MUTED)]
        at += 54
    return shapes


if __name__ == "__main__":
    main()
