"""The suites are tables: each row's tags say what its columns say, and `quick` has a row for every data plane."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from robot.api import TestSuite as Suite

from podperf.dataplanes import DATA_PLANES
from podperf.model import NetworkingModel
from podperf.report.draft import SECTIONS
from podperf.verdicts.claims import CLAIMS

ROOT = Path(__file__).parents[1]
SUITE = Suite.from_file_system(ROOT / "tests")


def rows() -> Iterator[tuple[str, list[str], set[str]]]:
    """Name, columns and tags of every test that measures one chain."""
    for test in SUITE.all_tests:
        if test.template == "Chain Should Forward":
            yield test.name, [str(each) for each in test.body[0].args], set(test.tags)


@pytest.mark.parametrize(
    ("name", "columns", "tags"), list(rows()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_row_is_tagged_as_it_measures(name: str, columns: list[str], tags: set[str]) -> None:
    data_plane, _, frame, *directions = columns
    assert data_plane in DATA_PLANES
    assert {data_plane, frame if frame == "IMIX" else f"{frame}B", "full"} <= tags
    assert ("bidirectional" in tags) == (directions == ["bidirectional"])
    model = DATA_PLANES[data_plane].model
    assert model is NetworkingModel.NONE or model.value in tags


def test_every_data_plane_is_measured_and_the_kernels_at_every_size() -> None:
    every_size = {"64B", "128B", "256B", "512B", "1024B", "1280B", "1518B", "IMIX"}
    for name in set(DATA_PLANES) - {"external"}:
        tagged = [tags for _, columns, tags in rows() if columns[0] == name]
        sizes = {tag for tags in tagged for tag in tags}
        if DATA_PLANES[name].model in {NetworkingModel.KERNEL_SPACE, NetworkingModel.NONE}:
            assert any("quick" in tags for tags in tagged), name
            assert every_size <= sizes, name
        else:
            assert {"64B", "1518B"} <= sizes, name


def test_every_networking_model_is_measured_quick() -> None:
    quick = {DATA_PLANES[columns[0]].model for _, columns, tags in rows() if "quick" in tags}
    assert quick == {kind.model for name, kind in DATA_PLANES.items() if name != "external"}


def test_every_claim_is_judged_in_its_sections() -> None:
    judged = {str(test.body[0].args[0]): test for test in SUITE.all_tests if test.template == "Claim Should Be Judged"}
    assert list(judged) == list(CLAIMS)
    for name, claim in CLAIMS.items():
        wanted = {f"appendix-{each.lower()}" if each[0].isalpha() else f"sec-{each}" for each in claim.sections}
        wanted |= {chain.data_plane for chain in claim.chains} | {claim.frame.name, "finding"}
        assert wanted <= set(judged[name].tags), name


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


def test_names_are_unique() -> None:
    names = [test.name for test in SUITE.all_tests]
    assert len(names) == len(set(names))
