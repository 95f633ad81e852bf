"""Rows of the suite measure the network of a cluster, and record it."""

from __future__ import annotations

from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from attempts import first
from cluster.runs import ONE_ROW, ROW_OF_NODE, ROW_OF_POLICIES, cluster_tester, topology
from own_cluster import STARTS_A_CLUSTER, awaited, process_of
from podperf.cluster.layout import SERVICES
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api
from podperf.kubernetes.settings import Destination
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import Trial
from robot_run import ROOT, Robot
from traffic import traffic_of

pytestmark = STARTS_A_CLUSTER


def test_two_pods_measure_the_network_between_them(api: Api, tmp_path: Path) -> None:
    (record,) = Robot(tmp_path, *ONE_ROW, topology=topology(tmp_path).read_text()).measured()
    assert record["outcome"] == "passed"
    assert record["results"]["mrr"]["frames_per_second"] > 10_000
    cpu_time = record["methods"]["cpu_time"]
    assert sorted(cpu_time["parts"]) == ["the port that counts", "the port that sends"], cpu_time
    of_a_frame = record["results"]["cpu_time"]["nanoseconds_per_frame"]
    assert 0 < cpu_time["parts"]["the port that counts"] < of_a_frame < 1e6
    assert list(cpu_time["rest_of_nodes"]) == ["the rest of the node"], "both pods are on one machine"
    assert cpu_time["rest_of_nodes"]["the rest of the node"]["resolution"] > 0
    pods = record["tester"]["pods"]
    assert pods["left"]["node"] == pods["right"]["node"] == "node1"
    assert pods["left"]["image"].startswith(("sha256:", "localhost/podperf/pod"))


def test_each_row_has_the_pods_that_it_needs(api: Api, tmp_path: Path) -> None:
    names = (ROW_OF_NODE, "Pod to Service among 100, 64 B", "Pod to pod on two nodes, 64 B")
    rows = [word for name in names for word in ("--test", name)]
    run = Robot(tmp_path, *rows, str(ROOT / "tests"), topology=topology(tmp_path).read_text())
    found = {each["test"]["name"]: each for each in run.measured()}
    alone, among, far = (found[name] for name in names)
    assert (far["outcome"], far["reason"]) == ("skipped", "the pods must be on two nodes, and the cluster has one")
    assert alone["outcome"] == among["outcome"] == "passed"
    assert (alone["tester"]["other_services"], among["tester"]["other_services"]) == (0, 99)
    assert not alone["tester"]["services"] and sorted(among["tester"]["services"]) == ["left", "right"]
    assert {each["name"] for each in alone["tester"]["pods"].values()}.isdisjoint(
        each["name"] for each in among["tester"]["pods"].values()
    )


@pytest.mark.parametrize("destination", ["pod", "service"])
def test_each_frame_of_new_flows_is_a_connection_that_the_node_did_not_track(
    api: Api, destination: Destination
) -> None:
    """The node forgets an unanswered flow after 30 s: those of an earlier test must not go meanwhile."""
    node = process_of("kubelet", "node1")

    def read(name: str) -> int:
        setting = f"net.netfilter.nf_conntrack_{name}"
        return int(LocalHost().do("nsenter", "--target", str(node), "--net", "sysctl", "-n", setting).stdout)

    def growth(tester: KubernetesTester, flows: int) -> float:
        """The growth of the node's table in a trial, as a share of the frames sent."""
        before = read("count")
        result = tester.measure(Trial(traffic_of(64, flows=flows), 2000.0, 1.0))
        assert 1000 < result.sent <= 2000 and result.received > 0.9 * result.sent
        return (read("count") - before) / result.sent

    awaited(lambda: read("count") < 200, lambda: read("count"), timeout=90)
    with cluster_tester(destination=destination) as tester:
        assert [growth(tester, 1) for _ in range(2)] == pytest.approx([0.0, 0.0], abs=0.1)
    with cluster_tester(destination=destination, new_flows=True) as tester:
        assert [growth(tester, 1_000_000) for _ in range(2)] == pytest.approx([1.0, 1.0], abs=0.1)
        described = tester.describe()
        assert (described["new_flows"], described["connections_limit"]) == (True, read("max"))


def test_frames_reach_a_pod_through_a_service(api: Api) -> None:
    with cluster_tester(destination="service") as tester:
        trial = Trial(traffic_of(64, flows=100), 2000.0, 0.5)
        result = first(lambda each: each.sent == 1000 and each.lost < 100, partial(tester.measure, trial))
        address = ip_address(tester.describe()["services"]["right"])
        assert any(address in ip_network(network) for network in SERVICES.split(","))
    assert result.directions[0].latency is not None


def test_a_cluster_that_enforces_no_policies_skips_the_rows(api: Api, tmp_path: Path) -> None:
    run = Robot(tmp_path, *ROW_OF_POLICIES, topology=topology(tmp_path, network_policies=10).read_text())
    (record,) = run.measured()
    assert record["outcome"] == "skipped"
    assert record["reason"] == "the cluster does not enforce NetworkPolicies"
