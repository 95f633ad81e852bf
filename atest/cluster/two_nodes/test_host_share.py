"""The network of the pods beside that of their nodes."""

from __future__ import annotations

import re
from pathlib import Path

from cluster.runs import SHORT_TRIALS, topology
from own_cluster import STARTS_A_CLUSTER
from podperf.experiments.before_after import fewest_rounds
from podperf.experiments.host_share import CPU_TIME, OF_RECEIVER, OF_SENDER, ROUND_TRIP
from podperf.experiments.host_share import NAME as SHARE
from podperf.kubernetes.api import Api
from podperf.report.clusters import HEAD_OF_SHARES
from robot_run import ROOT, Robot

pytestmark = STARTS_A_CLUSTER


def test_pods_stand_beside_the_networks_of_their_nodes(two_nodes: Api, tmp_path: Path) -> None:
    names = ("Host network on two nodes, 64 B", "Pod to pod on two nodes, 64 B")
    rows = [word for name in names for word in ("--test", name)]
    run = Robot(tmp_path, *rows, str(ROOT / "tests"), topology=topology(tmp_path, SHORT_TRIALS).read_text())
    found = {each["test"]["name"]: each for each in run.measured()}
    host, pods = (found[name] for name in names)
    assert host["outcome"] == pods["outcome"] == "passed", (host["reason"], pods["reason"])
    assert (host["tester"]["host_network"], pods["tester"]["host_network"]) == (True, False)
    assert {each["node"] for each in host["tester"]["pods"].values()} == {"node1", "node2"}
    assert all(0 < each["results"]["round_trip_p50"]["nanoseconds"] < 1e8 for each in (host, pods))


def test_a_share_is_measured_by_turns_on_the_same_nodes_and_leads_the_report(two_nodes: Api, tmp_path: Path) -> None:
    row = "Pod to pod beside host network, one node, 64 B"
    run = Robot(tmp_path, "--test", row, str(ROOT / "tests"), topology=topology(tmp_path).read_text())
    (record,) = run.measured()
    assert record["outcome"] == "passed", record["reason"]
    share = record["results"]["host_share"]
    assert 0 < share["low_ratio"] <= share["ratio"] <= share["high_ratio"] < 20, "two nodes are one machine here"
    pods, host = (record["tester"]["variants"][name]["pods"].values() for name in ("pods", "host network"))
    assert [each["node"] for each in pods] == [next(iter(host))["node"]] * 2
    assert {each["node"] for each in host} == {"node1", "node2"}
    said = run.output.read_text()
    assert re.search(r"pod network [\d.]+ of the host's \([\d.]+ to [\d.]+\): [\d.]+ beside", said), said
    page = (run.results / "conformance.html").read_text()
    assert page.index("The network of a cluster") < page.index(HEAD_OF_SHARES) < page.index("Measured sections")


def test_cpu_time_and_round_trips_have_shares_by_turns(two_nodes: Api, tmp_path: Path) -> None:
    row = ("--test", "Pod to pod beside host network, two nodes, 64 B", str(ROOT / "tests"))
    run = Robot(tmp_path, *row, topology=topology(tmp_path, SHORT_TRIALS).read_text())
    assert run.wait() == 0, run.messages()
    (record,) = run.records()
    assert record["outcome"] == "passed", record["reason"]
    further = record["methods"][SHARE]["further"]
    names = (CPU_TIME, OF_SENDER, OF_RECEIVER, ROUND_TRIP)
    assert sorted(further["shares"]) == sorted(names), record["methods"][SHARE]["missing"]
    for name in names:
        figures, share = further["shares"][name], record["results"][name]
        assert len(figures["host"]) == len(figures["pods"]) >= fewest_rounds()
        assert 0 < share["low_ratio"] <= share["ratio"] <= share["high_ratio"] < 100
    loads = {trial["load"] for trial in record["trials"] if trial["phase"].endswith("CPU time")}
    assert loads == {further["load"]}, "the same in both places and in all rounds"
    assert "CPU time of the sender" in (run.results / "conformance.html").read_text()


def test_a_cluster_that_forbids_the_networks_of_nodes_has_no_share(two_nodes: Api, tmp_path: Path) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    two_nodes.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "no-host-network", "labels": labels}})
    try:
        path = topology(tmp_path, namespace="no-host-network")
        wanted = ("--include", "cluster-shareAND64B", str(ROOT / "tests"))
        run = Robot(tmp_path, *wanted, topology=path.read_text())
        assert run.wait() == 0, run.messages()
        assert run.records()
        for record in run.records():
            assert record["outcome"] == "skipped"
            assert "the cluster allows no pod in the network of a node" in record["reason"]
            assert "violates PodSecurity" in record["reason"] and not record["trials"]
    finally:
        two_nodes.delete("/api/v1/namespaces/no-host-network")
