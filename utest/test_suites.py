"""The suites are tables. The tags of each row fit its columns, and `quick` has a row for every data plane."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from robot.api import TestSuite as Suite
from robot.running import TestCase

import make_sweeps
from podperf.dataplanes import DATA_PLANES
from podperf.model import NetworkingModel, PageSize
from podperf.pods.forwarders import FORWARDERS
from podperf.report.draft import SECTIONS
from podperf.testbed.neighbour import NeighbourKind
from podperf.testbed.scenarios import CpuIsolation
from podperf.verdicts.claims import CLAIMS
from podperf.verdicts.isolation_claim import IsolationClaim

ROOT = Path(__file__).parents[1]
SUITE = Suite.from_file_system(ROOT / "tests")


@dataclass(frozen=True)
class Measured:
    """A test that measures one chain: the values of its row, with the defaults of its template."""

    name: str
    tags: frozenset[str]
    data_plane: str
    pods: str = "1"
    frame: str = "64"
    directions: str = ""
    options: frozenset[str] = frozenset()


TEMPLATES = {
    "Chain Should Forward": ("data_plane", "pods", "frame", "directions"),
    "Path Should Forward": ("data_plane", "frame"),
    "Chain On Two Workers Should Forward": ("data_plane", "pods", "frame"),
    "Cluster Network Should Forward": ("nodes", "frame"),
    "Cluster Service Should Forward": ("nodes", "frame"),
}
WITHOUT_PODS = {
    "Path Should Forward": {"pods": "0"},
    "Cluster Network Should Forward": {"pods": "0", "data_plane": "external"},
    "Cluster Service Should Forward": {"pods": "0", "data_plane": "external"},
}


def measured(test: TestCase) -> Measured:
    """The values of a row: its columns by their place, and the named ones."""
    cells = [str(each) for each in test.body[0].args]
    places = iter(TEMPLATES[test.template])
    said = dict(cell.split("=", 1) if "=" in cell else (next(places), cell) for cell in cells)
    said = WITHOUT_PODS.get(test.template, {}) | said
    options = frozenset(
        f"{name}={value}" for name, value in said.items() if name not in TEMPLATES["Chain Should Forward"]
    )
    known = {name: value for name, value in said.items() if name in TEMPLATES["Chain Should Forward"]}
    return Measured(test.name, frozenset(test.tags), options=options, **known)


ROWS = [measured(test) for test in SUITE.all_tests if test.template in TEMPLATES]
SIZES = {"64", "128", "256", "512", "1024", "1280", "1518", "IMIX"}


def test_rows_are_tagged_as_they_measure() -> None:
    for row in ROWS:
        assert row.data_plane in DATA_PLANES, row.name
        assert {row.data_plane, row.frame if row.frame == "IMIX" else f"{row.frame}B", "full"} <= row.tags, row.name
        assert ("bidirectional" in row.tags) == (row.directions == "bidirectional"), row.name
        model = DATA_PLANES[row.data_plane].model
        assert model is NetworkingModel.NONE or model.value in row.tags, row.name


def test_rows_are_named_as_they_measure() -> None:
    for row in ROWS:
        assert (row.frame if row.frame == "IMIX" else f"{row.frame} B") in row.name, row.name
        assert int(row.pods) < 2 or f"{row.pods} pods" in row.name or "2 workers" in row.name, row.name
        assert ("both directions" in row.name) == bool(row.directions), row.name


def test_every_data_plane_has_the_same_sizes_directions_and_chains() -> None:
    for name in set(DATA_PLANES) - {"external", "wire"}:
        own = [
            row
            for row in ROWS
            if row.data_plane == name and row.options <= {"forwarder=kernel"} and "needs-lab" not in row.tags
        ]
        shortest = min(row.pods for row in own)
        assert {row.frame for row in own if row.pods == shortest and not row.directions} == SIZES, name
        assert any(row.directions for row in own), name
        longer = {row.frame for row in own if row.pods > shortest}
        assert longer >= {"64", "1518"} or name == "xdp-offload", f"{name}: with pods the NIC's program passes them by"
    assert {row.frame for row in ROWS if row.data_plane == "wire"} == SIZES


def test_the_kernels_data_planes_and_every_networking_model_are_measured_quick() -> None:
    quick = {row.data_plane for row in ROWS if "quick" in row.tags}
    models = {NetworkingModel.KERNEL_SPACE, NetworkingModel.NONE}
    with_rules = {"service", "routed-policy"}  # as docker and routed, with rules of a firewall
    assert {name for name, kind in DATA_PLANES.items() if kind.model in models} - with_rules <= quick
    assert {DATA_PLANES[name].model for name in quick} == set(NetworkingModel)


def test_quick_are_25_tests_and_none_of_them_is_in_a_sweep() -> None:
    quick = [test for test in SUITE.all_tests if "quick" in test.tags]
    assert len(quick) == 25
    assert not [test.name for test in quick if test.source and test.source.stem.endswith("_sweep")]


@pytest.mark.parametrize("name", make_sweeps.SWEEPS)
def test_a_sweep_is_made_from_the_list(name: str) -> None:
    made = make_sweeps.target(name).read_text(encoding="utf-8")
    assert made == make_sweeps.suite(name), "make it again: .venv/bin/python docs/make_sweeps.py"


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.robot")), ids=lambda path: path.stem)
def test_no_column_of_a_table_says_the_same_in_every_row(path: Path) -> None:
    for template in {test.template for test in SUITE.all_tests if test.source == path and test.template}:
        table = [test.body[0].args for test in SUITE.all_tests if test.source == path and test.template == template]
        if len(table) > 1:
            same = [cells[0] for cells in zip(*table, strict=False) if len(set(map(str, cells))) == 1]
            assert not same, f"{template}: {same}"


def test_every_claim_is_judged_in_its_sections() -> None:
    judged = {str(test.body[0].args[0]): test for test in SUITE.all_tests if test.template == "Claim Should Be Judged"}
    assert list(judged) == list(CLAIMS)
    for name, claim in CLAIMS.items():
        wanted = {f"appendix-{each.lower()}" if each[0].isalpha() else f"sec-{each}" for each in claim.sections}
        wanted |= {chain.data_plane for chain in claim.chains} | {claim.frame.name, "finding"}
        assert wanted <= set(judged[name].tags), name


def test_every_isolation_level_is_measured_under_its_tags() -> None:
    rows = [test for test in SUITE.all_tests if test.template == "Isolation Should Be Judged"]
    assert len(rows) == 12
    for test in rows:
        data_plane, neighbour, *levels = map(str, test.body[0].args)
        claim = IsolationClaim(
            data_plane, NeighbourKind[neighbour], tuple(CpuIsolation[each] for each in ("EXCLUSIVE", *levels))
        )
        assert {"sec-4.2.1", "finding", data_plane, claim.frame.name} <= set(test.tags), test.name
        assert f"exclusive over {' over '.join(levels).lower()}, {claim.neighbour}" in test.name


def test_every_size_of_pages_is_measured_under_its_tags() -> None:
    rows = [test for test in SUITE.all_tests if test.template == "Hugepages Should Be Judged"]
    measured: dict[str, list[PageSize]] = {}
    for test in rows:
        data_plane, pods, size = map(str, test.body[0].args)
        kind = DATA_PLANES[data_plane]
        assert kind.forwarders[0] in FORWARDERS, f"{test.name}: nothing polls in its pods"
        assert int(pods) == kind.least_pods
        assert {"sec-4.2.2", "hugepages", "finding", data_plane, "64B"} <= set(test.tags), test.name
        measured.setdefault(data_plane, []).append(PageSize[size])
    sizes = [PageSize.TWO_MIB, PageSize.ONE_GIB]
    assert measured == dict.fromkeys(("af-xdp", "memif", "ovs-dpdk", "vpp-l2patch"), sizes)


def test_each_networking_model_has_one_or_two_chain_lengths_among_the_resources() -> None:
    rows = [test for test in SUITE.all_tests if "chain-length" in test.tags]
    assert {test.body[0].args[0] for test in rows} == {name for name in CLAIMS if name.endswith("-by-length")}
    models = Counter(
        tag for test in rows if "resources" in test.tags for tag in test.tags if tag in set(NetworkingModel)
    )
    of_all = {tag for test in rows for tag in test.tags if tag in set(NetworkingModel)}
    assert of_all == set(models) and set(models.values()) <= {1, 2}


def test_every_section_tag_is_a_section_of_the_draft() -> None:
    numbers = {section.number for section in SECTIONS}
    for test in SUITE.all_tests:
        named = {tag.removeprefix("sec-") for tag in test.tags if tag.startswith("sec-")}
        assert named, f"{test.name} has no section tag"
        assert named <= numbers, test.name


def test_a_section_names_the_suites_that_have_its_tests() -> None:
    for section in SECTIONS:
        files = {test.source.name for test in SUITE.all_tests if test.source and section.tag in test.tags}
        sums_up = not section.suites and any(section.holds(each) for each in SECTIONS)
        assert sums_up or set(section.suites) == files, section.number


def test_the_page_counts_the_tests_right() -> None:
    page = (ROOT / "docs/suites.md").read_text(encoding="utf-8")
    (rows,) = re.findall(r"--include full .*# (\d+) rows", page)
    ((tests, quick),) = re.findall(r"There are (\d+) tests\. (\d+) of them have the tag `quick`\.", page)
    counts = [sum(tag in test.tags for test in SUITE.all_tests) for tag in ("full", "quick")]
    assert [int(rows), int(quick), int(tests)] == [*counts, SUITE.test_count]


def test_names_are_unique() -> None:
    names = [test.name for test in SUITE.all_tests]
    assert len(names) == len(set(names))
