"""Realistic records that no machine measured. Tests of reports use them.

`python utest/made_up.py FOLDER` writes the records of a whole run there. So a person can look at its report.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.figures import count
from podperf.methods.cost import Builds, CostResult
from podperf.methods.functions import Functions, Profile
from podperf.metrics import Measured, Metrics
from podperf.model import (
    AddressedTraffic,
    Chain,
    Direction,
    DirectionResult,
    FrameSize,
    Latency,
    NetworkingModel,
    Placement,
    TrafficProfile,
    Trial,
    TrialResult,
    bucket_index,
)
from podperf.noise import Noise
from podperf.records import RecordWriter, TestRecord, record_id
from podperf.testers import base
from podperf.thresholds import judge
from podperf.topology import (
    MethodSettings,
    PortSettings,
    SoftwareSettings,
    Threshold,
    Topology,
    TrafficSettings,
    WorkerSettings,
)
from podperf.topology import TesterSettings as Tester

LEFT_TO_RIGHT = (Direction.LEFT_TO_RIGHT,)
CEILING = {"64B": 4_570_000.0, "1518B": 4_400_000.0, "IMIX": 4_450_000.0}
TOPOLOGY = Topology(
    path="topologies/local.yaml",
    name="local",
    description="one machine",
    tester=Tester(SoftwareSettings(), None, PortSettings(), PortSettings()),
    workers=(WorkerSettings("local", None),),
    traffic=TrafficSettings(LEFT_TO_RIGHT, 1),
    method=MethodSettings("quick", 5, 1.0),
    labels={"rack": "none"},
)
THRESHOLDS = (
    Threshold("mrr", "ratio of baseline", minimum=0.01),
    Threshold("latency_p99", "us", maximum=2000),
)
ENVIRONMENT: Mapping[str, Any] = {
    "host": "vm",
    "platform": {
        **dict.fromkeys(("vendor", "product", "board")),
        "bios": {"vendor": None, "version": None, "date": None},
        "hypervisor_flag": True,
        "virtualisation": "kvm",
    },
    "cpu": {
        **{"model": "Intel(R) Xeon(R) Processor @ 2.50GHz", "microcode": "0x1", "online": "0-1"},
        **{"sockets": 1, "cores_per_socket": 2, "threads_per_core": 1},
        **dict.fromkeys(("isolated", "governor", "turbo")),
    },
    "memory": {"total_bytes": 25276514304, "devices": None},
    "numa_nodes": [{"node": 0, "cpus": "0-1", "memory_bytes": 25276514304}],
    "hugepages": [{"of_mib": 2.0, "total": 0, "free": 0}],
    "kernel": {
        "release": "6.18.44",
        "version": "#1 SMP PREEMPT_DYNAMIC",
        "command_line": "console=ttyS0 quiet mitigations=auto",
        "clocksource": "tsc",
    },
    "distribution": "Debian GNU/Linux 12 (bookworm)",
    "mitigations": {"meltdown": "Not affected", "retbleed": "Mitigation: Enhanced IBRS", "spectre_v1": "Mitigation: x"},
    "packages": {"iproute2": "6.1.0-3", "containernetworking-plugins": "1.1.1+ds1-3+b5", "nftables": "1.0.6-2"},
    "podperf": {"version": "0.1.0", "commit": "e192d21aa", "modified": False, "python": "3.11.2", "packages": {}},
}
TESTER = {
    "name": "podperf-tester",
    "version": "0.1.0",
    "engine": "xdp",
    "ports": {"left": {"mac": "02:00:00:00:00:01"}, "right": {"mac": "02:00:00:00:00:02"}},
}


def latency(middle_ns: int) -> Latency:
    """A latency distribution around this median, with a tail."""
    counts = {
        bucket_index(int(middle_ns * factor)): count for factor, count in ((0.8, 300), (1, 600), (1.5, 90), (6, 10))
    }
    return Latency(int(middle_ns * 0.7), middle_ns * 1.1, middle_ns * 8, counts)


def trial(traffic: AddressedTraffic, load: float, capacity: float, seed: float = 0.0) -> TrialResult:
    """A trial of one second. The system carries `capacity` frames/s and loses the other frames."""
    sent = int(load)
    lost = max(0, sent - int(capacity * (1 + seed)))
    result = DirectionResult(traffic.directions[0], sent, sent, sent - lost, 0, 0, 0, 1.0, latency=latency(16_000))
    return TrialResult(Trial(traffic, load, 1.0), 1.7951e9, (result,), elapsed=1.05)


def forwarding_record(
    data_plane: str, capacity: float, *, pods: int = 1, frame: str = "64", seed: int = 1, started: float = 1.7951e9
) -> tuple[TestRecord, list[tuple[TrialResult, str]]]:
    """A test that passed or failed by its thresholds, and its trials with their phases."""
    size = FrameSize.parse(frame)
    traffic = AddressedTraffic(TrafficProfile(size, LEFT_TO_RIGHT))
    chance = random.Random(seed)
    ceiling = CEILING[size.name]
    capacity = min(capacity, ceiling)
    trials = [(trial(traffic, ceiling, capacity, chance.uniform(-0.04, 0.04)), "mrr") for _ in range(5)]
    low, high = capacity / 3, ceiling
    while high / low > 1.03:
        middle = (low * high) ** 0.5
        result = trial(traffic, middle, capacity * 0.93, chance.uniform(-0.01, 0.01))
        trials.append((result, "ndrpdr"))
        low, high = (middle, high) if result.loss_ratio <= 0.005 else (low, middle)
    rates = sorted(each.receive_rate for each, phase in trials if phase == "mrr")
    limited = capacity >= 0.95 * ceiling
    metrics: Metrics = {
        "mrr": Measured(rates[2], rates[0], rates[-1], limited),
        "ndr": Measured(low * 0.8, low * 0.8, low * 0.83, limited),
        "pdr": Measured(low, low, high, limited),
        "latency_p50": Measured(16_000.0 if pods else 1_200.0),
        "latency_p99": Measured(96_000.0 if pods else 2_100.0),
        "delay_variation": Measured(140_000.0 if pods else 3_200.0),
    }
    baseline: Metrics = {"mrr": Measured(ceiling, lower_bound=True)}
    chain = Chain(data_plane, pods, "kernel")
    verdict = judge(THRESHOLDS, size, metrics, baseline)
    record = TestRecord(
        id=record_id("4.1.1" if pods else "4.1", data_plane, count(pods, "pod"), size.name),
        name=f"{data_plane.replace('-', ' ').capitalize()}, {size.name.replace('B', ' B')}"
        + (f", {pods} pods" if pods > 1 else ""),
        suite="4.1 networking models.4.1.1 kernel space",
        tags=["sec-4.1.1" if pods else "sec-4.1", "kernel-space", data_plane, size.name, "quick"],
        started=started,
        ended=started + 20,
        outcome="failed" if verdict.failed else "passed",
        topology=TOPOLOGY,
        model=NetworkingModel.KERNEL_SPACE if pods else NetworkingModel.NONE,
        chain=chain,
        traffic=traffic,
        placement=Placement((0,), (1,)),
        cpu_plans=[plan_cpus(Placement((0,), (1,)), pods, with_switch=DATA_PLANES[data_plane].switch_has_cpus)]
        if pods
        else [],
        data_plane={"kind": data_plane, "cni_plugin": "bridge 1.1.1", "mtu": 3000},
        tester=TESTER,
        limits=base.TesterLimits(ceiling, 0.0, "calibration on the bare path"),
        environment=ENVIRONMENT,
        methods={"mrr": {"method": "mrr"}, "ndrpdr": {"method": "ndrpdr"}},
        metrics=metrics,
        latency=latency(16_000),
        latency_of="the last trial at the NDR",
        noises={"mrr": Noise((0, 1), 12.0, 0.0, {}, 900, 2, 0.01)},
        baseline="4.1.1-wire-0pods-64B-mrr-ndrpdr" if pods else None,
        thresholds=THRESHOLDS,
        verdict=verdict,
    )
    return record, trials


def counted_record(
    data_plane: str, functions: Functions, *, missing: str | None = None, started: float = 1.7951e9
) -> TestRecord:
    """A test on a counted machine whose frames take these instructions, and two thirds of them in bursts."""
    record, _ = forwarding_record(data_plane, 281e3, started=started)
    builds = {burst: _builds(functions, share, missing) for burst, share in ((1, 1.0), (32, 0.625))}
    result = CostResult(builds, {burst: Builds((2382.0,)) for burst in builds}, {})
    record.topology = replace(TOPOLOGY, name="counted")
    record.methods, record.metrics = {"cost": result.as_record()}, result.metrics
    record.latency = record.latency_of = record.limits = record.verdict = record.baseline = None
    record.thresholds, record.noises, record.outcome = (), {}, "passed"
    return record


_INSTRUCTIONS_FOR_ONE = {"loads": 4, "stores": 8, "lines": 32}


def _builds(functions: Functions, share: float, missing: str | None) -> Builds:
    least = 2382.0 + sum(functions.values()) * share
    if missing:
        return Builds((least, least + 2), functions_missing=missing)
    taken = {name: amount * share for name, amount in functions.items()}
    memory = {
        what: {name: amount / divisor for name, amount in taken.items()}
        for what, divisor in _INSTRUCTIONS_FOR_ONE.items()
    }
    return Builds((least, least + 2), Profile(taken, {**memory, "misses": {}}))


def skipped_record(data_plane: str, reason: str) -> TestRecord:
    """A test that the testbed could not offer."""
    return TestRecord(
        id=record_id("4.1.1", data_plane, "1 pod", "64B"),
        name=f"{data_plane}, 64 B",
        suite="4.1 networking models.4.1.1 kernel space",
        tags=["sec-4.1.1", "kernel-space"],
        started=1.7951e9 + 900,
        ended=1.7951e9 + 900,
        outcome="skipped",
        reason=reason,
        chain=Chain(data_plane, 1, "kernel"),
        traffic=AddressedTraffic(TrafficProfile(FrameSize.parse(64), LEFT_TO_RIGHT)),
    )


def write(folder: Path, record: TestRecord, trials: list[tuple[TrialResult, str]] | None = None) -> Path:
    """One finished record on disk."""
    writer = RecordWriter(folder / "records", record)
    for result, phase in trials or ():
        writer.trial(result, phase)
    return writer.finish(record)


def document(record: TestRecord, trials: list[tuple[TrialResult, str]], folder: Path) -> dict[str, Any]:
    """A finished record, in the form in which a report reads it."""
    return dict(json.loads(write(folder, record, trials).read_text()))


def write_run(folder: Path, *, shift: float = 1.0, started: float = 1.7951e9) -> None:
    """A run like the quick one: baselines, data planes, chains, a failure, noise, skips, an interrupted test."""
    rates = {"linux-bridge": 281e3, "ptp": 508e3, "macvlan": 816e3, "routed": 242e3, "docker": 231e3}
    at = started
    for frame in ("64", "1518"):
        write(folder, *forwarding_record("wire", 9e6, pods=0, frame=frame, started=at))
        for number, (data_plane, rate) in enumerate(rates.items()):
            at += 25
            record, trials = forwarding_record(data_plane, rate * shift, frame=frame, seed=number, started=at)
            if (data_plane, frame) == ("macvlan", "1518"):
                record.noises = {"mrr": Noise((0, 1), 12.0, 0.0, {"stress-ng-cpu (4711)": 5.5}, 900, 4, 0.01)}
            write(folder, record, trials)
    for pods in (2, 4):
        rate = 281e3 / (pods * 0.8) * shift
        write(folder, *forwarding_record("linux-bridge", rate, pods=pods, started=at + pods))
    write(folder, *forwarding_record("docker", 21e3, frame="IMIX", started=at + 30))
    write(folder, skipped_record("ipvlan", "the kernel has no ipvlan (CONFIG_IPVLAN)"))
    write(folder, skipped_record("ovs-kernel", "the kernel has no openvswitch datapath and cannot load modules"))
    security = TestRecord(
        "5-isolation", "No frame leaves the testbed's links", "5 security", ["sec-5"], at + 50, at + 55, "passed"
    )
    write(folder, security)
    interrupted, trials = forwarding_record("macvlan", 816e3, frame="IMIX", started=at + 60)
    interrupted.ended, interrupted.outcome = None, "interrupted"
    interrupted.metrics, interrupted.verdict, interrupted.latency = {}, None, None
    writer = RecordWriter(folder / "records", interrupted)
    for result, phase in trials[:7]:
        writer.trial(result, phase)
    writer.close()


if __name__ == "__main__":
    write_run(Path(sys.argv[1]), shift=float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
