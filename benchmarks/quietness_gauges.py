"""Tests which of two gauges explains a lower rate of a data plane.

    sudo .venv/bin/python benchmarks/quietness_gauges.py [DATA PLANE, default ptp] [trials, default 120]

The program runs trials of 0.5 s at the tester's highest load, and reads both gauges between them. It prints how well
each gauge ranks the rates (Spearman; 1 is perfect). It also prints the spread of medians of five trials in a row: of
all trials; of trials with fast CPUs; of trials with fast CPUs and fast memory.

Use it on a machine with foreign work. Without foreign work there is nothing to explain.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.model import Chain, FrameSize, TrafficProfile, Trial
from podperf.noise import MEMORY_LIMIT, WORK_LIMIT, Speed
from podperf.quietness.cpu_speed import CpuSpeeds, remembered
from podperf.quietness.watch import Quietness
from podperf.testbed.run_lock import RunLock
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import load_topology

TOPOLOGY = Path(__file__).resolve().parents[1] / "topologies" / "local.yaml"
SECONDS = 0.5
TOGETHER = 5  # trials of one MRR
FIRST_LOOKS = 200  # looks that find the best speed, if no earlier run has stored it


@dataclass(frozen=True)
class Measured:
    """A trial: frames/s, and the speed of the CPUs around it."""

    rate: float
    speed: Speed


def measure(chain: Chain, trials: int) -> list[Measured]:
    """`trials` trials of this chain, in the order of their start."""
    found = []
    topology = load_topology(TOPOLOGY, DATA_PLANES)
    host = LocalHost()
    testbed = Testbed.on(topology, host, [host])
    cpus = {*testbed.tester_cpus, *testbed.workers[0].placement.sut}
    speeds = CpuSpeeds(cpus, best=remembered())
    for _ in range(FIRST_LOOKS):
        speeds.sample()
    quietness = Quietness(cpus, speeds=speeds)
    with RunLock():
        put_back(LocalHost())
        traffic = TrafficProfile(FrameSize.parse(64))
        with testbed.build(chain, traffic.frame) as sut:
            trial = Trial(addressed(traffic, sut), UNPACED, SECONDS)
            sut.probe(trial.traffic)
            for number in range(1, trials + 1):
                print(f"\rtrial {number} of {trials}", end="", file=sys.stderr)
                quietness.start()
                rate = sut.tester.measure(trial).receive_rate
                found.append(Measured(rate, quietness.stop().speed or Speed()))
    print("\r", end="", file=sys.stderr)
    return found


def ranks(values: Sequence[float]) -> list[int]:
    """The rank of each value; the smallest has rank 0. From Python 3.12, statistics.correlation ranks by itself."""
    places = {index: place for place, index in enumerate(sorted(range(len(values)), key=values.__getitem__))}
    return [places[index] for index in range(len(values))]


def row(name: str, trials: Sequence[Measured], counts: Callable[[Speed], bool]) -> str:
    """The spread of the medians of those trials that `counts` accepts."""
    rates = [each.rate for each in trials if counts(each.speed)]
    medians = [median(rates[first : first + TOGETHER]) for first in range(0, len(rates) - TOGETHER + 1, TOGETHER)]
    if len(medians) < 2:
        return f"{name:36s} {len(rates):6d}   too few to tell"
    apart = (max(medians) - min(medians)) / median(medians)
    return f"{name:36s} {len(rates):6d} {min(medians) / 1e3:8.0f} to {max(medians) / 1e3:.0f} kpps {apart:8.1%}"


def main(data_plane: str = "ptp", trials: str = "120") -> None:
    """Print both tables."""
    if data_plane not in DATA_PLANES:
        sys.exit(f"{data_plane} is no data plane; there are: {', '.join(DATA_PLANES)}")
    try:
        found = measure(Chain(data_plane, max(1, DATA_PLANES[data_plane].least_pods)), int(trials))
    except PodperfError as error:
        sys.exit(str(error))
    rates = [each.rate for each in found]
    print(f"{data_plane}, {len(found)} trials of {SECONDS:g} s; rank correlation of the rate with the speed at")
    for name, gauge in {
        "work": [each.speed.work for each in found],
        "memory": [each.speed.memory for each in found],
    }.items():
        ranked = correlation(ranks(rates), ranks(gauge))
        print(f"  {name:8s} {ranked:+.2f}   lowest {min(gauge):.0%} of the best")
    print(f"\n{'what counts':36s} {'trials':>6s}   medians of {TOGETHER}, and how far they lie apart")
    print(row("all", found, lambda _: True))
    print(row(f"work at {WORK_LIMIT:.0%} or more", found, lambda speed: speed.work >= WORK_LIMIT))
    both = f"work at {WORK_LIMIT:.0%}, memory at {MEMORY_LIMIT:.0%} or more"
    print(row(both, found, lambda speed: not speed.shortfalls))


if __name__ == "__main__":
    main(*sys.argv[1:])
