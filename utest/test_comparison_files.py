"""Comparison files: those that are shipped are valid, and every mistake has a line with its place."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from podperf.cpu_lists import parse_cpu_list
from podperf.dataplanes import DATA_PLANES
from podperf.experiments.comparison_files import COMPARISON_SCHEMA, ComparisonError, comparison_schema, load_comparison
from podperf.kernel.cpus import Cpus
from podperf.kubernetes.settings import TESTER_SCHEMA
from podperf.metrics import METRICS
from podperf.model import BOTH_DIRECTIONS, Chain
from podperf.preflight.plan import plan
from podperf.testbed.scenarios import SCENARIOS
from podperf.topology import SCHEMA_PATH, Moment, load_topology

FOLDER = COMPARISON_SCHEMA.parent
TWO = """version: 1
name: two
chain: {data_plane: linux-bridge}
variants:
  - name: one
  - name: other
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "comparison.yaml"
    path.write_text(text)
    return path


def problems(folder: Path, text: str) -> list[str]:
    """The mistakes of a file, without its path."""
    path = written(folder, text)
    with pytest.raises(ComparisonError) as error:
        load_comparison(path)
    return [problem.removeprefix(f"{path}:") for problem in error.value.problems]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_comparisons_are_valid(path: Path) -> None:
    comparison = load_comparison(path)
    assert comparison.name == path.stem, "reports are named after the comparison"
    assert comparison.description
    assert "# yaml-language-server: $schema=comparison.schema.json" in path.read_text()


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(COMPARISON_SCHEMA.read_text()))
    assert comparison_schema()["properties"]["metric"]["enum"] == list(METRICS), "a new metric follows by itself"


def test_settings_of_the_testers_pods_are_those_of_a_topology() -> None:
    varied = comparison_schema()["$defs"]["tester"]["properties"]
    known = TESTER_SCHEMA["properties"]
    assert varied == {name: {key: known[name][key] for key in known[name] if key != "default"} for name in varied}


def test_a_variant_overrides_single_settings_of_the_testers_pods(tmp_path: Path) -> None:
    text = """version: 1
name: pods
chain: {data_plane: external, pods: 0}
tester: {nodes: 2}
variants:
  - {name: host, tester: {host_network: true}}
  - {name: pod}
"""
    host, pod = load_comparison(written(tmp_path, text)).variants
    assert host.tester == {"nodes": 2, "host_network": True} and pod.tester == {"nodes": 2}
    assert "network_police: unknown key" in "".join(problems(tmp_path, text.replace("nodes: 2", "network_police: 2")))


def test_what_a_file_leaves_out_is_left_to_the_testbed(tmp_path: Path) -> None:
    found = load_comparison(written(tmp_path, TWO))
    assert [variant.chain for variant in found.variants] == [Chain("linux-bridge", 1)] * 2
    assert found.topology is None and found.directions is None and found.flows is None
    assert found.metric_on(counted=False) is METRICS["mrr"] and found.metric_on(counted=True) is METRICS["cost"]
    assert found.relevant_on(counted=False) == 0.05 and found.relevant_on(counted=True) == 0.001
    assert found.rounds == 40 and found.trial_seconds == 0.5 and found.frame.name == "64B"


