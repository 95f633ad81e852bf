"""Shows how well whole runs repeat: `run_to_run.py RESULTS RESULTS…`. Example: five runs of `sudo ./podperf run`.

The program reads the records of the runs. It measures nothing. Each test has a line for MRR and one for PDR, with the
figure of each run in kpps. `n`: the machine was noisy during the measurement. `>=`: the tester was the limit. The last
column is the largest figure without a mark divided by the smallest. The aim is a limit on this ratio.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.figures import kpps, percent
from podperf.metrics import Measured, Metric, headlines
from podperf.report.results import Record, read_runs

AIM = 1.1


@dataclass(frozen=True)
class Figure:
    """One figure of one run, in frames/s."""

    rate: float
    bound: bool
    noisy: bool

    def __str__(self) -> str:
        return f"{Measured(self.rate, lower_bound=self.bound).bounded(kpps(self.rate))}{'n' if self.noisy else ' '}"


def figure_of(record: Record | None, metric: Metric) -> Figure | None:
    """The figure of one test in one run. None without a figure."""
    found = record["results"].get(metric.name) if record else None
    if record is None or found is None:
        return None
    noise = record["methods"][metric.method]["noise"]
    return Figure(found["frames_per_second"], found["lower_bound"], bool(noise and noise["noisy"]))


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
    records = [{record["id"]: record for record in run.records} for run in runs]
    ratios: dict[str, float] = {}
    for name in dict.fromkeys(each for run in records for each in run):
        for metric in headlines():
            figures = [figure_of(run.get(name), metric) for run in records]
            if not any(figures):
                continue
            row = f"{name:34s} {metric.label}"
            rates = [each.rate for each in figures if each and not (each.noisy or each.bound)]
            if len(rates) > 1 and min(rates) > 0:
                ratios[row] = max(rates) / min(rates)
            cells = "".join(f"{each:>11}" for each in map(str, (each or "" for each in figures)))
            print(f"{row}{cells}{f'{ratios[row]:9.3f}' if row in ratios else ''}")
    if not ratios:
        sys.exit("no figure was found twice on a quiet machine")
    near = sum(ratio <= AIM for ratio in ratios.values())
    print(f"\n{near} of {len(ratios)} figures within {percent(round(AIM - 1, 3))}: the aim is all")
    return near < len(ratios)


if __name__ == "__main__":
    sys.exit(main())
