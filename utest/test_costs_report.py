"""`podperf report --costs BEFORE AFTER`: what is said, what is drawn, and what cannot be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import chromium
import made_up
from podperf.methods.functions import Functions
from podperf.report import command
from podperf.report.cost_changes import CostChange, CountedCost
from podperf.report.cost_chart import cost_chart
from podperf.report.cost_words import MOST_SHOWN, signed
from podperf.report.summary import summary_table
from test_report_page import BEYOND_THE_EDGE, CONTRASTS, SMALLEST_TEXT

BEFORE: Functions = {"ip_forward": 2400.0, "nft_do_chain [nf_tables]": 96.0, "memset_erms": 80.0, "send [bpf]": -8.0}
AFTER: Functions = {"ip_forward": 2400.0, "nft_do_chain [nf_tables]": 165.0, "memset": 72.0, "send [bpf]": -8.0}


def write(folder: Path, *functions: Functions, missing: str | None = None) -> Path:
    """A run with a row for each of these."""
    for number, each in enumerate(functions):
        data_plane = ("macvlan", "linux-bridge")[number]
        made_up.write(folder, made_up.counted_record(data_plane, each, missing=missing, started=1.7951e9 + number))
    return folder


def report(*arguments: str | Path) -> int:
    return command.main(["--costs", *map(str, arguments)])


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    return write(tmp_path / "old", BEFORE, BEFORE), write(tmp_path / "new", AFTER, BEFORE)


def test_figures_and_functions_are_told(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert report(*runs) == 0
    said = capsys.readouterr().out
    lines = [" ".join(each.split()) for each in said.splitlines()]
    assert lines[0] == "before: old (Linux 6.18.44)"
    assert "one frame in flight: 2 568.000, now 2 629.000 instructions a frame (+61.000)" in lines
    assert "+69.000 96.000 165.000 nft_do_chain [nf_tables]" in lines
    assert "-8.000 80.000 72.000 memset_erms, now memset" in lines
    assert "bursts of 32 frames: 1 605.000, now 1 643.125 instructions a frame (+38.125)" in lines
    bridge = lines.index("Linux bridge, 64 B")
    assert lines[bridge + 2] == "no function differs" and "ip_forward" not in said
    assert said.rstrip().endswith("new/costs.html"), "by default the report goes to the second run"
    assert max(map(len, said.splitlines()[:-1])) <= 80


def test_the_data_have_every_function_and_the_sum_is_the_change(runs: tuple[Path, Path]) -> None:
    report(*runs)
    data = json.loads((runs[1] / "costs.json").read_text())
    (figure, _) = data["tests"][0]["figures"]
    changes = [each["change"] for each in figure["functions"]]
    assert changes == [69.0, -8.0] and sum(changes) + figure["in_no_function"] == figure["change"] == 61.0


def test_the_page_has_a_picture_and_a_table_of_each_figure_that_differs(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    assert report(*runs, "--output", tmp_path / "there") == 0
    page = (tmp_path / "there" / "costs.html").read_text()
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 2
    for each in plots:
        ElementTree.fromstring(each)
        assert "memset_erms, now memset" in each and "+" in each
    assert page.count("No function differs.") == 2 and "<script" not in page


def test_two_records_of_different_tests_are_compared(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (one,) = (runs[0] / "records").glob("*linux-bridge*")
    (other,) = (runs[1] / "records").glob("*macvlan*")
    assert report(one, other) == 0
    said = capsys.readouterr().out
    assert "Linux bridge, 64 B → Macvlan, 64 B" in said and "+69.000" in said
    assert said.rstrip().endswith("new/costs.html")


def test_functions_that_are_not_known_are_told_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = write(tmp_path / "a", BEFORE), write(tmp_path / "b", AFTER, missing="QEMU 7.2 is too old")
    assert report(one, other) == 0
    said = capsys.readouterr().out
    assert "(+61.000)" in said and said.count("not told by function: QEMU 7.2 is too old") == 2
    page = (other / "costs.html").read_text()
    assert "Not told by function: QEMU 7.2 is too old." in page and "<svg" not in page


def test_a_record_of_an_earlier_podperf_has_figures_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = write(tmp_path / "a", BEFORE), write(tmp_path / "b", AFTER)
    (path,) = (one / "records").glob("*")
    record = json.loads(path.read_text())
    for each in record["methods"]["cost"]["bursts"]:
        for key in ("functions", "in_no_function", "functions_missing"):
            del each[key]
    path.write_text(json.dumps(record))
    assert report(one, other) == 0
    assert "the podperf that wrote this record did not count by function" in capsys.readouterr().out


def test_rows_of_one_run_only_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = write(tmp_path / "a", BEFORE, BEFORE), write(tmp_path / "b", AFTER)
    assert report(one, other) == 0
    assert "in one of the two only: Linux bridge, 64 B" in capsys.readouterr().out


def test_mistakes_are_one_line(runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (record,) = (runs[0] / "records").glob("*macvlan*")
    assert report(record, runs[1]) == 1
    assert "give two results folders, or two records" in capsys.readouterr().err
    rates = tmp_path / "rates"
    made_up.write(rates, *made_up.forwarding_record("macvlan", 281e3))
    assert report(rates, runs[1]) == 1
    assert "have no cost of the same test" in capsys.readouterr().err
    assert report(tmp_path / "nothing", runs[1]) == 1
    assert "no such file or folder" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.main([str(rates), "--costs", *map(str, runs)])
    assert "or --costs BEFORE AFTER" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named_and_makes_the_exit_code(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (runs[0] / "records" / "cut.json").write_text("{")
    assert report(*runs) == 1
    assert "not read: cut.json" in capsys.readouterr().out


def test_names_from_records_cannot_become_markup(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a", {"<script>": 100.0}), write(tmp_path / "b", {"<script>": 200.0})
    assert report(one, other) == 0
    assert "<script" not in (other / "costs.html").read_text()


AMOUNTS = st.integers(-(2**20), 2**20).filter(bool).map(lambda each: each / 128)


@given(st.dictionaries(st.integers(0, 99).map(lambda each: f"function_{each}"), AMOUNTS, min_size=1, max_size=60))
def test_every_chart_is_a_drawing_whose_bars_add_up(functions: Functions) -> None:
    before, after = (CountedCost(1, sum(each.values()), each, None) for each in ({}, functions))
    change = CostChange(before, after)
    ElementTree.fromstring(cost_chart("a chart", change))
    assert change.in_no_function == 0
    assert len(change.functions) == len(functions)
    rows = re.findall(r"<title>([^<:]*): ([-+ 0-9.]+)</title>", cost_chart("a chart", change))
    assert len(rows) == min(len(functions), MOST_SHOWN + 1)
    assert sum(float(amount.replace(" ", "")) for _, amount in rows) == pytest.approx(change.change, abs=0.02)


@pytest.mark.parametrize(
    ("amount", "text"), ((69.0, "+69.000"), (-1162.015625, "-1 162.016"), (0.0, "0.000"), (-0.0001, "0.000"))
)
def test_changes_have_a_sign_and_three_decimals(amount: float, text: str) -> None:
    assert signed(amount) == text


def test_the_reports_of_a_run_show_the_functions_with_the_most_instructions(tmp_path: Path) -> None:
    many = {f"function_{number}": 100.0 - number for number in range(40)}
    page = command.write_reports(write(tmp_path / "run", {**many, "nft_do_chain [nf_tables]": 1500.0})).read_text()
    assert "nft_do_chain [nf_tables]" in page and "function_10" in page and "function_11" not in page
    assert "29 other functions" in page


def test_table_and_report_say_why_there_are_no_functions(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", BEFORE, missing="QEMU 7.2 is too old")
    words = "the cost is not told by function: QEMU 7.2 is too old"
    assert words in command.write_reports(folder).read_text()
    records = [json.loads(each.read_text()) for each in (folder / "records").glob("*")]
    assert words in " ".join(summary_table(records).split())


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    """The page in a browser."""
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium is installed (package chromium), so nobody sees how the page is laid out")
    folder = tmp_path_factory.mktemp("costs")
    many = {f"a_function_with_a_long_name_{number}": 8.0 * number for number in range(1, 30)}
    report(write(folder / "before", {**BEFORE, **many}), write(folder / "after", AFTER))
    with chromium.browser() as opened:
        opened.open(folder / "after" / "costs.html")
        yield opened


@pytest.mark.parametrize("width", chromium.WIDTHS)
def test_nothing_runs_over_the_edge_of_a_screen(screen: chromium.Page, width: int) -> None:
    screen.show(width)
    assert screen.run("document.scrollingElement.scrollWidth") == width
    assert screen.run(BEYOND_THE_EDGE) == []
    assert screen.run(SMALLEST_TEXT) >= 9


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_by_day_and_by_night(screen: chromium.Page, dark: bool) -> None:
    screen.show(1280, dark=dark)
    assert min(screen.run(CONTRASTS)) >= 4.5  # what WCAG asks for (AA)
