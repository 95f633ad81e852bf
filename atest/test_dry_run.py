"""A plan is what a run then does: the commands of both, side by side."""

from __future__ import annotations

import pytest

from chains import need
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.model import Chain, FrameSize
from podperf.preflight.journal import Journal, RecordingHost, Step
from podperf.preflight.plan import plan, record
from podperf.testbed.placement import place
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.topology import load_topology
from robot_run import ROOT

SMALL = FrameSize.parse(64)


@pytest.mark.usefixtures("machine_as_before")
@pytest.mark.parametrize(
    ("name", "pods"),
    [
        ("linux-bridge", 1),
        ("linux-bridge", 2),
        ("ptp", 1),
        ("macvlan", 1),
        ("routed", 1),
        ("ovs-netdev", 1),
        ("memif", 2),
    ],
)
def test_a_run_does_what_the_plan_says(name: str, pods: int) -> None:
    need(name)
    topology = load_topology(ROOT / "topologies/local.yaml", DATA_PLANES)
    cpus, chain = read_cpus(LocalHost()), Chain(name, pods)
    journal = Journal()
    testbed = Testbed(topology, place(topology, cpus), RecordingHost(LocalHost(), journal))
    with RunLock():
        done = record(testbed, chain, SMALL, journal)
    planned = plan(topology, chain, SMALL, cpus).steps
    assert [shown(each) for each in planned] == [shown(each) for each in done]


def shown(step: Step) -> tuple[str, ...]:
    return step.phase, step.host, step.namespace, step.kind, step.text, step.content
