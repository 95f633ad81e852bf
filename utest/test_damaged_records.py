"""A damaged or malicious record only costs its own row. A line says what is wrong with it."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import made_up
from every_place import Place, changed, places
from podperf.errors import PodperfError
from podperf.records import RecordWriter, TestRecord, earlier_durations, read_record
from podperf.records.schema import schema_errors
from podperf.report import command
from podperf.verdicts.findings import Finding
from time_limit import at_most

DEEP: list[Any] = []
for _ in range(100):
    DEEP = [DEEP]
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 7.5, 10**400, 1e308, math.nan, math.inf, "", "text", "\x1b[31m", "\ud800"),
    *([], [None], ["text"], [[]], {}, {"a": 1}, {"name": {"a": []}}, DEEP),
)
SOUND = "Sound"  # the test with the intact record


def short(record: TestRecord, trials: list[Any]) -> dict[str, Any]:
    """A record with two trials: enough to be drawn."""
    with tempfile.TemporaryDirectory() as folder:
        return made_up.document(record, trials[:1] + trials[-1:], Path(folder))


def documents() -> list[dict[str, Any]]:
    """One record of each kind."""
    measured = short(*made_up.forwarding_record("linux-bridge", 281e3))
    measured["environment"] |= {"further_workers": {"w2": {}}, "placement_remarks": ["both CPUs are one core's"]}
    measured["methods"]["ndrpdr"] |= {
        "incomplete": "too slow",
        "preset": {"name": "quick", "adapted": "longer trials"},
        "missing": {"NDR": "not found"},
    }
    measured["results"]["ndr"]["unfinished"] = True
    fault = {"kind": "loses", "ratio": 0.001, "sentence": "it loses 0.1 % of the frames by itself"}
    measured["tester_limits"] |= {"own_loss_ratio": 0.001, "own_loss_bound": 0.002, "faults": [fault]}
    measured["quietness"]["worker"] = dict(measured["quietness"])
    measured["interfaces"] = {"left": {"kind": "veth", "offloads": {"gro": True}, "bus": None}}
    measured["test"]["log"] = "log.html#s1-s2-t3"
    bare = short(*made_up.forwarding_record("wire", 9e6, pods=0))
    found = TestRecord("f", "Order", "s", ["appendix-a"], 0, 1, "passed", findings=[Finding("a", "refuted", "b")])
    return [measured, bare, short(made_up.skipped_record("ipvlan", "none"), []), short(found, [])]


DOCUMENTS = documents()
assert not any(map(schema_errors, DOCUMENTS))
PLACES = [(number, place) for number, each in enumerate(DOCUMENTS) for place in places(each)]


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
            code = command.main([name])
        page = (folder / "conformance.html").read_text(encoding="utf-8")
        assert SOUND in said.getvalue() and SOUND in page
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", said.getvalue() + page)
        refused = [line for line in said.getvalue().splitlines() if line.startswith("not read: ")]
        assert len(refused) == code
        for line in refused:
            assert line.startswith(f"not read: damaged{suffix}: ")
            assert "$" in line or "schema version" in line or "nested too deeply" in line


@given(st.sampled_from(PLACES), st.sampled_from(CHANGES), st.sampled_from([".json", ".trials.jsonl"]))
@settings(max_examples=150, deadline=None)
def test_a_change_of_any_field_ends_in_a_report_and_a_line_at_most(
    where: tuple[int, Place], change: Callable[[Any, str | int], None], suffix: str
) -> None:
    number, place = where
    document = changed(DOCUMENTS[number], place, change)
    if suffix == ".json":
        text = json.dumps(document)
    else:
        trials = document.pop("trials", None)
        lines = trials if isinstance(trials, list) else [trials]
        text = "\n".join(map(json.dumps, [{**document, "trials": []}, *lines]))
    check_report(text, suffix)


@pytest.mark.parametrize("suffix", [".json", ".trials.jsonl"])
@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"a":' * 200_000, json.dumps(DOCUMENTS[0])[:-1] + ',"x":' + "[" * 200_000 + "]" * 200_000 + "}"],
)
def test_a_record_that_is_nested_without_end_is_a_line(text: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"deep{suffix}"
    path.write_text(text)
    with pytest.raises(PodperfError, match="nested too deeply"):
        read_record(path)


def test_a_run_begins_beside_an_earlier_one_that_is_damaged(tmp_path: Path) -> None:
    """The new run looked into the earlier one for the duration of its tests."""
    (tmp_path / "earlier" / "records").mkdir(parents=True)
    (tmp_path / "earlier" / "records" / "deep.json").write_text("[" * 200_000)
    assert earlier_durations(tmp_path / "now", None) == {}


@pytest.mark.parametrize("reader", ["a run", "a report"])
def test_a_pipe_that_is_put_there_while_somebody_looks_keeps_nobody_waiting(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any user can put a pipe beside results in /tmp."""
    (tmp_path / "earlier" / "records").mkdir(parents=True)
    pipe = tmp_path / "earlier" / "records" / "pipe.json"
    os.mkfifo(pipe)
    monkeypatch.setattr(Path, "is_file", lambda _: True)  # it was a file a moment ago
    with at_most(10):
        if reader == "a run":
            assert earlier_durations(tmp_path / "now", None) == {}
        else:
            with pytest.raises(PodperfError, match="no regular file"):
                read_record(pipe)


@pytest.mark.parametrize("text", ["x" * 10_000_000, "1." * 5_000_000, " \n" * 5_000_000])
@pytest.mark.parametrize("place", [("test", "name"), ("traffic", "frame", "name"), ("reason",)])
def test_a_text_without_end_takes_no_time_without_end(text: str, place: Place) -> None:
    began = time.monotonic()
    check_report(json.dumps(changed(DOCUMENTS[0], place, replaced(text))), ".json")
    assert time.monotonic() - began < 30


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
        ({"environment": {"hugepages": [{"total": 1}]}}, "$.environment.hugepages[0]: 'page_bytes' is a required"),
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
    path.write_text(json.dumps(DOCUMENTS[0] | change))
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
    assert command.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert r"\x1b[2J\x1b]0;title\x07 red: \x9b31m, back\x08, \u202ereversed; kept: näïve, 試験, 5" in said
    assert r"not read: \x1b[31mred.json: " in said


def test_the_text_of_an_error_steers_no_terminal_either() -> None:
    """Many error texts have output of a worker in them."""
    assert (
        str(PodperfError("exit code 1: \x1b]0;title\x07\nsecond line"))
        == "exit code 1: \\x1b]0;title\\x07\nsecond line"
    )


@pytest.mark.parametrize("reason", ["CPU 0: 1.2.3% of the time", "CPU 0: .% ; ; %", ": and 5%", "CPU 1: ٣% and ²%"])
def test_a_reason_for_noise_in_odd_words_is_shown_as_it_is(reason: str) -> None:
    document = json.loads(json.dumps(DOCUMENTS[0]))
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
    left.write_text(left.read_text() + "[]\n7\n" + "[" * 200_000)
    assert read_record(left)["reason"] == "interrupted after 3 trials"


def test_the_text_of_an_error_is_no_markup_in_robots_log() -> None:
    """Robot Framework takes a message for HTML that begins with `*HTML*`."""
    assert str(PodperfError("*HTML*<script>alert(1)</script>")) == "\\*HTML*<script>alert(1)</script>"
    assert str(PodperfError("exit code 1: *HTML*<b>")) == "exit code 1: *HTML*<b>"
