"""Does a cost repeat to the instruction? Rows on a counted machine that is booted again and again. Root.

    .venv/bin/python benchmarks/counted_boots.py [--boots 10] [--quiet] [DATA_PLANE[:PODS[:FRAME[:FLOWS]]] ...]

Each boot has another seed: 1, 2, 3 and so on. Two busy loops, and a program that writes a gigabyte of memory over and
over, run beside (not with --quiet). Prints the cost of each row in each boot, the range over all boots, also of the use
of memory, and the builds that the rows needed. A machine with a snapshot is restored, not booted. The exit code is 1 if
a row with one frame in flight is not within 0.01 % of itself.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.counted_machine.bridges import probed
from podperf.counted_machine.profile import ChainProfiler, Profiler
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, TrialNotDelivered, Unavailable
from podperf.hosts.local import LocalHost
from podperf.methods.cost import BURSTS, Builds, Cost
from podperf.methods.functions import MEMORY, Profile
from podperf.model import AddressedTraffic, Chain, FrameSize, Loop, TrafficProfile, Trial, TrialResult
from podperf.run.session import booted, prepared
from podperf.testbed.access import machines_of
from podperf.testbed.run_lock import RunLock
from podperf.testbed.system_under_test import SystemUnderTest
from podperf.testbed.testbed import Testbed
from podperf.testers.base import UNPACED
from podperf.topology import load_topology

TOPOLOGY = Path(__file__).resolve().parents[1] / "topologies" / "counted.yaml"
AIM = 0.01 / 100
KERNEL_AND_EBPF = (
    *("wire:0", "linux-bridge", "ptp", "macvlan", "routed", "ipip", "docker", "ipvlan"),
    *("tc-redirect", "tc-redirect-peer", "xdp-redirect"),
)
BUSY = (
    "while True: pass",
    "while True: pass",
    "a = bytearray(2**30)\nwhile True:\n    for i in range(0, len(a), 4096): a[i] ^= 1",
)


@dataclass(frozen=True)
class Row:
    """A chain and its traffic."""

    text: str

    @property
    def chain(self) -> Chain:
        """The chain; one pod by default."""
        name, pods, *_ = [*self.text.split(":"), "1"][:2]
        return Chain(name, int(pods))

    @property
    def traffic(self) -> TrafficProfile:
        """64-byte frames of one flow by default."""
        words = self.text.split(":")[2:]
        frame, flows = [*words, *("64", "1")[len(words) :]]
        return TrafficProfile(FrameSize.parse(frame), flows=int(flows))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Costs of rows in several boots of a counted machine.")
    parser.add_argument("--boots", type=int, default=10)
    parser.add_argument("--quiet", action="store_true", help="without busy loops beside")
    parser.add_argument("--topology", type=Path, default=TOPOLOGY)
    parser.add_argument("rows", nargs="*", default=KERNEL_AND_EBPF)
    wanted = parser.parse_args(arguments)
    rows = list(map(Row, wanted.rows))
    found: dict[tuple[str, int], list[Builds]] = {}
    with RunLock(), beside(() if wanted.quiet else BUSY):
        for seed in range(1, wanted.boots + 1):
            for row, burst, builds in one_boot(wanted.topology, seed, rows):
                found.setdefault((row, burst), []).append(builds)
    return told(found)


@contextmanager
def beside(programs: Sequence[str]) -> Iterator[None]:
    """Run these programs of Python meanwhile. They end with the benchmark, also after a kill."""
    host = LocalHost()
    with ExitStack() as undo:
        for program in programs:
            undo.callback(host.spawn(sys.executable, "-c", program).stop)
        yield


def one_boot(topology: Path, seed: int, rows: Sequence[Row]) -> Iterator[tuple[str, int, Builds]]:
    """The builds of each row for each number of frames in flight. A row that is not judged is told and left out."""
    here, began = LocalHost(), time.monotonic()
    with ExitStack() as undo:
        lab = load_topology(topology, DATA_PLANES)
        (worker,) = lab.workers
        seeded = replace(worker, counted=replace(worker.counted, seed=seed))
        lab, machine = booted(replace(lab, workers=(seeded,)), here, lambda _: None, undo)
        inside, *workers = machines_of(lab, here, undo)
        profiler = prepared(lab, machine, inside)
        assert profiler is not None
        testbed = Testbed.on(lab, inside, workers)
        print(f"seed {seed}: up after {time.monotonic() - began:.1f} s", flush=True)
        for row in rows:
            start = time.monotonic()
            try:
                builds, missing = Cost.of(row.traffic).run(partial(standing, testbed, row, profiler))
            except (PodperfError, Unavailable) as error:
                print(f"seed {seed}: {row.text}: {error}", flush=True)
                continue
            for burst, each in builds.items():
                alike = f"{each.alike} of {len(each.figures)} builds, most {max(each.figures):.3f}"
                spent = f"{time.monotonic() - start:.1f} s"
                print(f"seed {seed}: {row.text} x{burst}: {each.least:.4f} ({alike}; {spent})", flush=True)
                yield row.text, burst, each
            for burst, reason in missing.items():
                print(f"seed {seed}: {row.text} x{burst}: {reason}", flush=True)


@dataclass(frozen=True)
class Standing:
    """A chain that stands."""

    sut: SystemUnderTest
    traffic: AddressedTraffic
    profiler: ChainProfiler

    def loop(self, loop: Loop) -> TrialResult:
        result = self.sut.tester.measure(Trial(self.traffic, UNPACED, 10.0, loop))
        if result.invalid is not None:
            raise TrialNotDelivered(result.invalid)
        return result

    def profile(self, windows: Sequence[int]) -> Profile:
        return self.profiler.profile(windows)


@contextmanager
def standing(testbed: Testbed, row: Row, profiler: Profiler) -> Iterator[Standing]:
    """The chain of a row."""
    with testbed.build(row.chain, row.traffic.frame) as sut:
        yield Standing(sut, probed(sut, row.traffic), ChainProfiler(profiler))


def told(found: dict[tuple[str, int], list[Builds]]) -> int:
    """Print a line a row and number of frames in flight. 1 if a row with one frame in flight does not repeat."""
    beyond = 0
    for (row, burst), builds in sorted(found.items(), key=lambda each: (each[0][1], each[0][0])):
        figures = [each.least for each in builds]
        share = (max(figures) - min(figures)) / min(figures)
        needed = max(len(each.figures) for each in builds)
        print(
            f"{row} x{burst}: {min(figures):.4f} to {max(figures):.4f} in {len(figures)} boots ({share:.4%}), "
            f"up to {needed} builds"
        )
        for name, words in MEMORY.items():
            used = [sum(each.profile.memory[name].values()) for each in builds if each.profile.memory]
            if used:
                print(f"    {words}: {min(used):.4f} to {max(used):.4f}")
        beyond += burst == min(BURSTS) and share > AIM
    print(f"wanted with one frame in flight: at most {AIM:.2%}")
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
