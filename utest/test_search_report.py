"""What RFC 9971 wants in a test report: goals with all attributes, bounds, effective durations, phases of a trial."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import made_up
from podperf.kubernetes import end_pair as of_kubernetes
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.presets import PRESETS, Goal
from podperf.model import TrialResult
from podperf.records import Record
from podperf.records.json_values import trial_to_json
from podperf.report.conformance import assess
from podperf.report.openmetrics import openmetrics
from podperf.report.page import page
from podperf.report.results import RunResults, read_run
from podperf.report.searches import _ATTRIBUTES, bounds_cell, search_tables, trial_phases
from podperf.report.summary import summary_table
from podperf.testers import trex
from podperf.topology import MethodSettings
from simulated_dut import SimulatedDut

CEILING = 4.5e6


def found(search: SearchResult, trials: list[TrialResult], folder: Path) -> dict[str, Any]:
    record, _ = made_up.forwarding_record("linux-bridge", 281e3)
    record.name = f"searched by {search.preset.name}"
    record.methods, record.metrics = {"ndrpdr": search.as_record()}, search.metrics
    record.tester = {**made_up.TESTER, "settle_seconds": 0.05}
    return made_up.document(record, [(trial, "ndrpdr") for trial in trials], folder)


def test_a_goal_of_ones_own_has_what_ndr_and_pdr_have(tmp_path: Path) -> None:
    dut = SimulatedDut(3e5, CEILING, congestion=0.3)
    method = NdrPdr.by(MethodSettings("csit", 5, 1.0, loss_ratio=0.02))
    found(NdrPdr(method.preset, clock=dut.clock).run(dut), dut.trials, tmp_path)
    run = read_run(tmp_path)
    (record,) = run.records
    assert record.figures["goal_rate"].value == pytest.approx(3e5, rel=0.05)
    html = page(assess([run], tmp_path))
    assert "goal rate bounds, kpps" in html and "goal rate: the topology" in html
    assert re.search(r"NDR +PDR +goal", summary_table([record]))
    assert 'metric="goal_rate"' in openmetrics([record])


def searched(dut: SimulatedDut, folder: Path, preset: str = "csit") -> dict[str, Any]:
    return found(NdrPdr(PRESETS[preset], clock=dut.clock).run(dut), dut.trials, folder)


def shown(*records: dict[str, Any]) -> str:
    """The text of the page, without its markup."""
    text = page(assess([RunResults(Path("/results"), tuple(map(Record.of, records)))], Path("/results")))
    return re.sub(r"<[^>]*>", " ", text)


def test_the_bounds_of_each_goal_are_beside_its_conditional_throughput(tmp_path: Path) -> None:
    """The lower bound of the PDR is above the figure, which is less by the loss at the bound."""
    record = searched(SimulatedDut(281e3, CEILING, base_loss=0.003), tmp_path)
    pdr = record["methods"]["ndrpdr"]["goals"]["PDR"]
    low, high = pdr["relevant_lower_bound"]["load"], pdr["relevant_upper_bound"]["load"]
    assert pdr["rate"] < 0.998 * low
    assert bounds_cell(Record.of(record), "PDR") == f"{low / 1e3:.0f} to {high / 1e3:.0f}"
    assert bounds_cell(Record.of(record), "NDR") == "no lower, 1.00" and bounds_cell(Record.of(record), "MLR") == "-"
    table = re.sub(r"<[^>]*>", " ", "".join(search_table.markup for search_table in search_tables(Record.of(record))))
    assert re.search(
        rf"PDR +{pdr['rate'] / 1e3:.0f} +{low / 1e3:.0f} +0\.3\d* % +{high / 1e3:.0f} +[0-9.]+ % +regular", table
    )
    assert re.search(r"NDR +- +- +1\.00 +0\.3\d* % +irregular: no lower bound", table)
    assert f"{low / 1e3:.0f} to {high / 1e3:.0f}" in shown(record)


def test_a_result_that_is_irregular_says_so(tmp_path: Path) -> None:
    """RFC 9971: values of an irregular goal result are marked."""
    record = searched(SimulatedDut(9e6, CEILING), tmp_path)
    goal = record["methods"]["ndrpdr"]["goals"]["NDR"]
    assert goal["regular"] is False and bounds_cell(Record.of(record), "NDR") == "4 500, no upper"
    assert "irregular: no upper bound" in shown(record)


class Impatient(SimulatedDut):
    """Time that passes so fast that the search is cut short."""

    def clock(self) -> float:
        return self.now * 100


def test_the_bounds_of_a_search_that_was_cut_short_are_not_regular(tmp_path: Path) -> None:
    record = searched(Impatient(281e3, CEILING), tmp_path)
    goals = record["methods"]["ndrpdr"]["goals"].values()
    assert any(goal["relevant_lower_bound"] and goal["relevant_upper_bound"] for goal in goals)
    assert not any(goal["regular"] for goal in goals)
    assert "bounds further apart than the Goal Width" in shown(record)
    assert any("*" in bounds_cell(Record.of(record), name) for name in ("NDR", "PDR"))


def test_all_attributes_of_each_goal_are_on_the_page(tmp_path: Path) -> None:
    assert {field.name for field in fields(Goal)} == {"name", *_ATTRIBUTES}
    text = shown(*(searched(SimulatedDut(281e3, CEILING), tmp_path / name, name) for name in ("csit", "tst009")))
    csit, tst009 = (text.partition(f"Preset {name}")[2] for name in ("csit", "tst009"))
    for words, first, second in (
        ("Goal Loss Ratio", r"0 % +0\.5 %", r"0 % +0\.5 %"),
        ("Goal Exceed Ratio", "50 % +50 %", "50 % +50 %"),
        ("Goal Initial Trial Duration", "1 s +1 s", "1 s +1 s"),
        ("Goal Final Trial Duration", "1 s +1 s", "60 s +60 s"),
        ("Goal Duration Sum", "21 s +21 s", "120 s +120 s"),
        (r"Goal Width: \(upper bound - lower bound\) / upper bound", r"0\.5 % +0\.5 %", r"0\.5 % +0\.5 %"),
        ("Min Load.*?", "1 000 frames/s", "1 000 frames/s"),
        ("time limit", "1 200 s", "7 200 s"),
    ):
        assert re.match(rf".*?{words} +{first}", csit, re.S), words
        assert re.match(rf".*?{words} +{second}", tst009, re.S), words


def test_the_effective_duration_of_each_trial_is_recorded_and_explained(tmp_path: Path) -> None:
    dut = SimulatedDut(281e3, CEILING, overhead=0.25)
    record = searched(dut, tmp_path)
    assert {trial["effective_duration"] for trial in record["trials"]} == {1.25}
    for goal in record["methods"]["ndrpdr"]["goals"].values():
        bound = goal["relevant_lower_bound"]
        assert bound["good_seconds"] + bound["bad_seconds"] == pytest.approx(1.25 * bound["trials"])
    assert record["methods"]["ndrpdr"]["effective_duration"] in shown(record)


def test_an_effective_duration_is_never_shorter_than_the_trial() -> None:
    result = SimulatedDut(1e5, overhead=-0.01).measure(1e4, 1.0)
    assert result.elapsed < 1 and trial_to_json(result, "mrr")["effective_duration"] == 1


def test_deviations_from_the_phases_of_a_trial_are_on_the_page(tmp_path: Path) -> None:
    record = searched(SimulatedDut(281e3, CEILING), tmp_path)
    text = shown(record)
    assert re.search(
        r"d\) residual frames +wait for 2 s +until every frame has arrived, or no frame arrives for 0\.05 s", text
    )
    others = [Record.of({**record, "tester": {"settle_seconds": each}}) for each in (trex.SETTLE, of_kubernetes.SETTLE)]
    assert list(trial_phases(others))[3][2].endswith("no frame arrives for 0.1 s or 0.2 s")
    assert "does not tell" in list(trial_phases([Record.of({**record, "tester": None})]))[3][2]
    methodology = (Path(__file__).parents[1] / "docs" / "methodology.md").read_text()
    for name, rfc, here in trial_phases([Record.of(record)]):
        assert f"| {name} | {rfc} | {here.partition('0.05')[0]}" in methodology


def test_a_record_without_goals_has_no_section_about_searches(tmp_path: Path) -> None:
    """Records of older versions, and of tests that only measure MRR."""
    old = made_up.document(*made_up.forwarding_record("linux-bridge", 281e3), tmp_path)
    assert "How NDR and PDR were searched" not in shown(old)
