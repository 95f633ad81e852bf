"""The pictures at the head of the sections of 4.2: bars by scenario, a grid of placements, lines over the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.records import Record, TestRecord
from podperf.report.scenario_bars import group_of, numa_grid, rows_of, scenario_bars
from podperf.report.section_pictures import LoadLine, LoadPlot, loss_curves, percentiles_by_load, plot_over_load


def compared(
    rates: Mapping[str, Sequence[float]], *findings: Mapping[str, Any], section: str = "4.2.2", **more: Any
) -> Record:
    """A record of a comparison."""
    comparison = {"rates": rates, "placements": {rate: {"neighbour": None} for rate in rates}, **more}
    return made("AF_XDP, 2 MiB over none", {"comparison": comparison}, *findings, section=section)


def made(name: str, methods: Mapping[str, Any], *findings: Mapping[str, Any], section: str = "4.2.2") -> Record:
    """A record with these results of methods."""
    document = TestRecord("id", name, "suite", [f"sec-{section}"], 0, 1, "passed").to_json()
    told = [{"claim": "a claim", "detail": "so", **finding} for finding in findings]
    return Record.of({**document, "methods": methods, "findings": told})


RATIO = {"first": "2 MiB", "second": "none", "low": 0.99, "estimate": 1.02, "high": None}
RATES = {"2 MiB": [2e5, 3e5, 2.5e5], "none": [2e5, 2e5, 2e5]}
LENGTHS = {"data_plane": "ptp", "pods": [1, 2], "rates": [2e5, 1e5], "low": 0.4, "estimate": 0.5, "high": 0.6}
FINDING = {"verdict": "inconclusive", "ratios": [RATIO]}


def test_a_test_has_a_bar_for_each_scenario_with_verdict_and_interval() -> None:
    group = group_of(compared(RATES, FINDING))
    assert [(bar.name, bar.words, bar.lowest, bar.highest) for bar in group.bars] == [
        ("2 MiB", "250 kpps", 2e5, 3e5),
        ("none", "200 kpps", 2e5, 2e5),
    ]
    assert group.ratios == ["2 MiB to none: 1.02 times (0.99 to open)"]
    drawn = scenario_bars([compared(RATES, FINDING), compared(RATES)])
    assert drawn.count("AF_XDP, 2 MiB over none: inconclusive") == 1
    assert drawn.count("250 kpps") == 4  # the words and the title of each bar


@pytest.mark.parametrize(
    "record",
    [
        compared(RATES, section="4.1.1"),
        compared(RATES, {"verdict": "confirmed", "chain_lengths": LENGTHS}),
        compared({}),
        made("x", {}),
    ],
)
def test_other_records_have_no_bars(record: Record) -> None:
    assert scenario_bars([record]) == ""


@given(st.lists(st.tuples(st.text("abc <&'", min_size=1, max_size=90), st.floats(0, 1e9)), min_size=1, max_size=8))
def test_every_bar_stays_in_the_picture(bars: list[tuple[str, float]]) -> None:
    drawn = scenario_bars([compared({name: [rate] for name, rate in bars})])
    ends = [float(part.split("'")[0]) for part in drawn.split(" x2='")[1:]]
    assert all(0 <= end <= 720 for end in ends)
    assert "<&" not in drawn


PLACED = {f"{plane} S{number}": [number * 1e4] for plane in ("OVS-DPDK", "vpp-memif") for number in range(1, 7)}


def test_placements_are_a_grid_and_not_bars() -> None:
    record = compared(PLACED, section="4.2.1", frames=dict.fromkeys(PLACED, "1518B"))
    assert [(each.name, len(each.rates)) for each in rows_of(record)] == [
        ("OVS-DPDK, 1518B", 6),
        ("vpp-memif, 1518B", 6),
    ]
    assert scenario_bars([record]) == ""
    drawn = numa_grid([record])
    assert drawn.count("60.0 (100 %)") == 2
    assert ">NIC far far<" in drawn  # S1, as appendix C.3 has it
    assert numa_grid([compared(RATES)]) == ""


def test_a_chain_without_a_placement_makes_no_grid() -> None:
    assert rows_of(compared({**PLACED, "OVS-DPDK": [1e4]})) == []
    assert rows_of(compared({"OVS-DPDK S9": [1e4]})) == []


LOADS = st.just(0.0) | st.floats(1, 1e9)
POINTS = st.lists(st.tuples(LOADS, st.just(0.0) | st.floats(1e-6, 1e12)), max_size=6)


@given(st.lists(POINTS, max_size=4), st.booleans())
def test_every_point_stays_in_the_picture(lines: list[list[tuple[float, float]]], logarithmic: bool) -> None:
    drawn = plot_over_load(
        LoadPlot("made up", "{:g}".format, logarithmic), [LoadLine(str(each), each) for each in lines]
    )
    kept = [each for line in lines for each in line if each[0] > 0 and (each[1] > 0 or not logarithmic)]
    assert drawn.count("<circle") == len(kept)
    for axis, most in (("cx", 720), ("cy", 400)):
        places = [float(part.split("'")[0]) for part in drawn.split(f"{axis}='")[1:]]
        assert all(0 <= place <= most for place in places)


def heights(drawn: str) -> dict[str, float]:
    """The height of each label of the axis of values, by its words."""
    texts = [
        each
        for each in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")
        if each.get("text-anchor") == "end"
    ]
    return {str(text.text): float(text.get("y", 0)) for text in texts}


def test_a_loss_of_a_thousandth_can_be_told_from_none_and_from_a_hundredth() -> None:
    points = [
        {"achieved_load": load, "loss_ratio": loss}
        for load, loss in ((4e5, 0.8), (3e5, 0.01), (2e5, 0.001), (1e5, 0.0))
    ]
    at = heights(loss_curves([made("a", {"loss_curve": {"points": points}})]))
    assert at["no loss"] > at["0.1 %"] + 20 and at["0.1 %"] > at["1 %"] + 20 and at["1 %"] > at["10 %"] + 20


def test_methods_have_a_line_for_each_test() -> None:
    points = [{"achieved_load": 1e5, "loss_ratio": 0.5}, {"achieved_load": 5e4, "loss_ratio": 0.0}]
    latency = {"p50_ns": 7000, "p99_ns": 30000}
    steps = [{"load": 1e4, "latency": latency}, {"load": 5e4, "latency": latency}, {"load": 9e4, "latency": None}]
    records = [
        made("Loss curve", {"loss_curve": {"points": points}}),
        made("Latency", {"latency_by_load": {"steps": steps}}),
        made("NDR", {}),
    ]
    assert "Loss curve: 50 % at 100 kpps" in loss_curves(records)
    assert "Loss curve: no loss at 50.0 kpps" in loss_curves(records)
    drawn = percentiles_by_load(records)
    assert drawn.count("<circle") == 4
    assert drawn.count("stroke-dasharray") == 2  # the line of the 99th percentile, and its place in the legend
    assert loss_curves(records[2:]) == percentiles_by_load(records[2:]) == ""
