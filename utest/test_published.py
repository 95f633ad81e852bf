"""Published results: the files in the repository, messages about wrong files, and the orders that the files give."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from finding_rows import TESTS, claims
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import judge
from podperf.experiments.contender import PublishedQuantity
from podperf.experiments.published import FOLDER, TOPOLOGIES, load_table, published_table
from podperf.metrics import Measured
from podperf.model import Chain, FrameSize
from podperf.testbed.scenarios import SCENARIOS
from podperf.topology import load_topology

ROOT = Path(__file__).parents[1]
NAMES = sorted(each.stem for each in FOLDER.glob("*.yaml"))
SMALL, LARGE = FrameSize.parse(64), FrameSize.parse(1518)
OVS_DPDK = [f"OVS-DPDK S{number}" for number in range(1, 7)]
VPP_MEMIF = [f"vpp-memif S{number}" for number in range(1, 7)]


def measured(*rates: float) -> list[list[Measured]]:
    """Ten rounds for each of the contenders."""
    return [[Measured(rate)] * 10 for rate in rates]


@pytest.mark.parametrize("name", NAMES)
def test_every_table_is_sound_and_so_is_its_lab(name: str) -> None:
    table = published_table(name)
    assert table.rows
    topology = load_topology(TOPOLOGIES / f"{table.testbed}.yaml")
    assert topology.tester.kind.type == "trex"
    assert topology.workers[0].connection == "ssh"
    assert topology.labels["trex"] in {"2.4", "2.92"}


def test_the_draft_is_quoted_to_the_digit() -> None:
    """Appendix C.5 of the draft, as in its table."""
    figures = {row.name: row.figure for row in published_table("appendix_c_multi_pod").rows if row.figure}
    theirs = {
        "OVS-DPDK": (21.29, 13.17, 6.32, 19.76, 12.43, 6.38),
        "vpp-memif": (59.96, 34.17, 45.13, 57.1, 33.47, 44.92),
    }
    assert figures == {f"{model} S{n}": value for model, row in theirs.items() for n, value in enumerate(row, start=1)}
    assert [row.figure for row in published_table("appendix_a_contiv_vpp").rows] == [3.1, 9.8, 1.5, 4.7, 3.1, 3.5, 2.3]
    assert [row.figure for row in published_table("appendix_b_sriov_dpdk").rows] == [39.3, 11.5, 39.2, 29.6]


def test_only_what_a_document_says_is_called_an_ndr() -> None:
    quantities = {name: published_table(name).quantity.name for name in NAMES}
    named = {name for name, quantity in quantities.items() if quantity == "NDR"}
    assert named == {"appendix_c_multi_pod", "hackathon_113"}, "A and B do not say how their throughput was found"


def test_figures_order_rows_where_they_clearly_differ() -> None:
    order = published_table("appendix_c_multi_pod").order_of_figures(LARGE, *OVS_DPDK)
    assert [contender.name for contender in order.contenders] == [f"OVS-DPDK S{n}" for n in (1, 4, 2, 5, 6, 3)]
    assert {contender.placement.scenario for contender in order.contenders} == {SCENARIOS[f"S{n}"] for n in range(1, 7)}
    names = {(order.contenders[i].name, order.contenders[j].name) for i, j in order.pairs}
    assert ("OVS-DPDK S1", "OVS-DPDK S3") in names
    assert ("OVS-DPDK S6", "OVS-DPDK S3") not in names  # 6.38 and 6.32
    assert ("OVS-DPDK S1", "OVS-DPDK S4") not in names  # 21.29 and 19.76, 8 %
    assert "OVS-DPDK S1 21.3" in order.their_figures
    assert "published for" not in order.their_figures
    other_size = published_table("appendix_c_multi_pod").order_of_figures(SMALL, *VPP_MEMIF)
    assert "published for 1518B" in other_size.their_figures


def test_an_order_is_judged_by_its_pairs_and_its_ranks_compared() -> None:
    order = published_table("appendix_c_multi_pod").order_of_figures(LARGE, *OVS_DPDK)
    alike = judge(order, measured(2.1e6, 1.9e6, 1.3e6, 1.2e6, 0.6e6, 0.6e6))
    assert alike.verdict == "confirmed"
    assert f"of {len(order.pairs)} pairs {len(order.pairs)} confirmed" in alike.detail
    assert re.search(r"Kendall's tau\) 0\.9\d", alike.detail)
    turned = judge(order, measured(0.6e6, 0.6e6, 1.2e6, 1.3e6, 1.9e6, 2.1e6))
    assert turned.verdict == "refuted"
    assert "Kendall's tau) -" in turned.detail
    one_way_off = judge(order, measured(2.1e6, 1.9e6, 1.2e6, 1.3e6, 0.6e6, 0.6e6))
    assert one_way_off.verdict == "confirmed", "S2 and S5 were published too near each other to be ordered"


def test_larger_frames_are_judged_by_bits() -> None:
    order = published_table("appendix_c_multi_pod").order_of_sizes("OVS-DPDK", SMALL, LARGE, FrameSize.parse(512))
    assert [contender.name for contender in order.contenders] == ["OVS-DPDK, 1518B", "OVS-DPDK, 512B", "OVS-DPDK, 64B"]
    assert judge(order, measured(2e5, 2.1e5, 2.2e5)).verdict == "confirmed"  # slightly fewer frames, many more bits
    assert judge(order, measured(1e4, 2e5, 2.2e5)).verdict == "refuted"  # so few that the bits are fewer, too


def test_statements_order_rows_as_the_suite_does() -> None:
    order = published_table("hackathon_113").order_of_statement("pods cost", SMALL, "1n2p OVS", "1n4p OVS", "1n6p OVS")
    assert [contender.chain.pods for contender in order.contenders] == [2, 4, 6]
    assert judge(order, measured(1.04e5, 1.02e5, 1e5)).verdict == "confirmed", "2 % counts here"
    with pytest.raises(PodperfError, match="no statement 'pods'; there are: SR-IOV helps, pods cost, nodes cost"):
        published_table("hackathon_113").order_of_statement("pods", SMALL, "1n2p")


def test_nodes_of_a_row_are_workers_of_its_chain() -> None:
    order = published_table("hackathon_113").order_of_statement("nodes cost", SMALL, "1n2p", "2n4p")
    assert [contender.chain for contender in order.contenders] == [
        Chain("sriov-vpp", 2),
        Chain("sriov-vpp", 4, workers=2),
    ]


def test_rows_that_cannot_be_set_up_say_why() -> None:
    with pytest.raises(Unavailable, match="does not say how 'maximum line rate' was set up"):
        published_table("appendix_b_sriov_dpdk").order_of_figures(LARGE, "maximum line rate", "shared")
    with pytest.raises(PodperfError, match="no row 'OVS S1'; there are: OVS-DPDK S1, "):
        published_table("appendix_c_multi_pod").order_of_figures(LARGE, "OVS S1")
    with pytest.raises(PodperfError, match=r"no figure was published for OVS-DPDK$"):
        published_table("appendix_c_multi_pod").order_of_figures(LARGE, "OVS-DPDK")
    assert published_table("Appendix C Multi Pod") == published_table("appendix_c_multi_pod")
    with pytest.raises(PodperfError, match=r"there is no table 'appendix_d'.*there are: appendix_a_contiv_vpp, "):
        published_table("appendix_d")


def test_only_the_hackathon_gives_a_loss_goal() -> None:
    goals = {name: published_table(name).quantity.loss_ratio for name in NAMES}
    assert {name: goal for name, goal in goals.items() if goal is not None} == {"hackathon_113": 0.001}


SOUND = """\
version: 1
source: {document: d, section: s, table: t}
testbed: local
quantity: NDR
unit: Gbit/s
rows:
  - {name: a, figure: 2, set_up: {data_plane: ptp, pods: 1}}
  - {name: b, figure: 1, set_up: {data_plane: ptp, pods: 1, scenario: S1}}
