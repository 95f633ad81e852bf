"""A claim is judged on chains that really forward, and leaves its rounds on disk and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from podperf.records import schema_errors
from robot_run import ROOT, Robot

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("machine_as_before")]


def test_a_claim_is_judged_and_one_that_cannot_be_is_skipped(tmp_path: Path) -> None:
    tests = ("--test", "MACVLAN over Linux bridge", "--test", "VPP with memif*")
    robot = Robot(tmp_path, *tests, str(ROOT / "tests"), whole_calibration=True)
    found = {each["test"]["name"]: each for each in robot.measured()}

    record = found["MACVLAN over Linux bridge"]
    assert schema_errors(record) == []
    (finding,) = record["findings"]
    assert finding["claim"].startswith("MACVLAN forwards more than a Linux bridge, because ")
    assert finding["verdict"] != "refuted", finding["detail"]
    assert record["reason"] == f"{finding['verdict']}: {finding['detail']}"
    rounds = record["methods"]["comparison"]
    (measured,) = {len(rates) for rates in rounds["rates"].values()}
    assert measured in {8, 12}, "it ends when it is decided"
    lot, names = Random(rounds["seed"]), tuple(rounds["rates"])
    assert rounds["orders"] == [lot.sample(names, 2) for _ in range(measured)], "the order was drawn by lot"
    assert {trial["phase"] for trial in record["trials"]} == set(rounds["rates"]) == set(record["data_plane"])
    assert {link["kind"] for link in record["data_plane"]["macvlan, 1 pod"]["pods"]["pod1"]["links"]} >= {"macvlan"}

    if shutil.which("vpp") is None:
        skipped = found["VPP with memif over OVS-DPDK"]
        assert skipped["outcome"] == "skipped"
        assert "vpp" in skipped["reason"].lower()
        assert not skipped["trials"]


def test_chains_of_one_to_six_pods_are_compared(tmp_path: Path) -> None:
    robot = Robot(tmp_path, "--test", "MACVLAN, 1 to 6 pods", str(ROOT / "tests"), few_rounds=True)
    (record,) = robot.measured()
    assert schema_errors(record) == []
    (finding,) = record["findings"]
    lengths = finding["chain_lengths"]
    assert (lengths["data_plane"], lengths["pods"]) == ("macvlan", [1, 2, 4, 6])
    assert len(lengths["rates"]) == 4
    assert finding["verdict"] != "refuted", finding["detail"]
    # The rounds measure the chains in an order by chance, and the record has them in the order of the first round.
    by_length = sorted((described["pods"] for described in record["data_plane"].values()), key=len)
    for described, pods in zip(by_length, lengths["pods"], strict=True):
        assert set(described) == {f"pod{number}" for number in range(1, pods + 1)}
    assert "rate of each data plane by the number of pods" in (robot.results / "conformance.html").read_text()
