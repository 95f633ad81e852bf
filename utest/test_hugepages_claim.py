"""The claims about hugepages: their words, their pairs, their verdicts, and what the record has of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up import TOPOLOGY, write
from podperf.dataplanes import DATA_PLANES
from podperf.errors import Unavailable
from podperf.kernel.cpus import Cpus
from podperf.kernel.pages import MappedPages
from podperf.metrics import Measured
from podperf.model import Chain, PageSize, Placement
from podperf.pods.forwarders import FORWARDERS
from podperf.preflight.imaginary_host import ImaginaryHost
from podperf.records import TestRecord, read_record
from podperf.testbed.scenarios import Placed
from podperf.testbed.testbed import LiveTestbed
from podperf.topology import SCHEMA_PATH, load_topology
from podperf.verdicts.findings import judge
from podperf.verdicts.hugepages_claim import HugepagesClaim

SIZES = (PageSize.ONE_GIB, PageSize.TWO_MIB, PageSize.NONE)
CLAIM = HugepagesClaim(Chain("af-xdp", 1), SIZES)
CONTROL = HugepagesClaim(Chain("linux-bridge", 1), SIZES[1:], control=True)


def rates(*levels: float) -> list[list[Measured]]:
    """Ten rounds at each level."""
    return [[Measured(each)] * 10 for each in levels]


def test_each_size_is_claimed_to_forward_more_than_the_next_one() -> None:
    assert [str(each) for each in CLAIM.contenders] == [
        "af-xdp with pages of 1 GiB",
        "af-xdp with pages of 2 MiB",
        "af-xdp with ordinary pages",
    ]
    assert CLAIM.name == "hugepages-af-xdp-one-gib-two-mib-none"
    found = judge(CLAIM, rates(3e5, 2e5, 1e5))
    assert found.verdict == "confirmed"
    assert [(each.first, each.estimate) for each in found.ratios] == [
        ("af-xdp with pages of 1 GiB", pytest.approx(1.5)),
        ("af-xdp with pages of 2 MiB", pytest.approx(2.0)),
    ]


@given(st.floats(0.97, 1.03))
def test_a_difference_that_does_not_count_has_a_size(ratio: float) -> None:
    found = judge(HugepagesClaim(Chain("memif", 2), SIZES[1:]), rates(ratio * 1e5, 1e5))
    assert found.verdict == "inconclusive"
    said = float(found.detail.partition("none larger than ")[2].split(" %")[0])
    assert max(ratio, 1 / ratio) - 1 <= said / 100 + 1e-9


@pytest.mark.parametrize(
    ("rate", "verdict", "words"),
    [
        (1.01e5, "confirmed", "no difference larger than 1"),
        (1.2e5, "refuted", "they differ"),
        (0.8e5, "refuted", "they differ"),
    ],
)
def test_the_control_claims_that_nothing_differs(rate: float, verdict: str, words: str) -> None:
    found = judge(CONTROL, rates(rate, 1e5))
    assert (found.verdict, "relatively negligible" in found.claim) == (verdict, True)
    assert words in found.detail
    assert "no process uses them" in found.detail


@pytest.mark.parametrize("sizes", [SIZES[:1], (PageSize.NONE, PageSize.NONE)])
def test_sizes_differ(sizes: tuple[PageSize, ...]) -> None:
    with pytest.raises(Exception, match="two or three different sizes"):
        HugepagesClaim(Chain("af-xdp", 1), sizes)


def test_the_record_has_the_pages_of_each_process(tmp_path: Path) -> None:
    record = TestRecord("x", "AF_XDP, 2 MiB", "s", ["sec-4.2.2"], 1, 2, "passed", topology=TOPOLOGY)
    placed = {str(each): Placed(Placement((0,), (1,)), (), pages=each.pages) for each in CLAIM.contenders}
    memory = {"af-xdp with pages of 2 MiB": {"pod1": MappedPages({2048: 131072}, 5000, 0).as_record()}}
    record.methods = {
        "comparison": {"placements": {name: each.as_record() for name, each in placed.items()}, "memory": memory}
    }
    record.findings = [judge(CLAIM, rates(3e5, 2e5, 1e5))]
    found: Any = read_record(write(tmp_path, record))
    sizes = [each["hugepages_of_mib"] for each in found["methods"]["comparison"]["placements"].values()]
    assert sizes == [1024, 2, 0]
    assert found["methods"]["comparison"]["memory"]["af-xdp with pages of 2 MiB"]["pod1"]["hugepages_kib"] == {
        "2048": 131072
    }
    assert found["findings"][0]["ratios"][0]["second"] == "af-xdp with pages of 2 MiB"


def imaginary() -> LiveTestbed:
    """A testbed of an imaginary machine with two CPUs."""
    topology = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
    host = ImaginaryHost("worker", Cpus((0, 1), (0, 1)))
    return LiveTestbed.on(topology, host, [host])


def test_a_testbed_in_other_pages_leaves_the_usual_one_as_it_is() -> None:
    usual = imaginary()
    other = usual.in_pages(PageSize.ONE_GIB)
    assert usual.workers[0].placement.hugepages is PageSize.TWO_MIB
    assert other.workers[0].placement.hugepages is PageSize.ONE_GIB
    assert other.topology is usual.topology


def test_a_topology_without_hugepages_is_left_without_them() -> None:
    usual = imaginary()
    (worker,) = usual.workers
    object.__setattr__(worker.settings, "hugepages", False)
    with pytest.raises(Unavailable, match="allows no hugepages: auto does"):
        usual.demand_pages(Chain("af-xdp", 1), PageSize.TWO_MIB)
    usual.demand_pages(Chain("af-xdp", 1), PageSize.NONE)


def test_only_chains_without_a_polling_application_are_controls() -> None:
    for claim in (CLAIM, CONTROL):
        polls = DATA_PLANES[claim.chain.data_plane].forwarders[0] in FORWARDERS
        assert polls is not claim.control
