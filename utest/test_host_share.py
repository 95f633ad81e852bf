"""Pods of a cluster beside pods in the networks of the same nodes: the rounds, the record, and the words about it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from podperf.errors import Unavailable
from podperf.experiments.host_share import CLUSTER, ClusterWay, HostShare
from podperf.history.runs import read_history
from podperf.model import Chain
from podperf.records import Record
from podperf.records.schema import schema_errors
from podperf.report.clusters import HOW_TO_READ
from podperf.report.command import write_reports
from podperf.report.csv_table import csv_table
from podperf.report.results import verdict_word
from podperf.report.summary import figures_line, summary_table
from podperf.run import Run
from podperf.run import TestIdentity as Identity
from podperf.run.run import usual_duration
from podperf.testbed.access import read_topology
from podperf.topology import SCHEMA_PATH, Threshold
from test_run import SimulatedTestbed, SimulatedTester, equipment, run

__all__ = ["run"]
IDENTITY = Identity("Pod to pod beside host network", "suite", ("sec-4.1",))
TWO_NODES = ClusterWay("Pod to pod beside host network", {"nodes": 2})


def compared(
    host: list[float], pods: list[float], share: float | None, low: float | None, high: float | None
) -> HostShare:
    """The share in a document as a comparison writes it."""
    judged = {"share": share, "low": low, "high": high, "rounds": len(pods)}
    variants = [{"figures": host, "judgement": None}, {"figures": pods, "judgement": judged}]
    return HostShare.of(json.loads(json.dumps({"variants": variants})))


def test_a_share_is_that_of_the_pods_beside_the_network_of_the_nodes() -> None:
    share = compared([200e3, 220e3, 210e3], [100e3, 110e3, 105e3], -0.5, -0.6, -0.4)
    assert (share.pods, share.host, share.rounds) == (105e3, 210e3, 3)
    assert str(share) == "0.50 (0.40 to 0.60)"
    assert str(compared([1.0], [1.0], 0.0, None, 0.1)) == "1.00 (open to 1.10)"
    assert str(compared([1.0], [1.0], None, None, None)) == "-"
    assert compared([1.0], [1.0], None, None, None).metrics == {}


class Pods(SimulatedTester):
    """Two pods in a simulated cluster."""

    def describe(self) -> Mapping[str, Any]:
        cluster = {"server": "https://a:6443", "uid": "u1", "version": "v1.34.4", "network": {"name": "flannel"}}
        pods = {side: {"node": node} for side, node in (("left", "a"), ("right", "b"))}
        return {"cluster": cluster, "host_network": self.share == 0.8, "pods": pods}


class SimulatedCluster(SimulatedTestbed):
    """Pods of the nodes' own network lose 20 % of the frames, and all others 60 %. `asked` has the settings of pods."""

    def __init__(self, host: bool = False) -> None:
        super().__init__("packet-ring")
        self.shares = {CLUSTER.data_plane: 0.8 if host else 0.4}
        self.asked: dict[str, tuple[Mapping[str, Any], bool]] = {}
        self.others: dict[str, SimulatedCluster] = {}

    def with_pods(self, changes: Mapping[str, Any], *, alone: bool = False) -> SimulatedTestbed:
        key = json.dumps(changes, sort_keys=True)
        self.asked.setdefault(key, (changes, alone))
        return self.others.setdefault(key, SimulatedCluster(host=bool(changes.get("host_network"))))

    def tester_with_ports(self) -> SimulatedTester:
        return Pods(self.engine, self.shares[CLUSTER.data_plane], self.trials, self)

    def _system(self, chain: Chain, tester: SimulatedTester) -> Any:
        return super()._system(chain, self.tester_with_ports())


@pytest.fixture
def cluster(run: Run) -> SimulatedCluster:
    """The simulated cluster of this run."""
    testbed = SimulatedCluster()
    run.session.topology = testbed.topology = read_topology(SCHEMA_PATH.parent / "kubernetes.yaml")
    run.session.equipment = equipment(testbed)
    run.shared.limits.clock = lambda: sum(each.now for each in testbed.others.values())
    return testbed


