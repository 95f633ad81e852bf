"""Does the memory of the tester's front grow with the duration or the number of flows?

It must be the same for every duration and number of flows. Run: sudo .venv/bin/python benchmarks/tester_memory.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
from tester_common import bare_wire


def resident_kib(pid: int) -> int:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def main() -> int:
    found = []
    with bare_wire() as wire:
        for engine in ("xdp", "packet-ring"):
            with wire.tester(engine) as tester:
                assert tester._process is not None
                tester.measure(Trial(AddressedTraffic(TrafficProfile(FrameSize.parse(64))), 10_000, 0.1))
                after_first = resident_kib(tester._process.pid)
                for flows, duration in ((1, 0.5), (1, 5.0), (65536, 0.5), (65536, 5.0)):
                    tester.measure(
                        Trial(AddressedTraffic(TrafficProfile(FrameSize.parse(64), flows=flows)), 100_000, duration)
                    )
                    now = resident_kib(tester._process.pid)
                    found.append(now / after_first)
                    share = now / after_first
                    print(f"{engine:12} {flows:6} flows {duration:4.1f} s: {now} KiB, {share:.3f} of the first")
    return 0 if max(found) <= 1.05 else 1


if __name__ == "__main__":
    sys.exit(main())
