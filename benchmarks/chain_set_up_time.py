"""Does the set-up time of a chain grow linearly with its pods? Needs root.

Run: sudo .venv/bin/python benchmarks/chain_set_up_time.py [--repeats N] [DATA PLANE...]

Sets chains of 1, 2, 4 and 6 pods, and four chains beside each other, up in interleaved repeats. For each, it shows the
time of the data plane's set-up, the time of all its CNI ADDs, and the ratio of the two. A set-up that takes at most 1.5
times its ADDs has no part that grows faster than the number of pods. `beside` is the set-up without the ADDs, for each
pod. Exits with 1 if a ratio is above 1.5.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.model import Chain, FrameSize
from podperf.pods.base import Attachment, PodInterface
from podperf.pods.cni import CniPlugins
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.topology import load_topology

ROOT = Path(__file__).resolve().parents[1]
BY_CNI_PLUGINS = ("linux-bridge", "ptp", "macvlan", "ipvlan", "docker")  # all pods of these, and no program besides
LENGTHS = (1, 2, 4, 6)
MOST = 1.5  # times the ADDs
SMALL = FrameSize.parse(64)


@dataclass
class Times:
    """The seconds of one chain's set-up and of its CNI ADDs, a figure for each repeat."""

    set_up: list[float] = field(default_factory=list)
    adds: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """The set-up divided by its ADDs."""
        return median(whole / adds for whole, adds in zip(self.set_up, self.adds, strict=True))


@contextmanager
def timed_adds() -> Iterator[list[float]]:
    """The seconds of each CNI ADD while the context lasts."""
    add, found = CniPlugins.add, list[float]()

    def timed(plugins: CniPlugins, container: str, pod: NetworkNamespace, attachment: Attachment) -> PodInterface:
        began = time.monotonic()
        interface = add(plugins, container, pod, attachment)
        found.append(time.monotonic() - began)
        return interface

    with patch.object(CniPlugins, "add", timed):
        yield found


def available(names: Sequence[str], host: Host) -> list[str]:
    """The data planes that this host has. Shows the reason for the others."""
    reasons = {name: DATA_PLANES[name].unavailable(host) for name in names}
    for name, reason in reasons.items():
        if reason is not None:
            print(f"{name}: skipped, {reason}")
    return [name for name, reason in reasons.items() if reason is None]


def chains_of(names: Sequence[str]) -> list[Chain]:
    """The chains to set up."""
    beside = [Chain(name, 1, chains=4) for name in names if DATA_PLANES[name].several_chains]
    return [*(Chain(name, pods) for name in names for pods in LENGTHS), *beside]


def row(chain: Chain, times: Times) -> str:
    """One line of the table."""
    whole, adds = median(times.set_up), median(times.adds)
    met = "yes" if times.ratio <= MOST else "NO"
    beside = (whole - adds) / chain.all_pods
    return f"{chain!s:36s} {whole:7.2f} {adds:7.2f} {times.ratio:6.2f} {beside:7.3f}  {met}"


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("names", nargs="*", metavar="DATA PLANE", default=BY_CNI_PLUGINS)
    chosen = parser.parse_args()
    topology = load_topology(ROOT / "topologies" / "local.yaml", DATA_PLANES)
    host = LocalHost()
    try:
        with RunLock():
            put_back(host)
            taken = {chain: Times() for chain in chains_of(available(chosen.names, host))}
            testbed = Testbed.on(topology, host, [host])
            for _ in range(chosen.repeats):
                for chain, times in taken.items():
                    with timed_adds() as adds, testbed.build(chain, SMALL) as sut:
                        times.set_up.append(sut.set_up_seconds)
                    times.adds.append(sum(adds))
    except PodperfError as error:
        sys.exit(str(error))
    print(f"{'seconds, medians':36s}  set-up    ADDs  ratio  beside  at most {MOST}")
    for chain, times in taken.items():
        print(row(chain, times))
    return 0 if taken and all(times.ratio <= MOST for times in taken.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
