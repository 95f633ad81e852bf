"""The pictures at the head of the sections of 4.2: bars by scenario, a grid of placements, lines over the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.report.line_plot import LoadLine, LoadPlot, plot_over_load
from podperf.report.method_plots import loss_curves, percentiles_by_load
from podperf.report.numa_grid import numa_grid, rows_of
from podperf.report.scenario_bars import group_of, scenario_bars


def compared(
    rates: Mapping[str, Sequence[float]], *findings: Mapping[str, Any], section: str = "4.2.2", **more: Any
) -> dict[str, Any]:
    """A record of a comparison."""
    comparison = {"rates": rates, "placements": {each: {"neighbour": None} for each in rates}, **more}
    return {
        "test": {"name": "AF_XDP, 2 MiB over none", "sections": [section]},
        "methods": {"comparison": comparison},
        "findings": findings,
    }


RATIO = {"first": "2 MiB", "second": "none", "low": 0.99, "estimate": 1.02, "high": None}
RATES = {"2 MiB": [2e5, 3e5, 2.5e5], "none": [2e5, 2e5, 2e5]}
FINDING = {"verdict": "inconclusive", "ratios": [RATIO]}


def test_a_test_has_a_bar_for_each_scenario_with_verdict_and_interval() -> None:
    group = group_of(compared(RATES, FINDING))
    assert [(each.name, each.words, each.lowest, each.highest) for each in group.bars] == [
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
        compared(RATES, {"verdict": "confirmed", "chain_lengths": {"pods": [1, 2]}}),
        compared({}),
        {"test": {"name": "x", "sections": ["4.2.2"]}, "methods": {}, "findings": []},
    ],
)
def test_other_records_have_no_bars(record: dict[str, Any]) -> None:
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


def test_methods_have_a_line_for_each_test() -> None:
    points = [{"achieved_load": 1e5, "loss_ratio": 0.5}, {"achieved_load": 5e4, "loss_ratio": 0.0}]
    latency = {"p50": 7000, "p99": 30000}
    steps = [{"load": 1e4, "latency": latency}, {"load": 5e4, "latency": latency}, {"load": 9e4, "latency": None}]
    records = [
        {"test": {"name": "Loss curve"}, "methods": {"loss_curve": {"points": points}}},
        {"test": {"name": "Latency"}, "methods": {"latency_by_load": {"steps": steps}}},
        {"test": {"name": "NDR"}, "methods": {}},
    ]
    assert "Loss curve: 50 % at 100 kpps" in loss_curves(records)
    drawn = percentiles_by_load(records)
    assert drawn.count("<circle") == 4
    assert drawn.count("stroke-dasharray") == 2  # the line of the 99th percentile, and its place in the legend
    assert loss_curves(records[2:]) == percentiles_by_load(records[2:]) == ""
