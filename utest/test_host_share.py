"""Pods of a cluster beside pods in the networks of the same nodes: the rounds, the record, and the words about it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from podperf.errors import Unavailable
from podperf.experiments.before_after import fewest_rounds
from podperf.experiments.host_share import (
    CLUSTER,
    CPU_TIME,
    HOST,
    OF_RECEIVER,
    OF_SENDER,
    PODS,
    ROUND_TRIP,
    ROUNDS,
    ClusterWay,
    HostShare,
    OneRound,
    further_shares,
    load_of_both,
)
from podperf.history.runs import read_history
from podperf.kubernetes.end_pair import COUNTS, SENDS
from podperf.metrics import Measured
from podperf.model import Chain, CpuTime, Latency, Trial, TrialResult
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
from podperf.testers.base import TesterFacts
from podperf.topology import SCHEMA_PATH, Threshold
from test_run import CEILING, SimulatedTestbed, SimulatedTester, equipment, run

__all__ = ["run"]
IDENTITY = Identity("Pod to pod beside host network", "suite", ("sec-4.1",))
TWO_NODES = ClusterWay("Pod to pod beside host network", {"nodes": 2}, further=True)


def compared(
    host: list[float],
    pods: list[float],
    share: float | None,
    low: float | None,
    high: float | None,
    metric: str = "mrr",
) -> HostShare:
    """The share in a document as a comparison writes it."""
    judged = {"share": share, "low": low, "high": high, "rounds": len(pods)}
    variants = [{"figures": host, "judgement": None}, {"figures": pods, "judgement": judged}]
    return HostShare.of(json.loads(json.dumps({"metric": metric, "variants": variants})))


def test_a_share_is_that_of_the_pods_beside_the_network_of_the_nodes() -> None:
    share = compared([200e3, 220e3, 210e3], [100e3, 110e3, 105e3], -0.5, -0.6, -0.4)
    assert (share.pods, share.host, share.rounds) == (105e3, 210e3, 3)
    assert str(share) == "0.50 (0.40 to 0.60)"
    assert str(compared([1.0], [1.0], 0.0, None, 0.1)) == "1.00 (open to 1.10)"
    assert str(compared([1.0], [1.0], None, None, None)) == "-"
    assert compared([1.0], [1.0], None, None, None).metrics == {}
    searched = compared([200e3], [100e3], -0.5, -0.6, -0.4, "pdr")
    assert searched.words == "pods' PDR 0.50 of the host's (0.40 to 0.60): 100 beside 200 kpps"
    assert searched.metrics == {"host_share_pdr": Measured(0.5, 0.4, 0.6)}


def test_a_further_share_needs_as_many_rounds_as_its_interval() -> None:
    def rounds(number: int) -> list[OneRound]:
        return [{HOST: {CPU_TIME: 2000.0}, PODS: {CPU_TIME: 3000.0 + each}} for each in range(number)]

    of_pods_only: OneRound = {HOST: {}, PODS: {CPU_TIME: 1.0}}
    assert further_shares([*rounds(fewest_rounds() - 1), of_pods_only, of_pods_only]) == {}
    found = further_shares([of_pods_only, *rounds(fewest_rounds())])
    assert found.keys() == {CPU_TIME} and found[CPU_TIME]["pods"][0] == 3000.0
    assert 1.5 <= found[CPU_TIME]["low"] <= found[CPU_TIME]["share"] <= found[CPU_TIME]["high"] < 1.503


def test_the_load_of_both_places_is_a_quarter_of_the_lower_rate() -> None:
    assert load_of_both({PODS: Measured(60e3), HOST: Measured(200e3)}) == 15e3


class Pods(SimulatedTester):
    """Two pods in a simulated cluster, which takes more CPU time for a frame, and longer for a round trip."""

    tells_times = True
    has_capacity = False  # it loses what exceeds its share of the sender's rate, in place of a share of all frames

    @property
    def facts(self) -> TesterFacts:
        return replace(super().facts, reads_cpu_time=self.tells_times, returns_frames=self.tells_times)

    def measure(self, trial: Trial) -> TrialResult:
        found, times = super().measure(trial), 1 if self.share == 0.8 else 2
        parts = {SENDS: 3000.0 * times * found.received, COUNTS: 1000.0 * found.received}
        cpu_time = CpuTime(parts) if trial.train > 1 else None
        latency = Latency(50_000 * times, 50e3 * times, 50_000 * times, {1500 + 100 * times: found.received})
        directions = tuple(replace(each, latency=latency) for each in found.directions)
        if self.has_capacity:
            most = round(self.share * CEILING[self.engine] * trial.duration)
            directions = tuple(replace(each, received=min(each.sent, most)) for each in directions)
        return replace(found, cpu_time=cpu_time, directions=directions)

    def describe(self) -> Mapping[str, Any]:
        cluster = {"server": "https://a:6443", "uid": "u1", "version": "v1.34.4", "network": {"name": "flannel"}}
        pods = {side: {"node": node} for side, node in (("left", "a"), ("right", "b"))}
        return {"cluster": cluster, "host_network": self.share == 0.8, "pods": pods}


class SimulatedCluster(SimulatedTestbed):
    """Pods of the nodes' own network lose 20 % of the frames, and all others 60 %. `asked` has the settings of pods."""

    def __init__(self, host: bool = False) -> None:
        super().__init__("packet-ring")
        self.shares = {CLUSTER.data_plane: 0.8 if host else 0.4}
        self.tells_times, self.has_capacity = True, False
        self.asked: dict[str, tuple[Mapping[str, Any], bool]] = {}
        self.others: dict[str, SimulatedCluster] = {}

    def with_pods(self, changes: Mapping[str, Any], *, alone: bool = False) -> SimulatedTestbed:
        key = json.dumps(changes, sort_keys=True)
        self.asked.setdefault(key, (changes, alone))
        found = self.others.setdefault(key, SimulatedCluster(host=bool(changes.get("host_network"))))
        found.tells_times, found.has_capacity = self.tells_times, self.has_capacity
        return found

    def tester_with_ports(self) -> SimulatedTester:
        found = Pods(self.engine, self.shares[CLUSTER.data_plane], self.trials, self)
        found.tells_times, found.has_capacity = self.tells_times, self.has_capacity
        return found

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
    of_each = {place: Counter(trial["phase"] for trial in found["trials"])[place] for place in (HOST, PODS)}
    assert of_each == {HOST: 16, PODS: 16}
    document = found["methods"]["host_share"]
    assert [len(each["figures"]) for each in document["variants"]] == [8, 8] and document["path"] is None
    (host, alone), (pods, beside) = cluster.asked.values()
    assert host == {"nodes": 2, "host_network": True} and alone
    assert pods == {"nodes": 2, "node_names": ["a", "b"]} and not beside, "on the same nodes, and both pairs stay up"


