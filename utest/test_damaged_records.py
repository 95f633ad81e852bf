"""A damaged or malicious record only costs its own row. A line says what is wrong with it."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_up
from every_kind import every_kind
from every_place import Place, changed, places
from podperf.__main__ import main
from podperf.dataplanes.vpp import parse_runtime
from podperf.errors import ExitCode, PodperfError
from podperf.kernel.memory import resident_memory
from podperf.pods.forwarders.testpmd import parse_cycles, parse_statistics
from podperf.records import RecordWriter, TestRecord, earlier_durations, read_record, reading
from podperf.records.schema import SCHEMA_PATH
from podperf.report import command
from podperf.report.noise_words import noise_words
from scripted_host import ScriptedHost
from time_limit import at_most

DEEP: list[Any] = []
for _ in range(100):
    DEEP = [DEEP]
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7.5, 10**400, 1e308, 1e24, -1e24, 1e-24, math.nan, math.inf, "", "text", "\x1b[31m", "\ud800"),
    *([], [None], ["text"], [[]], {}, {"a": 1}, {"name": {"a": []}}, DEEP),
)
SOUND = "Sound"  # the test with the intact record


KINDS = every_kind()
MEASURED = KINDS["a measured chain"]
PLACES = [(kind, place) for kind, each in KINDS.items() for place in places(each)]


def dropped(holder: Any, step: str | int) -> None:
    del holder[step]


def renamed(holder: Any, step: str | int) -> None:
    if isinstance(holder, dict):
        holder["\x1b]0;unknown\x07"] = holder.pop(step)


def replaced(value: Any) -> Callable[[Any, str | int], None]:
    def change(holder: Any, step: str | int) -> None:
        holder[step] = value

    return change


CHANGES = (dropped, renamed, *map(replaced, VALUES))


def check_report(text: str, suffix: str) -> None:
    """Make the reports of a folder with a sound record and one that says this."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made_up.write(folder, TestRecord("sound", SOUND, "s", ["sec-5"], 0, 1, "passed"))
        # A file cannot hold a lone surrogate. JSON writes it as an escape.
        (folder / "records" / f"damaged{suffix}").write_text(text)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = main(["report", name])
        page = (folder / "conformance.html").read_text(encoding="utf-8")
        assert SOUND in said.getvalue() and SOUND in page
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", said.getvalue() + page)
        refused = [line for line in said.getvalue().splitlines() if line.startswith("not read: ")]
        assert len(refused) == (code != 0)
        for line in refused:
            if ": cannot be shown: " not in line:  # such a line names the file by the ID in the record
                assert line.startswith(f"not read: damaged{suffix}: ")
                assert "$" in line or "schema version" in line or "nested too deeply" in line


@given(st.sampled_from(PLACES), st.sampled_from(CHANGES), st.sampled_from([".json", ".trials.jsonl"]))
@settings(max_examples=150, deadline=None)
def test_a_change_of_any_field_ends_in_a_report_and_a_line_at_most(
    where: tuple[str, Place], change: Callable[[Any, str | int], None], suffix: str
) -> None:
    kind, place = where
    document = changed(KINDS[kind], place, change)
    if suffix == ".json":
        text = json.dumps(document)
    else:
        trials = document.pop("trials", None)
        lines = trials if isinstance(trials, list) else [trials]
        text = "\n".join(map(json.dumps, [{**document, "trials": []}, *lines]))
    check_report(text, suffix)


def parts_of_methods(document: dict[str, Any]) -> list[Place]:
    """Each place of the results of methods that the schema describes, of lists only the first item."""
    described = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))["properties"]["methods"]["properties"]
    found = [place for place in places(document) if place[0] == "methods" and len(place) > 1 and place[1] in described]
    return [place for place in found if not any(isinstance(step, int) and step > 0 for step in place)]


