"""podperf measures the published rows that this machine supports, and skips the others with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from chains import local_testbed, need
from few_rounds import ROUNDS
from podperf.hosts.local import LocalHost
from podperf.model import Chain, FrameSize
from podperf.records import schema_errors
from podperf.testbed.run_lock import RunLock
from robot_run import ROOT, Robot


@pytest.mark.slow
@pytest.mark.suites
@pytest.mark.usefixtures("machine_as_before")
def test_what_can_be_measured_is_and_the_rest_is_skipped_with_the_reason(tmp_path: Path) -> None:
    need("memif")
    chosen = (
        "Memif, 1n2p 1n4p 1n6p, 64 B",
        "OVS-DPDK in S1 to S6, 64 B",
        "VFs and VPP, 1n2p 2n4p*",
        "SR-IOV: exclusive over*",
    )
    tests = [word for name in chosen for word in ("--test", name)]
    robot = Robot(tmp_path, *tests, str(ROOT / "tests"), few_rounds=True)
    assert robot.wait(600) == 0, robot.messages()
    found = {each["test"]["name"]: each for each in robot.records()}
    assert len(found) == len(chosen)

    record = found[chosen[0]]
    assert schema_errors(record) == []
    (finding,) = record["findings"]
    assert finding["claim"].startswith("Increase number of pod slightly reduce throughput")
    assert record["reason"] == f"{finding['verdict']}: {finding['detail']}"
    rounds = record["methods"]["comparison"]
    assert list(rounds["rates"]) == ["1n2p memif", "1n4p memif", "1n6p memif"]
    assert all(len(rates) == ROUNDS and min(rates) > 0 for rates in rounds["rates"].values())
    assert set(record["data_plane"]) == set(rounds["rates"])
    published = record["methods"]["published"]
    assert (published["sought_loss_ratio"], published["unit"]) == (0.001, None), "as the slides have it"
    assert [(row["name"], row["measured_as"]) for row in published["rows"]] == [
        (name, "NDR") for name in rounds["rates"]
    ]
    assert all(row["l2_gigabits"] > 0 for row in published["rows"])

    reasons = {name: each["reason"] for name, each in found.items() if each["outcome"] == "skipped"}
    assert len(reasons) == len(chosen) - 1
    assert "offers SR-IOV virtual functions" in reasons["VFs and VPP, 1n2p 2n4p, 256 B"]
    assert "the worker has one node" in reasons["OVS-DPDK in S1 to S6, 64 B"]
    assert not any(found[name]["trials"] for name in reasons)


@pytest.mark.usefixtures("machine_as_before")
def test_pods_that_share_a_pool_may_run_on_all_of_it() -> None:
    need("memif")
    host, pool = LocalHost(), local_testbed().workers[0].placement.tester + local_testbed().workers[0].placement.sut
    with RunLock(), local_testbed().build(Chain("memif", 2), FrameSize.parse(64)) as sut:
        for application in sut.data_planes[0].applications:
            application.allow(pool)
        for pod in ("podperf-pod1", "podperf-pod2"):
            for process in host.ask("ip", "netns", "pids", pod).stdout.split():
                said = host.ask("taskset", "--all-tasks", "--cpu-list", "--pid", process).stdout.splitlines()
                allowed = {line.rsplit(": ", 1)[1] for line in said}
                assert allowed <= {",".join(map(str, pool)), f"{pool[0]}-{pool[-1]}"}, said
                assert len(said) > 1, "the list has more than one thread: polling threads, too"