def test_cpu_time_and_round_trips_are_compared_at_one_load_in_both_places(run: Run, cluster: SimulatedCluster) -> None:
    found = measured(run)
    shares = {name: found["results"][name]["ratio"] for name in (CPU_TIME, OF_SENDER, OF_RECEIVER, ROUND_TRIP)}
    assert shares == {CPU_TIME: 1.75, OF_SENDER: 2.0, OF_RECEIVER: 1.0, ROUND_TRIP: pytest.approx(2.0, rel=0.05)}
    further = found["methods"]["host_share"]["further"]
    assert {len(each["pods"]) for each in further["shares"].values()} == {ROUNDS - 1}
    loads = Counter((trial["phase"], trial["load"]) for trial in found["trials"] if "," in trial["phase"])
    assert further["load"] == pytest.approx(10e3, rel=0.01), "a quarter of the lower rate"
    expected = {f"{place}, CPU time": further["load"] for place in (HOST, PODS)}
    expected |= {f"{place}, round trips": further["load"] / 2 for place in (HOST, PODS)}
    assert loads == dict.fromkeys(expected.items(), ROUNDS - 1)
    assert not found["methods"]["host_share"]["missing"]


def test_a_tester_that_tells_no_times_has_the_share_of_the_rate_and_the_reasons(
    run: Run, cluster: SimulatedCluster
) -> None:
    cluster.tells_times = False
    record = Record.of(measured(run))
    assert [name for name in record.figures if name.startswith("host_share")] == ["host_share"]
    said = " ".join(summary_table([record]).split())
    assert "pods' CPU time a frame, CPU time of the sender, CPU time of the receiver not measured: receive thr" in said
    assert "pods' round trip p50 not measured: frames come back between pods on two nodes only" in said


def test_a_row_without_further_shares_measures_the_rate_only(run: Run, cluster: SimulatedCluster) -> None:
    found = measured(run, replace(TWO_NODES, further=False))
    assert {trial["phase"] for trial in found["trials"]} == {HOST, PODS}
    assert "further" not in found["methods"]["host_share"] and "missing" not in found["methods"]["host_share"]


