"""Shows how well whole runs repeat: `run_to_run.py RESULTS RESULTS…`. Example: five runs of `sudo ./podperf run`.

The program reads the records of the runs. It measures nothing. Each test has a line for MRR, PDR and CPU time, with the
figure of each run in kpps or ns. `n`: the machine was noisy during the measurement. `>=`: the tester was the limit.
Behind the figures are the median of all and their spread: the largest minus the smallest, divided by the median. The
last column is the largest figure without a mark divided by the smallest. The aim is a limit on this ratio of MRR and
PDR.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.figures import number, percent
from podperf.metrics import METRICS, Measured, Metric, headlines
from podperf.records import Record
from podperf.report.results import read_runs

AIM = 1.1
CPU_TIME = METRICS["cpu_time"]


@dataclass(frozen=True)
class Figure:
    """One figure of one run, in the unit of the table."""

    value: float
    bound: bool
    noisy: bool

    def __str__(self) -> str:
        return f"{Measured(self.value, lower_bound=self.bound).bounded(number(self.value))}{'n' if self.noisy else ' '}"


def figure_of(record: Record | None, metric: Metric) -> Figure | None:
    """The figure of one test in one run. None without a figure."""
    found = record.figures.get(metric.name) if record else None
    if record is None or found is None:
        return None
    quantity = metric.quantity
    return Figure(found.value / quantity.scale, found.lower_bound, is_noisy(record, metric))


def is_noisy(record: Record, metric: Metric) -> bool:
    """Whether the machine was noisy while this figure was found. CPU time has one trial."""
    if metric is CPU_TIME:
        trials = (each for each in record.trials if each.phase == metric.method and each.invalid is None)
        return any(each.noise is not None and each.noise.noisy for each in islice(trials, 1))
    return bool((record.method(metric.method).get("noise") or {}).get("noisy"))


def all_together(figures: Sequence[Figure]) -> str:
    """Median and spread of these figures, the noisy ones too."""
    values = [each.value for each in figures]
    median = statistics.median(values)
    spread = (max(values) - min(values)) / median if median else 0.0
    return f"   median {number(median)}, spread {percent(spread)}"


def main() -> int:
    """Print the table; exit code 1 when figures are further apart than the aim."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        runs, unread = read_runs([Path(each) for each in sys.argv[1:]])
    except PodperfError as error:
        sys.exit(str(error))
    for problem in unread:
        print(problem, file=sys.stderr)
    records = [{record.id: record for record in run.records} for run in runs]
    ratios: dict[str, float] = {}
    for name in dict.fromkeys(each for run in records for each in run):
        for metric in (*headlines(), CPU_TIME):
            figures = [figure_of(run.get(name), metric) for run in records]
            if not any(figures):
                continue
            row = f"{name:34s} {metric.head}"
            quiet = [each.value for each in figures if each and not (each.noisy or each.bound)]
            if len(quiet) > 1 and min(quiet) > 0 and metric is not CPU_TIME:
                ratios[row] = max(quiet) / min(quiet)
            cells = "".join(f"{each:>11}" for each in map(str, (each or "" for each in figures)))
            together = all_together([each for each in figures if each])
            print(f"{row}{cells}{together}{f'{ratios[row]:9.3f}' if row in ratios else ''}")
    if not ratios:
        sys.exit("no figure was found twice on a quiet machine")
    near = sum(ratio <= AIM for ratio in ratios.values())
    print(f"\n{near} of {len(ratios)} figures within {percent(round(AIM - 1, 3))}: the aim is all")
    return near < len(ratios)


if __name__ == "__main__":
    sys.exit(main())
