"""podperf's search beside a plain RFC 2544 bisection at the same relative precision: time, trials, error.

    .venv/bin/python benchmarks/search_vs_bisection.py [searches for each row, default 50]      no root needed

The search finds NDR and PDR together. The bisection needs one run for each. It runs with trials of the search's length,
and also with trials as long as the sum of the search's trials at a load: only these have as much evidence. Simulated
time has 0.1 s around the sending of each trial. For a real device see search_real.py.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import PRESETS, Preset
from podperf.testers.base import TrialSource
from simulated_dut import SimulatedDut

CAPACITIES = (37_000.0, 250_000.0, 1_300_000.0)
CEILING = 4.5e6
DEVICES: dict[str, dict[str, float]] = {
    "deterministic": {},
    "congested, 20 % less at ten times the load": {"congestion": 0.2},
    "VM with rare stalls": {"buffer": 256, "stalls_per_second": 0.5, "stall": 0.002, "drift": 0.01, "congestion": 0.1},
    "VM with stalls": {"buffer": 256, "stalls_per_second": 2.0, "stall": 0.0015, "drift": 0.02, "congestion": 0.1},
}
Finder = Callable[[SimulatedDut], dict[str, float]]


def bisection(source: TrialSource, duration: float, loss_ratio: float, relative_width: float) -> float:
    """The highest load that a plain binary search finds (RFC 2544 section 26.1), with one trial at each load."""

    def passes(load: float) -> bool:
        return source.measure(load, duration).loss_ratio <= loss_ratio

    low, high = 0.0, source.maximum_load
    if passes(high):
        return high
    while high - low > relative_width * high:
        middle = (low + high) / 2
        if passes(middle):
            low = middle
        else:
            high = middle
    return low


@dataclass
class Figures:
    """The needs and results of one method on one kind of device. Rates are relative to the capacity."""

    seconds: list[float]
    trials: list[int]
    rates: dict[str, list[float]]

    def line(self) -> str:
        """Medians, and the middle 90 % of the rates."""
        cells = [f"{statistics.median(self.seconds):8.1f} s {statistics.median(self.trials):4.0f} trials"]
        for name, rates in self.rates.items():
            ranked = sorted(rates)
            low, high = ranked[len(ranked) // 20], ranked[-1 - len(ranked) // 20]
            cells.append(f"{name} {statistics.median(ranked):.3f} [{low:.3f} {high:.3f}]")
        return "   ".join(cells)


def figures(find: Finder, device: dict[str, float], searches: int) -> Figures:
    """Repeat on devices of each capacity."""
    found = Figures([], [], {})
    for seed in range(searches):
        capacity = CAPACITIES[seed % len(CAPACITIES)]
        dut = SimulatedDut(capacity, CEILING, seed=seed, **device)  # type: ignore[arg-type]
        for name, rate in find(dut).items():
            found.rates.setdefault(name, []).append(rate / capacity)
        found.seconds.append(dut.now)
        found.trials.append(len(dut.trials))
    return found


def ours(preset: Preset) -> Finder:
    """One search for all goals."""

    def find(dut: SimulatedDut) -> dict[str, float]:
        result = NdrPdr(preset, clock=dut.clock).run(dut)
        return {each.goal.name: 0.0 if each.lower is None else each.lower.load for each in result.goals}

    return find


def peer(preset: Preset, duration: Callable[[Preset], float]) -> Finder:
    """One bisection a goal."""

    def find(dut: SimulatedDut) -> dict[str, float]:
        return {
            goal.name: bisection(dut, duration(preset), goal.loss_ratio, goal.relative_width) for goal in preset.goals
        }

    return find


def main() -> None:
    """Print a block for each preset and device."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for preset in PRESETS.values():
        goal = preset.goals[0]
        finders = {
            "ours": ours(preset),
            f"bisection, trials of {goal.final_trial_duration:g} s": peer(
                preset, lambda p: p.goals[0].final_trial_duration
            ),
        }
        if goal.duration_sum > goal.final_trial_duration:
            finders[f"bisection, trials of {goal.duration_sum:g} s"] = peer(preset, lambda p: p.goals[0].duration_sum)
        for name, device in DEVICES.items():
            print(f"\npreset {preset.name} (width {goal.relative_width:g}), {name}")
            mine = 0.0
            for label, find in finders.items():
                found = figures(find, device, searches)
                median = statistics.median(found.seconds)
                mine = mine or median
                print(f"  {label:28s} {found.line()}   time {median / mine:5.2f} x ours")


if __name__ == "__main__":
    main()
