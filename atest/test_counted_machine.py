"""The counted machine, booted for real: figures repeat, and a single rule of a firewall shows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from podperf.counted_machine.boot import boot, unavailable
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import PREFIX
from podperf.hosts.network_namespace import NetworkNamespace
from podperf.methods.cost import Cost, LoopSource
from podperf.model import Chain, FrameSize, Loop, TrafficProfile, Trial, TrialResult
from podperf.testbed.access import log_in
from podperf.testbed.run_lock import RunLock
from podperf.testbed.system_under_test import SystemUnderTest, addressed
from podperf.testbed.testbed import LiveTestbed
from podperf.testers.base import UNPACED
from podperf.topology import load_topology
from robot_run import ROOT, Robot

TOPOLOGY = ROOT / "topologies" / "counted.yaml"
BETWEEN_BOOTS = 0.1 / 100
RUN_TIMEOUT = 900  # with an image to build
TRAFFIC = TrafficProfile(FrameSize.parse("64"))
FIREWALL = "table ip t {{\nchain f {{\ntype filter hook forward priority 0; policy accept;\n{}\n}}\n}}\n"

pytestmark = [
    pytest.mark.skipif(os.environ.get("PODPERF_COUNTED") != "1", reason="takes minutes: only with PODPERF_COUNTED=1"),
    pytest.mark.usefixtures("machine_as_before"),
]


@pytest.fixture(autouse=True, scope="module")
def needs_qemu() -> None:
    if reason := unavailable(LocalHost()):
        pytest.skip(reason)


def figures(folder: Path) -> dict[str, list[float]]:
    """The figures of a run of three rows, by the test's name."""
    folder.mkdir()
    chosen = [
        word for each in ("wire", "macvlan", "tc-redirect-peer") for word in ("--include", f"{each}AND64BANDquick")
    ]
    robot = Robot(folder, *chosen, str(ROOT / "tests"), topology=TOPOLOGY.read_text())
    assert robot.wait(RUN_TIMEOUT) == 0, robot.output.read_text()
    records = robot.records()
    return {
        each["test"]["name"]: [found["instructions_per_frame"] for found in each["results"].values()]
        for each in records
    }


def test_the_same_command_twice_gives_the_same_figures(tmp_path: Path) -> None:
    one, other = figures(tmp_path / "one"), figures(tmp_path / "other")
    assert len(one) == 3 and all(len(each) == 2 for each in one.values())
    for name, found in one.items():
        assert other[name] == pytest.approx(found, rel=BETWEEN_BOOTS), name


@pytest.fixture(scope="module")
def testbed() -> Iterator[LiveTestbed]:
    """A testbed on a counted machine."""
    with RunLock(), ExitStack() as undo:
        here = LocalHost()
        topology = boot(here, print, undo).as_lab(load_topology(TOPOLOGY, DATA_PLANES))
        inside = log_in("worker", topology.workers[0].ssh, here, undo)
        yield LiveTestbed.on(topology, inside, [inside])


def with_rules(testbed: LiveTestbed, rules: int) -> float:
    """Instructions a frame through a pod whose firewall has this many rules. No rule matches the frames."""

    def loop(sut: SystemUnderTest, traffic: TrafficProfile, asked: Loop) -> TrialResult:
        result = sut.tester.measure(Trial(traffic, UNPACED, 10.0, asked))
        assert result.invalid is None
        return result

    @contextmanager
    def build() -> Iterator[LoopSource]:
        with testbed.build(Chain("macvlan", 1), TRAFFIC.frame) as sut:
            pod = NetworkNamespace(f"{PREFIX}pod1", testbed.tester_host)
            drops = "\n".join(f"ip saddr 203.0.113.{number} drop" for number in range(1, rules + 1))
            pod.do("nft", "-f", "-", stdin=FIREWALL.format(drops))
            traffic = addressed(TRAFFIC, sut)
            sut.probe(traffic)
            yield partial(loop, sut, traffic)

    builds, _ = Cost().run(build)
    return builds[1].least


def test_one_rule_more_is_found_by_one_run(testbed: LiveTestbed) -> None:
    nine, ten = with_rules(testbed, 9), with_rules(testbed, 10)
    assert 50 < ten - nine < 90, "a rule costs about 70 instructions"
