"""Reports are made from records alone, in whatever state the results folder is."""

from __future__ import annotations

import errno
import functools
import io
import itertools
import json
import os
import re
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_up
from podperf.__main__ import main
from podperf.errors import ExitCode, PodperfError
from podperf.experiments.claim import Finding
from podperf.figures import number
from podperf.metrics import Measured
from podperf.model import BOTH_DIRECTIONS, NetworkingModel
from podperf.noise import Noise
from podperf.records import Record, TestRecord
from podperf.records.parameters import PARAMETERS
from podperf.report import command, draft, successor_draft, svg
from podperf.report.conformance import assess
from podperf.report.loss_curve import loss_curve
from podperf.report.record_view import embed_html
from podperf.report.results import caveats, preset, read_run, remarks, shown
from podperf.report.summary import summary_table
from podperf.testers.faults import Fault, FaultKind
from podperf.thresholds import judge
from test_report_page import Seen

BRIDGE = made_up.forwarding_record("linux-bridge", 281e3)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "2026-11-19_14-53"
    made_up.write_run(folder)
    return folder


@pytest.fixture
def bridge(tmp_path: Path) -> dict[str, Any]:
    return made_up.document(*made_up.forwarding_record("linux-bridge", 281e3), tmp_path)


def statuses(*records: TestRecord, folder: Path) -> dict[str, tuple[str, str]]:
    for record in records:
        made_up.write(folder, record)
    run = read_run(folder)
    return {
        section.section.number: (section.status.value, section.reason) for section in assess([run], folder).sections
    }


def test_every_section_of_the_draft_has_a_result_and_a_reason(results: Path) -> None:
    command.write_reports(results)
    report = json.loads((results / "conformance.json").read_text())
    sections = {section["number"]: section for section in report["sections"]}
    expected = "1 2 3 4 4.1 4.1.1 4.1.2 4.1.3 4.1.4 4.1.5 4.2 4.2.1 4.2.2 4.2.3 4.2.4 4.2.5 5 6 A A.1 A.2 B B.1 B.2 C"
    assert [*expected.split(), "C.1", "C.2", "C.3", "C.4", "C.5", "D"] == list(sections)
    assert all(section["reason"] for section in sections.values())
    assert sections["4.1.1"]["status"] == "failed"
    assert sections["4.1.1"]["reason"] == "12 passed, 1 failed, 1 interrupted, 2 skipped; 1 on a noisy machine"
    assert sections["4.1"]["status"] == "failed"
    assert (sections["5"]["status"], sections["4.2"]["status"]) == ("passed", "not covered")
    assert (sections["1"]["status"], sections["1"]["reason"]) == ("informative", "nothing to measure")
    assert {each["test"] for each in report["skipped"]} == {"ipvlan, 64 B", "ovs-kernel, 64 B"}


def test_the_page_stands_alone_and_its_links_lead_to_records(results: Path) -> None:
    path = command.write_reports(results)
    page = Seen(path.read_text())
    links = [*page.values("href"), *page.values("src")]
    assert not re.search(r"<script|<link|@import|url\(", path.read_text())
    local = [link for link in links if not link.startswith(("#", draft.URL, successor_draft.URL))]
    assert len(local) == 19
    assert all((path.parent / link).is_file() for link in local)
    for section in json.loads((results / "conformance.json").read_text())["sections"]:
        assert (
            section["title"] + section["asks"] + section["covered_by"] + section["status"] + section["reason"]
            in page.text
        )
    assert "interrupted after 7 trials" in page.text
    assert "the kernel has no ipvlan (CONFIG_IPVLAN)" in page.text
    assert "stress-ng-cpu (4711)" in page.text


def test_a_section_without_records_says_how_to_run_its_suite(tmp_path: Path) -> None:
    found = statuses(TestRecord("x", "x", "x", ["sec-5"], 0, 1, "passed"), folder=tmp_path)
    assert found["4.1.1"] == (
        "not covered",
        "none of its tests ran: `--include sec-4.1.1` runs those of 4.1.1_kernel_space.robot, "
        "4.1.1_kernel_space_sweep.robot, 4.1_headers_sweep.robot, 4.1_findings.robot",
    )
    assert found["4.2.4"][0] == "not covered"


