"""The same data plane in pods of Kubernetes and in namespaces, by turns: MRR at 64 B, set-up and tear-down. Needs root.

Wanted: the rates differ by less than 5 %, and a chain of two pods of Kubernetes is set up and taken down in 8 s. Each
round measures both in a random order, and gives one ratio. `namespaces twice` measures namespaces beside namespaces in
the same way, so it shows how much the machine itself varies. The exit code is 1 if an aim is missed.
Run, with a cluster (sudo ./podperf cluster up):
    sudo KUBECONFIG=/var/lib/podperf-cluster/kubeconfig .venv/bin/python benchmarks/pods_beside_namespaces.py \
        [--rounds N] [--repeats N] [DATA PLANE...]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.cleanup import put_back
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.model import Chain, Direction, FrameSize, TrafficProfile, Trial
from podperf.testbed.access import read_topology
from podperf.testbed.run_lock import RunLock
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import PodSettings

TOPOLOGY = Path(__file__).resolve().parents[1] / "topologies" / "kubernetes_chains.yaml"
PODS, NAMESPACES, TWICE = "Kubernetes", "namespaces", "namespaces twice"
SMALL = FrameSize.parse(64)
MOST_DIFFERENT, LONGEST = 0.05, 8.0  # a share, and seconds
TRIALS, SECONDS = 3, 0.5  # of each figure; the median counts


def rate(testbed: Testbed, chain: Chain) -> float:
    """MRR across a new chain, in frames/s."""
    traffic = TrafficProfile(SMALL, (Direction.LEFT_TO_RIGHT,))
    with testbed.build(chain, SMALL) as sut:
        across = addressed(traffic, sut)
        sut.probe(across)
        return median(sut.tester.measure(Trial(across, UNPACED, SECONDS)).receive_rate for _ in range(TRIALS))


def together(testbed: Testbed, chain: Chain) -> float:
    """Seconds for setting a chain up, until frames cross, and taking it down."""
    began = time.monotonic()
    with testbed.build(chain, SMALL) as sut:
        sut.probe(addressed(TrafficProfile(SMALL, (Direction.LEFT_TO_RIGHT,)), sut))
    return time.monotonic() - began


def by_turns(testbeds: Mapping[str, Testbed], chain: Chain, rounds: int) -> list[dict[str, float]]:
    """The rates of each round."""
    found = []
    for number in range(1, rounds + 1):
        names = random.sample(list(testbeds), len(testbeds))
        found.append({name: rate(testbeds[name], chain) for name in names})
        said = ", ".join(f"{name} {found[-1][name] / 1000:.0f} kpps" for name in testbeds)
        print(f"{chain}, round {number}: {said}", flush=True)
    return found


def spread(ratios: Sequence[float]) -> str:
    """Median, quartiles, and both ends."""
    low, _, high = quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0], ratios[0], ratios[0])
    ends = f"{min(ratios):.3f} to {max(ratios):.3f}"
    return f"{median(ratios):.3f} (half of them from {low:.3f} to {high:.3f}, all from {ends})"


def main() -> int:
    """Print both parts, and whether the aims are met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--repeats", type=int, default=10, help="of set-up and tear-down")
    parser.add_argument("names", nargs="*", metavar="DATA PLANE", default=["linux-bridge", "macvlan"])
    chosen = parser.parse_args()
    missed = False
    host, in_cluster = LocalHost(), read_topology(TOPOLOGY)
    in_namespaces = replace(in_cluster, pods=PodSettings())
    try:
        with RunLock(), ExitStack() as undo:
            put_back(host)
            topologies = {PODS: in_cluster, NAMESPACES: in_namespaces, TWICE: in_namespaces}
            testbeds = {name: Testbed.on(each, host, [host]) for name, each in topologies.items()}
            for each in testbeds.values():
                undo.callback(each.close)
            for name in chosen.names:
                rates = by_turns(testbeds, Chain(name, 1), chosen.rounds)
                for other in (PODS, TWICE):
                    print(
                        f"{name}: {other} / {NAMESPACES} = {spread([each[other] / each[NAMESPACES] for each in rates])}"
                    )
                missed |= abs(median(each[PODS] / each[NAMESPACES] for each in rates) - 1) > MOST_DIFFERENT
            for name in (PODS, NAMESPACES):
                seconds = [together(testbeds[name], Chain(chosen.names[0], 2)) for _ in range(chosen.repeats)]
                print(f"set-up and tear-down of two pods, {name}: {median(seconds):.2f} s, median of {len(seconds)}"
                      f" ({min(seconds):.2f} to {max(seconds):.2f})", flush=True)  # fmt: skip
                missed |= name == PODS and median(seconds) > LONGEST
    except PodperfError as error:
        sys.exit(str(error))
    print(f"wanted: a ratio within {MOST_DIFFERENT:.0%} of 1, and at most {LONGEST:.0f} s: {'NO' if missed else 'yes'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
