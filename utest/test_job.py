"""The command `podperf job`, its manifest, and the report of what many pods measured."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

import made_up
from podperf import __version__
from podperf.__main__ import main
from podperf.cluster.oci_archive import layer_of
from podperf.cluster.pod_image import HOME, podperf_files
from podperf.errors import PodperfError
from podperf.history import runs
from podperf.kubernetes import manifests
from podperf.kubernetes.manifests import RUN, PodWishes
from podperf.kubernetes.rights import NAMESPACED_FILE, READER_FILE
from podperf.kubernetes.settings import WHOLE_IMAGE, KubernetesSettings
from podperf.kubernetes.tester_objects import named_nodes, planned
from podperf.records import Record, read_record
from podperf.report.nodes import nodes_of, slowest_first, slowest_words
from podperf.testers import TESTERS
from podperf.topology import load_topology
from run_command.job import LONGEST_NAME, chosen_nodes, measuring, nodes_of_index, pairs

ROOT = Path(__file__).parents[1]
MANIFEST = ROOT / "topologies/kubernetes/job.yaml"
FIRST_RESULT = "topologies/kubernetes/first_result.yaml"
NODES = [f"node{number}" for number in range(1, 9)]


@pytest.mark.parametrize("number", range(2, 9))
def test_each_pair_is_measured_once_in_rounds_without_a_common_node(number: int) -> None:
    nodes = NODES[:number]
    found = pairs(nodes)
    assert sorted(found) == sorted(combinations(nodes, 2))
    size = number // 2
    for begin in range(0, len(found), size):
        of_round = [name for pair in found[begin : begin + size] for name in pair]
        assert len(set(of_round)) == len(of_round)


def test_the_index_is_a_node_or_a_pair() -> None:
    assert [nodes_of_index(NODES[:2], 1, each) for each in (0, 1)] == [("node1",), ("node2",)]
    assert nodes_of_index(NODES[:2], 2, 0) == ("node1", "node2")


@pytest.mark.parametrize(
    ("nodes", "number", "index", "said"),
    [
        (NODES[:3], 2, 3, "3 nodes have 3 pairs: set `completions` of the Job to 3"),
        (NODES[:3], 1, 5, "3 nodes have 3 nodes"),
        ([], 1, 0, "0 nodes have 0 nodes"),
        ([], 2, 0, "0 nodes have 0 pairs"),
        (["a", "b", "a"], 2, 0, "names one of them twice: a b a"),
        (["a", "../../etc"], 1, 1, "'../../etc' is no name of a node"),
        (["a", "b..c"], 2, 0, "'b..c' is no name of a node"),
    ],
)
def test_an_index_without_nodes_says_what_to_change(nodes: list[str], number: int, index: int, said: str) -> None:
    with pytest.raises(PodperfError, match=said):
        nodes_of_index(nodes, number, index)


def documents() -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load_all(MANIFEST.read_text())


def test_the_topology_of_the_manifest_is_a_topology_with_the_nodes_of_the_index(tmp_path: Path) -> None:
    settings, _, _ = documents()
    content = yaml.safe_load(settings["data"]["topology.yaml"])
    path = tmp_path / "topology.yaml"
    path.write_text(json.dumps(measuring(content, ["node1", "node2"])))
    topology = load_topology(path, testers=TESTERS)
    assert topology.name == "cluster.node1.node2"
    kind = topology.tester.kind
    assert isinstance(kind, KubernetesSettings)
    assert (kind.node_names, kind.nodes, kind.namespace) == (("node1", "node2"), 2, "podperf")
    assert kind.wishes.alone
    assert kind.start_timeout > 3600


def test_a_long_name_stays_a_name_and_is_the_nodes_own() -> None:
    long = ["a" * 250, "a" * 249 + "b"]
    names = [measuring({"name": "c", "tester": {}}, [each])["name"] for each in long]
    assert len(set(names)) == 2
    assert max(map(len, names)) == LONGEST_NAME


def test_the_manifest_fits_the_other_files() -> None:
    namespace, account, *_ = yaml.safe_load_all((ROOT / NAMESPACED_FILE).read_text())
    settings, claim, job = documents()
    assert {each["metadata"]["namespace"] for each in (settings, claim, job)} == {namespace["metadata"]["name"]}
    spec = job["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account["metadata"]["name"]
    (container,) = spec["containers"]
    assert container["image"] == WHOLE_IMAGE == f"localhost/podperf/whole:{__version__}"
    assert job["spec"]["completions"] == len(pairs(settings["data"]["nodes"].split()))
    assert {each["name"] for each in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}


def test_the_manifest_of_one_file_is_the_rights_and_a_job_with_one_image() -> None:
    *rights, settings, job = yaml.safe_load_all((ROOT / FIRST_RESULT).read_text())
    others = "---\n".join((ROOT / each).read_text() for each in (NAMESPACED_FILE, READER_FILE))
    others = others.replace("name: podperf", "name: podperf-first")
    others = others.replace("namespace: podperf", "namespace: podperf-first").replace("baseline\n", "privileged\n")
    assert rights == [*yaml.safe_load_all(others)]
    content = yaml.safe_load(settings["data"]["topology.yaml"])
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert content["tester"]["settings"]["image"] == container["image"] == WHOLE_IMAGE
    assert spec["serviceAccountName"] == content["tester"]["settings"]["namespace"] == "podperf-first"
    rows = {each.removeprefix("--test=") for each in container["command"][3:]}
    suites = "".join(path.read_text() for path in (ROOT / "tests/kubernetes").glob("*.robot"))
    assert all(f"\n{row}  " in suites for row in rows), "a name of a row has changed"


def test_without_nodes_the_scheduler_chooses_them() -> None:
    assert chosen_nodes({}, 2) == ()
    assert chosen_nodes({"PODPERF_NODES": "a b c", "JOB_COMPLETION_INDEX": "1"}, 1) == ("b",)


def test_a_pod_that_is_alone_refuses_other_runs_and_not_its_own() -> None:
    spec = manifests.pod("p", "mine", [], ["x"], PodWishes("i", alone=True), manifests.NodeOf("n"))["spec"]
    (term,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": RUN, "operator": "Exists"},
        {"key": RUN, "operator": "NotIn", "values": ["mine"]},
    ]
    assert "nodeAffinity" in spec["affinity"]
    assert "affinity" not in manifests.pod("p", "mine", [], ["x"], PodWishes("i"))["spec"]


def test_pods_go_to_the_named_nodes() -> None:
    for names, nodes in ((("a",), ["a", "a"]), (("a", "b"), ["a", "b"])):
        settings = KubernetesSettings(PodWishes("i"), node_names=names)
        assert [named_node.name for named_node in named_nodes(settings) if named_node] == nodes
        affinities = [each["spec"]["affinity"] for each in planned(settings) if each["kind"] == "Pod"]
        terms = [affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] for affinity in affinities]
        fields = [term["nodeSelectorTerms"][0]["matchFields"][0]["values"] for term in terms]
        assert fields == [[node] for node in nodes]


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PODPERF_NODES": "a b"}, "JOB_COMPLETION_INDEX is not set"),
        ({"JOB_COMPLETION_INDEX": "7", "PODPERF_NODES": "a b"}, "2 nodes have 1 pairs: set `completions`"),
    ],
)
def test_outside_of_a_job_the_command_says_what_is_missing(
    tmp_path: Path, environment: dict[str, str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    settings, _, _ = documents()
    topology = tmp_path / "topology.yaml"
    topology.write_text(settings["data"]["topology.yaml"])
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main(["job", str(topology)]) == 254
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_the_image_has_podperf_and_its_locked_packages() -> None:
    files = podperf_files()
    with tarfile.open(fileobj=io.BytesIO(layer_of(files))) as tar:
        names = tar.getnames()
    assert f"{HOME}/tests/kubernetes/cluster_network.robot" in names
    packages = {name.split("/dist-packages/")[1].split("/")[0] for name in names if "/dist-packages/" in name}
    assert {"robot", "kubernetes", "RequestsLibrary", "podperf.pth"} <= packages
    assert not {"pytest", "pip", "tox"} & packages
    assert not [name for name in names if "__pycache__" in name]
    assert len(set(names)) == len(names)


def of_nodes(document: dict[str, Any], *nodes: str) -> dict[str, Any]:
    """A record as a Job's run would have written it: its pods are on these nodes, and its testbed has their names."""
    pods = {"left": {"node": nodes[0]}, "right": {"node": nodes[-1]}}
    testbed = {**document["testbed"], "name": ".".join(["cluster", *nodes])}
    return {**document, "testbed": testbed, "tester": {**document["tester"], "pods": pods}}


