"""The figures of runs as CSV, read again by a reader of CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_up_history
from podperf.__main__ import main
from podperf.errors import ExitCode
from podperf.records import Record
from podperf.report.csv_table import COLUMNS, csv_table

ROOT = Path(__file__).parents[1]


def record(**changes: Any) -> dict[str, Any]:
    return made_up_history.record("linux-bridge", 0, 1.0, deviation=0) | changes


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_each_figure_is_a_line_with_its_unit_and_bound() -> None:
    results = {"mrr": {"frames_per_second": 281e3, "lower_bound": True}}
    (line,) = lines(csv_table([Record.of(record(results=results))]))
    assert tuple(line) == COLUMNS
    assert (line["metric"], line["value"], line["unit"], line["bound"]) == (
        "mrr",
        "281000.0",
        "frames_per_second",
        "at least",
    )
    assert (line["data_plane"], line["pods"], line["frame"], line["outcome"]) == ("linux-bridge", "1", "64B", "passed")
    assert line["doubt"] == "the tester was the limit" and line["record"] == record()["id"]


def test_a_test_without_figures_has_a_line() -> None:
    (line,) = lines(csv_table([Record.of(record(results={}, outcome="failed"))]))
    assert (line["outcome"], line["metric"], line["value"]) == ("failed", "", "")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_texts_of_users_stay_in_their_cell_and_are_no_formula(text: str) -> None:
    found = lines(csv_table([Record.of(record(version_under_test=text))]))
    assert len(found) == len(record()["results"])
    for line in found:
        assert line["version_under_test"] in {text, f"'{text}"}
        assert not line["version_under_test"].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_the_command_writes_the_figures_of_all_given_runs(tmp_path: Path) -> None:
    for run in range(2):
        made_up_history.write(tmp_path, run, made_up_history.record("linux-bridge", run, 1.0))
    runs, table = sorted(map(str, tmp_path.iterdir())), tmp_path / "figures.csv"
    assert main(["report", *runs, "--output", str(tmp_path / "all"), "--csv", str(table)]) == ExitCode.FINE
    assert len({line["started"] for line in lines(table.read_text())}) == 2


def test_a_history_has_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--history", str(tmp_path), "--csv", "f.csv"]) == ExitCode.REFUSED
    assert "--csv is an option of results folders" in capsys.readouterr().err


def test_the_documentation_explains_each_column() -> None:
    page = (ROOT / "docs" / "records.md").read_text()
    for column in COLUMNS:
        assert f"`{column}`" in page
