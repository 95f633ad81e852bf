"""How often a search notices that the device under test changed its speed during the search, on models of a VM.

    .venv/bin/python benchmarks/drifted_searches.py [searches for each row, default 200] [presets]      no root needed

A device has 60 or 100 kpps, or it changes from one to the other at a random moment of the first search. In each row:

- *missed*: the search ends with an NDR or PDR that is nearer to the usual one of the other speed, and says nothing. In
  parentheses: the same without changes in the last three trials, which no search can notice. A noisy device that never
  changes also has such figures.
- *said*: the search says that it has drifted, because there is no time for another search.
- *repeated*: podperf searched again.

For a device that never changes, *said* and *repeated* are false alarms. The last rows of a block have devices that
lose single frames at random: the share of the searches that say so, and the median NDR.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.presets import PRESETS, Preset
from search_presets import MODELS
from simulated_dut import SimulatedDut

SLOW, FAST = 60_000.0, 100_000.0
LAST = 3  # trials
RANDOM_LOSS = (0.0, 1e-5, 1e-4, 1e-3, 2e-3, 2e-2)
Rates = Mapping[str, float]  # by goal


@dataclass(frozen=True)
class Case:
    """A search, and whether the device changed before the last trials."""

    result: SearchResult
    in_time: bool = False

    @property
    def rates(self) -> Rates:
        """The rate of each goal that the search reached; 0 if even the lowest load was too high."""
        return {each.goal.name: each.rate or 1.0 for each in self.result.goals if each.complete}

    def misses(self, true: Rates, other: Rates) -> bool:
        """Whether a rate is nearer to the other one than to the true one, and the search says nothing."""
        middles = {name: (true[name] * other[name]) ** 0.5 for name in self.rates}
        wrong = any((rate > middles[name]) != (true[name] > middles[name]) for name, rate in self.rates.items())
        return wrong and not self.result.drifted


def still(preset: Preset, model: Mapping[str, float], capacity: float, searches: int) -> list[Case]:
    """Searches on a device that does not change."""
    duts = [SimulatedDut(capacity, seed=seed, **model) for seed in range(searches)]  # type: ignore[arg-type]
    return [Case(NdrPdr(preset, clock=dut.clock).run(dut)) for dut in duts]


def changing(
    preset: Preset, model: Mapping[str, float], after: float, before: Sequence[Case], start: float
) -> list[Case]:
    """Searches on a device that changes from the speed `start` at a moment of the time that a search took `before`."""
    found = []
    for seed, each in enumerate(before):
        moment = random.Random(seed).uniform(0, each.result.seconds)
        dut = SimulatedDut(start, seed=seed, changes_at=moment, changes_to=after, **model)  # type: ignore[arg-type]
        result = NdrPdr(preset, clock=dut.clock).run(dut)
        found.append(Case(result, moment < dut.now - sum(trial.elapsed for trial in dut.trials[-LAST:])))
    return found


def share(which: Iterable[bool]) -> str:
    """The share of those that are true."""
    return f"{fmean(which):6.1%}"


def row(cases: Sequence[Case], true: Rates, other: Rates) -> str:
    """The shares of the searches that missed the change, that said it, and that were repeated."""
    results = [each.result for each in cases]
    return (
        f"missed {share(each.misses(true, other) for each in cases)} "
        f"({share(each.misses(true, other) and each.in_time for each in cases)})  "
        f"said {share(each.drifted for each in results)}  repeated {share(each.searches > 1 for each in results)}  "
        f"{median(each.seconds for each in results):6.1f} s"
    )


def block(preset: Preset, model: Mapping[str, float], searches: int) -> Iterable[str]:
    """The rows of one preset and model."""
    cases = {capacity: still(preset, model, capacity, searches) for capacity in (SLOW, FAST)}
    usual = {
        capacity: {goal.name: median(each.rates.get(goal.name, 1.0) for each in found) for goal in preset.goals}
        for capacity, found in cases.items()
    }
    for one, other in ((SLOW, FAST), (FAST, SLOW)):
        yield f"always {one / 1e3:3.0f} kpps      {row(cases[one], usual[one], usual[other])}"
        found = changing(preset, model, other, cases[one], one)
        yield f"{one / 1e3:3.0f} to {other / 1e3:3.0f} kpps      {row(found, usual[other], usual[one])}"
    for ratio in RANDOM_LOSS:
        results = [each.result for each in still(preset, {**model, "random_loss": ratio}, SLOW, searches)]
        ndr = median(each.goals[0].rate or 0.0 for each in results)
        said = share(each.constant_loss is not None for each in results)
        yield f"random loss {ratio:6.3%}   said {said}  NDR {ndr / 1e3:5.1f} kpps"


def main() -> None:
    """Print a block for each preset and model."""
    searches = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name in sys.argv[2:] or ("quick", "csit"):
        for model, parameters in MODELS.items():
            print(f"\npreset {name}, {model}: {parameters}")
            for line in block(PRESETS[name], parameters, searches):
                print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
