"""Sending rate at 64 B: the tester's engines beside trafgen, tcpreplay and dpdk-testpmd (txonly).

All send from the same interface and CPU to the same receiving end, which drops; one second each, in turn, repeated.
The receiving end has the same CPU, as on the bare path that the tester calibrates itself on, and then another one.
Wanted: on one core, the XDP engine sends at least 3 times as fast as the best of the others. A sender that is not
installed is skipped and named. Run: sudo .venv/bin/python benchmarks/tester_rate.py [repeats]
"""

from __future__ import annotations

import shutil
import statistics
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.model import FrameSize, TrafficProfile, Trial
from podperf.testers.base import UNPACED
from podperf.topology import Engine
from tester_common import RECEIVER, SENDER, SENDER_CPU, Wire, bare_wire, rate_of_peer, spread

SECONDS = 1.0
FRAME = bytes.fromhex("02000000000202000000000108004500002e000000004011ee9bc6121001c6131001c0200007001a0000") + bytes(
    18
)


def peers(folder: Path) -> dict[str, list[str]]:
    """The commands of the other senders. Each sends 60 bytes (64 with FCS) as fast as it can until it is stopped."""
    capture, configuration = folder / "frame.pcap", folder / "frame.cfg"
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    capture.write_bytes(header + struct.pack("<IIII", 0, 0, len(FRAME), len(FRAME)) + FRAME)
    configuration.write_text("{ " + ", ".join(f"0x{byte:02x}" for byte in FRAME) + " }")
    testpmd = ["dpdk-testpmd", f"--lcores=0@{SENDER_CPU},1@{SENDER_CPU}", "--no-pci", "--no-huge", "-m", "256"]
    transmit = ["--", "--forward-mode=txonly", "--txpkts=60", "--auto-start", "--nb-cores=1", "--total-num-mbufs=8192"]
    return {
        "trafgen": ["trafgen", "--in", str(configuration), "--out", SENDER, "--cpus", "1"],
        "tcpreplay": ["tcpreplay", "-i", SENDER, "-K", "--topspeed", "--loop=2000000000", str(capture)],
        "testpmd af_packet": [*testpmd, f"--vdev=net_af_packet0,iface={SENDER},qdisc_bypass=1", *transmit],
        "testpmd af_xdp": [*testpmd, f"--vdev=net_af_xdp0,iface={SENDER}", *transmit],
    }


def tester_rate(wire: Wire, engine: Engine) -> float:
    with wire.tester(engine) as tester:
        return tester.measure(Trial(TrafficProfile(FrameSize.parse(64)), UNPACED, SECONDS)).achieved_load


def measure(repeats: int, one_core: bool) -> float | None:
    """Print a table, and return our rate as a multiple of the best peer's; None when a peer is missing."""
    ours: dict[str, Engine] = {"podperf xdp": "xdp", "podperf packet-ring": "packet-ring"}
    rates: dict[str, list[float]] = {name: [] for name in ours}
    with tempfile.TemporaryDirectory() as folder, bare_wire(one_core) as wire:
        # The peers' frames end where they arrive.
        chain = f"chain ends {{\ntype filter hook ingress device {RECEIVER} priority 0;\ndrop\n}}"
        wire.receiver.do("nft", "-f", "-", stdin=f"table netdev receiver {{\n{chain}\n}}")
        commands = peers(Path(folder))
        for name, command in commands.items():
            if shutil.which(command[0]) is None:
                print(f"{name:20} skipped: {command[0]} is not installed")
            else:
                rates[name] = []
        for _ in range(repeats):
            for name in list(rates):
                try:
                    rate = (
                        tester_rate(wire, ours[name]) if name in ours else rate_of_peer(wire, commands[name], SECONDS)
                    )
                    rates[name].append(rate / 1000)
                except PodperfError as error:
                    print(f"{name:20} skipped: {error}")
                    del rates[name]
    where = "on one core" if one_core else "receiving end on another core"
    print(f"\n{'64 B, kpps':20} {'median':>10}  (range)   {where}")
    for name, found in rates.items():
        print(f"{name:20} {spread(found)}")
    others = {name: statistics.median(found) for name, found in rates.items() if name not in ours}
    if not others:
        print("no peer is installed: nothing to compare with")
        return None
    best = max(others, key=lambda name: others[name])
    # Of each round, as a virtual machine's speed changes between them.
    ratios = [mine / theirs for mine, theirs in zip(rates["podperf xdp"], rates[best], strict=True)]
    ratio = statistics.median(ratios)
    print(f"podperf xdp / {best} = {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    if missing := commands.keys() - others.keys():
        print(f"not measured, so it may not be the best: {', '.join(sorted(missing))}")
        return None
    return ratio


def main(repeats: int) -> int:
    ratio = measure(repeats, one_core=True)
    measure(repeats, one_core=False)
    print("wanted on one core: at least 3")
    return 2 if ratio is None else int(ratio < 3)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
