"""`podperf thresholds RESULTS…`: proposes thresholds for a topology file, from the figures of runs. A person judges
them."""

from __future__ import annotations

import json
import math
import statistics
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from podperf.errors import BadArguments, ExitCode, PodperfError
from podperf.figures import number, percent
from podperf.history.changes import LEAST, LEAST_COUNTED, quantile
from podperf.history.judgement import comparable
from podperf.history.runs import PastRun, read_history, test_of
from podperf.history.trends import Row, rows_of, testbeds
from podperf.metrics import METRICS, Metric, Unit
from podperf.model import FrameSize
from podperf.records import Record


@dataclass(frozen=True)
class Bound:
    """The bound of one metric for the tests that a threshold's selectors choose; `amount` is in the record's unit.

    It is None where fewer figures of equal fingerprint can be judged than `needed`.
    """

    metric: Metric
    data_plane: str
    pods: int
    frame: FrameSize
    tests: tuple[str, ...]
    runs: int
    median: float = 0.0
    deviation: float = 0.0  # a share of the median
    amount: float | None = None


def _amount(figures: Sequence[float], metric: Metric, once_in: int) -> float:
    """The bound. A counted figure may differ from the others by its resolution, also if all others are equal."""
    least, resolution = metric.quantity.more_is_better, metric.quantity.resolution
    found = [prediction(figures, once_in, least=least)] if len(figures) >= LEAST else []
    if resolution is not None:
        reach = resolution.of(statistics.median(figures))
        found.append(min(figures) - reach if least else max(figures) + reach)
    return min(found) if least else max(found)


def needed(metric: Metric) -> int:
    """The fewest figures for a bound. One is enough if figures repeat."""
    return LEAST_COUNTED if metric.quantity.resolution else LEAST


def prediction(figures: Sequence[float], once_in: int, *, least: bool) -> float:
    """The bound that the next figure misses with a probability of 1 / `once_in`, if all are of one normal population.

    `least` asks for the lower bound. The bound is never below 0.
    """
    mean, deviation = statistics.fmean(figures), statistics.stdev(figures)
    reach = quantile(1 - 2 / once_in, len(figures) - 1) * deviation * math.sqrt(1 + 1 / len(figures))
    return max(0.0, mean - reach) if least else mean + reach


def bounds(runs: Sequence[PastRun], once_in: int) -> list[Bound]:
    """One for each metric and each choice of data plane, pods and frame.

    Tests that the selectors cannot tell apart, such as those of two forwarders, have one bound: the weakest of theirs.
    """
    newest = {test_of(each): each for run in runs for each in run.records}
    found: dict[tuple[str, str, int, str], list[Bound]] = {}
    for row in rows_of(runs):
        record = newest[row.testbed, row.suite, row.name]
        if record.chain and record.traffic:
            for metric in row.trends:
                each = _bound(row, metric, record, once_in)
                found.setdefault((each.data_plane, metric.name, each.pods, each.frame.name), []).append(each)
    return [_weakest(each) for each in found.values()]


def _bound(row: Row, metric: Metric, record: Record, once_in: int) -> Bound:
    points = row.trends[metric]
    figures = [each.judged for each in comparable(points) if each.judged is not None] if points else []
    assert record.chain is not None and record.traffic is not None
    chain, frame = record.chain, record.traffic.frame
    bound = Bound(metric, chain.data_plane, chain.pods, frame, (row.name,), len(figures))
    if len(figures) < needed(metric):
        return bound
    median = statistics.median(figures)
    return replace(
        bound,
        median=median,
        deviation=statistics.stdev(figures) / median if len(figures) > 1 else 0.0,
        amount=_amount(figures, metric, once_in),
    )


def _weakest(several: Sequence[Bound]) -> Bound:
    known = [each for each in several if each.amount is not None]
    if len(known) < len(several):
        return next(each for each in several if each.amount is None)
    choose = min if several[0].metric.quantity.more_is_better else max
    return choose(known, key=lambda each: each.amount or 0.0)