def measured(run: Run, way: ClusterWay = TWO_NODES) -> dict[str, Any]:
    """The record of a test that measured this way."""
    run.measure_host_share(IDENTITY, way)
    run.shared.baselines.judge(run.current.record)
    run.end_test(IDENTITY, "passed")
    (path,) = (run.session.results / "records").glob("*.json")
    record = json.loads(path.read_text())
    assert schema_errors(record) == []
    return dict(record)


def test_the_record_describes_the_pods_and_has_their_share_with_its_interval(
    run: Run, cluster: SimulatedCluster
) -> None:
    found = measured(run)
    figure = found["results"]["host_share"]
    assert [figure[key] for key in ("low_ratio", "ratio", "high_ratio")] == pytest.approx([0.5] * 3, rel=0.01)
    assert found["chain"]["data_plane"] == "external" and found["tester"]["host_network"] is False
    assert {trial["phase"] for trial in found["trials"]} == {"host network", "pods"}
    document = found["methods"]["host_share"]
    assert [len(each["figures"]) for each in document["variants"]] == [8, 8] and document["path"] is None
    (host, alone), (pods, beside) = cluster.asked.values()
    assert host == {"nodes": 2, "host_network": True} and alone
    assert pods == {"nodes": 2, "node_names": ["a", "b"]} and not beside, "on the same nodes, and both pairs stay up"


def test_each_report_of_a_run_tells_the_share(run: Run, cluster: SimulatedCluster) -> None:
    document = measured(run)
    record = Record.of(document)
    said = "pod network 0.50 of the host's (0.50 to 0.50): 40.0 beside 80.0 kpps"
    assert figures_line(record) == said and said in " ".join(summary_table([record]).split())
    skipped = Record.of({**document, "outcome": "skipped", "results": {}, "tester": {}})
    assert "the tester was the limit" not in " ".join(summary_table([record, skipped]).split())
    assert verdict_word(record) == "measured", "it is no change for the better or the worse"
    assert ",host_share,0.5,0.5,0.5,ratio," in csv_table([record])
    page = write_reports(run.session.results).read_text()
    for words in ("0.50 (0.50 to 0.50)", "Pods, kpps", HOW_TO_READ.replace("'", "&#x27;"), "v1.34.4"):
        assert words in page
    (past,) = read_history(run.session.results).runs
    assert past.records[0].figures["host_share"].value == pytest.approx(0.5, rel=0.01)


def test_the_pods_of_one_node_are_on_one_of_the_two(run: Run, cluster: SimulatedCluster) -> None:
    measured(run, replace(TWO_NODES, pods={}))
    assert [pods for pods, _ in cluster.asked.values()][1] == {"node_names": ["a"]}


def test_a_threshold_judges_the_share(run: Run, cluster: SimulatedCluster) -> None:
    thresholds = (Threshold("host_share", "percent", minimum=60),)
    run.session.topology = replace(run.session.topology, thresholds=thresholds)
    run.measure_host_share(IDENTITY, TWO_NODES)
    verdict = run.shared.baselines.judge(run.current.record)
    assert verdict.failed and verdict.sentence.startswith("pod network 50 percent, at least 60 percent was asked for")


def test_the_forecast_knows_that_two_pairs_of_pods_take_turns(run: Run) -> None:
    tags = {"sec-4.1", "cluster-share", "external", "mrr"}
    assert 16 * 0.6 < usual_duration(tags, run.session.topology.method, []) < 60


def test_a_testbed_without_a_cluster_has_no_share(run: Run) -> None:
    with pytest.raises(Unavailable, match=r"needs a cluster, and .*local\.yaml names none"):
        run.measure_host_share(IDENTITY, TWO_NODES)