@pytest.mark.parametrize("kind", KINDS)
def test_no_change_of_a_methods_part_spoils_the_report_of_its_run(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each part of each method, with each of these changes, in a folder with a sound record."""
    made_up.write(tmp_path, TestRecord("sound", SOUND, "s", ["sec-5"], 0, 1, "passed"))
    for number, place in enumerate(parts_of_methods(KINDS[kind])):
        for other, change in enumerate((dropped, *map(replaced, (None, -1e24, 0, "text")))):
            document = changed(KINDS[kind], place, change)
            document["test"]["name"] = name = f"{number}-{other}"  # a page shows the latest record of a test
            (tmp_path / "records" / f"{name}.json").write_text(json.dumps({**document, "trials": []}))
    main(["report", str(tmp_path)])
    refused = re.findall("^not read: (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert [each for each in refused if ": does not fit the record schema: $.methods" not in each] == []
    assert SOUND in (tmp_path / "conformance.html").read_text()


@pytest.mark.parametrize("reader", ["a report", "a report of two runs", "the end of a run", "a history"])
def test_a_record_that_no_report_can_show_costs_its_own_row(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such record is known: the schema refuses this one. So here nobody asks the schema."""
    for number, name in enumerate((SOUND, "of no use")):
        record, _ = made_up.forwarding_record("linux-bridge", 281e3)
        record.id, record.name = name.replace(" ", "-"), name
        made_up.write(tmp_path / "runs" / ("2" if number and reader == "a report of two runs" else "1"), record)
    (path,) = (tmp_path / "runs").glob("*/records/of-no-use.json")
    document = json.loads(path.read_text())
    del document["results"]["mrr"]["frames_per_second"]
    path.write_text(json.dumps(document))
    monkeypatch.setattr(reading, "schema_errors", lambda _: [])
    run, code = tmp_path / "runs" / "1", 254
    if reader == "the end of a run":
        page = command.write_reports(run)
        print(command.summary(run, sys.stdout))
    else:
        folders = sorted(map(str, (tmp_path / "runs").iterdir()))
        code = main(["report", *(["--history", str(tmp_path)] if reader == "a history" else folders)])
        page = {"a history": tmp_path / "history.html", "a report": run / "conformance.html"}.get(
            reader, tmp_path / "runs" / "combined" / "conformance.html"
        )
    said = capsys.readouterr().out
    assert code == 254 and SOUND in said and SOUND in page.read_text()
    (line,) = re.findall("^not read: (.*)$", said, re.MULTILINE)
    assert line.endswith("of-no-use.json: cannot be shown: its values do not agree (KeyError: 'frames_per_second')")
    assert "of-no-use.json: cannot be shown" in page.read_text()


@pytest.mark.parametrize("suffix", [".json", ".trials.jsonl"])
@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"a":' * 200_000, json.dumps(MEASURED)[:-1] + ',"x":' + "[" * 200_000 + "]" * 200_000 + "}"],
)
def test_a_record_that_is_nested_without_end_is_a_line(text: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"deep{suffix}"
    path.write_text(text)
    with pytest.raises(PodperfError, match="nested too deeply"):
        read_record(path)


@pytest.mark.parametrize("what", ["a pipe", "a record nested without end"])
def test_a_run_begins_beside_an_earlier_one_that_is_damaged(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new run looks into earlier ones for the duration of its tests. Any user can put a pipe there in /tmp."""
    path = tmp_path / "earlier" / "records" / "r.json"
    path.parent.mkdir(parents=True)
    if what == "a pipe":
        os.mkfifo(path)
        monkeypatch.setattr(Path, "is_file", lambda _: True)  # it was a file a moment ago
    else:
        path.write_text("[" * 200_000)
    with at_most(10):
        assert earlier_durations(tmp_path / "now", None) == {}


@pytest.mark.parametrize("text", ["x" * 10_000_000, "1." * 5_000_000, " \n" * 5_000_000])
@pytest.mark.parametrize("place", [("test", "name"), ("traffic", "frame", "name"), ("reason",)])
def test_a_text_without_end_takes_no_time_without_end(text: str, place: Place) -> None:
    began = time.monotonic()
    check_report(json.dumps(changed(MEASURED, place, replaced(text))), ".json")
    assert time.monotonic() - began < 30


LONG = 40_000


@pytest.mark.parametrize(
    "said",
    [
        *("CPU 0: " + "9" * LONG, "CPU 0: " + "1." * LONG, "CPU 0: " + "1%" * LONG + ":x", "CPU 0: " + "7 and " * LONG),
        *("CPU " + "1" * LONG + "x", ": " * LONG, "a, " * LONG + "CPU", "CPU 0: 1%: " + " (1" * LONG),
    ],
    ids=lambda said: said[:12],
)
@pytest.mark.parametrize("reader", ["noise", "VPP", "memory", "testpmd"])
def test_no_regular_expression_runs_away(reader: str, said: str) -> None:
    """A reason with 10 000 digits took 2.4 s, and four times as many take sixteen times as long.

    The limit is the time of this process's CPU, so that a busy machine does not break it.
    """
    began = time.process_time()
    if reader == "noise":
        noise_words([("row", said)])
    elif reader == "VPP":
        parse_runtime(["x a" + " a" * LONG + " " * LONG + "b", f"x{' ' * LONG}y", said])
    elif reader == "memory":
        host = ScriptedHost(answers={"grep": "/proc/7/status:Name:\tx" + " " * LONG + "y" + said})
        resident_memory(host, [7])
    else:
        parse_cycles(["total cycles=1 / " * LONG + said], 0.0)
        parse_statistics([said, "1" * LONG], ["Forward statistics for port 1", "RX-packets: " * LONG, "1" * LONG, said])
    assert time.process_time() - began < 5


@pytest.mark.parametrize("suffix", [".json", ".trials.jsonl"])
@pytest.mark.parametrize("values", ["[],", "{},", "1,"])
def test_a_record_of_millions_of_values_is_refused_before_they_take_memory(
    values: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """24 MiB of empty lists took 1.24 GB."""
    path = tmp_path / f"r{suffix}"
    path.write_text('{"schema_version": 99, "x": [' + values * 4_000_001 + "1]}")
    monkeypatch.setattr(reading.json, "loads", lambda _: pytest.fail("it is parsed"))
    with pytest.raises(PodperfError, match="has more than the 4000000 values that a record may have"):
        read_record(path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "nothing", "huge"])
def test_what_is_no_record_at_all_is_not_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "huge":
        path.touch()
        os.truncate(path, 1 << 40)  # a sparse file, which takes no space on the disk
    with pytest.raises(PodperfError, match=r"cannot be read: |is larger than"):
        read_record(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"started": "<script>"}, "$.started: '<script>' does not match"),
        ({"started": "2026-11-23 20:26"}, "$.started: '2026-11-23 20:26' does not match"),
        ({"environment": {"cpu": {"model": 7}}}, "$.environment.cpu.model: 7 is not of type 'string', 'null'"),
        ({"environment": {"mitigations": ["all"]}}, "$.environment.mitigations: ['all'] is not of type"),
        ({"environment": {"hugepages": [{"total": 1}]}}, "$.environment.hugepages[0]: 'of_mib' is a required"),
        (
            {"environment": {"further_workers": {"w2": {"memory": {"total_bytes": "many"}}}}},
            "$.environment.further_workers.w2.memory.total_bytes: 'many' is not of type",
        ),
        ({"started": "2026-02-30T20:26:00Z"}, "$.started: day is out of range for month"),
        ({"ended": "2026-02-03T25:26:00Z"}, "$.ended: hour must be in 0..23"),
        ({"data_plane": {"a": [DEEP]}}, "$.data_plane.a[0][0][0]"),
        ({"quietness": {}}, "$.quietness: 'noisy' is a required property"),
        ({"tester": {"ports": [1e999]}}, "$.tester.ports[0]: a number beyond every figure"),
    ],
)
def test_a_refusal_names_the_field(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(MEASURED | change))
    with pytest.raises(PodperfError) as caught:
        read_record(path)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_what_steers_a_terminal_is_shown_and_not_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    reason = "\x1b[2J\x1b]0;title\x07 red: \x9b31m, back\b, \u202ereversed; kept: näïve, 試験, 5\u202f%"
    made_up.write(tmp_path, TestRecord("x", "A test", "s", ["sec-5"], 0, 1, "skipped", reason=reason))
    shutil.copy(tmp_path / "records" / "x.json", tmp_path / "records" / "\x1b[31mred.json")
    (tmp_path / "records" / "\x1b[31mred.json").write_text("[]")
    assert main(["report", str(tmp_path)]) == ExitCode.NOT_DONE
    said = capsys.readouterr().out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert r"\x1b[2J\x1b]0;title\x07 red: \x9b31m, back\x08, \u202ereversed; kept: näïve, 試験, 5" in said
    assert r"not read: \x1b[31mred.json: " in said


@pytest.mark.parametrize("reason", ["CPU 0: 1.2.3% of the time", "CPU 0: .% ; ; %", ": and 5%", "CPU 1: ٣% and ²%"])
def test_a_reason_for_noise_in_odd_words_is_shown_as_it_is(reason: str) -> None:
    document = json.loads(json.dumps(MEASURED))
    document["quietness"] |= {"noisy": True, "reason": reason}
    check_report(json.dumps(document), ".json")


def test_trials_that_were_left_are_counted_by_what_can_be_read(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.ended, record.outcome = None, "interrupted"
    writer = RecordWriter(tmp_path, record)
    for result, phase in trials[:3]:
        writer.trial(result, phase)
    writer.close()
    (left,) = tmp_path.iterdir()
    left.write_text(left.read_text()[:-200] + "\n[]\n7\n" + "[" * 200_000)  # the last trial was cut off
    found = read_record(left)
    assert found.reason == "interrupted after 2 trials" and len(found.trials) == 2


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("exit code 1: \x1b]0;title\x07\nsecond line", "exit code 1: \\x1b]0;title\\x07\nsecond line"),
        ("*HTML*<script>alert(1)</script>", "\\*HTML*<script>alert(1)</script>"),
        ("exit code 1: *HTML*<b>", "exit code 1: *HTML*<b>"),
    ],
)
def test_the_text_of_an_error_steers_no_terminal_and_is_no_markup_in_robots_log(said: str, shown: str) -> None:
    """Many error texts have output of a worker in them. Robot takes a message that begins with `*HTML*` for HTML."""
    assert str(PodperfError(said)) == shown
