"""Application traffic through a real bridge: iperf3 and netperf carry bytes and transactions, and nothing is left."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chains import need
from podperf.methods.application_tools import KINDS, NETPERF
from podperf.metrics import APPLICATION_WORDS
from podperf.records import schema_errors
from robot_run import ROOT, Robot, podperf

pytestmark = pytest.mark.usefixtures("machine_as_before")
SUITE = f"""*** Settings ***
Resource    {ROOT}/resources/methods.resource
Suite Setup    Open Testbed    ${{TOPOLOGY}}
Suite Teardown    Close Testbed

*** Test Cases ***
Applications
    Set Up Chain    linux-bridge    pods=1    frame=1518
    Measure Application Traffic    runs=1
    Figures Should Hold
    [Teardown]    Tear Down Chain
"""


def test_streams_and_requests_cross_a_bridge_and_are_reported_apart(tmp_path: Path) -> None:
    need("linux-bridge")
    if not shutil.which("iperf3"):
        pytest.skip("iperf3 is not installed: apt-get install iperf3")
    suite = tmp_path / "applications.robot"
    suite.write_text(SUITE)
    robot = Robot(tmp_path, str(suite))
    (record,) = robot.measured()
    assert schema_errors(record) == []
    found = record["methods"]["application_traffic"]
    there = [kind for kind in KINDS if kind.tool is not NETPERF or shutil.which("netperf")]
    assert [each["metric"] for each in found["kinds"]] == [kind.metric for kind in there]
    assert all(each["median"] > 0 for each in found["kinds"])
    assert found["kinds"][0]["cpu_nanoseconds"] > 0, "the receive threads of the worker carried the stream"
    assert record["results"]["tcp_stream"]["bits_per_second"] > 1e6
    assert APPLICATION_WORDS in " ".join(podperf("report", str(robot.results)).stdout.split())
    assert APPLICATION_WORDS in (robot.results / "conformance.html").read_text()
