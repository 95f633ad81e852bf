"""`podperf thresholds RESULTS…`: proposes thresholds for a topology file, from the figures of runs. A person judges
them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from podperf.errors import PodperfError
from podperf.figures import number, percent
from podperf.history.bounds import Bound, bounds
from podperf.history.changes import LEAST
from podperf.history.runs import PastRun, read_history
from podperf.history.trends import testbeds
from podperf.metrics import METRICS, Metric, Unit

_DIGITS, _DIGITS_COUNTED = 3, 6  # significant ones of a bound
_UNITS = dict.fromkeys(unit.name for metric in METRICS.values() for unit in metric.quantity.units)


def main(args: Sequence[str]) -> int:
    """Print the thresholds. Returns the exit code: 0, or 1 without any threshold. Raises PodperfError without any
    record."""
    parser = argparse.ArgumentParser(
        prog="podperf thresholds", description="Thresholds for a topology file, from the figures of several runs."
    )
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
    chosen = parser.parse_args(args)
    if chosen.once_in < 3:
        parser.error("--once-in needs 3 or more runs")
    runs: dict[Path, PastRun] = {}
    for folder in dict.fromkeys(each.resolve() for each in chosen.results):
        runs |= {folder / each.name: each for each in read_history(folder).runs}
    ordered = sorted(runs.values(), key=lambda each: each.started)
    names = list(testbeds(ordered))
    if len(names) > 1:
        raise PodperfError(f"these runs are of several testbeds ({', '.join(names)}): thresholds are for one of them")
    found = bounds(ordered, chosen.once_in)
    print("\n".join(_lines(found, len(ordered), chosen.once_in, chosen.unit)))
    return 0 if any(each.amount is not None for each in found) else 1


def _lines(found: Sequence[Bound], runs: int, once_in: int, units: Sequence[str]) -> Iterator[str]:
    yield f"# From {runs} runs. If nothing changes, a run misses each of these bounds once in {once_in} runs."
    yield "thresholds:" if any(each.amount is not None for each in found) else "thresholds: []"
    for each in found:
        if each.amount is None:
            yield f"  # {_words(each)}: {each.runs} figures that can be judged; {LEAST} are needed"
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
