"""Many pairs of pods send at once."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster.runs import MODEST_LOAD, topology
from own_cluster import STARTS_A_CLUSTER, namespaces
from podperf.kubernetes.api import Api
from robot_run import ROOT, Robot

pytestmark = STARTS_A_CLUSTER
MANY_PAIRS = f"""*** Settings ***
Resource          {ROOT / "resources" / "methods.resource"}
Suite Setup       Open Testbed    ${{TOPOLOGY}}
Suite Teardown    Close Testbed
Test Template     Cluster Network Should Carry Many Pairs

*** Test Cases ***
Sixteen pairs on one node
    1    16    first=16
Sixteen pairs on two nodes
    2    16    first=16
"""


def test_sixteen_pairs_send_at_once_and_each_of_them_is_counted(two_nodes: Api, tmp_path: Path) -> None:
    settings = yaml.safe_load(topology(tmp_path).read_text())
    settings["tester"]["maximum_load"] = 16 * MODEST_LOAD
    suite = tmp_path / "pairs.robot"
    suite.write_text(MANY_PAIRS)
    run = Robot(tmp_path, str(suite), topology=yaml.safe_dump(settings))
    on_one, on_two = sorted(run.measured(), key=lambda each: str(each["test"]["name"]))
    for each in (on_one, on_two):
        assert each["outcome"] == "passed", each["reason"]
        (step,) = each["methods"]["many_pairs"]["steps"]
        pairs = step["of_pairs"]
        assert step["pairs"] == len(pairs) == 16
        assert all(0 < pair["received"] <= pair["sent"] for pair in pairs), "each frame counts at most once"
        assert step["sum"] == pytest.approx(sum(pair["rate"] for pair in pairs))
        assert each["results"]["pairs_rate"]["frames_per_second"] == pytest.approx(step["sum"])
        assert step["smallest"] == min(pair["rate"] for pair in pairs)
        assert 1 / 16 <= step["fairness"] <= 1
    nodes = [{pod["node"] for pod in each["tester"]["pods"].values()} for each in (on_one, on_two)]
    assert len(nodes[0]) == 1 and len(nodes[1]) == 2
    assert "Many pairs at once" in (run.results / "conformance.html").read_text()
    assert not namespaces(two_nodes)
