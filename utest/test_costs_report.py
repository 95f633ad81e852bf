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
from podperf.__main__ import main
from podperf.errors import ExitCode
from podperf.methods.functions import MEMORY, Functions, signed
from podperf.report import command
from podperf.report.cost_page import MOST_SHOWN, CostChange, CountedCost, cost_chart
from podperf.report.costs_command import report_variants
from podperf.report.results import read_run
from podperf.report.summary import summary_table
from test_history_report import (  # noqa: F401  # they look at the fixture `screen`
    test_nothing_runs_over_the_edge_of_a_screen,
    test_text_stands_out_by_day_and_by_night,
)

BEFORE: Functions = {"ip_forward": 2400.0, "nft_do_chain [nf_tables]": 96.0, "memset_erms": 80.0, "send [bpf]": -8.0}
AFTER: Functions = {"ip_forward": 2400.0, "nft_do_chain [nf_tables]": 165.0, "memset": 72.0, "send [bpf]": -8.0}


def write(folder: Path, *functions: Functions, missing: str | None = None) -> Path:
    """A run with a row for each of these."""
    for number, each in enumerate(functions):
        data_plane = ("macvlan", "linux-bridge")[number]
        made_up.write(folder, made_up.counted_record(data_plane, each, missing=missing, started=1.7951e9 + number))
    return folder


def report(*arguments: str | Path) -> int:
    return main(["report", "--costs", *map(str, arguments)])


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


def test_the_testers_own_work_is_one_line_and_the_change_is_told_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {**BEFORE, "xdp_test_run_init_page": 270.0, "__alloc_pages_bulk": 130.0, "send_frames [bpf]": 0.0}
    one, other = write(tmp_path / "a", before), write(tmp_path / "b", {**AFTER, "send_frames [bpf]": 4.0})
    assert report(one, other) == 0
    lines = [" ".join(each.split()) for each in capsys.readouterr().out.splitlines()]
    assert "one frame in flight: 2 968.000, now 2 633.000 instructions a frame" in lines[4]
    assert lines[4].endswith("(-335.000; without the tester's own work +61.000)")
    assert "-396.000 400.000 4.000 (the tester's own work)" in lines
    assert not [line for line in lines if "__alloc_pages_bulk" in line]
    data = json.loads((other / "costs.json").read_text())
    assert data["tests"][0]["figures"][0]["change_without_tester"] == 61.0


