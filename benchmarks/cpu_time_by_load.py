"""Does the CPU time a frame depend on the load? With frames one by one, and with trains. Root.

    sudo .venv/bin/python benchmarks/cpu_time_by_load.py [rounds, default 3]

Measures data planes on this machine by turns, as topologies/local.yaml says. A line has the rate under overload (MRR)
and `1 / MRR`, which is the time of a frame while the receive thread never sleeps. Then for each number of frames that
leave together: nanoseconds of CPU time a frame at 10, 25 and 50 % of MRR, the median of the rounds with least and most,
and the frames that a thread found each time that it ran.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.dataplanes import DATA_PLANES
from podperf.figures import number
from podperf.hosts.local import LocalHost
from podperf.methods.cpu_time import TRAIN
from podperf.model import Chain, FrameSize, TrafficProfile, Trial
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import load_topology

TOPOLOGY = Path(__file__).resolve().parents[1] / "topologies" / "local.yaml"
CHAINS = (
    Chain("linux-bridge", 1),
    Chain("linux-bridge", 2),
    Chain("tc-redirect", 1),
    Chain("xdp-redirect", 1),
    Chain("macvlan", 1),
)
SHARES, TRAINS, SECONDS = (0.1, 0.25, 0.5), (1, TRAIN), 0.3
FRAME = FrameSize.parse(64)

Found = dict[tuple[int, float], list[tuple[float, float]]]  # by train and share: ns a frame, frames a run


def measured(sut: SystemUnderTest, found: Found, rates: list[float]) -> None:
    """One round of a chain."""
    traffic = addressed(TrafficProfile(FRAME), sut)
    sut.probe(traffic)
    rates.append(statistics.median(sut.tester.measure(Trial(traffic, UNPACED, SECONDS)).receive_rate for _ in range(3)))
    clock = sut.cpu_clock()
    assert clock is not None
    for train in TRAINS:
        for share in SHARES:
            trial = Trial(traffic, rates[0] * share, SECONDS, train=train)
            for _ in range(4):
                clock.start()
                result = sut.tester.measure(trial)
                taken = clock.stop()
                if result.invalid is None and result.received and taken.total is not None:
                    one = taken.total / result.received, result.received / max(1, taken.runs)
                    found.setdefault((train, share), []).append(one)
                    break


def main(rounds: int) -> None:
    """Measure and print."""
    host = LocalHost()
    testbed = Testbed.on(load_topology(TOPOLOGY, DATA_PLANES), host, [host])
    found: dict[Chain, Found] = {each: {} for each in CHAINS}
    rates: dict[Chain, list[float]] = {each: [] for each in CHAINS}
    for _ in range(rounds):
        for chain in CHAINS:
            with testbed.build(chain, FRAME) as sut:
                measured(sut, found[chain], rates[chain])
    for chain in CHAINS:
        rate = statistics.median(rates[chain])
        spread = f"{number(min(rates[chain]) / 1e3)} to {number(max(rates[chain]) / 1e3)}"
        print(f"{chain}: MRR {number(rate / 1e3)} ({spread}) kpps, 1 / MRR {number(1e9 / rate)} ns")
        for train in TRAINS:
            cells = []
            for share in SHARES:
                each = found[chain].get((train, share), [])
                if each:
                    times, frames = zip(*each, strict=True)
                    spread = f"{number(min(times))} to {number(max(times))}"
                    middle = number(statistics.median(times))
                    cells.append(f"{share:.0%} {middle} ({spread}; {number(statistics.median(frames))} a run)")
            print(f"  trains of {train:2d}: {', '.join(cells)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
