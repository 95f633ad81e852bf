"""Mean offered load against the intended load at 1, 10, 100 and 500 kpps, beside two peers.

tcpreplay with `--pps` sends at an even pace. trafgen with `--rate` sends the frames of each second in one burst.

Both are counted over the same time by the same interface counter, or by sequence numbers. The offered load must be
within 0.1 % at every load. A trial is invalid if the machine kept the sender from its CPU. Invalid trials are shown,
and not counted.

Run: sudo .venv/bin/python benchmarks/tester_accuracy.py [repeats]
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
from podperf.testers.software import SoftwareTester
from tester_common import Wire, bare_wire, rate_of_peer
from tester_rate import peers as unpaced

LOADS = (1_000, 10_000, 100_000, 500_000)
SECONDS = 1.0
WANTED_PERCENT = 0.1


def tester_error(tester: SoftwareTester, load: float) -> float | None:
    """The difference of the achieved load in per cent. None for an invalid trial."""
    result = tester.measure(Trial(AddressedTraffic(TrafficProfile(FrameSize.parse(64))), load, SECONDS))
    if result.invalid:
        print(f"{load:>10.0f}  invalid: {result.invalid}")
        return None
    return 100 * abs(result.achieved_load - load) / load


def peers(folder: Path, load: float) -> dict[str, list[str]]:
    """The commands of the other senders. Each sends frames at this load until it is stopped."""
    trafgen, tcpreplay = (unpaced(folder)[name] for name in ("trafgen", "tcpreplay"))
    paced = [f"--pps={load:.0f}" if word == "--topspeed" else word for word in tcpreplay]
    return {"tcpreplay": paced, "trafgen": [*trafgen, "--rate", f"{load:.0f}pps"]}


def peer_error(wire: Wire, command: list[str], load: float) -> float:
    """The difference of the mean load in per cent."""
    return 100 * abs(rate_of_peer(wire, command, SECONDS).wall - load) / load


def shown(errors: list[float]) -> str:
    return f"{statistics.median(errors):.4f} (worst {max(errors):.4f}, n = {len(errors)})" if errors else "none valid"


def main(repeats: int) -> int:
    ours: dict[int, list[float]] = {load: [] for load in LOADS}
    theirs: dict[str, dict[int, list[float]]] = {}
    invalid = 0
    with tempfile.TemporaryDirectory() as folder, bare_wire() as wire:
        for _ in range(repeats):
            for load in LOADS:
                with wire.tester() as tester:
                    error = tester_error(tester, load)
                if error is None:
                    invalid += 1
                else:
                    ours[load].append(error)
                for name, command in peers(Path(folder), load).items():
                    if shutil.which(command[0]):
                        found = theirs.setdefault(name, {each: [] for each in LOADS})
                        found[load].append(peer_error(wire, command, load))
    print(f"{'load, pps':>10}", *(f"{name + ', % off':36}" for name in ("podperf", *theirs)))
    for load in LOADS:
        print(f"{load:>10}", *(f"{shown(each[load]):36}" for each in (ours, *theirs.values())))
    print(f"invalid trials: {invalid} of {repeats * len(LOADS)}")
    return 0 if all(errors and statistics.median(errors) <= WANTED_PERCENT for errors in ours.values()) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