def test_a_variant_overrides_single_keys_of_the_common_chain(tmp_path: Path) -> None:
    text = """version: 1
name: all-keys
topology: lab/rack.yaml
metric: pdr
relevant_percent: 2.5
rounds: 20
frame: IMIX
flows: 1000
directions: bidirectional
chain: {data_plane: memif, pods: 2}
traffic: {vlan: 100}
variants:
  - name: before
  - name: after
    chain: {pods: 3}
    placement: {scenario: S2}
    hooks:
      - {when: before set-up, run: "sysctl -w net.core.rmem_max=1", undo: "sysctl -w net.core.rmem_max=2"}
      - {in: pod 3, run: "true"}
  - name: narrow
    chain: {data_plane: ovs-dpdk, forwarder: testpmd-macswap}
    traffic: {family: ipv6}
    placement: {cpus: 2-4, switch_cpus: 2}
"""
    found = load_comparison(written(tmp_path, text))
    _, after, narrow = found.variants
    assert found.topology == tmp_path / "lab/rack.yaml"
    assert found.metric is METRICS["pdr"] and found.relevant == 0.025 and found.frame.name == "IMIX"
    assert (found.flows, found.directions, found.rounds) == (1000, BOTH_DIRECTIONS, 20)
    assert after.chain == Chain("memif", 3) and after.placement.scenario is SCENARIOS["S2"]
    assert str(after.placement) == "S2" and str(narrow.placement) == "CPUs 2-4, switch on 2"
    assert [(hook.moment, hook.place, hook.pod) for hook in after.hooks] == [
        (Moment.BEFORE, "worker", None),
        (Moment.AFTER, "pod 3", 3),
    ]
    assert narrow.chain == Chain("ovs-dpdk", 2, "testpmd-macswap")
    assert (after.traffic, narrow.traffic) == ("VLAN 100", "ipv6, VLAN 100")
    assert narrow.placement.cpus == (2, 3, 4) and narrow.placement.switch_cpus == (2,)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("name: other", "name: one"), "6: variants[1].name: found 'one'; allowed: a name of its own (the variant"),
        (("name: two", "name: two words"), "2: name: found 'two words'; allowed: a short name"),
        (("linux-bridge}", "linux-brigde}"), "did you mean 'linux-bridge'?"),
        (
            ("name: other", "name: other\n    traffic: {family: ipx}"),
            "7: variants[1].traffic.family: found 'ipx'; allowed",
        ),
        (("version: 1", "version: 1\nmetric: mmr"), "2: metric: found 'mmr'; allowed: mrr, ndr, pdr"),
        (("version: 1", "version: 1\nrounds: 5"), "2: rounds: found 5; allowed: an integer from 6 to 200"),
        (("version: 1", "version: 1\nrelevant_percent: 0"), "2: relevant_percent: found 0; allowed: a number above 0"),
        (("version: 1", "version: 1\nframe: 63"), "2: frame: found 63; allowed: a frame size in bytes"),
        (("linux-bridge}", "linux-bridge, pods: 0}"), "3: chain.pods: found 0; allowed: 1 or more (data plane"),
        (("linux-bridge}", "memif, pods: 1}"), "3: chain.pods: found 1; allowed: 2 or more"),
        (("linux-bridge}", "linux-bridge, forwarder: vpp}"), "3: chain.forwarder: found 'vpp'; allowed: kernel"),
        (("chain: {data_plane: linux-bridge}\n", ""), "variants[0].chain.data_plane: found nothing; allowed: wire"),
        (("  - name: other\n", ""), "4: variants: found a list; allowed: a list of 2 to 8"),
        (
            ("name: other", "name: other\n    chain: {data_plane: external}\n    hooks: [{in: pods, run: x}]"),
            "8: variants[1].hooks[0].in: found 'pods'; allowed: worker",
        ),
        (("name: other", "name: other\n    speed: 1"), "7: variants[1].speed: unknown key; allowed: name, chain,"),
        (("name: other", "name: other\n    topology: no.yaml"), "7: variants[1].topology: found 'no.yaml'; allowed: "),
    ],
)
def test_a_mistake_has_a_line_with_its_place(change: tuple[str, str], problem: str, tmp_path: Path) -> None:
    assert change[0] in TWO
    found = problems(tmp_path, TWO.replace(*change))
    assert any(problem in each for each in found), found
    assert all("\n" not in each for each in found)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("placement: {cpus: 3-1}", "the range 3-1 runs backwards"),
        ("placement: {cpus: 0xc}", "a list of CPUs such as 1 or 2-5,7, not a mask (the mask 0xc is 2-3 as a list)"),
        ("placement: {scenario: S1, cpus: 1}", "no such key beside `scenario`"),
        ("placement: {switch_cpus: 1}", "this key only beside `cpus`"),
        ("placement: {cpus: 1, switch_cpus: 2}", "placement.switch_cpus: found 2; allowed: a part of `cpus`"),
        ("hooks: [{in: pod 2, run: x}]", "hooks[0].in: found 'pod 2'; allowed: worker, pods, or pod 1 to pod 1"),
        ("hooks: [{in: pods, when: before set-up, run: x}]", "allowed: worker: before the set-up there is no pod"),
        ("hooks: [{undo: x}]", "variants[1].hooks[0].run: found nothing; allowed: a shell command"),
        ("hooks: [{in: tester, run: x}]", "variants[1].hooks[0].in: found 'tester'; allowed: worker, pods, or a pod"),
    ],
)
def test_keys_that_contradict_each_other_have_a_line(keys: str, problem: str, tmp_path: Path) -> None:
    found = problems(tmp_path, f"{TWO}    {keys}\n")
    assert any(problem in each and each.startswith("7:") for each in found), found


def test_more_variants_need_more_rounds(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, f"{TWO}  - name: third\nrounds: 6\n")
    assert found == "8: rounds: found 6; allowed: 7 or more: with 3 variants, fewer rounds cannot give the confidence"


def test_a_topology_of_a_variant_is_that_of_a_counted_machine(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("version: 1\nname: lab\n")
    (tmp_path / "counted.yaml").write_text("version: 1\nname: mine\nworkers: [{connection: counted}]\n")
    (tmp_path / "wrong.yaml").write_text("version: 2\n")
    text = f"{TWO}    topology: counted.yaml\n"
    assert load_comparison(written(tmp_path, text)).machines_of_their_own
    (found,) = problems(tmp_path, text.replace("counted.yaml", "lab.yaml"))
    assert found.startswith("7: variants[1].topology: found 'lab.yaml'; allowed: a topology of a counted machine")
    (found,) = problems(tmp_path, text.replace("counted.yaml", "wrong.yaml"))
    assert "variants[1].topology: found 'wrong.yaml'; allowed: a topology file without mistakes (" in found


def test_a_file_that_is_none_says_so(tmp_path: Path) -> None:
    with pytest.raises(ComparisonError, match="no such file"):
        load_comparison(tmp_path / "nowhere.yaml")
    assert problems(tmp_path, "- a list\n") == ["1: the top level is not a mapping; allowed: keys such as `version: 1`"]


def test_vpp_has_as_many_workers_as_its_comparison_says() -> None:
    """Beside its main core, which has another CPU."""
    comparison = load_comparison(FOLDER / "vpp-cores.yaml")
    topology = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
    found = []
    for variant in comparison.variants:
        worker = Cpus(tuple(range(8)), tuple(range(8)))
        made = plan(topology, variant.chain, comparison.frame, worker, variant.placement.scenario)
        (startup,) = (step.content for step in made.steps if "corelist-workers" in step.content)
        (listed,) = re.findall(r"corelist-workers ([\d,-]+)", startup)
        found.append(len(parse_cpu_list(listed)))
    assert found == [1, 2, 4]
    assert comparison.metric is METRICS["latency_p50"]