def linux_bridge(rate: float) -> dict[str, Any]:
    return made_up.forwarding_record("linux-bridge", rate)[0].to_json()


RATES = {
    ("a", "b"): 200e3,
    ("a", "c"): 202e3,
    ("a", "d"): 100e3,
    ("b", "c"): 198e3,
    ("b", "d"): 99e3,
    ("c", "d"): 101e3,
}


def test_the_slowest_node_is_named_and_not_those_that_were_measured_with_it() -> None:
    records = [Record.of(of_nodes(linux_bridge(rate), *pair)) for pair, rate in RATES.items()]
    speeds = slowest_first(records)
    assert speeds[0].name == "d"
    assert speeds[0].ratio < 0.75
    assert all(speed.ratio > 1.2 for speed in speeds[1:])
    assert slowest_words(speeds).startswith("slowest of 4 nodes: d (0.")


def test_nothing_is_named_without_another_node_to_compare_with() -> None:
    assert not slowest_first([Record.of(of_nodes(linux_bridge(1e5), "a", "b"))])
    assert not slowest_first([Record.of(linux_bridge(1e5))])
    assert not slowest_words([])


@pytest.mark.parametrize("pods", [None, [], {"left": None}, {"left": {"node": 7}}])
def test_a_description_of_another_form_names_no_node(pods: object) -> None:
    assert nodes_of(Record.of({**linux_bridge(1e5), "tester": {"pods": pods}})) == ()


