"""A comparison of variants as one HTML page, as text for a terminal, and as an exit code."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Literal

import podperf
from podperf.dataplanes import with_forwarder
from podperf.errors import ExitCode
from podperf.experiments.before_after import Difference, VariantVerdict
from podperf.experiments.comparison import ComparisonOutcome, VariantResult
from podperf.experiments.ratio_interval import CONFIDENCE, ratio_estimate
from podperf.figures import count, number, percent, signed
from podperf.metrics import IN_COLUMN, Measured, Metric
from podperf.report import cells, svg
from podperf.report.cells import typeset
from podperf.report.files import write_report
from podperf.report.html import NOTHING, Content, Html, TableRow, element, facts, framed, plots, table, together
from podperf.report.summary import coloured
from podperf.report.xunit import Case
from podperf.topology import Hook


def comparison_page(result: ComparisonOutcome) -> str:
    """The whole page."""
    return framed(f"Before and after: {result.comparison.name}", *_body(result))


def _body(result: ComparisonOutcome) -> Iterator[Html]:
    yield element("h1", f"Before and after: {result.comparison.name}")
    if result.comparison.description:
        yield element("p", result.comparison.description)
    unit = cells.typeset(result.metric.quantity.unit)
    heads = ("Variant", f"{result.metric.label}, {unit}", "Change", "Verdict")
    yield table(heads, (_row(each, result) for each in result.variants), numeric=(1,)) or element(
        "p", "Nothing was measured."
    )
    for note in notes(result):
        yield element("p", note, class_="muted")
    if drawn := drawings(result):
        yield element("h2", "Round by round")
        yield element("p", _how_to_read(result), class_="muted")
        yield plots(drawn)
    if result.looked:
        yield element("h2", "Looks")
        yield _looks(result)
    yield element("h2", "What was compared")
    for variant in result.variants:
        yield _variant(variant)
    yield element("footer", f"podperf {podperf.__version__}. {_method(result)}")


def _row(each: VariantResult, result: ComparisonOutcome) -> TableRow:
    name, figures, change, words = _cells(each, result.metric)
    verdict = each.judgement.verdict if each.judgement else ""
    shown = together(cells.state(verdict), f" {words}" if words != verdict else "") if verdict else NOTHING
    return TableRow((name, figures, change, shown))


def _how_to_read(result: ComparisonOutcome) -> str:
    return (
        "A hollow dot is the change of one round, a thin line the estimate from all rounds so far, and a bar the "
        f"interval at a look. A bar within the grey band is no change larger than the {percent(result.relevant)} that "
        "count. A bar outside of the band is a change that counts. A bar across an edge of it decides nothing yet."
    )


def _looks(result: ComparisonOutcome) -> Html:
    rows = (
        TableRow(
            (
                each.variant,
                str(each.look.rounds),
                each.judgement.change.words if each.judgement.change else "-",
                percent(1 - each.look.error),
                each.judgement.words,
            )
        )
        for each in result.looked
    )
    return table(("Variant", "After rounds", "Change", "Confidence of this look", "Verdict"), rows, numeric=(1,))


def _variant(each: VariantResult) -> Html:
    variant = each.variant
    found: list[tuple[str, Content]] = [
        ("Chain", str(with_forwarder(variant.chain))),
        ("Testbed", each.topology),
        ("Record", f"records/{each.record}.json"),
        ("Figures", f"{len(each.measured)}{f', {each.noisy} on a noisy machine' if each.noisy else ''}"),
    ]
    if str(variant.placement):
        found.insert(1, ("Placement", str(variant.placement)))
    if variant.tester:
        said = ", ".join(f"{name}: {str(value).lower()}" for name, value in variant.tester.items())
        found.insert(1, ("Pods of the tester", said))
    if variant.traffic:
        found.insert(1, ("Traffic", variant.traffic))
    hooks = [_hook(hook) for hook in variant.hooks]
    return together(element("h3", variant.name), facts(found), *hooks)


def _hook(hook: Hook) -> Html:
    undo = [element("p", "Undo:"), element("pre", hook.undo.rstrip())] if hook.undo is not None else []
    where = f"{hook.moment[0].upper()}{hook.moment[1:]}, in {hook.place}:"
    return together(element("p", where), element("pre", hook.run.rstrip()), *undo)


def _method(result: ComparisonOutcome) -> str:
    if result.exact:
        return "A counted machine repeats a figure, so that one figure of each variant is enough."
    rounds = count(max((len(variant.figures) for variant in result.variants), default=0), "round")
    return (
        f"{rounds}, the order within each drawn by lot (seed {result.seed}). Intervals invert Wilcoxon's signed-rank "
        "test. "
        f"The errors of all looks add up to {percent(1 - CONFIDENCE)} at most."
    )


_WIDEST_TEXT = 120  # columns of a line that is easy to read


def comparison_table(result: ComparisonOutcome, *, width: int = 80, colour: bool = False) -> str:
    """The variants with their figures, changes and verdicts, and below how the comparison ended."""
    heads = ("Variant", f"{result.metric.head}, {result.metric.quantity.unit}", "Change", "Verdict")
    rows = [_cells(variant, result.metric) for variant in result.variants]
    sizes = [max(len(row[column]) for row in (heads, *rows)) for column in range(3)]
    lines = [_line(heads, sizes), "  ".join("-" * each for each in (*sizes, len(heads[3])))]
    for each, row in zip(result.variants, rows, strict=True):
        verdict = each.judgement.verdict if each.judgement else None
        shown = coloured(row[3], verdict) if colour and verdict else row[3]
        lines.append(_line((*row[:3], shown), sizes))
    text = [each for note in notes(result) for each in textwrap.wrap(note, min(width, _WIDEST_TEXT))]
    return "\n".join([*lines, "", *text])


def _line(cells: Sequence[str], sizes: Sequence[int]) -> str:
    name, figure, change, verdict = cells
    return f"{name.ljust(sizes[0])}  {figure.rjust(sizes[1])}  {change.ljust(sizes[2])}  {verdict}".rstrip()


def _cells(each: VariantResult, metric: Metric) -> tuple[str, str, str, str]:
    judged = each.judgement
    change = judged.change.words if judged and judged.change else "-"
    return each.variant.name, figure(each, metric), change, judged.words if judged else ""


def figure(each: VariantResult, metric: Metric) -> str:
    """The median of a variant's figures in the unit of tables; with the sign of a bound if any figure is one."""
    if not each.measured:
        return "-"
    middle = median(one.value for one in each.measured) / metric.quantity.scale
    limited = any(one.lower_bound for one in each.measured)
    return f"{IN_COLUMN.at_least if limited else ''}{number(middle)}"


