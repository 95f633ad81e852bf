"""Ten trials at half the ceiling on the bare path: is every frame that was sent accounted for?

Wanted: sent = received in all of them, and in each frame lost + received + corrupted = sent with nothing left over.
Two receiving ends in turn: in the sender's own softirq, where nothing can get lost, and in a thread on the other CPU,
where the machine's other work can overrun the 256 frames of a veth's ring.
Run: sudo python benchmarks/tester_accounting.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.model import BOTH_DIRECTIONS, FrameSize, Traffic, Trial, TrialResult
from podperf.testers.calibration import calibrate
from tester_common import RECEIVER, SENDER, Wire, bare_wire

TRIALS = 10
TRAFFIC = Traffic(FrameSize.parse(64), BOTH_DIRECTIONS, flows=1000)
UNTHREADED = "mount -t sysfs sysfs /sys && echo 0 > /sys/class/net/$1/threaded"


def receive_in_the_sender(wire: Wire) -> None:
    for namespace, interface in ((wire.sender, SENDER), (wire.receiver, RECEIVER)):
        namespace.run("unshare", "--mount", "sh", "-c", UNTHREADED, "sh", interface)


def trials(wire: Wire) -> list[TrialResult]:
    with wire.tester() as tester:
        limits = calibrate(tester, TRAFFIC)
        print(f"  ceiling {limits.maximum_load / 1000:.0f} kpps a direction, own loss {limits.own_loss_ratio:.4%}")
        return [tester.measure(Trial(TRAFFIC, limits.maximum_load / 2, 1.0)) for _ in range(TRIALS)]


def main() -> int:
    exact = 0
    for place in ("on the other CPU", "in the sender"):
        with bare_wire() as wire:
            print(f"received {place}:")
            if place == "in the sender":
                receive_in_the_sender(wire)
            results = trials(wire)
        exact = sum(result.sent == result.received for result in results)
        for result in results:
            found = [(each.duplicated, each.reordered, each.corrupted) for each in result.directions]
            note = f"  invalid: {result.invalid}" if result.invalid else ""
            extra = f"dup/reo/cor {found} stray {result.stray} own drops {result.own_drops}{note}"
            print(f"  sent {result.sent:9} received {result.received:9} lost {result.lost:6} {extra}")
        print(f"  {exact} of {TRIALS} trials: sent = received")
    return 0 if exact == TRIALS else 1


if __name__ == "__main__":
    sys.exit(main())
