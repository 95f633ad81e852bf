"""The claims about hugepages: their words, their pairs, their verdicts, and what the record has of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up import TOPOLOGY, write
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.experiments.claim import judge
from podperf.experiments.claims import hugepages, reserved_hugepages
from podperf.kernel.memory import MappedPages
from podperf.metrics import Measured
from podperf.model import Chain, PageSize, Placement
from podperf.preflight.plan import PlannedHost
from podperf.records import TestRecord, read_record
from podperf.testbed.scenarios import Placed
from podperf.testbed.testbed import Testbed
from podperf.topology import SCHEMA_PATH, load_topology

SIZES = ("ONE_GIB", "TWO_MIB", "NONE")
CLAIM = hugepages("af-xdp", "1", *SIZES)
CONTROL = reserved_hugepages("linux-bridge", "1", *SIZES[1:])


def rates(*levels: float) -> list[list[Measured]]:
    """Ten rounds at each level."""
    return [[Measured(level)] * 10 for level in levels]


def test_each_size_is_claimed_to_forward_more_than_the_next_one() -> None:
    assert [contender.name for contender in CLAIM.contenders] == [
        "af-xdp with pages of 1 GiB",
        "af-xdp with pages of 2 MiB",
        "af-xdp with ordinary pages",
    ]
    assert CLAIM.name == "hugepages-af-xdp-one-gib-two-mib-none"
    found = judge(CLAIM, rates(3e5, 2e5, 1e5))
    assert found.verdict == "confirmed"
    assert [(ratio.first, ratio.estimate) for ratio in found.ratios] == [
        ("af-xdp with pages of 1 GiB", pytest.approx(1.5)),
        ("af-xdp with pages of 2 MiB", pytest.approx(2.0)),
    ]


@given(st.floats(0.97, 1.03))
def test_a_difference_that_does_not_count_has_a_size(ratio: float) -> None:
    found = judge(hugepages("memif", "2", *SIZES[1:]), rates(ratio * 1e5, 1e5))
    assert found.verdict == "inconclusive"
    said = float(found.detail.partition("none larger than ")[2].split(" %")[0])
    assert max(ratio, 1 / ratio) - 1 <= said / 100 + 1e-9


def test_the_control_claims_that_nothing_differs() -> None:
    found = judge(CONTROL, rates(1.01e5, 1e5))
    assert (found.verdict, "relatively negligible" in found.claim) == ("confirmed", True)
    assert "no process uses them" in found.detail


@pytest.mark.parametrize(
    ("sizes", "words"),
    [(SIZES[:1], "two or more different"), (("NONE", "NONE"), "two or more"), (("TWO",), "none of NONE")],
)
def test_sizes_differ(sizes: tuple[str, ...], words: str) -> None:
    with pytest.raises(PodperfError, match=words):
        hugepages("af-xdp", "1", *sizes)


def test_the_record_has_the_pages_of_each_process(tmp_path: Path) -> None:
    record = TestRecord("x", "AF_XDP, 2 MiB", "s", ["sec-4.2.2"], 1, 2, "passed", topology=TOPOLOGY)
    placed = {
        contender.name: Placed(Placement((0,), (1,)), (), pages=contender.placement.pages)
        for contender in CLAIM.contenders
    }
    memory = {"af-xdp with pages of 2 MiB": {"pod1": MappedPages({2048: 131072}, 5000, 0).as_record()}}
    record.methods = {
        "comparison": {"placements": {name: each.as_record() for name, each in placed.items()}, "memory": memory}
    }
    record.findings = [judge(CLAIM, rates(3e5, 2e5, 1e5))]
    found = read_record(write(tmp_path, record)).document
    sizes = [placement["hugepages_of_mib"] for placement in found["methods"]["comparison"]["placements"].values()]
    assert sizes == [1024, 2, 0]
    assert found["methods"]["comparison"]["memory"]["af-xdp with pages of 2 MiB"]["pod1"]["hugepages_mib"] == {"2": 128}
    assert found["findings"][0]["ratios"][0]["second"] == "af-xdp with pages of 2 MiB"


def planned() -> Testbed:
    """A testbed of a machine with two CPUs that carries nothing out."""
    topology = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
    cpus = {"/sys/devices/system/cpu/online": b"0-1", "/proc/self/status": b"Cpus_allowed_list: 0-1"}
    host = PlannedHost("worker", cpus)
    return Testbed.on(topology, host, [host])


def test_a_testbed_in_other_pages_leaves_the_usual_one_as_it_is() -> None:
    usual = planned()
    other = usual.in_pages(PageSize.ONE_GIB)
    assert usual.workers[0].placement.hugepages is PageSize.TWO_MIB
    assert other.workers[0].placement.hugepages is PageSize.ONE_GIB
    assert other.topology is usual.topology


def test_a_topology_without_hugepages_is_left_without_them() -> None:
    usual = planned()
    (worker,) = usual.workers
    object.__setattr__(worker.settings, "hugepages", False)
    with pytest.raises(Unavailable, match="allows no hugepages: auto does"):
        usual.demand_pages(Chain("af-xdp", 1), PageSize.TWO_MIB)
    usual.demand_pages(Chain("af-xdp", 1), PageSize.NONE)
