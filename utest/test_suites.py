"""The suites are tables. The tags of each row fit its columns, and `quick` has a row for every data plane."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from robot.api import TestSuite as Suite
from robot.model import TagPatterns
from robot.running import ResourceFile, TestCase

from finding_rows import TESTS, claims
from podperf.dataplanes import DATA_PLANES
from podperf.model import NetworkingModel, PageSize
from podperf.pods.forwarders import FORWARDERS
from podperf.report import successor_draft
from podperf.report.draft import SECTIONS

ROOT = Path(__file__).parents[1]
SUITE = Suite.from_file_system(ROOT / "tests")


KEYWORDS = {
    keyword.name: keyword
    for file in (ROOT / "resources").glob("*.resource")
    for keyword in ResourceFile.from_file_system(file).keywords
}
SET_UP = "Set Up Chain"
COLUMNS = ("data_plane", "pods", "frame", "directions")  # of the keyword that sets a chain up


@dataclass(frozen=True)
class Measured:
    """A test that measures one chain: the arguments with which it sets the chain up."""

    name: str
    tags: frozenset[str]
    template: str
    data_plane: str
    pods: str
    frame: str
    directions: str = ""
    options: frozenset[str] = frozenset()


def arguments_of_set_up(keyword: str, arguments: list[str]) -> list[str] | None:
    """The arguments of `Set Up Chain`, if this keyword calls it, or calls another one that does."""
    if keyword == SET_UP or keyword not in KEYWORDS:
        return arguments if keyword == SET_UP else None
    names = KEYWORDS[keyword].args.positional
    values = {name: str(value) for name, value in KEYWORDS[keyword].args.defaults.items()}
    values |= dict(zip(names, (argument for argument in arguments if "=" not in argument), strict=False))
    values |= dict(argument.split("=", 1) for argument in arguments if argument.split("=")[0] in names)
    options = [argument for argument in arguments if "=" in argument and argument.split("=")[0] not in names]
    for step in KEYWORDS[keyword].body:
        given = [
            filled
            for word in map(str, step.args)
            for filled in (
                options if word == "&{options}" else [re.sub(r"\$\{(.+?)\}", lambda m: values.get(m[1], ""), word)]
            )
        ]
        if found := arguments_of_set_up(step.name, given):
            return found
    return None


def measured(test: TestCase) -> Measured | None:
    """The row of a test that measures one chain."""
    said = arguments_of_set_up(test.template, [str(each) for each in test.body[0].args]) if test.template else None
    if said is None:
        return None
    by_name = dict(each.split("=", 1) for each in said if "=" in each)
    columns = dict(zip(COLUMNS, [each for each in said if "=" not in each], strict=False))
    columns |= {name: by_name.pop(name) for name in COLUMNS if name in by_name}
    columns = {name: value for name, value in columns.items() if value != "${None}"}
    options = frozenset(f"{name}={value}" for name, value in by_name.items())
    return Measured(test.name, frozenset(test.tags), test.template, options=options, **columns)


ROWS = [row for row in map(measured, SUITE.all_tests) if row]
OF_APPLICATIONS = " Should Carry Applications"  # the ending of templates whose rows measure no frames
SIZES = {"64", "128", "256", "512", "1024", "1280", "1518", "IMIX"}


def test_every_template_that_measures_a_chain_is_followed_to_its_set_up() -> None:
    templates = {test.template for test in SUITE.all_tests if test.template}
    endings = (
        *(" Should Forward", " Should Have A Cost", " Should Be Measured By", " Should Be Reconfigured"),
        *(" Should Carry Many Pairs", OF_APPLICATIONS),
    )
    assert {row.template for row in ROWS} == {template for template in templates if template.endswith(endings)}


def test_rows_are_tagged_as_they_measure() -> None:
    for row in ROWS:
        assert row.data_plane in DATA_PLANES, row.name
        frame = row.frame if row.frame == "IMIX" else f"{row.frame}B"
        assert row.data_plane in row.tags, row.name
        assert (frame in row.tags) != row.template.endswith(OF_APPLICATIONS), row.name
        assert ("full" in row.tags) == row.template.endswith(" Should Forward"), row.name
        assert ("counted" in row.tags) == (row.template == "Chain Should Have A Cost"), row.name
        assert ("bidirectional" in row.tags) == (row.directions == "bidirectional"), row.name
        assert ("ipv6" in row.tags) == ("family=ipv6" in row.options) == ("IPv6" in row.name), row.name
        assert ("vlan" in row.tags) == ("vlan=100" in row.options) == ("VLAN 100" in row.name), row.name
        assert ("jumbo" in row.tags) == (row.frame == "9018"), row.name
        model = DATA_PLANES[row.data_plane].model
        assert model is NetworkingModel.NONE or model.value in row.tags, row.name


def test_rows_are_named_as_they_measure() -> None:
    for row in ROWS:
        frame = row.frame if row.frame == "IMIX" else f"{row.frame} B"
        assert (frame in row.name) != row.template.endswith(OF_APPLICATIONS), row.name
        assert int(row.pods) < 2 or f"{row.pods} pods" in row.name or "2 workers" in row.name, row.name
        assert ("both directions" in row.name) == bool(row.directions), row.name
        assert re.findall(r"(\d+) flows", row.name) == [
            option[6:] for option in row.options if option.startswith("flows=") and "new-flows" not in row.tags
        ]


def test_every_data_plane_has_the_same_sizes_directions_and_chains() -> None:
    for name in set(DATA_PLANES) - {"external", "wire"}:
        own = [
            row
            for row in ROWS
            if {name, "full"} <= row.tags
            and row.options <= {"forwarder=kernel"}
            and not {"needs-lab", "jumbo"} & row.tags
        ]
        shortest = min(row.pods for row in own)
        assert {row.frame for row in own if row.pods == shortest and not row.directions} == SIZES, name
        assert any(row.directions for row in own), name
        ipv6 = {(row.frame, row.directions) for row in ROWS if {name, "ipv6"} <= row.tags}
        assert ipv6 == {("84", "bidirectional"), ("1518", "bidirectional")}, name
        longer = {row.frame for row in own if row.pods > shortest}
        assert longer >= {"64", "1518"} or name == "xdp-offload", f"{name}: with pods the NIC's program passes them by"
    of_frames = [row for row in ROWS if not row.template.endswith(OF_APPLICATIONS)]
    assert {row.frame for row in of_frames if row.data_plane == "wire"} == SIZES


def test_the_kernels_data_planes_and_every_networking_model_are_measured_quick() -> None:
    quick = {row.data_plane for row in ROWS if "quick" in row.tags}
    models = {NetworkingModel.KERNEL_SPACE, NetworkingModel.NONE}
    # Variants of docker, routed, macvlan and docker-bridge.
    variants = {"service", "routed-policy", "docker-macvlan", "docker-default", "docker-overlay", "podman-bridge"}
    assert {name for name, kind in DATA_PLANES.items() if kind.model in models} - variants <= quick
    assert {DATA_PLANES[name].model for name in quick} == set(NetworkingModel)


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.robot")), ids=lambda path: path.stem)
def test_no_column_of_a_table_says_the_same_in_every_row(path: Path) -> None:
    for template in {test.template for test in SUITE.all_tests if test.source == path and test.template}:
        table = [test.body[0].args for test in SUITE.all_tests if test.source == path and test.template == template]
        if len(table) > 1:
            same = [
                cells[0]
                for cells in zip(*table, strict=False)
                if len(set(map(str, cells))) == 1 and "=" not in cells[0]
            ]
            assert not same, f"{template}: {same}"


def test_every_claim_is_judged_under_the_tags_of_what_it_compares() -> None:
    for test in TESTS:
        if (claim := claims().get(test.name)) is None:
            continue
        frames = {contender.frame.name for contender in claim.contenders}
        assert {contender.chain.data_plane for contender in claim.contenders} <= set(test.tags), test.name
        assert frames <= set(test.tags) or len(frames) > 1, test.name
        for number in re.findall(r"section (\S+)$", claim.source or ""):
            section = f"appendix-{number.lower()}" if number[0].isalpha() else f"sec-{number}"
            assert section in test.tags or number == "C.5", test.name
        levels = [
            contender.name.removesuffix(", alone")
            for contender in claim.contenders
            if contender.name.endswith(", alone")
        ]
        assert " over ".join(levels) in test.name


def test_every_size_of_pages_is_measured() -> None:
    measured: dict[str, list[PageSize | None]] = {}
    for test in TESTS:
        if test.template == "Hugepages Should Be Judged":
            first, _ = claims()[test.name].contenders
            kind = DATA_PLANES[first.chain.data_plane]
            assert kind.forwarders[0] in FORWARDERS, f"{test.name}: nothing polls in its pods"
            assert first.chain.pods == kind.least_pods
            measured.setdefault(first.chain.data_plane, []).append(first.placement.pages)
    sizes = [PageSize.TWO_MIB, PageSize.ONE_GIB]
    assert measured == dict.fromkeys(("af-xdp", "memif", "ovs-dpdk", "vpp-l2patch"), sizes)


def test_each_networking_model_has_one_or_two_chain_lengths_among_the_resources() -> None:
    rows = [test for test in SUITE.all_tests if "chain-length" in test.tags]
    models = Counter(
        tag for test in rows if "resources" in test.tags for tag in test.tags if tag in set(NetworkingModel)
    )
    of_all = {tag for test in rows for tag in test.tags if tag in set(NetworkingModel)}
    assert of_all == set(models) and set(models.values()) <= {1, 2}


def test_every_section_tag_is_a_section_of_the_draft() -> None:
    numbers = {section.number for section in SECTIONS}
    for test in SUITE.all_tests:
        named = {tag.removeprefix("sec-") for tag in test.tags if tag.startswith("sec-")}
        assert bool(named) != ("application-traffic" in test.tags), f"{test.name}: no section of the draft is about it"
        assert named <= numbers, test.name


def test_a_section_names_the_suites_that_have_its_tests() -> None:
    for sections in (SECTIONS, successor_draft.SECTIONS):
        for section in sections:
            selected = TagPatterns(section.pattern)
            files = {test.source.name for test in SUITE.all_tests if test.source and selected.match(test.tags)}
            sums_up = not section.suites and any(section.holds(each) for each in sections)
            assert sums_up or set(section.suites) == files, section.number


def test_no_test_of_the_models_and_resources_is_missing_in_the_successors_sections() -> None:
    of_draft = [test for test in SUITE.all_tests if any(tag.startswith("sec-4.") for tag in test.tags)]
    patterns = [TagPatterns(section.pattern) for section in successor_draft.SECTIONS]
    assert of_draft and all(any(pattern.match(test.tags) for pattern in patterns) for test in of_draft)


@pytest.mark.parametrize("suite", ["cluster-network", "cluster-share"])
def test_a_large_frame_between_two_nodes_fits_below_an_overlay(suite: str) -> None:
    sizes = {tag for test in SUITE.all_tests if suite in test.tags and "two nodes" in test.name for tag in test.tags}
    assert {"1280B", "1518B"} <= sizes, "1518 B needs an MTU of 1500, and an overlay leaves 1370 to 1450"


def test_names_are_unique() -> None:
    names = [test.name for test in SUITE.all_tests]
    assert len(names) == len(set(names))
