"""How often a history's report finds a change, and how often it reports a change that is none.

The program makes up histories of 20 runs around one level, adds runs after a change, and asks for the verdict on the
newest run. Every figure varies from run to run by a normal deviate. Then it does so for the mean of 66 rows, each of
which varies by 3 %, while all rows of a run vary together by 0, 0.5 and 1 %; a fifth of the figures is missing. Nothing
is measured. Usage: `history_rates.py [REPETITIONS]`, by default 200 for each rate.

Exits with 1 if more than 2 % of the histories without a change have a reported regression or progression.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.history.changes import newest_change
from podperf.history.together import run_means

EARLIER = 20  # runs
LEVEL = 300_000.0  # frames/s
DEVIATIONS = (0.005, 0.01, 0.02, 0.03)
CHANGES = ((0.0, 1), (0.0, 3), (-0.1, 1), (-0.05, 1), (-0.05, 3), (-0.1, 3), (-0.05, 8))  # share, runs after it
REPORTED = ("regression", "suspected, worse", "suspected, better", "progression", "nothing")
MOST_FALSE = 0.02
ROWS, OF_A_ROW, MISSING, TOGETHER = 66, 0.03, 0.2, (0.0, 0.005, 0.01)


def verdict(figures: list[float]) -> str:
    """The verdict on the newest figure."""
    change = newest_change(figures)
    if change is None or not change.found:
        return "nothing"
    worse = change.share < 0
    if not change.confirmed:
        return "suspected, worse" if worse else "suspected, better"
    return "regression" if worse else "progression"


def rates(chance: random.Random, deviation: float, share: float, runs: int, repetitions: int) -> Counter[str]:
    """How many of the histories had which verdict."""
    levels = [LEVEL] * EARLIER + [LEVEL * (1 + share)] * runs
    return Counter(verdict([each * chance.gauss(1, deviation) for each in levels]) for _ in range(repetitions))


def of_rows_together(chance: random.Random, together: float, share: float, runs: int) -> str:
    """The verdict on the mean of ROWS rows. `together` is the deviation that the rows of a run share."""
    names = range(EARLIER + runs)
    common = [math.log(chance.gauss(1, together) * (1 + share * (run >= EARLIER))) for run in names]
    rows = [
        {
            str(run): math.log(chance.gauss(1, OF_A_ROW)) + level + common[run]
            for run in names
            if run == names[-1] or chance.random() > MISSING
        }
        for level in (chance.uniform(10, 14) for _ in range(ROWS))
    ]
    means = run_means(rows)
    return verdict([math.exp(means[str(run)]) for run in names if str(run) in means])


def main(arguments: list[str]) -> int:
    """Print the table."""
    repetitions = int(arguments[0]) if arguments else 200
    chance = random.Random(21)
    wrong = 0.0
    print(f"{'deviation':>9}  {'change':>22}" + "".join(f"{each:>19}" for each in REPORTED))
    for deviation in DEVIATIONS:
        for share, runs in CHANGES:
            found = rates(chance, deviation, share, runs, repetitions)
            wrong = max(wrong, line(deviation, share, runs, found, repetitions))
    print(f"\n{ROWS} rows together, each of which varies by {OF_A_ROW:.0%}")
    for together in TOGETHER:
        for share, runs in CHANGES:
            told = Counter(of_rows_together(chance, together, share, runs) for _ in range(repetitions))
            wrong = max(wrong, line(together, share, runs, told, repetitions))
    return 1 if wrong > MOST_FALSE else 0


def line(deviation: float, share: float, runs: int, found: Counter[str], repetitions: int) -> float:
    """Print a line of the table. Returns the share of false reports: 0 where there is a change."""
    words = f"{share:.0%} in {runs} run{'s' if runs > 1 else ''}" if share else f"none, {runs} more"
    shown = "".join(f"{found[each] / repetitions:>19.1%}" for each in REPORTED)
    print(f"{deviation:>9.1%}  {words:>22}{shown}", flush=True)
    return 0.0 if share else (found["regression"] + found["progression"]) / repetitions


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