def notes(result: ComparisonOutcome) -> Iterator[str]:
    """The notes below the table: the change that counts, the rounds, and why something is undecided."""
    first, counts = result.variants[0].variant.name if result.variants else "", percent(result.relevant)
    if result.exact:
        yield f"Change: beside {first}. More than {counts} counts. Each variant had a boot of the counted machine."
    else:
        rounds = max((len(variant.figures) for variant in result.variants), default=0)
        yield (
            f"Change: beside {first}, with its interval. All intervals hold together with {percent(CONFIDENCE)} "
            f"confidence. More than {counts} counts. {count(rounds, 'round')} of {result.comparison.frame.name} "
            f"frames; {_ended(result)}."
        )
    for variant in result.variants:
        if variant.judgement and variant.judgement.remark:
            yield f"{variant.variant.name}: {variant.judgement.remark}."
    yield from (f"{remark[0].upper()}{remark[1:]}." for remark in result.remarks)


def _ended(result: ComparisonOutcome) -> str:
    match result.ended:
        case "decided":
            return "then everything was decided"
        case "doubt":
            return "then it ended, as the tester is not believed"
        case "interrupted":
            return f"then it was interrupted, of at most {result.comparison.rounds}"
    return "the last of them decided nothing more"


def write_comparison(result: ComparisonOutcome, folder: Path) -> Path:
    """Write `comparison-NAME.html`, `.json` and `.xml` into a results folder. Returns the path of the page."""
    name = f"comparison-{result.comparison.name}"
    return write_report(folder.resolve(), name, result.to_json(), comparison_page(result), cases(result))


