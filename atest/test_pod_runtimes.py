"""Pods that are containers of runc: every data plane forwards through them, and nothing of them stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from chains import forward, local_testbed, need, process_in_container, send
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Cabling
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from podperf.model import Chain, End, Ends, FrameSize, NetworkingModel
from podperf.pods.forwarders.dpdk import DpdkApplication
from podperf.pods.runc import RuncPods
from podperf.testbed.testbed import Testbed
from podperf.topology import PodSettings
from robot_run import Robot, mrr_suite, podperf

MISSING = RuncPods.unavailable(LocalHost())
pytestmark = [
    pytest.mark.usefixtures("machine_as_before"),
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]
MODELS = {NetworkingModel.KERNEL_SPACE, NetworkingModel.USER_SPACE, NetworkingModel.EBPF}  # sections 4.1.1 to 4.1.3
TOPOLOGY = """
version: 1
name: containers
pods: {runtime: runc}
method: {search: quick, mrr: {trials: %d, duration: 0.2}}
"""
OF_SECTIONS = [name for name, kind in DATA_PLANES.items() if kind.model in MODELS and kind.cabling is Cabling.WORKER]
QUICK_OF_ALL = ["linux-bridge", "routed", "macvlan", "tc-redirect", "xdp-redirect", "af-xdp", "memif", "ovs-dpdk"]


@pytest.fixture
def testbed() -> Testbed:
    found = local_testbed()
    found.topology = replace(found.topology, pods=PodSettings("runc"))
    return found


def least(name: str) -> Chain:
    """The shortest chain of a data plane that has a pod."""
    return Chain(name, max(1, DATA_PLANES[name].least_pods))


@pytest.mark.parametrize("name", QUICK_OF_ALL)
def test_a_data_plane_forwards_through_containers(testbed: Testbed, name: str) -> None:
    need(name)
    runtime = forward(least(name), testbed=testbed)["runtime"]
    assert runtime["kind"] == "containers of runc"
    assert runtime["runc"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OF_SECTIONS if name not in QUICK_OF_ALL])
def test_so_does_every_other_one_of_the_sections(testbed: Testbed, name: str) -> None:
    need(name)
    try:
        forward(Chain(name, 2), testbed=testbed)
    except Unavailable as reason:  # for example: busy polling with a driver that has none
        pytest.skip(str(reason))


def test_an_application_is_in_its_container(testbed: Testbed) -> None:
    """An application has its own process numbers and root file system, which is read-only. It has podperf's control
    groups.

    In other control groups, its pollers could not take turns.
    """
    need("af-xdp")
    with testbed.build(Chain("af-xdp", 1), FrameSize.parse(64)) as sut:
        send(sut)
        process_in_container(sut)
        shown = LocalHost().ask("runc", "--root", "/run/podperf/runc/state", "list", "--quiet").stdout
        assert shown.split() == ["podperf-pod1"]


def test_two_containers_of_one_pod_have_its_network_and_their_own_programs(testbed: Testbed) -> None:
    need("memif")
    with testbed.build(Chain("memif", 0, ends=Ends(End.CONTAINER, End.CONTAINER)), FrameSize.parse(64)) as sut:
        send(sut)
        programs = [each for each in sut.applications if isinstance(each, DpdkApplication)]
        spaces = [Path("/proc") / str(each.process.pid) / "ns" for each in programs]
        kinds = ("net", "mnt", "pid", "ipc", "uts")
        shared = [kind for kind in kinds if len({(each / kind).readlink() for each in spaces}) == 1]
        assert (len(programs), shared) == (2, ["net"])
        assert {port["namespace"] for port in sut.tester.describe()["ports"].values()} == {"podperf-end-left"}
        shown = LocalHost().ask("runc", "--root", "/run/podperf/runc/state", "list", "--quiet").stdout
        assert sorted(shown.split()) == ["podperf-end-left", "podperf-end-right"]


def test_a_killed_run_with_containers_then_clean(tmp_path: Path) -> None:
    need("memif")
    robot = Robot(tmp_path, mrr_suite(tmp_path, Long="memif    2    64"), topology=TOPOLOGY % 500)
    robot.kill(after=1)
    cleaned = podperf("clean")
    assert "podperf-pod2" in cleaned.stdout
    assert "nothing" in podperf("clean").stdout
