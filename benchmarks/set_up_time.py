"""How long a chain's set-up and its removal take: `set_up_time.py [--repeats N] [DATA PLANE...]`. Needs root.

Each repeat sets up every chain once, so that noise meets all chains. Ratios compare with the bare path. Set-up has four
parts: check that the data plane is available, build the chain, see frames cross in both directions, read the
description.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.model import BOTH_DIRECTIONS, Chain, FrameSize, TrafficProfile
from podperf.pods.forwarders import FORWARDERS
from podperf.testbed.run_lock import RunLock
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.topology import load_topology

ROOT = Path(__file__).resolve().parents[1]
AIM_IN_KERNEL, AIM_OF_PROGRAMS = 2.0, 5.0  # seconds for set-up and tear-down together; programs must start first
WIRE = Chain("wire", 0)


@dataclass
class Times:
    """The seconds of one chain, one figure for each repeat."""

    set_up: list[float] = field(default_factory=list)
    tear_down: list[float] = field(default_factory=list)

    @property
    def both(self) -> list[float]:
        """Set-up and tear-down together."""
        return [sum(each) for each in zip(self.set_up, self.tear_down, strict=True)]


def measure(testbed: Testbed, chain: Chain, times: Times) -> None:
    """Set the chain up and take it down once."""
    traffic = TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS)
    began = time.monotonic()
    with testbed.build(chain, traffic.frame) as sut:
        sut.probe(addressed(traffic, sut))
        sut.describe()
        stands = time.monotonic()
    times.set_up.append(stands - began)
    times.tear_down.append(time.monotonic() - stands)


def aim_of(chain: Chain) -> float:
    """Seconds for setting up and taking down together."""
    kind = DATA_PLANES[chain.data_plane]
    programs = kind.switch_has_cpus or kind.forwarders[0] in FORWARDERS
    return AIM_OF_PROGRAMS if programs else AIM_IN_KERNEL


def row(chain: Chain, times: Times, wire: float) -> str:
    """One line of the table."""
    both, aim = median(times.both), aim_of(chain)
    met = "yes" if both <= aim else "NO"
    return (
        f"{chain!s:28s} {median(times.set_up):7.2f} {median(times.tear_down):9.2f} {both:8.2f} "
        f"{min(times.both):6.2f} to {max(times.both):5.2f} {both / wire:8.1f} {aim:5.0f}  {met}"
    )


def main() -> int:
    """Print the table; exit code 1 when an aim is not met."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("names", nargs="*", metavar="DATA PLANE", help="default: all but external")
    chosen = parser.parse_args()
    names = chosen.names or [each for each in DATA_PLANES if each not in {"wire", "external"}]
    topology = load_topology(ROOT / "topologies" / "local.yaml", DATA_PLANES)
    chains = [Chain(name, pods) for name in names for pods in (1, 2) if pods >= DATA_PLANES[name].least_pods]
    taken = {chain: Times() for chain in (WIRE, *chains)}
    try:
        with RunLock():
            put_back(LocalHost())
            host = LocalHost()
            testbed = Testbed.on(topology, host, [host])
            for number in range(chosen.repeats):
                for chain, times in list(taken.items()):
                    print(f"\rrepeat {number + 1}: {chain!s:30s}", end="", file=sys.stderr)
                    try:
                        measure(testbed, chain, times)
                    except Unavailable as reason:
                        print(f"\r{chain}: skipped, {reason}", file=sys.stderr)
                        del taken[chain]
    except PodperfError as error:
        sys.exit(f"\n{error}")
    print(f"\r{'seconds, medians':28s}  set-up tear-down together        spread   x wire   aim  met")
    wire = median(taken[WIRE].both)
    for chain, times in taken.items():
        print(row(chain, times, wire))
    return int(any(median(times.both) > aim_of(chain) for chain, times in taken.items()))


if __name__ == "__main__":
    sys.exit(main())