def cases(result: ComparisonOutcome) -> list[Case]:
    """Each variant but the first as a test case: a slower one has failed."""
    first = result.comparison.variants[0].name
    judged = [(each.variant.name, each.judgement) for each in result.variants if each.judgement]
    return [
        Case(
            result.comparison.name,
            f"{name} beside {first}: {result.metric.label}",
            judgement.verdict,
            "; ".join(filter(None, (judgement.change.words if judgement.change else "", judgement.remark))),
            _OUTCOMES.get(judgement.verdict, "passed"),
        )
        for name, judgement in judged
    ]


_OUTCOMES: Mapping[VariantVerdict, Literal["failure", "skipped"]] = {
    VariantVerdict.SLOWER: "failure",
    VariantVerdict.UNDECIDED: "skipped",
}


def drawings(result: ComparisonOutcome) -> list[str]:
    """The plots of the rounds, as SVG. None for exact figures."""
    return [] if result.exact else [each for each in (changes_plot(result), figures_plot(result)) if each]


def exit_code(result: ComparisonOutcome) -> int:
    """0: no variant is slower, and each has a verdict. Else the worst: slower, interrupted, undecided."""
    if result.verdict is VariantVerdict.SLOWER:
        return ExitCode.WORSE
    if result.ended == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.UNDECIDED if result.verdict is VariantVerdict.UNDECIDED else ExitCode.FINE


COLOURS = ("#364fc7", "#c2410c", "#0b7285", "#7b2cbf", "#5c940d", "#a61e4d", "#856404", "#495057")
_WIDTH, _HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 18, 34, 54
_MOST_TICKS = 10  # numbers of rounds below the axis


def figures_plot(result: ComparisonOutcome) -> str:
    """An SVG with a dot for each figure of each variant, round by round. Empty without figures."""
    values = [one.value for variant in result.variants for one in variant.measured]
    if not values:
        return ""
    metric, scale = result.metric, result.metric.quantity.scale
    frame = _Frame(
        max(len(variant.figures) for variant in result.variants), *_with_room(min(values), max(values), floor=0.0)
    )
    shapes = list(frame.axes(lambda value: number(value / scale)))
    for place, each in enumerate(result.variants):
        points = [(index, one) for index, one in enumerate(each.figures) if one is not None]
        shapes += svg.path([(frame.x(index), frame.y(one.value)) for index, one in points], COLOURS[place])
        for index, one in points:
            value = f"{one.bounded(number(one.value / scale))} {typeset(metric.quantity.unit)}"
            words = f"{each.variant.name}, round {index + 1}: {value}"
            shapes.append(
                svg.dot(frame.x(index), frame.y(one.value), 3.5, fill=COLOURS[place], stroke=svg.INK, title=words)
            )
    head = svg.text(0, 14, f"{metric.label} of each round, {typeset(metric.quantity.unit)}", weight="bold")
    names = _names(result.variants, range(len(result.variants)))
    return svg.document(_WIDTH, _HEIGHT, f"{metric.label} of each variant by round", head, *shapes, *names)


def changes_plot(result: ComparisonOutcome) -> str:
    """An SVG with the change of each round, the estimate so far, and the interval of each look. Empty without any."""
    first, *others = result.variants
    if not first.measured or not any(other.measured for other in others):
        return ""
    rounds = {other.variant.name: _changes(first, other) for other in others}
    ends = [end for each in result.looked if each.judgement.change for end in _ends(each.judgement.change)]
    values = [
        *(one for each in rounds.values() for _, one in each),
        *ends,
        1.2 * result.relevant,
        -1.2 * result.relevant,
    ]
    frame = _Frame(max(len(variant.figures) for variant in result.variants), *_with_room(min(values), max(values)))
    shapes = list(frame.axes(signed))
    top, bottom = frame.y(result.relevant), frame.y(-result.relevant)
    within = f"changes that do not count: up to {percent(result.relevant)}"
    shapes.insert(0, svg.box(_LEFT, top, _WIDTH - _LEFT - _RIGHT, bottom - top, "#f1f3f5", title=within))
    shapes.append(svg.line(_LEFT, frame.y(0), _WIDTH - _RIGHT, frame.y(0), svg.MUTED))
    for place, each in enumerate(others, start=1):
        shapes += _changes_of(result, each, rounds[each.variant.name], COLOURS[place], frame)
    head = svg.text(
        0, 14, f"Change beside {first.variant.name} in each round, and the interval at each look", weight="bold"
    )
    names = _names(result.variants, range(1, len(result.variants)))
    return svg.document(_WIDTH, _HEIGHT, f"change of {result.metric.label} by round", head, *shapes, *names)


