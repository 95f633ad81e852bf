"""A package of somebody else brings a data plane and a tester: those of docs/third-party.md are measured."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from page_package import block, write_package, write_topology
from robot_run import ROOT, Robot

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.usefixtures("machine_as_before"),
]


@pytest.mark.slow
def test_data_plane_and_tester_of_a_folder_that_the_topology_names_measure(tmp_path: Path) -> None:
    write_package(tmp_path)
    suite = tmp_path / "acme.robot"
    suite.write_text(block("robotframework").replace("podperf/resources", f"{ROOT}/resources"))
    topology = block("yaml").replace("trials: 5, duration: 1", "trials: 1, duration: 0.2")
    robot = Robot(tmp_path, "--test", "Acme switch, 64 B", str(suite), topology=topology, short_search=True)
    (record,) = robot.measured()
    assert record["chain"]["data_plane"] == "acme-switch"
    assert any(link["name"] == "acme0" for link in record["data_plane"]["worker"]["links"]), record["data_plane"]
    assert record["tester"]["name"] == "ACME generator"
    assert record["tester"]["cards"] == [2, 3]
    assert record["results"]["mrr"]["frames_per_second"] > 0
    assert record["tester_limits"]["source"] == "calibration on the bare path"


def test_a_check_lists_them(tmp_path: Path) -> None:
    write_package(tmp_path)
    command = [sys.executable, "-m", "podperf", "check", write_topology(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libraries")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert re.search(r"ok +acme-switch +measurable", done.stdout), done.stdout + done.stderr
    assert re.search(r"ok +test frames +frames of 64B crossed", done.stdout), done.stdout + done.stderr
