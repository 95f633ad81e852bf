"""Do five quick measurements in a row agree? The device is an nft limiter, whose rate does not depend on the CPU. Root.

    .venv/bin/python benchmarks/repeatability.py [rate, default 50000] [repeats, default 5]

On a real data plane, both the machine and the method make runs differ. A virtual machine whose CPUs change their speed
by a factor of two shows nothing about the method. Here the limiter decides, if half a CPU carries its rate. So the
spread comes from the method: that of MRR trials, and that of the search with the preset `quick`.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.hosts.local import LocalHost
from podperf.methods.mrr import Mrr
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import PRESETS
from podperf.methods.trials import Patience, ValidTrials
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile
from podperf.quietness.watch import Quietness
from podperf.testers.base import TesterLimits, TesterPort
from podperf.testers.software import SoftwareTester
from search_real import DUT_CPU, TESTER, TESTER_CPU, limited_path
from tester_common import BINARY

AIM = 0.10


def main(rate: int, repeats: int) -> int:
    """Print a line a measurement, then each figure's spread: largest minus smallest, over the median."""
    found: dict[str, list[float]] = {"MRR": [], "NDR": [], "PDR": []}
    with (
        limited_path(rate),
        SoftwareTester(
            LocalHost(), TesterPort("h-l", TESTER), TesterPort("h-r", TESTER), binary=BINARY, cpus=[TESTER_CPU]
        ) as tester,
    ):
        for number in range(1, repeats + 1):
            source = ValidTrials(
                tester,
                AddressedTraffic(TrafficProfile(FrameSize.parse(64))),
                TesterLimits(5e6, 0.0, "chosen for this benchmark"),
                quietness=Quietness([TESTER_CPU, DUT_CPU]),
                patience=Patience(20),
            )
            mrr, search = Mrr().run(source), NdrPdr(PRESETS["quick"]).run(source)
            found["MRR"].append(mrr.rate)
            for name in ("NDR", "PDR"):
                goal = search.goal(name)
                found[name].append(0.0 if goal is None or goal.lower is None else goal.lower.load)
            shown = "  ".join(f"{name} {rates[-1] / 1000:6.1f}" for name, rates in found.items())
            print(f"{number}: {shown} kpps; {search.trials} trials in the search", flush=True)
    spreads = {name: (max(rates) - min(rates)) / statistics.median(rates) for name, rates in found.items()}
    print("spread: " + ", ".join(f"{name} {spread:.1%}" for name, spread in spreads.items()))
    print(f"wanted for MRR and PDR: at most {AIM:.0%}")
    return int(max(spreads["MRR"], spreads["PDR"]) > AIM)


if __name__ == "__main__":
    arguments = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*(arguments + [50_000, 5][len(arguments) :])))