_DIGITS, _DIGITS_COUNTED = 3, 6  # significant ones of a bound
_UNITS = dict.fromkeys(unit.name for metric in METRICS.values() for unit in metric.quantity.units)


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the arguments."""
    parser.description = "Thresholds for a topology file, from the figures of several runs."
    parser.add_argument(
        "results", nargs="+", type=Path, help="results folders of runs on one testbed, or a folder of them"
    )
    parser.add_argument(
        "--once-in", type=int, default=100, metavar="N", help="let one run in N fail without a change (default: 100)"
    )
    parser.add_argument(
        "--unit",
        action="append",
        default=[],
        choices=_UNITS,
        help="the unit of the bounds on rates (default: Mpps); may be given for other figures, too",
    )


def main(chosen: Namespace) -> int:
    """Print the thresholds. Returns the exit code. Raises PodperfError without any record."""
    if chosen.once_in < 3:
        raise BadArguments("--once-in needs 3 or more runs")
    runs: dict[Path, PastRun] = {}
    for folder in dict.fromkeys(result.resolve() for result in chosen.results):
        runs |= {folder / run.name: run for run in read_history(folder).runs}
    ordered = sorted(runs.values(), key=lambda each: each.started)
    names = list(testbeds(ordered))
    if len(names) > 1:
        raise PodperfError(f"these runs are of several testbeds ({', '.join(names)}): thresholds are for one of them")
    found = bounds(ordered, chosen.once_in)
    print("\n".join(_lines(found, len(ordered), chosen.once_in, chosen.unit)))
    return ExitCode.FINE if any(each.amount is not None for each in found) else ExitCode.NOT_DONE


def _lines(found: Sequence[Bound], runs: int, once_in: int, units: Sequence[str]) -> Iterator[str]:
    yield f"# From {runs} runs. If nothing changes, a run misses each of these bounds once in {once_in} runs."
    yield "thresholds:" if any(each.amount is not None for each in found) else "thresholds: []"
    for each in found:
        if each.amount is None:
            yield f"  # {_words(each)}: {each.runs} figures that can be judged; {needed(each.metric)} are needed"
        else:
            quantity = each.metric.quantity
            median = f"{number(each.median / quantity.scale)} {quantity.unit}"
            yield f"  # {_words(each)}: median {median}, deviation {percent(each.deviation)}, {each.runs} runs"
            yield f"  - {{{_threshold(each, each.amount, _unit(each.metric, units))}}}"


def _words(bound: Bound) -> str:
    """A text in one line, because it stands in a comment. The names in it can have any characters."""
    return " ".join(f"{', '.join(bound.tests)}, {bound.metric.label}".split())


def _unit(metric: Metric, wanted: Sequence[str]) -> Unit:
    """The unit that the user wants for this metric, or the first one of its quantity."""
    units = metric.quantity.units
    return next((each for each in units if each.name in wanted), units[0])


def _threshold(bound: Bound, amount: float, unit: Unit) -> str:
    """One line of YAML. The bound is rounded to the side on which fewer runs miss it."""
    more = bound.metric.quantity.more_is_better
    exact = unit.of(amount, bound.frame)
    digits = _DIGITS_COUNTED if bound.metric.quantity.resolution else _DIGITS
    rounded = _rounded(exact, digits, up=not more)
    frame = json.dumps(bound.frame.sequence[0] if len(bound.frame.sequence) == 1 else bound.frame.name)
    selectors = f"data_plane: {json.dumps(bound.data_plane)}, pods: {bound.pods}, frame: {frame}"
    limit = f"{bound.metric.quantity.bound}: {rounded:.{digits}g}, unit: {unit.name}"
    return f"metric: {bound.metric.name}, {selectors}, {limit}"


def _rounded(value: float, digits: int, *, up: bool) -> float:
    step = 10.0 ** -(digits - 1) * 10.0 ** int(f"{value:e}".partition("e")[2])
    whole = round(value / step)
    if up and whole * step < value:
        whole += 1
    if not up and whole * step > value:
        whole -= 1
    return float(f"{whole * step:.{digits}g}")
