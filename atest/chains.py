"""Chains for the tests of data planes: built on this machine, and sent frames across."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from attempts import first
from machine import program_in
from podperf.cpu_plan import CpuPlan
from podperf.dataplanes import DATA_PLANES
from podperf.frames import PLAIN, Headers
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import PREFIX
from podperf.model import BOTH_DIRECTIONS, Chain, DirectionResult, FrameSize, TrafficProfile, Trial
from podperf.pods.forwarders.dpdk import DpdkApplication
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, load_topology
from robot_run import ROOT


def local_testbed() -> Testbed:
    """The testbed of topologies/local.yaml."""
    topology = load_topology(ROOT / "topologies/local.yaml", DATA_PLANES)
    host = LocalHost()
    return Testbed.on(topology, host, [host])


def remote_testbed(worker: Host, topology: Topology) -> Testbed:
    """The testbed of a topology with its worker on another machine. CPUs are placed as in a run."""
    return Testbed.on(topology, LocalHost(), [worker])


def need(name: str) -> None:
    """Skip the test, with the reason, if this machine cannot run a data plane."""
    if reason := DATA_PLANES[name].unavailable(LocalHost()):
        pytest.skip(reason)


def end(pod: str, program: str) -> None:
    """Kill the process of this program that runs in a pod, or in the worker's own namespace (`worker`)."""
    inside = LocalHost().ask("ip", "netns", "pids", f"{PREFIX}{pod}").stdout.split()
    (process,) = (each for each in inside if program_in(int(each)) == program)
    os.kill(int(process), signal.SIGKILL)


def send(sut: SystemUnderTest, size: str = "64", headers: Headers = PLAIN) -> None:
    """Send frames of this size in both directions. Nearly all must arrive, unchanged and once, in one of several
    trials.

    In each trial some frames may be lost: the tester does not wait for frames in flight while a hypervisor stops a CPU.
    """
    frame = FrameSize.parse(size).at_least(headers.smallest_frame)
    traffic = addressed(TrafficProfile(frame, BOTH_DIRECTIONS, 16, headers), sut)

    def measure() -> Sequence[DirectionResult]:
        sut.probe(traffic)
        directions = sut.tester.measure(Trial(traffic, 2000, 0.1)).directions
        assert not any(direction.duplicated or direction.corrupted for direction in directions), directions
        sut.check()
        return directions

    first(lambda directions: all(direction.received >= 0.9 * direction.sent > 0 for direction in directions), measure)


def forward(
    chain: Chain,
    sizes: Sequence[str] = ("64",),
    testbed: Testbed | None = None,
    cpus: Sequence[CpuPlan] = (),
    headers: Headers = PLAIN,
) -> dict[str, Any]:
    """Set the chain up, here or on `testbed`, and send frames of each size across it. Returns the data plane's
    description."""
    largest = max(map(FrameSize.parse, sizes), key=lambda frame: frame.largest)
    with (testbed or local_testbed()).build(chain, largest, cpus=cpus, headers=headers) as sut:
        for size in sizes:
            send(sut, size, headers)
        return dict(sut.describe())


def process_in_container(sut: SystemUnderTest) -> Path:
    """The process of the one application, in /proc. It has its own process numbers, namespaces and root file
    system, which is read-only, and podperf's control groups."""
    (application,) = sut.data_planes[0].applications
    assert isinstance(application, DpdkApplication)
    process = Path("/proc") / str(application.process.pid)
    assert (process / "comm").read_text().startswith("dpdk-testpmd")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    assert len(status["NSpid"].split()) == 2
    ours = [Path("/proc/self/ns") / kind for kind in ("mnt", "pid", "net", "ipc", "uts")]
    assert all(our.readlink() != (process / "ns" / our.name).readlink() for our in ours)
    root = next(line.split() for line in (process / "mounts").read_text().splitlines() if line.split()[1] == "/")
    assert "ro" in root[3].split(",")
    assert (process / "cgroup").read_text() == Path("/proc/self/cgroup").read_text()
    return process
