"""TCP and requests cross the network of a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.runs import topology
from own_cluster import STARTS_A_CLUSTER
from podperf.cluster.pod_image import WITH_NETPERF, ready_image
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api
from podperf.kubernetes.settings import NETPERF_IMAGE
from robot_run import ROOT, Robot

pytestmark = STARTS_A_CLUSTER


def test_tcp_crosses_the_pod_network_and_that_of_the_nodes(two_nodes: Api, tmp_path: Path) -> None:
    rows = ("--include", "cluster-applications", str(ROOT / "tests"))
    records = Robot(tmp_path, *rows, topology=topology(tmp_path).read_text()).measured()
    assert [each["outcome"] for each in records] == ["passed"] * 3, [each["reason"] for each in records]
    for each in records:
        found = each["methods"]["application_traffic"]
        assert [kind["tool"] for kind in found["kinds"]] == ["iperf3", "iperf3"]
        assert all(rate > 0 for kind in found["kinds"] for rate in kind["rates"])
        assert all(kind["cpu_nanoseconds"] > 0 for kind in found["kinds"]), found["missing"]
        assert "netperf is not installed on pod tester-left-" in found["missing"]["TCP_RR"]
        assert found["congestion_control"]
    assert sorted(each["tester"]["host_network"] for each in records) == [False, False, True]


def test_requests_of_netperf_cross_the_pod_network(two_nodes: Api, tmp_path: Path) -> None:
    try:
        ready_image(LocalHost(), print, WITH_NETPERF)
    except PodperfError as reason:
        pytest.skip(str(reason))
    row = ("--test", "Application traffic, pod to pod on two nodes", str(ROOT / "tests"))
    (record,) = Robot(tmp_path, *row, topology=topology(tmp_path, image=NETPERF_IMAGE).read_text()).measured()
    found = record["methods"]["application_traffic"]
    assert [kind["tool"] for kind in found["kinds"]] == ["iperf3"] * 2 + ["netperf"] * 3
    assert all(rate > 0 for kind in found["kinds"] for rate in kind["rates"])
    assert all(kind["cpu_nanoseconds"] > 0 for kind in found["kinds"]), found["missing"]
    assert not found["missing"]
