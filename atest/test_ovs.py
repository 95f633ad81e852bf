"""Open vSwitch in user space forwards and describes itself. Each failure has a message, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from chains import forward, local_testbed, need
from podperf.cpu_lists import format_cpu_list
from podperf.dataplanes import ovs_dpdk
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel import hugepages
from podperf.model import Chain
from podperf.pods.forwarders.base import POD_MEMORY
from podperf.testbed import machines
from robot_run import SETTINGS, Robot, podperf

pytestmark = [pytest.mark.distribution, pytest.mark.usefixtures("machine_as_before", "nothing_left", "no_frame_leaves")]
SWITCHES = ["ovs-netdev", "ovs-dpdk", "ovs-afxdp"]


@pytest.mark.parametrize("pods", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SWITCHES)
def test_forwards_both_ways(name: str, pods: int) -> None:
    need(name)
    description = forward(Chain(name, pods), ("64", "1518"))
    assert len(description["flows"]) == 2 * (pods + 1)
    inside = "applications" if name == "ovs-dpdk" else "pods"
    assert len(description[inside]) == pods


def test_what_was_asked_for_is_read_back() -> None:
    need("ovs-dpdk")
    description = forward(Chain("ovs-dpdk", 1))
    assert description["dpdk_initialized"] is True
    config = description["other_config"]
    assert {"pmd-cpu-mask", "dpdk-lcore-mask", "dpdk-extra"} <= set(config)
    (cpus,) = local_testbed().cpu_plans(Chain("ovs-dpdk", 1))
    (switch,) = cpus.switch
    assert config["pmd-cpu-mask"] == hex(1 << switch)
    assert config["dpdk-lcore-mask"] == hex(1 << cpus.main)
    assert description["control_held_to"] == [format_cpu_list(cpus.control)]
    if hugepages.offered(LocalHost()):
        assert sum(description["hugepages_mib"]["ovs-vswitchd"].values()) >= ovs_dpdk.SWITCH_MEMORY
        assert sum(description["hugepages_mib"]["pod1"].values()) >= POD_MEMORY
    text = "\n".join(description["pmd_rxq"])
    assert re.findall(r"core_id (\d+)", text) == [str(switch)]
    for port in ("left", "pod1a", "pod1b", "right"):
        assert port in text
    assert any("packets received" in line for line in description["pmd_stats"])
    (turns, *_) = description["pollers"]
    assert turns["pollers"] >= 1
    assert turns["held_to"] == [str(turns["cpu"])]


# --- failures --------------------------------------------------------------------------------------------------------


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two tests. The first one measures for 20 s, so that the test can kill a process meanwhile."""
    path = tmp_path / "suite.robot"
    path.write_text(
        f"""{SETTINGS}
*** Test Cases ***
Breaks
    Set Up Chain    ovs-dpdk    1    64
    Measure Maximum Receive Rate
    Measure Maximum Receive Rate
    [Teardown]    Tear Down Chain

The Next One
    Set Up Chain    ovs-dpdk    1    64
    [Teardown]    Tear Down Chain
"""
    )
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "cause"),
    [("ovs-vswitchd", "ovs-vswitchd has ended"), ("dpdk-testpmd", "testpmd has ended in namespace podperf-pod1")],
)
def test_a_process_killed_in_mid_trial_is_named(tmp_path: Path, suite: Path, process: str, cause: str) -> None:
    need("ovs-dpdk")
    robot = Robot(tmp_path, str(suite), trials=20, duration=0.5)
    robot.wait_for_trials(1)
    # Not a process of the machine: a process of the run has files in the run directory.
    os.kill(int(LocalHost().ask("pgrep", "--full", rf"^(\S*/)?{process}\S* .*podperf").stdout), signal.SIGKILL)
    assert robot.wait() == 1, robot.output.read_text()
    assert f"Breaks: FAIL: {cause}" in robot.messages()
    assert "The Next One: PASS" in robot.messages()


@pytest.mark.usefixtures("no_reserved_hugepages")
def test_a_killed_run_gives_hugepages_back(tmp_path: Path, suite: Path) -> None:
    need("ovs-dpdk")
    if not hugepages.offered(LocalHost()):
        pytest.skip("the kernel has no hugepages")
    robot = Robot(tmp_path, str(suite), trials=20, duration=0.5)
    robot.kill(after=1)
    assert "hugepages" in podperf("clean").stdout


@pytest.mark.usefixtures("no_reserved_hugepages")
def test_exhausted_hugepages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need("ovs-dpdk")
    if not hugepages.offered(LocalHost()):
        pytest.skip("the kernel has no hugepages")
    monkeypatch.setattr(hugepages, "_write", lambda *_: None)  # the kernel gives no page
    with pytest.raises(PodperfError, match=r"has no 384 MiB of hugepages left: \d+ of 192 pages of 2 MiB are free"):
        forward(Chain("ovs-dpdk", 1))


@pytest.mark.usefixtures("no_reserved_hugepages")
def test_hugepages_that_another_takes_first_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need("ovs-dpdk")
    if not hugepages.offered(LocalHost()):
        pytest.skip("the kernel has no hugepages")
    monkeypatch.setattr(hugepages, "reserve", lambda *_: None)
    with pytest.raises(PodperfError, match=r"Open vSwitch did not start on .*worker: .*(hugepage|memory)"):
        forward(Chain("ovs-dpdk", 1))


def test_without_hugepages_it_forwards_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    need("ovs-dpdk")
    monkeypatch.setattr(hugepages, "offered", lambda *_: False)
    description = forward(Chain("ovs-dpdk", 2))
    assert description["memory"] == "no hugepages"
    assert "--no-huge" in description["other_config"]["dpdk-extra"]


def test_a_port_without_memory_is_named_with_what_the_switch_says(monkeypatch: pytest.MonkeyPatch) -> None:
    need("ovs-dpdk")
    monkeypatch.setattr(hugepages, "offered", lambda *_: False)
    monkeypatch.setattr(ovs_dpdk, "SWITCH_MEMORY", 32)
    monkeypatch.setattr(ovs_dpdk, "port_memory", lambda *_: 0)
    with pytest.raises(PodperfError, match=r"refused the port left: .*: Failed to create mem"):
        forward(Chain("ovs-dpdk", 1))


def test_a_socket_path_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("ovs-dpdk")
    monkeypatch.setattr(machines, "RUN_DIRECTORY", tmp_path / ("long" * 30))
    with pytest.raises(PodperfError, match=r"the socket path .* bytes, and a UNIX socket's has at most 107"):
        forward(Chain("ovs-dpdk", 1))


def test_what_a_killed_switch_left_is_not_in_the_way() -> None:
    need("ovs-netdev")
    folder = RUN_DIRECTORY / "ovs"
    folder.mkdir(parents=True)
    (folder / "conf.db").write_text("half a data")
    (folder / "ovs-vswitchd.pid").write_text("1\n")
    (folder / "db.sock").touch()
    forward(Chain("ovs-netdev", 1))
