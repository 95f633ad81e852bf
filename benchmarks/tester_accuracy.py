"""Mean offered load against the intended load at 1, 10, 100 and 500 kpps. The peer is trafgen with its `--rate`.

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

from podperf.model import FrameSize, TrafficProfile, Trial
from podperf.testers.software import SoftwareTester
from tester_common import SENDER, Wire, bare_wire, rate_of_peer
from tester_rate import FRAME

LOADS = (1_000, 10_000, 100_000, 500_000)
SECONDS = 1.0
WANTED_PERCENT = 0.1


def tester_error(tester: SoftwareTester, load: float) -> float | None:
    """The difference of the achieved load in per cent. None for an invalid trial."""
    result = tester.measure(Trial(TrafficProfile(FrameSize.parse(64)), load, SECONDS))
    if result.invalid:
        print(f"{load:>10.0f}  invalid: {result.invalid}")
        return None
    return 100 * abs(result.achieved_load - load) / load


def trafgen_error(wire: Wire, configuration: Path, load: float) -> float:
    command = ["trafgen", "--in", str(configuration), "--out", SENDER, "--cpus", "1", "--rate", f"{load:.0f}pps"]
    return 100 * abs(rate_of_peer(wire, command, SECONDS) - load) / load


def shown(errors: list[float]) -> str:
    return f"{statistics.median(errors):.4f} (worst {max(errors):.4f}, n = {len(errors)})" if errors else "none valid"


def main(repeats: int) -> int:
    ours: dict[int, list[float]] = {load: [] for load in LOADS}
    theirs: dict[int, list[float]] = {load: [] for load in LOADS}
    invalid = 0
    with tempfile.TemporaryDirectory() as folder, bare_wire() as wire:
        configuration = Path(folder) / "frame.cfg"
        configuration.write_text("{ " + ", ".join(f"0x{byte:02x}" for byte in FRAME) + " }")
        for _ in range(repeats):
            for load in LOADS:
                with wire.tester() as tester:
                    error = tester_error(tester, load)
                if error is None:
                    invalid += 1
                else:
                    ours[load].append(error)
                if shutil.which("trafgen"):
                    theirs[load].append(trafgen_error(wire, configuration, load))
    peer = "trafgen, % off" if shutil.which("trafgen") else "no trafgen here"
    print(f"{'load, pps':>10}  {'podperf, % off':36}  {peer}")
    for load in LOADS:
        print(f"{load:>10}  {shown(ours[load]):36}  {shown(theirs[load]) if theirs[load] else ''}")
    print(f"invalid trials: {invalid} of {repeats * len(LOADS)}")
    return 0 if all(errors and statistics.median(errors) <= WANTED_PERCENT for errors in ours.values()) else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
