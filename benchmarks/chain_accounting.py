"""Four chains beside each other: is each frame counted for the chain that it crossed? Needs root.

Run: sudo .venv/bin/python benchmarks/chain_accounting.py [--trials N]

The tester counts the frames of each chain at the far end, by the number in each frame. Where the kernel forwards in the
pods, the interfaces by which frames leave a chain count them, too. First, frames go in both directions at a load
without loss: a trial is exact if each chain has received its share of the sent frames, and the interfaces have counted
as many. Then the tester sends as fast as it can: no chain may have received more than its interface has sent. In each
trial, the sum of the chains must be the number of all received frames. Exits with 1 if a trial is wrong, or if no trial
of a data plane is exact.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.hosts.linux import ip_json
from podperf.hosts.local import LocalHost
from podperf.model import BOTH_DIRECTIONS, AddressedTraffic, Chain, DirectionResult, FrameSize, TrafficProfile, Trial
from podperf.pods.base import Pod
from podperf.testbed.run_lock import RunLock
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import load_topology

ROOT = Path(__file__).resolve().parents[1]
TRAFFIC = TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS, flows=100)
LOAD, SECONDS = 20_000.0, 0.5  # each chain gets a quarter of the frames
CHAINS = 4


def sent_by_chains(sut: SystemUnderTest) -> list[list[int]]:
    """For each direction, the frames that each chain's own pod has sent so far. Empty if no kernel forwards in it."""
    (part,) = sut.parts
    assert part.site is not None
    if part.data_plane.applications:
        return []
    own = part.site.pods[:CHAINS]  # a common pod is behind them
    return [[_sent(each, interface) for each in own] for interface in ("net2", "net1")]


def _sent(pod: Pod, interface: str) -> int:
    (link,) = ip_json(pod.host, "-statistics", "link", "show", "dev", interface)
    return int(link["stats64"]["tx"]["packets"])


def wrong(result: DirectionResult, crossed: Sequence[int]) -> str:
    """The reason why these counts cannot be, or empty."""
    counts = result.received_by_group
    if sum(counts) != result.received:
        return f"{sum(counts)} frames arrived by all chains, and {result.received} in all"
    if any(count > sent for count, sent in zip(counts, crossed, strict=False)):
        return f"the chains have sent {crossed}, and more arrived"
    return ""


def exact(result: DirectionResult, crossed: Sequence[int]) -> bool:
    """Whether each chain got its share of all frames, and sent as many."""
    shares = tuple(len(range(number, result.sent, CHAINS)) for number in range(CHAINS))
    return result.received_by_group == shares and (not crossed or tuple(crossed) == shares)


def trial(sut: SystemUnderTest, traffic: AddressedTraffic, load: float) -> tuple[bool, bool]:
    """Show one trial. Whether it is possible, and whether it is exact."""
    before = sent_by_chains(sut)
    ways = sut.tester.measure(Trial(traffic, load, SECONDS)).directions
    after = sent_by_chains(sut)
    crossed = [[late - early for early, late in zip(*each, strict=True)] for each in zip(before, after, strict=True)]
    crossed = crossed or [[], []]
    reasons = [wrong(way, each) for way, each in zip(ways, crossed, strict=True)]
    exactly = all(exact(way, each) for way, each in zip(ways, crossed, strict=True))
    for way, each, reason in zip(ways, crossed, reasons, strict=True):
        sums = f"{' + '.join(map(str, way.received_by_group))} = {way.received}"
        told = f", sent by the chains {each}" if each else ""
        print(f"  {way.direction}: sent {way.sent}, received {sums}{told}{f': {reason}' if reason else ''}")
    return not any(reasons), exactly


def accounted(sut: SystemUnderTest, trials: int) -> bool:
    """Show the trials across these chains. Whether all are possible, and one is exact."""
    traffic = addressed(TRAFFIC, sut)
    sut.probe(traffic)
    print(f"{sut.chain}:")
    paced = [trial(sut, traffic, LOAD) for _ in range(trials)]
    unpaced = [trial(sut, traffic, UNPACED) for _ in range(trials)]
    right, exactly = sum(each for each, _ in (*paced, *unpaced)), sum(each for _, each in paced)
    print(f"  {right} of {2 * trials} trials add up; of {trials} at {LOAD:,.0f} frames/s, {exactly} are exact")
    return right == 2 * trials and exactly > 0


def main() -> int:
    """Measure each data plane that can have several chains."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=5)
    trials = parser.parse_args().trials
    topology = load_topology(ROOT / "topologies" / "local.yaml", DATA_PLANES)
    host, found = LocalHost(), []
    try:
        with RunLock():
            put_back(host)
            testbed = Testbed.on(topology, host, [host])
            for name, kind in DATA_PLANES.items():
                if not kind.several_chains:
                    continue
                if reason := kind.unavailable(host):
                    print(f"{name}: skipped, {reason}")
                    continue
                chains = [Chain(name, 1, chains=CHAINS)]
                chains += [Chain(name, 2, chains=CHAINS, common_pod=True)] if kind.common_pod else []
                for chain in chains:
                    with testbed.build(chain, TRAFFIC.frame) as sut:
                        found.append(accounted(sut, trials))
    except PodperfError as error:
        sys.exit(str(error))
    return 0 if found and all(found) else 1


if __name__ == "__main__":
    sys.exit(main())