def test_one_report_of_all_pairs_names_the_slowest_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []
    for pair, rate in RATES.items():
        folders.append(tmp_path / f"cluster.{'.'.join(pair)}")
        path = made_up.write(folders[-1], *made_up.forwarding_record("linux-bridge", rate))
        path.write_text(json.dumps(of_nodes(json.loads(path.read_text()), *pair)))
    assert main(["report", *map(str, folders), "--output", str(tmp_path / "all")]) == 0
    assert "slowest of 4 nodes: d (" in capsys.readouterr().out
    report = json.loads((tmp_path / "all/conformance.json").read_text())
    assert report["nodes"][0]["name"] == "d"
    assert "The nodes, the slowest first" in (tmp_path / "all/conformance.html").read_text()
    section = next(each for each in report["sections"] if each["number"] == "4.1.1")
    assert len(section["tests"]) == len(RATES)


def test_a_report_of_many_runs_reads_each_record_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / f"cluster.{number}" for number in range(20)]
    for folder in folders:
        made_up.write(folder, *made_up.forwarding_record("linux-bridge", 1e5))
    read: list[Path] = []

    def counted(path: Path, **options: Any) -> Any:
        read.append(path)
        return read_record(path, **options)

    monkeypatch.setattr(runs, "read_record", counted)
    assert main(["report", *map(str, folders), "--output", str(tmp_path / "all")]) == 0
    assert len(read) <= len(folders)