def test_the_same_tests_have_a_status_by_the_sections_of_the_successor(tmp_path: Path) -> None:
    bare, _ = made_up.forwarding_record("wire", 9e6, pods=0)
    bridge, _ = made_up.forwarding_record("linux-bridge", 281e3)
    slow, _ = made_up.forwarding_record("ptp", 2e3)
    slow.name, slow.tags = "AF_XDP", ["sec-4.1.3", "ebpf", "af-xdp", "64B"]
    several = TestRecord("h", "h", "x", ["sec-4.2.5"], 0, 1, "skipped", reason="one worker")
    for each in (bare, bridge, slow, several):
        made_up.write(tmp_path, each)
    page = command.write_reports(tmp_path).read_text()
    assert page.index("id='successor'") > page.index("All sections of the draft")
    report = json.loads((tmp_path / "conformance.json").read_text())["successor"]
    assert report["draft"]["name"] == "draft-ietf-bmwg-containerized-infra-08"
    found = {section["number"]: (section["status"], section["reason"]) for section in report["sections"]}
    assert all((tmp_path / path).is_file() for section in report["sections"] for path in section["tests"])
    assert found["5.1.1"] == ("passed", "1 passed")
    assert found["5.1.2"] == found["5.2.4"] == ("failed", "1 failed")
    assert found["5.1"] == ("failed", "1 passed; 2 of 2 subsections covered; 5.1.2 failed")
    assert found["5.2.7"] == ("skipped", "one worker")
    assert found["5.2.1"][0] == "not covered" and "`--include sec-4.2.1`" in found["5.2.1"][1]
    assert set(found) == {"5.1", "5.1.1", "5.1.2", "5.2", *(f"5.2.{number}" for number in range(1, 8))}


def test_each_parameter_belongs_to_a_section_of_the_successor() -> None:
    asked = " ".join(section.asks for section in successor_draft.SECTIONS)
    assert all(parameter.label in asked for parameter in PARAMETERS.values())


THEIRS = "section A.2"


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([("confirmed", THEIRS)], "confirmed"),
        ([("confirmed", THEIRS), ("inconclusive", THEIRS)], "inconclusive"),
        ([("inconclusive", THEIRS), ("refuted", THEIRS)], "refuted"),
        *([([(verdict, None)], "measured") for verdict in ("confirmed", "refuted", "inconclusive")]),
        ([("refuted", None), ("confirmed", THEIRS)], "confirmed"),
    ],
)
def test_findings_decide_a_section_by_the_claims_of_a_document(
    claims: list[tuple[Any, str | None]], expected: str, tmp_path: Path
) -> None:
    records = [
        TestRecord(name, name, "x", ["appendix-a"], 0, 1, "passed", findings=[Finding("e", verdict, "so", source)])
        for name, (verdict, source) in zip("abc", claims, strict=False)
    ]
    assert statuses(*records, folder=tmp_path)["A"][0] == expected


def without_threshold(data_plane: str) -> TestRecord:
    """A test whose figures nobody set a threshold for."""
    record, _ = made_up.forwarding_record(data_plane, 281e3, pods=2)
    assert record.chain is not None and record.traffic is not None
    record.verdict = judge((), record.traffic.frame, record.metrics, None)
    return record


def test_without_a_threshold_a_test_is_measured_and_has_not_passed(tmp_path: Path) -> None:
    made_up.write(tmp_path, without_threshold("macvlan"))
    table = command.summary(tmp_path, io.StringIO())
    assert re.search(r"96\.0  measured\n\n1 test: 1 measured\n", table)
    page = Seen(command.write_reports(tmp_path).read_text()).text
    assert "nonemeasured" in page and "1measured" in page and "0passed" in page
    (record,) = read_run(tmp_path).records
    assert Seen(embed_html(record)).text.startswith("measured no threshold applies")


