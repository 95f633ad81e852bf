"""`podperf report --history`: its words, its plots and its exit code."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import chromium
import made_up_history
from podperf.__main__ import main
from podperf.history.trends import rows_of
from podperf.metrics import METRICS
from podperf.report import command
from podperf.report.history_command import FAILED, REGRESSION, SUSPECTED, UNREAD, assess_history
from podperf.report.history_page import history_page
from podperf.report.thresholds_command import main as thresholds
from podperf.report.trend_plot import trend_plot
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
    return command.main(["--history", *map(str, arguments)])


def test_a_history_is_told_the_worst_first(eventful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(eventful) == REGRESSION
    said = capsys.readouterr().out
    verdicts = ("regression ", "suspected ", "acknowledged ", "progression ", "no change ", "too few runs ")
    places = [said.index(f"\n{each}" if index else each) for index, each in enumerate(verdicts)]
    assert places == sorted(places)
    assert "known until 2099-12-31: the route lookup takes a lock since 1.3" in " ".join(said.split())
    assert "new series since 2026-11-25T14-53-20: kernel: 6.18.50" in " ".join(said.split())
    assert said.rstrip().endswith("history.html")
    assert max(map(len, said.splitlines()[:-1])) <= 80


def test_the_page_is_whole_and_shows_every_figure(eventful: Path) -> None:
    page = history_page(assess_history(eventful))
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 6 * 5
    for each in plots:
        ElementTree.fromstring(each)
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
    (found,) = (each for each in data["figures"] if (each["test"], each["metric"]) == ("Linux bridge, 64 B", "mrr"))
    assert found["verdict"] == "regression"
    assert found["change"]["recent_runs"] == 4
    assert [each["comparable"] for each in found["points"]] == [False] * 6 + [True] * 18
    assert found["points"][-1]["version_under_test"] == "1.4"


def test_a_history_of_2000_records_is_reported_within_ten_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made_up_history.write_many(tmp_path, 80)
    began = time.process_time()
    report(tmp_path)
    taken = time.process_time() - began
    assert "80 runs; 125 figures of the newest" in " ".join(capsys.readouterr().out.split())
    assert taken < 10


def test_a_history_without_a_change_is_fine(tmp_path: Path) -> None:
    assert report(steady(tmp_path)) == 0


@pytest.mark.parametrize(
    ("factors", "code"), [((0.8,), SUSPECTED), ((0.8, 0.8), REGRESSION), ((1.3,), 0), ((1.3, 1.3), 0)]
)
def test_the_exit_code_tells_what_became_worse(factors: tuple[float, ...], code: int, tmp_path: Path) -> None:
    steady(tmp_path)
    for run, factor in enumerate(factors, 10):
        made_up_history.write(tmp_path, run, made_up_history.record(BRIDGE, run, factor))
    assert report(tmp_path) == code


def test_a_failed_test_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    failed = made_up_history.record(BRIDGE, 10, 1.0) | {"outcome": "failed", "reason": "none came back", "results": {}}
    made_up_history.write(steady(tmp_path), 10, failed)
    assert report(tmp_path) == FAILED


def test_an_interrupted_report_has_an_exit_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "report_history", interrupted)
    assert main(["report", "--history", str(steady(tmp_path))]) == 130


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (next(steady(tmp_path).glob("*/records")) / "bad.json").write_text("{")
    assert report(tmp_path) == UNREAD
    assert "/records/bad.json: not a complete JSON document" in capsys.readouterr().out


def test_nothing_to_report_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(tmp_path) == 1
    assert "no run in it" in capsys.readouterr().err


def test_a_changed_kernel_that_is_ignored_begins_no_series(eventful: Path, tmp_path: Path) -> None:
    report(eventful, "--output", tmp_path, "--ignore", "kernel", "--ignore", "kernel command line")
    data = json.loads((tmp_path / "history.json").read_text())
    assert {each["series_began"] for each in data["figures"]} == {None}


def test_known_regressions_may_stand_in_another_file(eventful: Path, tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("acknowledged: []\n")
    report(eventful, "--output", tmp_path, "--acknowledged", tmp_path / "none.yaml")
    data = json.loads((tmp_path / "history.json").read_text())
    assert "acknowledged" not in {each["verdict"] for each in data["figures"]}


@pytest.mark.parametrize("arguments", [[], ["--history", "x", "y"], ["x", "--ignore", "kernel"], ["--ignore", "moon"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(arguments)
    assert refused.value.code == 2


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
        for each in odd["results"].values():
            each.update({key: figure for key in ("frames_per_second", "nanoseconds") if key in each})
        made_up_history.write(tmp_path, run, odd)
    assert report(tmp_path) in {0, SUSPECTED}
    assert thresholds(["--once-in", "10", str(tmp_path)]) in {0, 1}


@pytest.fixture(scope="module")
def screen(eventful: Path) -> Iterator[chromium.Page]:
    """The page in a browser, with all that is folded up opened."""
    if chromium.PROGRAM is None:
        pytest.skip("no Chromium is installed (package chromium), so nobody sees how the page is laid out")
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
