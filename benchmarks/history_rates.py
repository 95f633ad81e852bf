"""How often a history's report finds a change, and how often it reports a change that is none.

The program makes up histories of 20 runs around one level, adds runs after a change, and asks for the verdict on the
newest run. Every figure varies from run to run by a normal deviate. Nothing is measured. Usage: `history_rates.py
[REPETITIONS]`, by default 200 for each rate.

Exits with 1 if more than 2 % of the histories without a change have a reported regression or progression.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.history.changes import newest_change

EARLIER = 20  # runs
LEVEL = 300_000.0  # frames/s
DEVIATIONS = (0.005, 0.01, 0.02, 0.03)
CHANGES = ((0.0, 1), (0.0, 3), (-0.1, 1), (-0.05, 1), (-0.05, 3), (-0.1, 3), (-0.05, 8))  # share, runs after it
REPORTED = ("regression", "suspected, worse", "suspected, better", "progression", "nothing")
MOST_FALSE = 0.02


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


def main(arguments: list[str]) -> int:
    """Print the table."""
    repetitions = int(arguments[0]) if arguments else 200
    chance = random.Random(21)
    wrong = 0.0
    print(f"{'deviation':>9}  {'change':>22}" + "".join(f"{each:>19}" for each in REPORTED))
    for deviation in DEVIATIONS:
        for share, runs in CHANGES:
            found = rates(chance, deviation, share, runs, repetitions)
            words = f"{share:.0%} in {runs} run{'s' if runs > 1 else ''}" if share else f"none, {runs} more"
            shown = "".join(f"{found[each] / repetitions:>19.1%}" for each in REPORTED)
            print(f"{deviation:>9.1%}  {words:>22}{shown}", flush=True)
            if not share:
                wrong = max(wrong, (found["regression"] + found["progression"]) / repetitions)
    return 1 if wrong > MOST_FALSE else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
