"""Published figures beside measured ones: in their unit, with a ratio where both are for the same frames."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up import TOPOLOGY, write
from podperf.experiments.contender import Contender, PublishedQuantity, beside_published
from podperf.metrics import Measured
from podperf.model import Chain, FrameSize, Trial, TrialResult, l2_bit_rate, line_rate
from podperf.records import TestRecord, read_record
from podperf.report.command import write_reports
from podperf.run.experiment import quantities_beside
from podperf.testers.base import TesterLimits, TrialSource
from traffic import counted, traffic_of

LARGE, SMALL = FrameSize.parse(1518), FrameSize.parse(64)
SHARE = PublishedQuantity("NDR", "percent of line rate", LARGE)
GIGABITS = PublishedQuantity("throughput", "Gbit/s", LARGE)
LINK = 40e9


@given(st.floats(1e3, 3e6), st.floats(0.1, 100))
def test_the_ratio_is_that_of_the_figures_in_the_published_unit(rate: float, figure: float) -> None:
    share = beside_published(SHARE, "S1", figure, LARGE, Measured(rate), LINK)
    assert share.in_unit == pytest.approx(100 * rate / line_rate(LINK, LARGE))
    gigabits = beside_published(GIGABITS, "exclusive", figure, LARGE, Measured(rate), LINK)
    assert gigabits.in_unit == pytest.approx(l2_bit_rate(rate, LARGE) / 1e9)
    for row in (share, gigabits):
        assert row.ratio is not None and row.in_unit is not None
        assert row.ratio * figure == pytest.approx(row.in_unit)
        assert row.l1_gigabits == pytest.approx(row.l2_gigabits * 1538 / 1518)


@pytest.mark.parametrize(
    ("quantity", "figure", "frame", "link", "words"),
    [
        (SHARE, 21.29, LARGE, None, "the ports have no link speed"),
        (SHARE, 21.29, SMALL, LINK, "published for 1518B"),
        (PublishedQuantity("throughput", "Gbit/s"), 4.7, LARGE, LINK, "published without a frame size"),
        (PublishedQuantity("NDR", loss_ratio=0.001), None, SMALL, LINK, "no figure was published"),
    ],
)
def test_figures_that_cannot_be_compared_have_no_ratio(
    quantity: PublishedQuantity, figure: float | None, frame: FrameSize, link: float | None, words: str
) -> None:
    row = beside_published(quantity, "x", figure, frame, Measured(1e5), link)
    assert (row.ratio, row.remark) == (None, words)


def test_a_loss_goal_is_the_documents_or_none_at_all() -> None:
    hackathon = PublishedQuantity("NDR", loss_ratio=0.001)
    assert hackathon.sought_loss_ratio == 0.001
    assert hackathon.words == "NDR, published without figures, loss of at most 0.1 %"
    assert SHARE.sought_loss_ratio == 0.0
    assert SHARE.words == "NDR, percent of line rate, 1518B frames, published without a loss goal"
    assert [SHARE.searched_with(each) for each in (LARGE, SMALL)] == [True, False]
    assert hackathon.searched_with(SMALL)
    assert not GIGABITS.searched_with(LARGE), "a throughput without a method is not searched"


class _Chain:
    """A chain that carries so many frames/s, and loses `leak` of those below, too."""

    maximum_load = 1e6

    def __init__(self, capacity: float, leak: float) -> None:
        self._capacity, self._leak = capacity, leak

    def measure(self, load: float, duration: float) -> TrialResult:
        sent = int(load * duration)
        received = min(sent, int(self._capacity * duration)) - math.ceil(sent * self._leak)
        counts = counted(sent, received, duration=duration)
        return TrialResult(Trial(traffic_of(1518), load, duration), 0.0, (counts,), elapsed=duration)


def measured(quantity: PublishedQuantity, *contenders: Contender) -> Any:
    """The figures of chains that carry 100 kpps and lose 0.05 % of them."""

    @contextmanager
    def build(_: Contender) -> Iterator[TrialSource]:
        yield cast(TrialSource, _Chain(1e5, 0.0005))

    test = SimpleNamespace(phase="", patience=SimpleNamespace(clock=lambda: 0.0))
    names = [contender.name for contender in contenders]
    limits, links = dict.fromkeys(names, TesterLimits(1e6, 0.0, "made up")), dict.fromkeys(names, LINK)
    of_test: Any = SimpleNamespace(test=test, limits=limits, links=links, shortest_trial=0.0, trials=build)
    rates = {name: [Measured(rate) for rate in (1.1e5, 1.3e5, 1.2e5)] for name in names}
    published = [replace(contender, quantity=quantity) for contender in contenders]
    found = quantities_beside(published, rates, of_test, TOPOLOGY.method)
    assert test.phase == ""
    return found


ROW = Contender("OVS-DPDK S1", Chain("ovs-dpdk", 2), frame=LARGE, figure=21.29)


def test_an_ndr_is_searched_with_the_published_loss_goal() -> None:
    (row,) = measured(PublishedQuantity("NDR", "percent of line rate", LARGE, 0.001), ROW)["rows"]
    assert row["measured_as"] == "NDR"
    assert row["rate"]["value"] == pytest.approx(1e5, rel=0.05)
    without = measured(SHARE, ROW)
    assert without["sought_loss_ratio"] == 0.0
    assert without["rows"][0]["rate"]["upper_bound"], "no load is without loss here"
    assert without["searches"]["OVS-DPDK S1"]["preset"]["goals"][0]["loss_ratio"] == 0.0


def test_chains_of_no_table_have_no_published_figures() -> None:
    assert quantities_beside([Contender("ptp", Chain("ptp", 1))], {}, cast(Any, None), TOPOLOGY.method) == {}


def test_other_quantities_are_the_median_of_the_rounds() -> None:
    found = measured(GIGABITS, ROW)
    assert (found["searches"], found["sought_loss_ratio"]) == ({}, None)
    (row,) = found["rows"]
    assert (row["measured_as"], row["rate"]["value"], row["rate"]["low"], row["rate"]["high"]) == (
        "MRR",
        1.2e5,
        1.1e5,
        1.3e5,
    )


def test_the_report_has_both_figures_side_by_side(tmp_path: Path) -> None:
    record = TestRecord("x", "S1", "s", ["appendix-c.5"], 1, 2, "passed", topology=TOPOLOGY)
    record.tester = {"name": "the software tester"}
    record.methods = {"published": measured(PublishedQuantity("NDR", "percent of line rate", LARGE, 0.001), ROW)}
    (row,) = read_record(write(tmp_path, record)).methods["published"]["rows"]
    assert row["ratio"] == pytest.approx(row["percent_of_line_rate"] / 21.29)
    page = write_reports(tmp_path).read_text()
    section = page[page.index("C.5") :]
    assert "Beside the published figures (NDR, percent of line rate, 1518B frames, loss of at most 0.1 %)" in section
    assert ">21.29 % of line rate<" in section
    assert "NDR, loss of at most 0.1 %" in section
