"""podperf's tester beside iperf3 in the same two pods of a cluster, by turns: frames received a second.

iperf3 sends one UDP stream with 64 B of payload, as fast as it can. podperf sends frames of 64 B.
Wanted: podperf's tester sends at least 3 times as many. The exit code is 1 if it does not.
Run, with a cluster (sudo ./podperf cluster up): sudo .venv/bin/python benchmarks/tester_in_pods.py KUBECONFIG [repeats]
"""

from __future__ import annotations

import json
import statistics
import sys
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.frames import AddressFamily
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.ports import PodPort
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
from podperf.testers.base import UNPACED

SECONDS = 2
# iperf3 keeps a file in TMPDIR; the root file system of the pods is read-only.
_IPERF3 = ("env", "TMPDIR=/run/podperf", "iperf3")


def iperf3_rate(sender: PodPort, receiver: PodPort) -> float:
    """Datagrams that iperf3 receives a second."""
    receiver.execute(*_IPERF3, "--server", "--one-off", "--daemon")
    options = ("--client", str(receiver.address(AddressFamily.IPV4)), "--udp", "--length", "64", "--bitrate", "0")
    said = sender.execute(*_IPERF3, *options, "--time", str(SECONDS), "--json", timeout=SECONDS + 20)
    found = json.loads(said)["end"]["sum"]
    return float((found["packets"] - found["lost_packets"]) / found["seconds"])


def main(kubeconfig: str, repeats: int) -> int:
    """Print both rates of each round, and their ratio."""
    ratios = []
    with closing(KubernetesTester(KubernetesSettings(PodWishes(IMAGE), kubeconfig))) as tester:
        left, right = tester.pods["left"], tester.pods["right"]
        for number in range(1, repeats + 1):
            theirs = iperf3_rate(left, right)
            trial = Trial(AddressedTraffic(TrafficProfile(FrameSize.parse(64))), UNPACED, float(SECONDS))
            ours = tester.measure(trial).receive_rate
            ratios.append(ours / theirs)
            print(f"round {number}: podperf {ours / 1000:.0f} kpps, iperf3 {theirs / 1000:.0f} kpps", flush=True)
    ratio = statistics.median(ratios)
    print(f"podperf / iperf3 = {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f}); wanted: at least 3")
    return int(ratio < 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5))
