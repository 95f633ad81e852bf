"""A comparison of variants as text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from statistics import median

from podperf.comparisons.result import ComparisonOutcome, VariantResult
from podperf.figures import count, number, percent
from podperf.metrics import IN_COLUMN, Metric
from podperf.verdicts.before_after import VariantVerdict
from podperf.verdicts.ratio_interval import CONFIDENCE

_COLOURS = {
    VariantVerdict.SLOWER: "31;1",
    VariantVerdict.UNDECIDED: "33",
    VariantVerdict.NO_DIFFERENCE: "32",
    VariantVerdict.FASTER: "32",
}
_WIDEST_TEXT = 120  # columns of a line that is easy to read


def comparison_table(result: ComparisonOutcome, *, width: int = 80, colour: bool = False) -> str:
    """The variants with their figures, changes and verdicts, and below how the comparison ended."""
    heads = ("Variant", _head(result.metric), "Change", "Verdict")
    rows = [_cells(each, result.metric) for each in result.variants]
    sizes = [max(len(row[column]) for row in (heads, *rows)) for column in range(3)]
    lines = [_line(heads, sizes), "  ".join("-" * each for each in (*sizes, len(heads[3])))]
    for each, row in zip(result.variants, rows, strict=True):
        verdict = each.judgement.verdict if each.judgement else None
        shown = f"\x1b[{_COLOURS[verdict]}m{row[3]}\x1b[0m" if colour and verdict else row[3]
        lines.append(_line((*row[:3], shown), sizes))
    text = [each for note in notes(result) for each in textwrap.wrap(note, min(width, _WIDEST_TEXT))]
    return "\n".join([*lines, "", *text])


def _head(metric: Metric) -> str:
    return f"{metric.head}, {metric.quantity.unit}"


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
        rounds = max((len(each.figures) for each in result.variants), default=0)
        yield (
            f"Change: beside {first}, with its interval. All intervals hold together with {percent(CONFIDENCE)} "
            f"confidence. More than {counts} counts. {count(rounds, 'round')} of {result.comparison.frame.name} "
            f"frames; {_ended(result)}."
        )
    for each in result.variants:
        if each.judgement and each.judgement.remark:
            yield f"{each.variant.name}: {each.judgement.remark}."
    yield from (f"{each[0].upper()}{each[1:]}." for each in result.remarks)


def _ended(result: ComparisonOutcome) -> str:
    match result.ended:
        case "decided":
            return "then everything was decided"
        case "doubt":
            return "then it ended, as the tester is not believed"
        case "interrupted":
            return f"then it was interrupted, of at most {result.comparison.rounds}"
    return "the last of them decided nothing more"
