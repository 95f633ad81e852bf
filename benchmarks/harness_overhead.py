"""The share of a run that is not spent on trials: `harness_overhead.py [RESULTS]` (default results/latest).

The program reads the run's records and Robot Framework's output.xml. It measures nothing. A trial counts with all parts
around its sending (start, drain, reading of counters), because the next trial must wait for them. Waiting for a quiet
machine (`method.patience`) has its own line. It is neither a trial nor overhead.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from robot.api import ExecutionResult
from robot.result import Keyword, ResultVisitor

from podperf.errors import PodperfError
from podperf.figures import percent
from podperf.report.results import RunResults, read_run
from podperf.testers.validity import DISTURBED

ROOT = Path(__file__).resolve().parents[1]
AIM = 0.15


class Keywords(ResultVisitor):  # type: ignore[misc]  # which has no types
    """Seconds that each library keyword took in all; keywords of resource files only contain others."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def start_keyword(self, keyword: Keyword) -> None:
        if keyword.owner and not any(each.type == each.KEYWORD for each in keyword.body):
            self.seconds[f"{keyword.owner}.{keyword.name}"] += keyword.elapsed_time.total_seconds()


def trial_seconds(run: RunResults) -> tuple[float, float]:
    """Seconds that the run's trials took: with all that lies around the sending, and the sending alone."""
    trials = [trial for record in run.records for trial in record.trials]
    sending = sum(max((way.duration for way in each.directions), default=0.0) for each in trials)
    return sum(each.elapsed for each in trials), sending


def waiting_seconds(run: RunResults) -> float:
    """Seconds for which the run waited for a quiet machine; disturbed trials, which `patience` pays too, are trials."""
    disturbed: float = sum(
        trial.elapsed
        for record in run.records
        for trial in record.trials
        if (trial.invalid or "").startswith(DISTURBED)
    )
    waited: float = sum(record.waited_for_quietness for record in run.records)
    return max(0.0, waited - disturbed)


def main() -> int:
    """Print the shares; exit code 1 when the aim is not met."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results" / "latest"
    try:
        run = read_run(folder)
        result = ExecutionResult(str(folder / "output.xml"))
    except (PodperfError, OSError) as error:
        sys.exit(str(error))
    whole = result.suite.elapsed_time.total_seconds()
    in_trials, sending = trial_seconds(run)
    waiting = waiting_seconds(run)
    share = 1 - in_trials / (whole - waiting)
    print(
        f"{len(run.records)} tests, {whole:.0f} s, of which {in_trials:.0f} s in trials ({sending:.0f} s sending) and "
        f"{waiting:.0f} s waiting for a quiet machine"
    )
    neither = percent(round(share, 3))
    print(f"neither: {neither} of the run without that waiting; aim: at most {percent(AIM)}; met: {share <= AIM}")
    keywords = Keywords()
    result.visit(keywords)
    print("\nwhere the time went, seconds and share of the run (measuring keywords with their trials):")
    for name, seconds in sorted(keywords.seconds.items(), key=lambda each: -each[1]):
        print(f"  {name:48s} {seconds:7.1f} {percent(round(seconds / whole, 3)):>7s}")
    known = sum(keywords.seconds.values())
    print(f"  {'Robot Framework itself':48s} {whole - known:7.1f} {percent(round((whole - known) / whole, 3)):>7s}")
    return int(share > AIM)


if __name__ == "__main__":
    sys.exit(main())