class _Frame:
    """The axes of a plot: rounds to the right, values upwards."""

    def __init__(self, rounds: int, low: float, high: float) -> None:
        self._rounds, self._low, self._high = rounds, low, high
        self._floor = _HEIGHT - _BOTTOM

    def x(self, index: float) -> float:
        """The place of a round; the first one has the index 0."""
        return _LEFT + (index + 0.5) / self._rounds * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        """The height of a value. Values outside of the axes are at the edge."""
        held = min(self._high, max(self._low, value))
        return self._floor - (held - self._low) / (self._high - self._low) * (self._floor - _TOP)

    def axes(self, label: Callable[[float], str]) -> Iterator[str]:
        """The grid, with labels."""
        ticks = svg.range_ticks(self._low, self._high)
        yield from svg.rows(((self.y(tick), label(tick)) for tick in ticks), _LEFT, _WIDTH - _RIGHT)
        yield svg.line(_LEFT, self._floor, _WIDTH - _RIGHT, self._floor, svg.MUTED)
        step = math.ceil(self._rounds / _MOST_TICKS)
        for index in range(step - 1, self._rounds, step):
            yield svg.text(self.x(index), self._floor + 15, str(index + 1), size=11, fill=svg.MUTED, anchor="middle")
        yield svg.text(_WIDTH - _RIGHT, self._floor + 29, "round", size=11, fill=svg.MUTED, anchor="end")


def _with_room(least: float, most: float, floor: float = -math.inf) -> tuple[float, float]:
    room = 0.1 * (most - least) or 0.02 * abs(most) or 1.0
    return max(floor, least - room), most + room


def _pairs(first: VariantResult, other: VariantResult) -> list[tuple[int, Measured, Measured]]:
    """The rounds in which both were measured: index, figure of the other, figure of the first."""
    both = enumerate(zip(other.figures, first.figures, strict=True))
    return [(index, one, beside) for index, (one, beside) in both if one and beside and beside.value]


def _changes(first: VariantResult, other: VariantResult) -> list[tuple[int, float]]:
    return [(index, one.value / beside.value - 1) for index, one, beside in _pairs(first, other)]


def _ends(change: Difference) -> list[float]:
    """The ends of an interval that are not open."""
    return [end for end in (change.low, change.high) if -1 < end < math.inf]


def _changes_of(
    result: ComparisonOutcome, each: VariantResult, rounds: Sequence[tuple[int, float]], colour: str, frame: _Frame
) -> Iterator[str]:
    """The dots of a variant, the line of its estimate, and a bar for each look."""
    name, pairs = each.variant.name, _pairs(result.variants[0], each)
    estimates = [
        (
            pairs[last][0],
            ratio_estimate([one for _, one, _ in pairs[: last + 1]], [by for *_, by in pairs[: last + 1]]) - 1,
        )
        for last in range(len(pairs))
    ]
    yield from svg.path([(frame.x(index), frame.y(share)) for index, share in estimates], colour)
    for index, share in rounds:
        title = f"{name}, round {index + 1}: {signed(share)}"
        yield svg.dot(frame.x(index), frame.y(share), 3, fill="none", stroke=colour, title=title)
    for looked in result.looked:
        change = looked.judgement.change
        if looked.variant == name and change is not None:
            x, low, high = frame.x(looked.look.rounds - 1), frame.y(change.low), frame.y(change.high)
            title = f"{name} after {count(looked.look.rounds, 'round')}: {change.words}; {looked.judgement.words}"
            yield svg.box(x - 2, high, 4, max(2.0, low - high), colour, title=title)
            yield from (svg.line(x - 6, end, x + 6, end, colour, width=2) for end in (low, high))


def _names(variants: Sequence[VariantResult], places: range) -> Iterator[str]:
    """The names of the variants with their colours, below the axes."""
    return svg.legend({variants[place].variant.name: COLOURS[place] for place in places}, _LEFT, _HEIGHT - 6)