def test_each_report_of_a_run_tells_the_share(run: Run, cluster: SimulatedCluster) -> None:
    document = measured(run)
    record = Record.of(document)
    said = "pod network 0.50 of the host's (0.50 to 0.50): 40.0 beside 80.0 kpps"
    of_time = "pods' CPU time a frame 1.75 of the host's (1.75 to 1.75): 7 000 beside 4 000 ns/f"
    assert figures_line(record).startswith(f"{said}; {of_time}; CPU time of the sender 2.00 of the host's")
    assert f"{said}; {of_time}; " in " ".join(summary_table([record]).split())
    skipped = Record.of({**document, "outcome": "skipped", "results": {}, "tester": {}})
    assert "the tester was the limit" not in " ".join(summary_table([record, skipped]).split())
    assert verdict_word(record) == "measured", "it is no change for the better or the worse"
    assert ",host_share,0.5,0.5,0.5,ratio," in csv_table([record])
    page = write_reports(run.session.results).read_text()
    assert ",host_share_cpu_time,1.75,1.75,1.75,ratio," in csv_table([record])
    for words in (
        "0.50 (0.50 to 0.50)",
        "pod network, kpps",
        "1.75 (1.75 to 1.75)",
        HOW_TO_READ.replace("'", "&#x27;"),
        "v1.34.4",
    ):
        assert words in page
    (past,) = read_history(run.session.results).runs
    assert past.records[0].figures["host_share"].value == pytest.approx(0.5, rel=0.01)
    assert past.records[0].figures["host_share_cpu_time"].value == 1.75


@pytest.mark.parametrize("metric", ["ndr", "pdr"])
def test_loss_free_rates_are_searched_by_turns(run: Run, cluster: SimulatedCluster, metric: str) -> None:
    cluster.has_capacity = True
    document = measured(run, replace(TWO_NODES, metric=metric, further=False))
    record = Record.of(document)
    assert record.figures[f"host_share_{metric}"].value == pytest.approx(0.5, rel=0.02)
    assert len(document["trials"]) >= 2 * 2 * ROUNDS, "each of 16 searches has several trials"
    assert figures_line(record).startswith(f"pods' {metric.upper()} 0.50 of the host's")
    row = write_reports(run.session.results).read_text().partition("By turns")[2].partition("</tr>")[2]
    assert document["test"]["name"] in row.partition(f"pods' {metric.upper()}".replace("'", "&#x27;"))[0], row[:600]


def test_the_pods_of_one_node_are_on_one_of_the_two(run: Run, cluster: SimulatedCluster) -> None:
    measured(run, replace(TWO_NODES, pods={}))
    assert [pods for pods, _ in cluster.asked.values()][1] == {"node_names": ["a"]}


def test_a_threshold_judges_the_share(run: Run, cluster: SimulatedCluster) -> None:
    thresholds = (Threshold("host_share", "percent", minimum=60),)
    run.session.topology = replace(run.session.topology, thresholds=thresholds)
    run.measure_host_share(IDENTITY, TWO_NODES)
    verdict = run.shared.baselines.judge(run.current.record)
    assert verdict.failed and verdict.sentence.startswith("pod network 50 percent, at least 60 percent was asked for")


def test_a_tester_that_is_not_believed_makes_the_share_doubtful(run: Run, cluster: SimulatedCluster) -> None:
    cluster.has_capacity = True  # trials without loss tell the clock
    run.shared.limits.clock = lambda: 1.02 * sum(each.now for each in cluster.others.values())
    found = run.measure_host_share(IDENTITY, TWO_NODES)
    share = HostShare.of(found.to_json(), found.doubt)
    assert found.ended == "doubt" and "clock" in share.doubt
    assert str(share) == "0.50? (0.50 to 0.50)"
    assert share.metrics["host_share"].doubt == run.current.record.metrics["host_share"].doubt == share.doubt


def test_the_forecast_knows_that_two_pairs_of_pods_take_turns(run: Run) -> None:
    tags = {"sec-4.1", "cluster-share", "external", "mrr"}
    assert 16 * 0.6 < usual_duration(tags, run.session.topology.method, []) < 60
    searched = usual_duration(tags - {"mrr"} | {"ndrpdr", "loss-free-share"}, run.session.topology.method, [])
    assert 60 < searched < 600, "sixteen searches"


def test_a_testbed_without_a_cluster_has_no_share(run: Run) -> None:
    with pytest.raises(Unavailable, match=r"needs a cluster, and .*local\.yaml names none"):
        run.measure_host_share(IDENTITY, TWO_NODES)
