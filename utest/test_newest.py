"""The newest run beside the runs in the folders beside it: the arrows in the table, and the beginning of the page."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import made_up_history
from podperf.__main__ import main
from podperf.history.newest import BesideEarlier, compare_newest
from podperf.history.runs import LARGEST, MOST_RECORDS, NEAREST, PastRun, earlier_runs
from podperf.metrics import METRICS
from podperf.records import Record, read_record
from podperf.report import command
from test_report_page import Seen
from test_summary import Terminal

BRIDGE, MRR, P99 = "linux-bridge", METRICS["mrr"], METRICS["latency_p99"]
RED_ARROW, GREEN_ARROW = re.compile(r"\033\[31;1m\d+↓\033\[0m"), re.compile(r"\033\[32m\d+↑\033\[0m")


def write(folder: Path, *factors: float, plane: str = BRIDGE, **changes: Any) -> Path:
    """Runs with this data plane. Returns the folder of the newest."""
    for run, factor in enumerate(factors):
        made_up_history.write(folder, run, made_up_history.record(plane, run, factor, deviation=0.005) | changes)
    newest = sorted(folder.iterdir())[-1]
    for number, each in enumerate(sorted(folder.iterdir())):
        os.utime(each / "records", (number, number))
    return newest


def beside(newest: Path) -> BesideEarlier:
    records = [read_record(each, trials=False) for each in sorted((newest / "records").glob("*.json"))]
    earlier = earlier_runs(newest, records)
    return compare_newest(earlier, PastRun(newest.name, tuple(records)))


def found(newest: Path) -> Mapping[str, float]:
    """The share of each difference of the one test, by metric."""
    differences = beside(newest).differences
    return {each.metric.name: each.share for several in differences.values() for each in several}


def test_a_drop_is_marked_beside_one_earlier_run_and_beside_many(tmp_path: Path) -> None:
    for runs in (1, 4, 10):
        shares = found(write(tmp_path / str(runs), *[1.0] * runs, 0.6))
        assert {"mrr", "ndr", "pdr"} <= set(shares)
        assert shares["mrr"] == pytest.approx(-0.4, abs=0.05)
        assert shares["latency_p99"] > 0


def test_what_two_runs_of_one_system_differ_by_is_not_marked(tmp_path: Path) -> None:
    for runs in (1, 4, 10):
        newest = write(tmp_path / str(runs), *[1.0] * (runs + 1))
        assert beside(newest).compared == 6
        assert found(newest) == {}
    assert found(write(tmp_path / "a little less", 1.0, 0.95)) == {}


def test_a_figure_that_cannot_be_compared_is_not_marked(tmp_path: Path) -> None:
    noisy = made_up_history.record(BRIDGE, 0, 1.0)["quietness"] | {"noisy": True, "reason": "CPU 0: 12% went to cc1"}
    newest = write(tmp_path, 1.0, 0.5, quietness=noisy)
    assert beside(newest).compared == 0 and found(newest) == {}


def test_another_machine_is_nothing_to_compare_with(tmp_path: Path) -> None:
    newest = write(tmp_path, 1.0, 0.5)
    (file,) = (newest / "records").iterdir()
    document = json.loads(file.read_text())
    document["environment"]["cpu"]["model"] = "another"
    file.write_text(json.dumps(document))
    assert beside(newest).compared == 0


def test_a_first_run_says_nothing_of_earlier_ones(tmp_path: Path) -> None:
    newest = write(tmp_path, 1.0)
    table = command.summary(newest, Terminal())
    assert not set("↑↓") & set(table) and "earlier" not in table
    assert "became worse" not in command.write_reports(newest).read_text()


def test_only_earlier_runs_are_earlier(tmp_path: Path) -> None:
    newest = write(tmp_path, 1.0, 0.6, 0.3)
    first, second = sorted(each for each in tmp_path.iterdir() if each != newest)
    assert found(second)["mrr"] == pytest.approx(-0.4, abs=0.05)
    assert found(first) == {}


def test_a_huge_record_beside_a_run_is_not_read(tmp_path: Path) -> None:
    """Beside results in /tmp, another user can have put any number of them."""
    newest = write(tmp_path, 1.0, 0.6)
    first = min(tmp_path.iterdir())
    assert found(newest)["mrr"] == pytest.approx(-0.4, abs=0.05)
    (path,) = (first / "records").iterdir()
    with path.open("a") as file:
        file.write(" " * LARGEST)
    assert found(newest) == {}


def test_a_link_to_the_newest_run_is_not_one_more_run(tmp_path: Path) -> None:
    newest = write(tmp_path, 1.0, 1.0)
    (tmp_path / "latest").symlink_to(newest.name)
    records = [read_record(each) for each in (newest / "records").iterdir()]
    assert len(earlier_runs(tmp_path / "latest", records)) == 1


def test_the_table_has_an_arrow_and_a_legend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    worse, better = write(tmp_path / "worse", 1.0, 0.6), write(tmp_path / "better", 1.0, 1.6)
    plain = command.summary(worse, io.StringIO())
    assert re.search(r"^Linux bridge, 64 B +\d+↓ +\d+↓ +\d+↓ ", plain, re.M)
    assert "↑, ↓: higher, lower than in earlier runs" in plain
    assert "\033" not in plain and max(map(len, plain.splitlines())) <= 80
    coloured = command.summary(worse, Terminal())
    assert len(RED_ARROW.findall(coloured)) == 3
    assert re.sub(r"\033\[[\d;]*m", "", coloured) == plain
    assert len(GREEN_ARROW.findall(command.summary(better, Terminal()))) == 3
    monkeypatch.setenv("NO_COLOR", "1")
    assert command.summary(worse, Terminal()) == plain


def test_the_page_opens_with_what_became_worse(tmp_path: Path) -> None:
    page = Seen(command.write_reports(write(tmp_path / "worse", 1.0, 0.6)).read_text()).text
    assert page.index("What became worse") < page.index("The data planes, the fastest first")
    assert "one run beside 2026-11-19T14-53-20 alone: too few runs to be sure" in " ".join(page.split())
    report = json.loads((sorted((tmp_path / "worse").iterdir())[-1] / "conformance.json").read_text())
    changes = [change for section in report["sections"] for test in section["tests"] for change in test["changes"]]
    assert ("mrr", True) in {(change["metric"], change["worse"]) for change in changes}
    page = Seen(command.write_reports(write(tmp_path / "same", 1.0, 1.0)).read_text()).text
    assert "Nothing became worse" in page
    assert "Of 6 figures with a comparable earlier one, 0 became worse, 0 better" in " ".join(page.split())


def test_the_page_says_how_sure_a_change_is(tmp_path: Path) -> None:
    page = Seen(command.write_reports(write(tmp_path, *[1.0] * 10, 0.8)).read_text()).text
    assert re.search(r"MRR -\S+ % \(-\S+ % to -\S+ %\)", page)
    assert "suspected: 1 run beside 10 before: repeat it" in page


def test_several_runs_are_earlier_ones_of_each_other(tmp_path: Path) -> None:
    runs = [write(tmp_path / "a", 1.0), write(tmp_path / "b", 1.0, 0.6)]
    assert main(["report", *map(str, runs), "--output", str(tmp_path / "out")]) == 0
    assert "What became worse" in (tmp_path / "out" / "conformance.html").read_text()


def test_of_many_earlier_runs_the_newest_records_alone_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table must not wait for a long history."""
    made_up_history.write_many(tmp_path, 2 * NEAREST)
    newest = sorted(tmp_path.iterdir())[-1]
    records = [read_record(each, trials=False) for each in (newest / "records").glob("*.json")]
    read: list[Path] = []

    def counted(path: Path, **words: Any) -> Record:
        read.append(path)
        return read_record(path, **words)

    monkeypatch.setattr("podperf.history.runs.read_record", counted)
    earlier = earlier_runs(newest, records)
    assert compare_newest(earlier, PastRun(newest.name, tuple(records))).compared == 150
    assert len(earlier) <= NEAREST and sum(len(each.records) for each in earlier) <= len(read) <= MOST_RECORDS
