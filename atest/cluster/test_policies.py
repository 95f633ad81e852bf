"""NetworkPolicies, on one cluster that enforces them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.runs import ROW_OF_POLICIES, cluster_tester, topology
from own_cluster import STARTS_A_CLUSTER, cluster, namespaces, need_programs
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api
from podperf.methods.reconfiguration import Outage
from podperf.methods.trials import ValidTrials
from podperf.model import Trial
from podperf.testers.base import TesterLimits
from robot_run import Robot
from traffic import TRAFFIC

pytestmark = STARTS_A_CLUSTER


@pytest.fixture(scope="module")
def enforcing() -> Iterator[Api]:
    """The API of a cluster of one node that enforces NetworkPolicies."""
    need_programs("network-policies")
    with cluster("--network-policies") as found:
        yield found


def test_a_row_measures_ten_policies(enforcing: Api, tmp_path: Path) -> None:
    run = Robot(tmp_path, *ROW_OF_POLICIES, topology=topology(tmp_path, network_policies=10).read_text())
    (record,) = run.measured()
    assert record["outcome"] == "passed", record.get("reason")
    assert record["tester"]["network_policies"] == 10
    assert record["results"]["mrr"]["frames_per_second"] > 1000
    assert not namespaces(enforcing)
    assert not enforcing.ask("GET", "/apis/networking.k8s.io/v1/networkpolicies")["items"]


def test_policies_are_in_the_way_of_the_frames(enforcing: Api) -> None:
    """Each frame passes all policies, so a hundred of them make the path slower."""
    rates = []
    for number in (0, 100):
        with cluster_tester(network_policies=number) as tester:
            trials = [tester.measure(Trial(TRAFFIC, 0, 0.3)) for _ in range(3)]
            rates.append(max(trial.receive_rate for trial in trials))
    assert rates[1] < 0.5 * rates[0]


@pytest.mark.parametrize(
    ("change", "settings"),
    [("policies-added", {"network_policies": 1}), ("endpoint-added", {"destination": "service"})],
)
def test_frames_go_on_crossing_while_the_cluster_changes_and_the_change_is_undone(
    enforcing: Api, change: str, settings: dict[str, Any]
) -> None:
    with cluster_tester(**settings) as pods:
        tester: Any = pods
        assert [name for name, each in tester.facts.changes.items() if not each.refused] == [change]
        before = made_by_runs(enforcing)
        source = ValidTrials(tester, TRAFFIC, TesterLimits(1e6, 0.0, "not asked"))
        changed = source.during(tester.facts.changes[change].make, 2000.0, 8.0)
        assert made_by_runs(enforcing) == before
    found = Outage.of(changed)
    assert found.restored is not None and found.ended, found
    assert changed.result.received > 0.5 * changed.result.sent, changed


def made_by_runs(api: Api) -> list[str]:
    """The names of the NetworkPolicies and pods that runs have made."""
    paths = ("/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/pods")
    query = [("labelSelector", f"{manifests.MANAGER}=podperf")]
    return sorted(each["metadata"]["name"] for path in paths for each in api.ask("GET", path, query=query)["items"])
