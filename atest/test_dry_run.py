"""A plan has the same commands as a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from chains import need
from namespaces import add_namespace
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.linux import add_veth
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.model import Chain, FrameSize
from podperf.preflight.plan import plan, record
from podperf.preflight.recording import Recording, RecordingHost, Step
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.placement import place
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, load_topology
from robot_run import ROOT

pytestmark = pytest.mark.distribution
SMALL = FrameSize.parse(64)
CABLED = """
version: 1
name: cabled
tester:
  settings: {engine: xdp}
  ports:
    left: {interface: near-left, namespace: test-lab}
    right: {interface: near-right, namespace: test-lab}
workers:
  - ports:
      left: {interface: far-left, driver: veth}
      right: {interface: far-right, driver: veth}
"""
SHARED_MEMORY = re.compile(r"\bpodperf-[0-9a-f]{8}\b")
# Open vSwitch chooses the number of its threads beside the pollers. Each is pinned to the worker's CPUs.
SWITCH_THREAD = re.compile(r"<thread \d+ of those named \*>")


@pytest.mark.usefixtures("machine_as_before", "no_reserved_hugepages")
@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("linux-bridge", 1),
        ("linux-bridge", 2),
        ("ptp", 1),
        ("macvlan", 1),
        ("routed", 1),
        ("ovs-netdev", 1),
        ("ovs-dpdk", 1),
        ("memif", 2),
        ("tc-redirect", 1),
        ("xdp-redirect", 1),
        ("wire", 0),
    ],
)
def test_a_run_does_what_the_plan_says(name: str, pods: int) -> None:
    compare(load_topology(ROOT / "topologies/local.yaml", DATA_PLANES), Chain(name, pods))


@pytest.fixture
def cables() -> Iterator[None]:
    """Two ports of this machine, cabled to two others in a namespace; not made by podperf."""
    host = LocalHost()
    with ExitStack() as undo:
        lab = add_namespace("lab", undo)
        for side in ("left", "right"):
            add_veth(host, near=f"near-{side}", near_namespace=lab.namespace, far=f"far-{side}", mtu=1500)
        yield


@pytest.mark.usefixtures("machine_as_before", "no_reserved_hugepages", "cables")
@pytest.mark.parametrize("name", ["linux-bridge", "ovs-dpdk"])
def test_a_run_does_with_ports_that_exist_what_the_plan_says(name: str, tmp_path: Path) -> None:
    file = tmp_path / "cabled.yaml"
    file.write_text(CABLED)
    compare(load_topology(file), Chain(name, 1))


def compare(topology: Topology, chain: Chain) -> None:
    """Set the chain up, take it down, and compare the commands with the plan."""
    need(chain.data_plane)
    cpus, recording = read_cpus(LocalHost()), Recording()
    host = RecordingHost(LocalHost(), recording)
    testbed = Testbed(topology, [WorkerMachine(topology.workers[0], host, place(topology, cpus))], host)
    with RunLock():
        done = record(testbed, chain, SMALL, recording)
    planned = plan(topology, chain, SMALL, cpus).steps
    assert shown(planned) == shown(done)


def shown(steps: Sequence[Step]) -> list[tuple[str, ...]]:
    """The steps, those that hold the threads of a switch as one, without the random names of shared memory."""
    texts = [
        replace(
            step, text=SWITCH_THREAD.sub("<thread>", step.text), content=SHARED_MEMORY.sub("<random>", step.content)
        )
        for step in steps
    ]
    said = [(text.phase, text.host, text.namespace, text.kind, text.text, text.content) for text in texts]
    return [one for one, before in zip(said, [None, *said], strict=False) if "<thread>" not in one[4] or one != before]
