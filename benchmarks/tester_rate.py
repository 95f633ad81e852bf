"""Rate at 64 B: the tester's engines beside other senders, of two kinds. Then the rate of other test frames.

xdp-trafficgen (xdp-tools) is the true peer. It sends by the same means as the XDP engine: live frames of
BPF_PROG_TEST_RUN. It counts nothing, and sends frames of 66 bytes, with IPv6. Version 1.6.3 loads on Linux 6.18, and
older ones may not. PODPERF_XDP_TRAFFICGEN names its program. trafgen, tcpreplay and dpdk-testpmd (txonly) send by
packet sockets or AF_XDP.

All send from the same interface and CPU to the same receiving end, which drops; one second each, in turn, repeated. The
rates are those of the frames that *arrived*, a second and a CPU second. The receiving end has the same CPU, as on the
bare path that the tester calibrates itself on, and then another one. There, frames that find no room in its ring are
told: they are the tester's own loss. Wanted: on one core, the XDP engine delivers at least 3 times as many frames as
the best of the second kind. A sender that is not installed is skipped and named.

The last table has the tester alone, by turns with other headers and sizes, and xdp-trafficgen. FRAMES has what is
wanted of each ratio.

Run: sudo .venv/bin/python benchmarks/tester_rate.py [repeats]
"""

from __future__ import annotations

import os
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.errors import PodperfError
from podperf.frames import PLAIN, AddressFamily, Headers, Vlan
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
from podperf.testers.base import UNPACED
from podperf.topology import Engine
from tester_common import (
    NARROW_MTU,
    RECEIVER,
    SENDER,
    SENDER_CPU,
    Rate,
    Wire,
    bare_wire,
    cpu_seconds,
    rate_of_peer,
    spread,
)

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
    generator = os.environ.get("PODPERF_XDP_TRAFFICGEN", TRUE_PEER)
    return {
        TRUE_PEER: [generator, "udp", SENDER, "--pkt-size=64"],
        "trafgen": ["trafgen", "--in", str(configuration), "--out", SENDER, "--cpus", "1"],
        "tcpreplay": ["tcpreplay", "-i", SENDER, "-K", "--topspeed", "--loop=2000000000", str(capture)],
        "testpmd af_packet": [*testpmd, f"--vdev=net_af_packet0,iface={SENDER},qdisc_bypass=1", *transmit],
        "testpmd af_xdp": [*testpmd, f"--vdev=net_af_xdp0,iface={SENDER}", *transmit],
    }


TRUE_PEER = "xdp-trafficgen"
DROP = """
#include <linux/bpf.h>
__attribute__((section("xdp"), used)) int drop(struct xdp_md *frame) { return XDP_DROP; }
"""


@contextmanager
def dropping(wire: Wire, folder: Path) -> Iterator[None]:
    """The receiving end drops XDP frames as early as the tester's sink does."""
    source, made = folder / "drop.bpf.c", folder / "drop.bpf.o"
    source.write_text(DROP)
    machine = subprocess.run(["gcc", "-print-multiarch"], capture_output=True, text=True, check=True).stdout.strip()
    compiler = ("clang", "-O2", "-g", "-target", "bpf", f"-I/usr/include/{machine}")
    subprocess.run([*compiler, "-c", str(source), "-o", str(made)], check=True)
    wire.receiver.do("ip", "link", "set", RECEIVER, "xdpdrv", "obj", str(made), "sec", "xdp")
    try:
        yield
    finally:
        wire.receiver.do("ip", "link", "set", RECEIVER, "xdpdrv", "off")


def profile(size: int, headers: Headers = PLAIN, flows: int = 1) -> TrafficProfile:
    return TrafficProfile(FrameSize.parse(size), flows=flows, headers=headers)


TAG = (Vlan(100),)
# Other test frames: what they are, their engine, which ones they are compared with, and the wanted ratio.
FRAMES: Mapping[str, tuple[TrafficProfile, Engine, str, float]] = {
    "64 B": (profile(64), "xdp", "", 0),
    "1000000 flows": (profile(64, flows=1_000_000), "xdp", "64 B", 0.8),
    "84 B": (profile(84), "xdp", "", 0),
    "84 B, IPv6": (profile(84, Headers(AddressFamily.IPV6)), "xdp", "84 B", 0.95),
    "84 B, VLAN tag": (profile(84, Headers(left=TAG, right=TAG)), "xdp", "84 B", 0.95),
    "1518 B, packets": (profile(1518), "packet-ring", "", 0),
    "9018 B, packets": (profile(9018), "packet-ring", "1518 B, packets", 0.5),
}


