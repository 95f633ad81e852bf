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

_DIGITS = 3  # significant ones of a bound


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
    print("\n".join(_lines(found, len(ordered), chosen.once_in)))
    return 0 if any(each.amount is not None for each in found) else 1


def _lines(found: Sequence[Bound], runs: int, once_in: int) -> Iterator[str]:
    yield f"# From {runs} runs. If nothing changes, a run misses each of these bounds once in {once_in} runs."
    yield "thresholds:" if any(each.amount is not None for each in found) else "thresholds: []"
    for each in found:
        if each.amount is None:
            yield f"  # {_words(each)}: {each.runs} figures that can be judged; {LEAST} are needed"
        else:
            quantity = each.metric.quantity
            median = f"{number(each.median / quantity.scale)} {quantity.unit}"
            yield f"  # {_words(each)}: median {median}, deviation {percent(each.deviation)}, {each.runs} runs"
            yield f"  - {{{_threshold(each, each.amount)}}}"


def _words(bound: Bound) -> str:
    """A text in one line, because it stands in a comment. The names in it can have any characters."""
    return " ".join(f"{', '.join(bound.tests)}, {bound.metric.label}".split())


def _threshold(bound: Bound, amount: float) -> str:
    """One line of YAML. The bound is rounded to the side on which fewer runs miss it."""
    unit = bound.metric.quantity.units[0]
    more = bound.metric.quantity.more_is_better
    exact = unit.of(amount, bound.frame)
    rounded = _rounded(exact, up=not more)
    frame = json.dumps(bound.frame.sequence[0] if len(bound.frame.sequence) == 1 else bound.frame.name)
    selectors = f"data_plane: {json.dumps(bound.data_plane)}, pods: {bound.pods}, frame: {frame}"
    return f"metric: {bound.metric.name}, {selectors}, {bound.metric.quantity.bound}: {rounded:g}, unit: {unit.name}"


def _rounded(value: float, *, up: bool) -> float:
    step = 10.0 ** -(_DIGITS - 1) * 10.0 ** int(f"{value:e}".partition("e")[2])
    whole = round(value / step)
    if up and whole * step < value:
        whole += 1
    if not up and whole * step > value:
        whole -= 1
    return float(f"{whole * step:.{_DIGITS}g}")
