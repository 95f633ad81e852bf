"""The search and a plain bisection on a real device with a known rate: an nft limiter on a bridge. Root.

    sudo .venv/bin/python benchmarks/search_real.py [rate, default 50000] [repeats, default 3]

The limiter is a token bucket. It is full again before the next trial starts. So a trial of d seconds carries rate x d +
burst frames without loss. The true rate for trials of d seconds is rate + burst / d, and errors are relative to this
rate.

A full bucket loses tokens. So a stall at the beginning of a trial costs a part of the burst. The burst must be a small
share of the frames (here 0.8 %). Both methods end with trials of the same length. They alternate, so that foreign work
meets both.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.hosts.linux import add_veth, ip, sysctl
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.threads import dedicate_receive_processing
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import PRESETS
from podperf.methods.trials import ValidTrials
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile
from podperf.quietness.watch import Quietness
from podperf.testers.base import TesterLimits, TesterPort
from podperf.testers.software import SoftwareTester
from search_vs_bisection import bisection
from tester_common import BINARY, end_in_order_when_told_to

BURST = 2000  # frames; with a smaller burst the limiter also drops when the kernel delivers frames in batches
FINAL_TRIAL = 5.0  # seconds
DURATION_SUM = 2 * FINAL_TRIAL  # one good trial is enough, a bad one gets a second chance: as tst009
AIM = 0.01  # of the truth
TESTER, DUT = "h-tester", "h-dut"
TESTER_CPU, DUT_CPU = 0, 1


@contextmanager
def limited_path(rate: int) -> Iterator[None]:
    """Tester ports h-l and h-r in their namespace, and a bridge between them that carries `rate` frames/s."""
    end_in_order_when_told_to()
    host = LocalHost()
    with ExitStack() as undo:
        for name in (TESTER, DUT):
            ip(host, "netns", "add", name)
            undo.callback(ip, host, "netns", "del", name)
            sysctl(NetworkNamespace(name), net__ipv6__conf__all__disable_ipv6=1)
            sysctl(NetworkNamespace(name), net__ipv6__conf__default__disable_ipv6=1)
        dut = NetworkNamespace(DUT)
        ip(dut, "link", "add", "h-br", "type", "bridge")
        ip(dut, "link", "set", "h-br", "up")
        for near, far in (("h-l", "h-dl"), ("h-r", "h-dr")):
            add_veth(host, near=near, far=far, mtu=1500, near_namespace=TESTER, far_namespace=DUT)
            ip(dut, "link", "set", far, "master", "h-br")
            dedicate_receive_processing(dut, far, DUT_CPU)
        dut.do(
            "nft",
            "add table bridge limiter; "
            "add chain bridge limiter forward { type filter hook forward priority 0; }; "
            f"add rule bridge limiter forward limit rate over {rate}/second burst {BURST} packets drop",
        )
        yield


def main() -> int:
    """Print one line a search, then medians; exit code 1 when the median NDR of our search is not within the aim."""
    rate = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    truth = rate + BURST / FINAL_TRIAL
    csit = PRESETS["csit"]
    preset = replace(
        csit,
        goals=tuple(replace(goal, final_trial_duration=FINAL_TRIAL, duration_sum=DURATION_SUM) for goal in csit.goals),
    )
    width = preset.goals[0].relative_width
    print(
        f"limiter {rate} frames/s, burst {BURST}: {truth:.0f} frames/s for trials of {FINAL_TRIAL:g} s; width {width:g}"
    )
    seconds: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    with (
        limited_path(rate),
        SoftwareTester(
            LocalHost(), TesterPort("h-l", TESTER), TesterPort("h-r", TESTER), binary=BINARY, cpus=[TESTER_CPU]
        ) as tester,
    ):
        source = ValidTrials(
            tester,
            AddressedTraffic(TrafficProfile(FrameSize.parse(64))),
            TesterLimits(3.0 * rate, 0.0, "chosen for this benchmark"),
            quietness=Quietness([TESTER_CPU, DUT_CPU]),
        )
        for _ in range(repeats):
            begun = time.monotonic()
            result = NdrPdr(preset).run(source)
            ndr, pdr = (0.0 if each.lower is None else each.lower.load for each in result.goals)
            noise = result.noise.reason if result.noise is not None else None
            note(seconds, errors, "ours", time.monotonic() - begun, ndr / truth - 1, pdr / truth * 0.995 - 1)
            print(f"      {result.trials} trials{f'; {noise}' if noise else ''}", flush=True)
            begun = time.monotonic()
            ndr = bisection(source, FINAL_TRIAL, 0.0, width)
            pdr = bisection(source, FINAL_TRIAL, 0.005, width)
            note(seconds, errors, "bisection", time.monotonic() - begun, ndr / truth - 1, pdr / truth * 0.995 - 1)
    for name, taken in seconds.items():
        print(
            f"{name:10s} median {statistics.median(taken):6.1f} s ({min(taken):.1f} to {max(taken):.1f}), "
            f"NDR error median {statistics.median(errors[name]):+.2%}, worst {max(errors[name], key=abs):+.2%}"
        )
    print(
        f"bisection takes {statistics.median(seconds['bisection']) / statistics.median(seconds['ours']):.2f} x our time"
    )
    return int(abs(statistics.median(errors["ours"])) > AIM)


def note(seconds: dict[str, list[float]], errors: dict[str, list[float]], name: str, *figures: float) -> None:
    """Keep the figures of one search, and show them."""
    taken, ndr_error, pdr_error = figures
    seconds.setdefault(name, []).append(taken)
    errors.setdefault(name, []).append(ndr_error)
    print(f"{name:10s} {taken:6.1f} s  NDR {ndr_error:+.2%}  PDR {pdr_error:+.2%} of the truth", flush=True)


if __name__ == "__main__":
    sys.exit(main())
