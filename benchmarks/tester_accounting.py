"""Ten trials at half the ceiling on the bare path: is every sent frame accounted for?

Each trial must be valid. Each sent frame must be received once, in order and unchanged, and no other frame. There are
two receiving ends: first the sender's own softirq, where nothing can get lost; then a thread on the other CPU, where
foreign work can overrun the 256 frames of a veth's ring. Exits with 1 if one trial differs.

Run: sudo .venv/bin/python benchmarks/tester_accounting.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.model import BOTH_DIRECTIONS, AddressedTraffic, FrameSize, TrafficProfile, Trial, TrialResult
from podperf.testers.calibration import calibrate
from tester_common import RECEIVER, SENDER, Wire, bare_wire

TRIALS = 10
TRAFFIC = AddressedTraffic(TrafficProfile(FrameSize.parse(64), BOTH_DIRECTIONS, flows=1000))
UNTHREADED = "mount -t sysfs sysfs /sys && echo 0 > /sys/class/net/$1/threaded"


def receive_in_the_sender(wire: Wire) -> None:
    for namespace, interface in ((wire.sender, SENDER), (wire.receiver, RECEIVER)):
        namespace.do("unshare", "--mount", "sh", "-c", UNTHREADED, "sh", interface)


def trials(wire: Wire) -> list[TrialResult]:
    with wire.tester() as tester:
        limits = calibrate(tester, TRAFFIC)
        print(f"  ceiling {limits.maximum_load / 1000:.0f} kpps a direction, own loss {limits.own_loss_ratio:.4%}")
        return [tester.measure(Trial(TRAFFIC, limits.maximum_load / 2, 1.0)) for _ in range(TRIALS)]


def unaccounted(result: TrialResult) -> list[str]:
    """The differences between a trial and an exact one, in words. Empty if every frame is accounted for."""
    found = [] if result.invalid is None else [f"invalid: {result.invalid}"]
    found += [] if result.sent else ["nothing was sent"]
    counts = {"stray": result.stray, "dropped by the tester": result.own_drops}
    for each in result.directions:
        way = each.direction.value
        counts[f"lost {way}"] = each.lost
        counts[f"received but not sent {way}"] = max(0, each.received - each.sent)
        counts[f"duplicated {way}"] = each.duplicated
        counts[f"reordered {way}"] = each.reordered
        counts[f"corrupted {way}"] = each.corrupted
    return found + [f"{number} {what}" for what, number in counts.items() if number]


def exact(results: list[TrialResult]) -> bool:
    """Show each trial; True when every one of them is exact."""
    faults = [unaccounted(result) for result in results]
    for result, fault in zip(results, faults, strict=True):
        print(f"  sent {result.sent:9} received {result.received:9}  {', '.join(fault) or 'every frame accounted for'}")
    print(f"  {faults.count([])} of {len(results)} trials: every frame accounted for")
    return bool(results) and not any(faults)


def main() -> int:
    places = []
    for place in ("on the other CPU", "in the sender"):
        with bare_wire() as wire:
            print(f"received {place}:")
            if place == "in the sender":
                receive_in_the_sender(wire)
            places.append(exact(trials(wire)))
    return 0 if all(places) else 1


if __name__ == "__main__":
    sys.exit(main())