def test_memory_is_told_beside_the_instructions(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    report(*runs)
    lines = [" ".join(each.split()) for each in capsys.readouterr().out.splitlines()]
    # A load for every four instructions: see made_up.
    assert "+15.250 642.000 657.250 loads, nft_do_chain [nf_tables]" in lines
    assert not [line for line in lines if "L1 misses" in line], "they do not differ"
    data = json.loads((runs[1] / "costs.json").read_text())
    loads = data["tests"][0]["figures"][0]["memory"]["loads"]
    assert sum(function["change"] for function in loads["functions"]) == loads["change"] == 15.25
    page = (runs[1] / "costs.html").read_text()
    assert "The use of memory by function" in page and "Change of cache lines" in page


def test_a_layout_that_takes_more_lines_shows_where_no_instruction_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = write(tmp_path / "a", BEFORE), write(tmp_path / "b", BEFORE)
    (path,) = (other / "records").glob("*")
    record = json.loads(path.read_text())
    record["methods"]["cost"]["bursts"][0]["memory"]["lines"]["functions"]["ip_forward"] += 1
    path.write_text(json.dumps(record))
    assert report(one, other) == 0
    lines = [" ".join(each.split()) for each in capsys.readouterr().out.splitlines()]
    assert "+1.000 80.250 81.250 cache lines, ip_forward" in lines and "no function differs" in lines


def test_the_data_have_every_function_and_the_sum_is_the_change(runs: tuple[Path, Path]) -> None:
    report(*runs)
    data = json.loads((runs[1] / "costs.json").read_text())
    (figure, _) = data["tests"][0]["figures"]
    changes = [function["change"] for function in figure["functions"]]
    assert changes == [69.0, -8.0] and sum(changes) + figure["in_no_function"] == figure["change"] == 61.0


def test_the_page_has_a_picture_and_a_table_of_each_figure_that_differs(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    assert report(*runs, "--output", tmp_path / "there") == 0
    page = (tmp_path / "there" / "costs.html").read_text()
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 2
    for plot in plots:
        ElementTree.fromstring(plot)
        assert "memset_erms, now memset" in plot and "+" in plot
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


def test_variants_of_a_comparison_are_told_by_function_beside_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "compared", BEFORE, AFTER)
    of_before, of_after = (next((folder / "records").glob(f"*{each}*")).stem for each in ("macvlan", "linux-bridge"))
    report_variants({"open": of_before, "rules": of_after, "again": of_before}, folder)
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    rules, again = said.index("open → rules"), said.index("open → again")
    assert "+69.000 96.000 165.000 nft_do_chain [nf_tables]" in said[rules:again]
    assert said[again + 2] == "no function differs"
    assert (folder / "costs.html").exists() and (folder / "costs.json").exists()


def test_a_run_of_a_comparison_has_two_variants_to_choose(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "compared"
    for number, (name, functions) in enumerate((("open", BEFORE), ("rules", AFTER), ("shut", {**AFTER, "drop": 7.0}))):
        record = made_up.counted_record("macvlan", functions, started=1.7951e9 + number)
        part = {"comparison": "firewall", "name": name, "figures": [1.0]}
        record.id, record.name, record.methods = name, f"firewall: {name}", {**record.methods, "variant": part}
        made_up.write(folder, record)
    assert report(folder) == 0
    said = capsys.readouterr().out
    assert "open → rules" in said and "open → shut" in said
    assert report(folder, "rules", "shut") == 0
    said = capsys.readouterr().out
    assert (
        "rules → shut" in said and "+7.000       0.000       7.000  drop (new)" in said and "nft_do_chain" not in said
    )
    assert report(folder, "rules", "closed") == ExitCode.NOT_DONE
    assert "has no variant 'closed'; it has open, rules, shut" in capsys.readouterr().err


def test_variants_that_one_test_has_measured_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    costs = [made_up.counted_record("macvlan", each).methods["cost"] for each in (BEFORE, AFTER)]
    record = made_up.counted_record("macvlan", BEFORE)
    variants = {"name": "firewall", "verdict": "slower", "variants": [{"name": "open"}, {"name": "rules"}]}
    record.methods = {"cost of open": costs[0], "cost of rules": costs[1], "variants": variants}
    record.metrics = {}
    made_up.write(tmp_path / "run", record)
    assert report(tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert "open → rules" in said and "+69.000" in said
    made_up.write(tmp_path / "plain", made_up.counted_record("macvlan", BEFORE))
    assert report(tmp_path / "plain") == ExitCode.NOT_DONE
    assert "has no variants with a cost" in capsys.readouterr().err


def test_a_run_is_compared_with_the_last_one_that_its_history_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history"
    for number, functions in enumerate((BEFORE, BEFORE, AFTER, AFTER)):
        record = made_up.counted_record("macvlan", functions, started=1.7951e9 + number)
        made_up.write(history / f"run-{number}", record)
    assert main(["report", "--history", str(history), "--costs"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("before: last accepted: run-1 (Linux 6.18.44)\nafter:  run-3 (")
    assert "+69.000      96.000     165.000  nft_do_chain [nf_tables]" in said
    assert said.rstrip().endswith("history/costs.html")
    assert main(["report", "--history", str(history), "--costs", str(history / "run-1")]) == 0
    said = capsys.readouterr().out
    assert "last accepted: run-0" in said and "no function differs" in said
    assert said.rstrip().endswith("run-1/costs.html")
    other = tmp_path / "mine"
    made_up.write(other, made_up.counted_record("macvlan", {**BEFORE, "mine": 5.5}, started=1.8e9))
    assert main(["report", "--history", str(history), "--costs", str(other)]) == 0
    assert "+5.500       0.000       5.500  mine (new)" in capsys.readouterr().out
    assert main(["report", "--history", str(history), "--costs", str(history / "run-0")]) == ExitCode.NOT_DONE
    assert "run-0 has an earlier one that is comparable" in capsys.readouterr().err
    assert main(["report", "--history", str(history), "--costs", "a", "b"]) == ExitCode.REFUSED


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
    for burst in record["methods"]["cost"]["bursts"]:
        for key in ("functions", "in_no_function", "functions_missing", "memory"):
            del burst[key]
    path.write_text(json.dumps(record))
    assert report(one, other) == 0
    said = capsys.readouterr().out
    assert "the podperf that wrote this record did not count by function" in said and "loads" not in said


def test_rows_of_one_run_only_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = write(tmp_path / "a", BEFORE, BEFORE), write(tmp_path / "b", AFTER)
    assert report(one, other) == 0
    assert "in one of the two only: Linux bridge, 64 B" in capsys.readouterr().out


def test_mistakes_are_one_line(runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (record,) = (runs[0] / "records").glob("*macvlan*")
    assert report(record, runs[1]) == ExitCode.NOT_DONE
    assert "give two results folders, or two records" in capsys.readouterr().err
    rates = tmp_path / "rates"
    made_up.write(rates, *made_up.forwarding_record("macvlan", 281e3))
    assert report(rates, runs[1]) == ExitCode.NOT_DONE
    assert "have no cost of the same test" in capsys.readouterr().err
    assert report(tmp_path / "nothing", runs[1]) == ExitCode.NOT_DONE
    assert "no such file or folder" in capsys.readouterr().err
    assert main(["report", str(rates), "--costs", *map(str, runs)]) == ExitCode.REFUSED
    assert "or --costs BEFORE AFTER, --costs COMPARISON" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named_and_makes_the_exit_code(
    runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (runs[0] / "records" / "cut.json").write_text("{")
    assert report(*runs) == ExitCode.NOT_DONE
    assert "not read: cut.json" in capsys.readouterr().out


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
    assert "29 other functions" in page and "Cache lines" in page


def test_the_table_of_a_run_has_the_use_of_memory(runs: tuple[Path, Path]) -> None:
    table = summary_table(read_run(runs[0]).records)
    assert max(map(len, table.splitlines())) <= 80
    head, below, _, row, *_ = table[table.index("                    loads") :].splitlines()
    assert head.split() == [what for what in MEMORY for _ in range(2)]
    assert below.split() == ["Memory", "a", "frame", *["in", "32"] * 4]
    assert row.split()[-8:] == ["642", "401", "321", "201", "80.2", "50.2", "0", "0"]
    assert "misses: of a model of a level 1 data cache with 32 KiB" in " ".join(table.split())


def test_table_and_report_say_why_there_are_no_functions(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", BEFORE, missing="QEMU 7.2 is too old")
    words = "the cost is not told by function: QEMU 7.2 is too old"
    assert words in command.write_reports(folder).read_text()
    records = read_run(folder).records
    assert words in " ".join(summary_table(records).split())


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    """The page in a browser."""
    folder = tmp_path_factory.mktemp("costs")
    many = {f"a_function_with_a_long_name_{number}": 8.0 * number for number in range(1, 30)}
    report(write(folder / "before", {**BEFORE, **many}), write(folder / "after", AFTER))
    with chromium.browser() as opened:
        opened.open(folder / "after" / "costs.html")
        yield opened
