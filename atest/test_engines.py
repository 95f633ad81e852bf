"""Pods that are containers of Docker and of Podman, with engines of Debian's packages that the tests start."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

import container_engines
from chains import forward, local_testbed, need, process_in_container, send
from podperf.allocation import PodAllocation, PodLimits
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.local import LocalHost
from podperf.kernel.control_groups import missing
from podperf.model import Chain, FrameSize
from podperf.pods import POD_RUNTIMES
from podperf.testbed.run_lock import RunLock
from podperf.testbed.scenarios import Node, Scenario
from podperf.testbed.testbed import Testbed
from podperf.topology import PodSettings
from robot_run import Robot, mrr_suite, podperf

pytestmark = pytest.mark.usefixtures("machine_as_before", "engine")
ENGINES: dict[str, Callable[[Path], AbstractContextManager[dict[str, str]]]] = {
    "docker": container_engines.docker,
    "podman": container_engines.podman,
}
LIMITS = PodLimits(cpu=0.25, memory=192)
QUICK = ["linux-bridge", "macvlan", "af-xdp", "memif"]
TOPOLOGY = """
version: 1
name: containers
pods: {runtime: %s}
method: {search: quick, mrr: {trials: 500, duration: 0.2}}
"""


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an engine that podperf finds. It has no container at the end."""
    name = str(request.param)
    with pytest.MonkeyPatch.context() as patch, ENGINES[name](tmp_path_factory.mktemp(name)) as variables:
        for variable, value in variables.items():
            patch.setenv(variable, value)
        assert POD_RUNTIMES[name].unavailable(LocalHost()) is None
        yield name
        assert left_in(name) == []


@pytest.fixture
def testbed(engine: str) -> Testbed:
    found = local_testbed()
    found.topology = replace(found.topology, pods=PodSettings(engine))
    return found


def left_in(engine: str) -> list[str]:
    """The containers and images of an engine."""
    questions = (["ps", "--all", "--format", "{{.Names}}"], ["images", "--format", "{{.Repository}}"])
    asked = [subprocess.run([engine, *each], capture_output=True, text=True, check=True) for each in questions]
    return [line for each in asked for line in each.stdout.split()]


@pytest.mark.parametrize("name", QUICK)
def test_a_data_plane_forwards_through_containers(testbed: Testbed, engine: str, name: str) -> None:
    need(name)
    runtime = forward(Chain(name, max(1, DATA_PLANES[name].least_pods)), testbed=testbed)["runtime"]
    assert runtime["kind"] == f"containers of {engine}"
    assert runtime[engine]
    assert (runtime["storage_driver"], runtime["cgroup_manager"]) == ("vfs", "cgroupfs")
    assert left_in(engine) == []


def test_an_application_is_in_its_container(testbed: Testbed, engine: str) -> None:
    """An application has its own process numbers, network and root file system, which is read-only. Without limits, it
    has podperf's control groups: in others, its pollers could not take turns."""
    need("af-xdp")
    with testbed.build(Chain("af-xdp", 1), FrameSize.parse("64")) as sut:
        send(sut)
        process = process_in_container(sut)
        assert not {"HOME", "DOCKER_HOST", "CONTAINERS_CONF"} & set(
            re.split("[=\0]", (process / "environ").read_text())
        )
        assert left_in(engine) == ["podperf-pod1", "localhost/podperf"]
    assert not process.exists()


def test_the_engine_keeps_the_limits_of_a_pod(testbed: Testbed) -> None:
    need("af-xdp")
    if reason := missing(LocalHost(), LIMITS):
        pytest.skip(reason)
    scenario = Scenario("limited", Node.ANY, (Node.ANY,), allocation=PodAllocation(LIMITS))
    chain = Chain("af-xdp", 1)
    with RunLock(), testbed.build_placed(testbed.place_scenario(scenario, chain), chain, FrameSize.parse("64")) as sut:
        told = sut.describe()["limits"]["pod1"]
        assert (told["cpu"], told["memory_mib"]) == (0.25, 192)
        assert told["inspected"] == {"cpu": 0.25, "memory_mib": 192}
        assert told["processes"] >= 1


def test_a_killed_run_leaves_no_container(engine: str, tmp_path: Path) -> None:
    need("memif")
    robot = Robot(tmp_path, mrr_suite(tmp_path, Long="memif    2    64"), topology=TOPOLOGY % engine)
    robot.wait_for_trials(1)
    assert "podperf-pod2" in left_in(engine)
    robot.kill()
    assert "podperf-pod2" in podperf("clean").stdout
    assert left_in(engine) == []
    assert "nothing" in podperf("clean").stdout
