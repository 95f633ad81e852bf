"""How long a search takes and how well it repeats, for variants of the `quick` preset, on models of a VM.

    .venv/bin/python benchmarks/search_presets.py [searches for each row, default 60]

A row has the median duration and the median number of trials of the searches. For NDR and PDR it has the median
relative to the capacity, and the spread of the middle 90 %. It also has the share of groups of five searches whose
results lie within 10 % of each other.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import PRESETS, Preset
from simulated_dut import SimulatedDut

CAPACITY = 250_000.0
MODELS: dict[str, dict[str, float]] = {
    "quiet": {"buffer": 256},
    "rare stalls": {"buffer": 256, "stalls_per_second": 0.5, "stall": 0.002, "drift": 0.01, "congestion": 0.1},
    "VM": {"buffer": 256, "stalls_per_second": 2.0, "stall": 0.0015, "drift": 0.02, "congestion": 0.1},
    "noisy VM": {"buffer": 256, "stalls_per_second": 5.0, "stall": 0.0015, "drift": 0.03, "congestion": 0.2},
}


def variant(trial: float, duration_sum: float, width: float) -> Preset:
    """The quick preset with other attributes; its shortest trials stay."""
    quick = PRESETS["quick"]
    goals = tuple(
        replace(goal, final_trial_duration=trial, duration_sum=duration_sum, relative_width=width)
        for goal in quick.goals
    )
    return replace(quick, goals=goals)


def row(preset: Preset, model: dict[str, float], searches: int) -> str:
    """One line of figures."""
    seconds, trials = [], []
    rates: dict[str, list[float]] = {goal.name: [] for goal in preset.goals}
    for seed in range(searches):
        dut = SimulatedDut(CAPACITY, seed=seed, **model)  # type: ignore[arg-type]
        result = NdrPdr(preset, clock=dut.clock).run(dut)
        seconds.append(result.seconds)
        trials.append(result.trials)
        for goal in result.goals:
            rates[goal.goal.name].append((goal.rate or 0.0) / CAPACITY)
    cells = [f"{statistics.median(seconds):6.1f} s (max {max(seconds):5.1f}) {statistics.median(trials):4.0f} trials"]
    for name, found in rates.items():
        ranked = sorted(found)
        low, high = ranked[len(ranked) // 20], ranked[-1 - len(ranked) // 20]
        groups = [found[at : at + 5] for at in range(0, len(found) - 4, 5)]
        repeat = sum(max(group) <= 1.1 * min(group) for group in groups) / len(groups)
        cells.append(f"{name} {statistics.median(found):.3f} [{low:.3f} {high:.3f}] 5 in 10 %: {repeat:4.0%}")
    return "  ".join(cells)


def main() -> None:
    """Print the table."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    variants = {"quick as it is": PRESETS["quick"]}
    for trial, duration_sum, width in itertools.product((0.2, 0.5), (1.0, 2.6, 3.5, 4.5), (0.03, 0.04, 0.05)):
        variants[f"trials {trial:g} s, sum {duration_sum:g} s, width {width:g}"] = variant(trial, duration_sum, width)
    for model, parameters in MODELS.items():
        print(f"\n{model}: {parameters}")
        for label, preset in variants.items():
            print(f"  {label:38s} {row(preset, parameters, searches)}")


if __name__ == "__main__":
    main()