def test_a_section_passes_by_the_tests_that_had_thresholds(tmp_path: Path) -> None:
    measured = without_threshold("macvlan")
    assert statuses(measured, folder=tmp_path / "one")["4.1.1"] == ("measured", "1 measured")
    found = statuses(without_threshold("macvlan"), BRIDGE[0], folder=tmp_path / "both")
    assert (found["4.1.1"][0], found["4.1"][0]) == ("passed", "passed")


def test_findings_have_a_table_and_a_word_of_their_own(tmp_path: Path) -> None:
    found = Finding("exclusive is best", "refuted", "it is the other way round", "draft, section A.2")
    record = TestRecord("x", "Exclusive over shared", "x", ["appendix-a"], 0, 1, "passed", findings=[found])
    made_up.write(tmp_path, record)
    page = Seen(command.write_reports(tmp_path).read_text())
    assert "Exclusive over sharedexclusive is bestdraft, section A.2it is the other way roundrefuted" in page.text
    assert "1 test: 1 refuted" in command.summary(tmp_path, io.StringIO())


def test_a_section_with_tests_of_its_own_sums_up_its_subsections_too(tmp_path: Path) -> None:
    """The bare path is measured in 4.1, and a bridge that misses its threshold in 4.1.1 fails all three."""
    bare, _ = made_up.forwarding_record("wire", 9e6, pods=0)
    slow, _ = made_up.forwarding_record("linux-bridge", 2e3)
    assert slow.outcome == "failed"
    found = statuses(bare, slow, folder=tmp_path)
    assert found["4.1"] == ("failed", "1 passed; 1 of 5 subsections covered; 4.1.1 failed")
    assert (found["4"][0], found["4.1.1"][0], found["4.1.2"][0]) == ("failed", "failed", "not covered")


def test_a_section_says_how_many_of_its_subsections_were_only_skipped(tmp_path: Path) -> None:
    bare, _ = made_up.forwarding_record("wire", 9e6, pods=0)
    found = statuses(bare, made_up.skipped_record("ipvlan", "no ipvlan"), folder=tmp_path)
    assert found["4.1"][1] == "1 passed; 1 of 5 subsections covered, 1 of them skipped"


def test_the_limits_of_each_engine_have_a_row_of_their_own(tmp_path: Path) -> None:
    for name, engine, most in (("macvlan", "xdp", 4.57e6), ("linux-bridge", "packet-ring", 4e5)):
        record, trials = made_up.forwarding_record(name, 281e3)
        assert record.limits is not None
        record.tester, record.limits = {**record.tester, "engine": engine}, replace(record.limits, maximum_load=most)
        made_up.write(tmp_path, record, trials)
    text = Seen(command.write_reports(tmp_path).read_text()).text
    assert "xdp4 570" in text and "packet-ring400" in text


def test_only_skipped_tests_leave_a_section_skipped_with_their_reasons(tmp_path: Path) -> None:
    records = [made_up.skipped_record("ipvlan", "no ipvlan"), made_up.skipped_record("ovs-kernel", "no openvswitch")]
    assert statuses(*records, folder=tmp_path)["4.1.1"] == ("skipped", "no ipvlan; no openvswitch")


