"""`podperf report --history`: its words, its plots and its exit code."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import chromium
import made_up
import made_up_history
from podperf.__main__ import main
from podperf.errors import ExitCode
from podperf.history.changes import WINDOW
from podperf.history.trends import rows_of
from podperf.metrics import METRICS
from podperf.report import command
from podperf.report.history_page import assess_history, history_page, trend_plot
from test_report_page import BEYOND_THE_EDGE, CONTRASTS, SMALLEST_TEXT

BRIDGE = "linux-bridge"


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    made_up_history.write_history(folder)
    return folder


def steady(folder: Path, runs: int = 10) -> Path:
    for run in range(runs):
        made_up_history.write(folder, run, made_up_history.record(BRIDGE, run, 1.0))
    return folder


def report(*arguments: str | Path) -> int:
    return main(["report", "--history", *map(str, arguments)])


def test_a_history_is_told_the_worst_first(eventful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(eventful) == ExitCode.WORSE
    said = capsys.readouterr().out
    verdicts = ("regression ", "suspected ", "acknowledged ", "progression ", "no change ", "too few runs ")
    places = [said.index(f"\n{each}" if index else each) for index, each in enumerate(verdicts)]
    assert places == sorted(places)
    assert "known until 2099-12-31: the route lookup takes a lock since 1.3" in " ".join(said.split())
    assert "new series since 2026-11-25T14-53-20: kernel: 6.18.50" in " ".join(said.split())
    assert said.rstrip().endswith("history.html")
    assert max(map(len, said.splitlines()[:-1])) <= 80


def counted_history(folder: Path, *rules: float) -> Path:
    """A run for each of these; a frame takes so many instructions in the firewall."""
    for number, instructions in enumerate(rules):
        taken = {"ip_forward": 2400.0, "nft_do_chain [nf_tables]": instructions, "memset": 90.0 - 4 * (number % 2)}
        record = made_up.counted_record("macvlan", taken, started=1.7951e9 + number * 86400)
        made_up.write(folder / f"run-{number}", record)
    return folder


def test_the_gate_names_the_functions_of_a_counted_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = counted_history(tmp_path / "history", 96.0, 96.0, 165.0, 165.0)
    assert report(folder) == ExitCode.WORSE
    said = " ".join(capsys.readouterr().out.split())
    # Compared with run-1, which has as many instructions in memset.
    assert "cost, by function: nft_do_chain [nf_tables] +69.000 cost in bursts, by function: nft_do_chain" in said
    figures = {each["metric"]: each for each in json.loads((folder / "history.json").read_text())["figures"]}
    assert figures["cost"]["accepted"] == "run-1"
    assert figures["cost"]["functions"] == [{"name": "nft_do_chain [nf_tables]", "change": 69.0}]
    assert "; by function: nft_do_chain [nf_tables] +69.000" in (folder / "history.html").read_text()
    assert main(["report", str(folder / "run-3")]) == 0
    page = (folder / "run-3" / "conformance.html").read_text()
    assert "regression: 2 runs beside 2 before; in nft_do_chain [nf_tables] +69.000" in page


def test_the_gate_names_no_function_where_nothing_changed_or_a_record_does_not_tell(tmp_path: Path) -> None:
    same = assess_history(counted_history(tmp_path / "same", 96.0, 97.0))
    assert not any(each.functions for each in same.judgements)
    folder = counted_history(tmp_path / "other", 96.0, 165.0)
    made_up.write(folder / "run-2", made_up.counted_record("macvlan", {"f": 9e3}, missing="old", started=1.796e9))
    unknown = assess_history(folder)
    assert [each.verdict for each in unknown.judgements] == ["regression"] * 2
    assert not any(each.functions for each in unknown.judgements)


def test_the_page_is_whole_and_shows_every_figure(eventful: Path) -> None:
    page = history_page(assess_history(eventful))
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == (6 + 1) * 6, "six metrics of six tests, and of all tests together"
    for plot in plots:
        ElementTree.fromstring(plot)
    assert "<script" not in page
    assert page.index("What changed") < page.index("What began a new series") < page.index("Every test")
    assert "version under test 1.4" in page


def test_the_plot_has_a_mark_for_every_run(eventful: Path) -> None:
    (row,) = (each for each in rows_of(assess_history(eventful).history.runs) if each.name == "Docker, 64 B")
    plot = trend_plot("docker", METRICS["mrr"], row.trends[METRICS["mrr"]])
    assert plot.count("no test frame crossed the chain") == 2
    assert plot.count("noisy: CPU 1") == 3
    assert len(re.findall(r"<title>20\d\d-", plot)) == 24
    assert plot.count("new series") == 1


def test_the_data_have_every_point_and_the_verdicts(eventful: Path) -> None:
    report(eventful)
    data = json.loads((eventful / "history.json").read_text())
    assert data["schema_version"] == 1
    assert len(data["runs"]) == 24
    (found,) = (
        figure for figure in data["figures"] if (figure["test"], figure["metric"]) == ("Linux bridge, 64 B", "mrr")
    )
    assert found["verdict"] == "regression"
    assert found["change"]["recent_runs"] == 4
    assert [point["comparable"] for point in found["points"]] == [False] * 6 + [True] * 18
    assert found["points"][-1]["version_under_test"] == "1.4"


def test_a_ci_server_finds_each_figure_as_a_test_case(eventful: Path) -> None:
    report(eventful)
    suite = ElementTree.parse(eventful / "history.xml").getroot()
    verdicts = [figure["verdict"] for figure in json.loads((eventful / "history.json").read_text())["figures"]]
    assert int(suite.get("tests", "")) == len(verdicts) == len(suite)
    failures = [case for case in suite if case.find("failure") is not None]
    assert int(suite.get("failures", "")) == len(failures) == verdicts.count("regression")
    bridge = next(case for case in failures if case.get("name") == "Linux bridge, 64 B: MRR")
    (failure,) = bridge
    assert re.match(r"regression: -\d.* beside 1\d before", failure.get("message", ""))
    known = next(case for case in suite if case.get("name") == "Routed, 64 B: MRR")
    assert "the route lookup takes a lock" in known.findtext("system-out", "")
    suspected = next(case for case in suite if case.get("name") == "Ptp, 64 B: MRR")
    assert suspected.find("skipped") is not None


def test_the_time_of_a_report_grows_with_the_records_of_a_history_and_no_faster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few, many = WINDOW, 2 * WINDOW
    for runs in (few, many):
        made_up_history.write_many(tmp_path / str(runs), runs, tests=3)

    def seconds(runs: int) -> float:
        began = time.process_time()
        report(tmp_path / str(runs))
        return time.process_time() - began

    ratios: list[float] = []
    while len(ratios) < 3 or statistics.median_high(ratios) >= 3:  # by turns: the CPU may be slow for some seconds
        assert len(ratios) < 9, f"twice the records took these times the CPU time: {ratios}"
        ratios.append(seconds(many) / seconds(few))
    assert "160 runs; 24 figures of the newest" in " ".join(capsys.readouterr().out.split())


def test_a_history_without_a_change_is_fine(tmp_path: Path) -> None:
    assert report(steady(tmp_path)) == 0


@pytest.mark.parametrize(
    ("factors", "code"), [((0.8,), ExitCode.UNDECIDED), ((0.8, 0.8), ExitCode.WORSE), ((1.3,), 0), ((1.3, 1.3), 0)]
)
def test_the_exit_code_tells_what_became_worse(factors: tuple[float, ...], code: int, tmp_path: Path) -> None:
    steady(tmp_path)
    for run, factor in enumerate(factors, 10):
        made_up_history.write(tmp_path, run, made_up_history.record(BRIDGE, run, factor))
    assert report(tmp_path) == code


def test_a_failed_test_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    failed = made_up_history.record(BRIDGE, 10, 1.0) | {"outcome": "failed", "reason": "none came back", "results": {}}
    made_up_history.write(steady(tmp_path), 10, failed)
    assert report(tmp_path) == ExitCode.FAILED
    assert 'message="failed: none came back"' in (tmp_path / "history.xml").read_text()


def test_a_test_that_vanishes_has_an_exit_code_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up_history.write(steady(tmp_path), 10, made_up_history.record("ptp", 10, 1.0))
    assert report(tmp_path) == ExitCode.BLIND
    assert "missing" in capsys.readouterr().out
    assert 'type="missing"' in (tmp_path / "history.xml").read_text()


def test_a_run_of_which_nothing_can_be_judged_is_not_fine(tmp_path: Path) -> None:
    bound = made_up_history.record(BRIDGE, 10, 1.0)
    for figure in bound["results"].values():
        figure["lower_bound"] = True
    made_up_history.write(steady(tmp_path), 10, bound)
    assert report(tmp_path) == ExitCode.BLIND


def test_a_copied_folder_counts_once_and_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steady(tmp_path)
    first = min(each.parent for each in tmp_path.glob("*/records"))
    shutil.copytree(first, tmp_path / "copy")
    assert report(tmp_path) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "10 runs;" in said and "is a copy of another folder, and counts once" in said


def test_an_interrupted_report_has_an_exit_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "report_history", interrupted)
    assert main(["report", "--history", str(steady(tmp_path))]) == ExitCode.INTERRUPTED


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (next(steady(tmp_path).glob("*/records")) / "bad.json").write_text("{")
    assert report(tmp_path) == ExitCode.NOT_DONE
    assert "/records/bad.json: not a complete JSON document" in capsys.readouterr().out


def test_nothing_to_report_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path) == ExitCode.NOT_DONE
    assert "no run in it" in capsys.readouterr().err


def test_a_changed_kernel_that_is_ignored_begins_no_series(eventful: Path, tmp_path: Path) -> None:
    report(eventful, "--output", tmp_path, "--ignore", "kernel", "--ignore", "kernel command line")
    data = json.loads((tmp_path / "history.json").read_text())
    assert {figure["series_began"] for figure in data["figures"]} == {None}


def test_known_regressions_may_stand_in_another_file(eventful: Path, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("acknowledged: []\n")
    report(eventful, "--output", tmp_path, "--acknowledged", tmp_path / "none.yaml")
    data = json.loads((tmp_path / "history.json").read_text())
    assert "acknowledged" not in {figure["verdict"] for figure in data["figures"]}


@pytest.mark.parametrize("arguments", [[], ["--history", "x", "y"], ["x", "--ignore", "kernel"], ["--ignore", "moon"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    assert main(["report", *arguments]) == ExitCode.REFUSED


def test_markup_and_control_characters_of_a_record_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steady(tmp_path)
    bad = made_up_history.record(BRIDGE, 10, 1.0) | {"version_under_test": "<b>\x1b[31m"}
    bad["test"]["name"] = "<script>alert(1)</script>\x1b]0;"
    made_up_history.write(tmp_path, 10, bad)
    report(tmp_path)
    page = (tmp_path / "history.html").read_text()
    assert "<script" not in page and "<b>\\x1b" not in page
    assert "\x1b" not in page + capsys.readouterr().out


@pytest.mark.parametrize("figure", [5e-324, 1e-300, 1e24])
def test_a_figure_of_any_size_is_drawn_or_is_none(figure: float, tmp_path: Path) -> None:
    for run in range(8):
        odd = made_up_history.record(BRIDGE, run, 1.0)
        for result in odd["results"].values():
            result.update({key: figure for key in ("frames_per_second", "nanoseconds") if key in result})
        made_up_history.write(tmp_path, run, odd)
    assert report(tmp_path) in {0, ExitCode.BLIND}
    assert main(["thresholds", "--once-in", "10", str(tmp_path)]) in {ExitCode.FINE, ExitCode.NOT_DONE}


@pytest.fixture(scope="module")
def screen(eventful: Path) -> Iterator[chromium.Page]:
    """The page in a browser, with all that is folded up opened."""
    report(eventful)
    with chromium.browser() as opened:
        opened.open(eventful / "history.html")
        opened.run("document.querySelectorAll('details').forEach(each => each.open = true)")
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
    assert min(screen.run(CONTRASTS)) >= 4.5  # the contrast that WCAG (AA) asks for


def test_on_paper_every_test_has_its_name(screen: chromium.Page) -> None:
    screen.print()
    assert screen.run("[...document.querySelectorAll('.trend > summary')].every(each => each.offsetHeight > 0)")