"""


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(SOUND)
    table = load_table(path)
    assert table.quantity == PublishedQuantity("NDR", "Gbit/s")
    assert [row.figure for row in table.rows] == [2.0, 1.0]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("testbed: local", "testbed: locl", 3, "testbed: found 'locl'; allowed: .*did you mean 'local'"),
        ("figure: 2", "figure: two", 7, r"rows\[0\].figure: found 'two'; allowed: a number above 0"),
        ("figure: 2", "figur: 2", 7, r"rows\[0\].figur: unknown key; .*did you mean 'figure'"),
        ("name: b", "name: a", 8, r"rows\[1\].name: found 'a'; allowed: a name that line 7 has not got"),
        ("scenario: S1", "scenario: none", 8, r"set_up.scenario: found 'none'; allowed: S1, S2, "),
        ("unit: Gbit/s\n", "", 6, r"rows\[0\].figure: found 2; allowed: figures in a table whose `unit` is given"),
        ("pods: 1, ", "pods: 0, ", 8, r"set_up.pods: found 0; allowed: an integer from 1 to 255"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(SOUND.replace(old, new, 1))
    with pytest.raises(PodperfError, match=words) as caught:
        load_table(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")


# --- the suites -------------------------------------------------------------------------------------------------------


def test_every_row_of_the_suites_compares_what_its_table_has() -> None:
    tests = [test for test in TESTS if test.source is not None and test.source.parent.name == "appendices"]
    assert len(tests) < 60
    for test in tests:
        assert "quick" not in test.tags
        assert "published" in test.tags
        if (order := claims().get(test.name)) is None:
            continue
        tagged = {contender.chain.data_plane for contender in order.contenders}
        sizes = {contender.frame.name for contender in order.contenders}
        assert tagged <= set(test.tags), test.name
        assert len(sizes) > 1 or sizes <= set(test.tags), test.name
        on_two_nodes = any("other" in str(contender.placement.scenario).lower() for contender in order.contenders)
        assert not on_two_nodes or "needs-numa" in test.tags, test.name
        assert any("sriov" in each for each in tagged) == ("needs-sriov" in test.tags), test.name