def test_empty_options_are_as_if_they_were_not_given(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    empty = ["--history", "", "--output", "", "--openmetrics", "", "--acknowledged", ""]
    assert main(["report", str(results), *empty]) == 0
    assert list(tmp_path.glob("*.*")) == []
    assert (results / "conformance.html").exists()


def test_several_runs_show_the_latest_and_the_history(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = tmp_path / "later"
    made_up.write(later, *made_up.forwarding_record("linux-bridge", 300e3, started=1.7952e9))
    assert main(["report", str(later), str(results), str(later), "--output", str(tmp_path / "both")]) == 0
    assert capsys.readouterr().out.endswith("both/conformance.html\n")
    report = json.loads((tmp_path / "both" / "conformance.json").read_text())
    assert [run["name"] for run in report["runs"]] == [results.name, "later"]
    tests = {test["name"]: test for test in next(s for s in report["sections"] if s["number"] == "4.1.1")["tests"]}
    assert tests["Linux bridge, 64 B"]["run"] == "later"
    assert [each["run"] for each in tests["Linux bridge, 64 B"]["history"]] == [results.name, "later"]
    assert (tmp_path / "both" / tests["Linux bridge, 64 B"]["record"]).is_file()
    assert tests["Ptp, 64 B"]["run"] == results.name
    assert "not run" in Seen((tmp_path / "both" / "conformance.html").read_text()).text


def test_the_history_says_what_cannot_be_compared_with_the_latest(results: Path, tmp_path: Path) -> None:
    later = tmp_path / "later #1"
    path = made_up.write(later, *made_up.forwarding_record("linux-bridge", 300e3, started=1.7952e9))
    document = json.loads(path.read_text())
    document["methods"]["ndrpdr"]["preset"] = {"name": "csit"}
    path.write_text(json.dumps(document))
    earlier = tmp_path / "earlier"
    document |= {"started": json.loads(next((results / "records").glob("*.json")).read_text())["started"]}
    document["methods"]["ndrpdr"]["preset"] = {"name": "quick"}
    document["quietness"]["noisy"] = True
    (earlier / "records").mkdir(parents=True)
    (earlier / "records" / path.name).write_text(json.dumps(document))
    assert main(["report", str(later), str(earlier), "--output", str(tmp_path / "both")]) == 0
    page = Seen((tmp_path / "both" / "conformance.html").read_text()).text
    assert page.count("(noisy, preset quick)") == 1
    assert "preset csit)" not in page
    assert "href='../later%20%231/records/" in (tmp_path / "both" / "conformance.html").read_text()


@pytest.mark.parametrize("place", [("testbed", "name"), ("environment", "cpu", "model")])
def test_a_test_on_another_testbed_is_another_one(place: tuple[str, ...], results: Path, tmp_path: Path) -> None:
    """A later run on a laptop replaces no result of a lab, and their bars never stand in one chart.

    With podperf's own topology, both call themselves `local`: the CPU tells them apart.
    """
    path = made_up.write(tmp_path / "lab", *made_up.forwarding_record("linux-bridge", 9e6, started=1.7952e9))
    document = json.loads(path.read_text())
    functools.reduce(dict.__getitem__, place[:-1], document)[place[-1]] = "the-lab"
    path.write_text(json.dumps(document))
    assert main(["report", str(tmp_path / "lab"), str(results), "--output", str(tmp_path / "both")]) == 0
    report = json.loads((tmp_path / "both" / "conformance.json").read_text())
    section = next(each for each in report["sections"] if each["number"] == "4.1.1")
    bridges = {test["run"]: test for test in section["tests"] if test["name"] == "Linux bridge, 64 B"}
    assert set(bridges) == {"lab", results.name} and all(len(each["history"]) == 1 for each in bridges.values())
    text = Seen((tmp_path / "both" / "conformance.html").read_text()).text
    name = "the-lab" if place[0] == "testbed" else "local, the-lab"
    assert f"Linux bridge, 64 B ({name})" in text and f"64 B frames, {name}" in text


def test_folders_without_records_are_named_and_the_others_reported(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`podperf report results/*`: a run that measured nothing, and the combined report of the last time."""
    (tmp_path / "combined").mkdir()
    given = [str(tmp_path / "combined"), str(results), "--output", str(tmp_path / "report")]
    assert main(["report", *given]) == ExitCode.NOT_DONE
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and f"not read: {tmp_path / 'combined'}: no records in it" in said.err
    assert (tmp_path / "report" / "conformance.html").is_file()


def test_damaged_files_are_named_and_the_rest_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_up.write(tmp_path, *BRIDGE)
    document = json.loads(path.read_text())
    for name, content in {
        "cut.json": path.read_text()[:500],
        "array.json": "[]",
        "newer.json": json.dumps({**document, "schema_version": 7}),
        "other.json": json.dumps({**document, "outcome": "fine"}),
        "empty.trials.jsonl": "",
        "binary.json": "",
    }.items():
        (path.parent / name).write_text(content)
    (path.parent / "binary.json").write_bytes(b"\xff\xfe\x00")
    assert main(["report", str(tmp_path)]) == ExitCode.NOT_DONE
    said = capsys.readouterr().out
    assert "1 test: 1 passed" in said
    assert "not read: cut.json: not a complete JSON document" in said
    assert "not read: array.json: not a complete JSON document (not an object)" in said
    assert "not read: newer.json: schema version 7, this podperf reads versions 1 to 2" in said
    assert "not read: other.json: does not fit the record schema: $.outcome: 'fine' is not one of" in said
    assert "not read: empty.trials.jsonl: empty" in said
    assert "not read: binary.json: " in said
    assert "newer.json" in Seen((tmp_path / "conformance.html").read_text()).text


@pytest.mark.parametrize("kind", ["missing", "empty", "file"])
def test_a_path_without_records_is_refused_in_one_line(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / kind
    if kind == "empty":
        path.mkdir()
    if kind == "file":
        path.write_text("")
    assert main(["report", str(path)]) == ExitCode.NOT_DONE
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(path) in said
    assert "give the results folder of a run" in said


def test_trials_left_beside_their_record_are_not_another_test(tmp_path: Path) -> None:
    path = made_up.write(tmp_path, *BRIDGE)
    path.with_name(f"{path.stem}.trials.jsonl").write_text("anything")
    run = read_run(tmp_path)
    assert (len(run.records), run.problems) == (1, ())


def test_reports_of_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    made_up.write(tmp_path, *BRIDGE)
    (tmp_path / "conformance.html").mkdir()
    with pytest.raises(
        PodperfError,
        match=r"cannot write the report to .*: conformance.html is no regular file; the records",
    ):
        command.write_reports(tmp_path)


def test_a_report_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_up.write(tmp_path, *BRIDGE)
    old = command.write_reports(tmp_path).read_text()
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(PodperfError, match="No space left on device"):
            command.write_reports(tmp_path)
    assert (tmp_path / "conformance.html").read_text() == old
    assert {each.name for each in tmp_path.iterdir()} == {"conformance.html", "conformance.json", "records"}


def test_every_trial_is_a_dot_and_every_result_a_mark(bridge: dict[str, Any]) -> None:
    root = ElementTree.fromstring(loss_curve(Record.of(bridge)))
    tag = "{http://www.w3.org/2000/svg}"
    titles = [each.findtext(f"{tag}title") or "" for each in root.iter(f"{tag}circle")]
    assert sum(1 for title in titles if "kpps for" in title) == len(bridge["trials"])
    words = [each.text or "" for each in root.iter(f"{tag}text")]
    assert [word for word in words if re.match(r"(NDR|PDR|MRR) \d", word)] == ["NDR 210", "PDR 263", "MRR 281"]
    assert words[-2:] == ["MRR", "NDR and PDR"], "the legend"


def test_the_legend_stands_below_the_axis(bridge: dict[str, Any]) -> None:
    """With more phases than fit in a row, as the contenders of a finding are."""
    names = [f"linux-bridge, {pods} pods, 1518B" for pods in range(1, 9)]
    trials = [{**each, "phase": names[index % 8]} for index, each in enumerate(bridge["trials"])]
    root = ElementTree.fromstring(loss_curve(Record.of({**bridge, "trials": trials})))
    texts = {each.text or "": each for each in root.iter("{http://www.w3.org/2000/svg}text")}
    axis, height = (
        float(texts["offered load, kpps per direction"].get("y", "")),
        float(root.get("viewBox", "").split()[3]),
    )
    for name in names:
        x, y = (float(texts[name].get(each, "")) for each in "xy")
        assert y >= axis + 14 and y <= height and x + 6 * len(name) <= 720


def test_dots_rise_with_the_loss(bridge: dict[str, Any]) -> None:
    root = ElementTree.fromstring(loss_curve(Record.of(bridge)))
    circles = [each for each in root.iter("{http://www.w3.org/2000/svg}circle") if "for" in "".join(each.itertext())]
    heights = [float(circle.get("cy", "0")) for circle in circles]
    losses = [trial["loss_ratio"] for trial in bridge["trials"]]
    pairs = sorted(zip(losses, heights, strict=True))
    assert all(low[1] >= high[1] for low, high in itertools.pairwise(pairs))
    assert pairs[0][1] > pairs[-1][1] + 100


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "phase": st.sampled_from(["mrr", "ndrpdr"]),
                "load": st.none(),
                "elapsed": st.just(1.0),
                "stray": st.just(0),
                "directions": st.just([]),
                "achieved_load": st.floats(0, 1e10),
                "loss_ratio": st.floats(0, 1),
                "duration": st.floats(0, 1e4),
                "invalid": st.sampled_from([None, "the tester was late"]),
            }
        ),
        max_size=3,
    )
)
def test_any_trials_can_be_drawn(trials: list[dict[str, Any]]) -> None:
    record = TestRecord("x", "<&>'\"", "s").to_json()
    drawing = loss_curve(Record.of({**record, "trials": trials}))
    assert (drawing == "") == (not any(trial["achieved_load"] > 0 for trial in trials))
    if drawing:
        dots = list(ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}circle"))
        assert all(0 <= float(dot.get("cx", "")) <= 720 and 0 <= float(dot.get("cy", "")) <= 400 for dot in dots)


def test_a_rate_that_no_record_has_is_not_named(tmp_path: Path) -> None:
    made_up.write(tmp_path, *BRIDGE)
    made_up.write(tmp_path, *made_up.forwarding_record("wire", 9e6, pods=0))
    _, _, not_drawn = Seen(command.write_reports(tmp_path).read_text()).text.partition("Not drawn: ")
    assert "NDR" in not_drawn and "loss-free load" not in not_drawn.partition("tester by itself")[0]


def test_one_direction_is_not_drawn_beside_two(tmp_path: Path) -> None:
    made_up.write(tmp_path, *BRIDGE)
    both_ways, _ = made_up.forwarding_record("macvlan", 281e3)
    assert both_ways.traffic is not None
    profile = replace(both_ways.traffic.profile, directions=BOTH_DIRECTIONS)
    both_ways.traffic = replace(both_ways.traffic, profile=profile)
    made_up.write(tmp_path, both_ways)
    assert main(["report", str(tmp_path)]) == 0
    text = Seen((tmp_path / "conformance.html").read_text()).text
    assert "64 B frames, both directions" in text


def test_the_log_fragment_shows_result_configuration_and_curve(bridge: dict[str, Any]) -> None:
    page = Seen(embed_html(Record.of(bridge)))
    for words in ("passed", "281 kpps", "Gbit/s L1", "loss ratio", "Data plane cni plugin", "tester CPU 0"):
        assert words in page.text
    assert "<style" not in embed_html(Record.of(bridge))


@given(st.floats(1e-3, 1e12), st.integers(2, 10))
def test_ticks_cover_the_axis(highest: float, about: int) -> None:
    found = svg.ticks(highest, about)
    assert found[0] == 0
    assert found[-1] >= highest * 0.999999
    assert len(found) <= about + 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(4_310_000.0, "4 310 000"), (281.4, "281"), (99.97, "100"), (28.14, "28.1"), (0.9996, "1.00"), (0.0232, "0.0232")],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


CUT_SHORT = "not finished within 25 s, the limit of preset quick; the bounds are the best so far"


def test_a_search_that_was_cut_short_is_marked_wherever_its_figures_are_and_the_row_says_why(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.methods = {"ndrpdr": {"incomplete": CUT_SHORT}}
    record.metrics = {
        **record.metrics,
        "ndr": Measured(200e3, 200e3, 260e3, unfinished=True),
        "pdr": Measured(270e3, high=270e3, upper_bound=True, unfinished=True),
    }
    folder = tmp_path / "run"
    document = made_up.document(record, trials, folder)
    assert [document["results"][each]["unfinished"] for each in ("mrr", "ndr", "pdr")] == [False, True, True]
    why = f"* NDR, PDR: {CUT_SHORT}"
    table = summary_table([Record.of(document)])
    assert " 281  " in table and " 200* " in table and " <270* " in table
    assert why in " ".join(table.split()) and table.endswith("; *: search cut short")
    command.write_reports(folder)
    page = Seen((folder / "conformance.html").read_text()).text
    assert "281200*< 270*" in page and why in page and "PDR < 270*" in page
    fragment = Seen(embed_html(Record.of(document))).text
    assert "NDR200* kpps" in fragment and why[2:] in fragment
    marks = [
        each.text
        for each in ElementTree.fromstring(loss_curve(Record.of(document))).iter("{http://www.w3.org/2000/svg}text")
    ]
    assert {"NDR 200*", "PDR < 270*", "MRR 281"} <= set(marks)
    report = json.loads((folder / "conformance.json").read_text())
    assert [test["unfinished"] for section in report["sections"] for test in section["tests"]] == [
        f"NDR, PDR: {CUT_SHORT}"
    ]


def test_what_was_finished_has_no_mark_and_a_record_of_before_the_mark_is_read(tmp_path: Path) -> None:
    path = made_up.write(tmp_path, *BRIDGE)
    document = json.loads(path.read_text())
    assert "*" not in summary_table([Record.of(document)])
    for metric in ("mrr", "ndr", "pdr"):
        del document["results"][metric]["unfinished"]
    path.write_text(json.dumps(document))
    run = read_run(tmp_path)
    assert run.problems == () and "*" not in summary_table(run.records)


def test_what_a_faulty_tester_measured_says_so_in_the_table(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    assert record.limits is not None
    fault = Fault(FaultKind.LOSES, 0.001, "the tester itself loses frames")
    record.limits = replace(record.limits, own_loss_ratio=0.001, faults=(fault,))
    why = {"NDR": f"not judged: {fault.sentence}", "PDR": "not found: no time"}
    record.methods = {"ndrpdr": {"method": "ndrpdr", "missing": why}}
    found = made_up.document(record, trials, tmp_path)
    assert caveats(Record.of(found)) == ["faulty tester"]
    assert f"<b>faulty tester</b> {fault.sentence}" in embed_html(Record.of(found)), "in Robot's log, too"
    assert remarks(Record.of(found)) == [
        f"NDR {why['NDR']}",
        "PDR not found: no time",
        "0.1 % of the frames are the tester's own loss",
    ]
    record.methods = {"ndrpdr": {"missing": {"NDR": "not found: no time", "PDR": "not found: no time"}}}
    record.limits = replace(record.limits, faults=())
    assert remarks(Record.of(made_up.document(record, trials, tmp_path))) == ["NDR, PDR not found: no time"]


def test_a_preset_that_is_otherwise_with_a_tester_is_another_one(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.methods = {"ndrpdr": {"preset": {"name": "quick", "adapted": "trials of 0.5 s, not 0.2 s: so it is"}}}
    found = made_up.document(record, trials, tmp_path)
    assert preset(Record.of(found)) == "quick with trials of 0.5 s"
    assert remarks(Record.of(found)) == ["preset quick has trials of 0.5 s, not 0.2 s: so it is"]


@pytest.mark.parametrize(("cluster", "looked_for"), [(None, ["p50", "p99", "PDV"]), ({"uid": "u1"}, [])])
def test_latencies_that_a_test_did_not_look_for_have_no_columns(
    tmp_path: Path, cluster: dict[str, str] | None, looked_for: list[str]
) -> None:
    """Here, no latency was found. On a cluster it can have been one way or a round trip."""
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.methods, record.tester = {**record.methods, "latency": {}}, {**record.tester, "cluster": cluster}
    record.metrics = {"mrr": Measured(281e3)}
    heads = [each.head for each in shown([Record.of(made_up.document(record, trials, tmp_path))])]
    assert [head for head in heads if head in {"p50", "p99", "PDV", "RTT p50", "RTT p99", "RTT PDV"}] == looked_for


@pytest.mark.parametrize(("data_plane", "hint"), [("external", True), ("linux-bridge", False)])
def test_noise_that_may_be_the_black_box_itself_says_how_to_name_it(
    tmp_path: Path, data_plane: str, hint: bool
) -> None:
    found = made_up.document(*BRIDGE, tmp_path)
    found["chain"]["data_plane"] = data_plane
    reason = Noise((1,), 1.0, 0.0, {"vpp_main (9)": 0.9}, 0, 0, 0.01).reason
    found["quietness"] |= {"noisy": True, "reason": reason}
    assert (
        any("name it in `black_box.programs` of the topology" in remark for remark in remarks(Record.of(found))) == hint
    )


def test_a_figure_that_must_not_be_compared_says_so_everywhere(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.topology = replace(made_up.TOPOLOGY, not_comparable="its CPUs are <emulated>")
    folder = tmp_path / "run"
    document = made_up.document(record, trials, folder)
    assert document["testbed"]["not_comparable"] == "its CPUs are <emulated>"
    table = summary_table([Record.of(document)])
    assert (
        "passed, not comparable" in " ".join(table.split())
        and table.count("not comparable: its CPUs are <emulated>") == 1
    )
    command.write_reports(folder)
    page = (folder / "conformance.html").read_text()
    assert "Not comparable: its CPUs are &lt;emulated&gt;" in page and "</span> not comparable</td>" in page
    assert "<b>not comparable</b> its CPUs are &lt;emulated&gt;" in embed_html(Record.of(document))
    assert "not comparable" not in summary_table([Record.of(made_up.document(*BRIDGE, tmp_path / "other"))])


def test_the_page_that_compares_models_is_made_from_a_run(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "make_comparison.py"))
    (tmp_path / "images").mkdir()
    (tmp_path / "page.md").write_text("before\n<!-- begin: made by docs/make_comparison.py -->old<!-- end -->\nafter")
    monkeypatch.setitem(script["main"].__globals__, "DOCS", tmp_path)
    monkeypatch.setitem(script["main"].__globals__, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr("sys.argv", ["make_comparison.py", str(results)])
    script["main"]()
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("before\n") and page.endswith("\nafter") and "old" not in page
    assert re.search(r"\| kernel-space \| `linux-bridge` \| 1 \| 281 \|.* 1 x \|", page)
    assert (tmp_path / "images" / "comparison-64B.svg").exists()


def test_ovs_dpdk_on_af_xdp_ports_is_of_two_models(tmp_path: Path) -> None:
    """Section 4.1.3: a user-space vSwitch that supports an AF_XDP PMD, with vhost-user to the pods."""
    record, trials = made_up.forwarding_record("ovs-dpdk", 3e5)
    record.tags = ["sec-4.1.2", "user-space", "ovs-dpdk", "64B"]
    assert made_up.document(record, trials, tmp_path / "one")["test"]["sections"] == ["4.1.2"]
    record.second_model = NetworkingModel.EBPF
    assert made_up.document(record, trials, tmp_path / "both")["test"]["sections"] == ["4.1.2", "4.1.3"]
    found = {
        section.section.number: len(section.records)
        for section in assess([read_run(tmp_path / "both")], tmp_path).sections
    }
    assert (found["4.1.2"], found["4.1.3"]) == (1, 1)