def rate_of_tester(wire: Wire, engine: Engine, wanted: TrafficProfile = FRAMES["64 B"][0]) -> tuple[Rate, int]:
    """The rate, and the number of frames that the tester itself lost."""
    with wire.tester(engine, joined=engine == "xdp") as tester:
        assert tester._process is not None
        used = cpu_seconds(tester._process.pid)
        result = tester.measure(Trial(AddressedTraffic(wanted), UNPACED, SECONDS))
        used = cpu_seconds(tester._process.pid) - used
    return Rate(result.receive_rate, result.received / used), result.own_drops


def measure(repeats: int, one_core: bool) -> float | None:
    """Print a table, and return our rate as a multiple of the best peer's with sockets; None when a peer is missing."""
    ours: dict[str, Engine] = {"podperf xdp": "xdp", "podperf packet-ring": "packet-ring"}
    rates: dict[str, list[Rate]] = {name: [] for name in ours}
    own_drops: list[int] = []
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
                    if name in ours:
                        rate, lost = rate_of_tester(wire, ours[name])
                        own_drops += [lost] if ours[name] == "xdp" else []
                    else:
                        with dropping(wire, Path(folder)) if name == TRUE_PEER else nullcontext():
                            rate = rate_of_peer(wire, commands[name], SECONDS)
                    rates[name].append(rate)
                except PodperfError as error:
                    print(f"{name:20} skipped: {error}")
                    del rates[name]
    where = "on one core" if one_core else "receiving end on another core"
    print(f"\n{'64 B, kpps arrived':20} {'median':>10}  (range)   {where}")
    for name, found in rates.items():
        per_cpu = statistics.median(each.cpu for each in found) / 1000
        print(f"{name:20} {spread([each.wall / 1000 for each in found])}  {per_cpu:.4g} a CPU second")
    print(f"podperf xdp lost {statistics.median(own_drops):.0f} frames a round itself, at the receiving end's ring")
    others = {name: statistics.median(each.wall for each in found) for name, found in rates.items() if name not in ours}
    true_peer = others.pop(TRUE_PEER, None)
    if true_peer is not None:
        _ratio(rates, TRUE_PEER)
    if not others:
        print("no peer with sockets is installed: nothing to compare with")
        return None
    ratio = _ratio(rates, max(others, key=lambda name: others[name]))
    if missing := commands.keys() - others.keys() - {TRUE_PEER}:
        print(f"not measured, so it may not be the best: {', '.join(sorted(missing))}")
        return None
    return ratio


def _ratio(rates: Mapping[str, Sequence[Rate]], peer: str) -> float:
    """Print the XDP engine's rate as a multiple of a peer's. Returns it for the wall clock."""
    # The ratio of each round, because a virtual machine's speed changes between rounds.
    pairs = list(zip(rates["podperf xdp"], rates[peer], strict=True))
    wall = [mine.wall / theirs.wall for mine, theirs in pairs]
    cpu = statistics.median(mine.cpu / theirs.cpu for mine, theirs in pairs)
    ratio = statistics.median(wall)
    print(f"podperf xdp / {peer} = {ratio:.2f} ({min(wall):.2f} to {max(wall):.2f}), {cpu:.2f} a CPU second")
    return ratio


def measure_frames(repeats: int) -> bool:
    """Print a table of the rates of FRAMES on one core. True if each ratio is as wanted."""
    rates: dict[str, list[float]] = {name: [] for name in FRAMES}
    with tempfile.TemporaryDirectory() as folder:
        generator = peers(Path(folder))[TRUE_PEER]
        if shutil.which(generator[0]):
            rates[TRUE_PEER] = []
        for _ in range(repeats):
            for mtu, engine in ((NARROW_MTU, "xdp"), (9000, "packet-ring")):
                with bare_wire(one_core=True, mtu=mtu) as wire:
                    for name, (wanted, by, _, _) in FRAMES.items():
                        if by == engine:
                            rates[name].append(rate_of_tester(wire, by, wanted)[0].wall / 1000)
                    if engine == "xdp" and TRUE_PEER in rates:
                        with dropping(wire, Path(folder)):
                            rates[TRUE_PEER].append(rate_of_peer(wire, generator, SECONDS).wall / 1000)
    print(f"\n{'kpps arrived':20} {'median':>10}  (range)   on one core")
    held = True
    for name, found in rates.items():
        line = f"{name:20} {spread(found)}"
        _, _, other, least = FRAMES.get(name, (None, None, "", 0))
        if other:
            ratio = statistics.median(mine / its for mine, its in zip(found, rates[other], strict=True))
            held &= ratio >= least
            line += f"  {ratio:.2f} of {other} (wanted: {least} or more)"
        print(line)
    return held


def main(repeats: int) -> int:
    ratio = measure(repeats, one_core=True)
    measure(repeats, one_core=False)
    print("wanted on one core: at least 3 times the best peer with sockets")
    held = measure_frames(repeats)
    return 2 if ratio is None else int(ratio < 3 or not held)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
