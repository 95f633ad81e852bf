"""The table at the end of a run, as a terminal shows it."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made_up
from podperf.experiments.claim import Finding
from podperf.metrics import Measured
from podperf.noise import Noise, Speed, why_noisy
from podperf.records import Record, TestRecord
from podperf.records.recorded import RecordedNoise
from podperf.report import command
from podperf.report.noise_words import noise_words
from podperf.report.results import read_run
from podperf.report.summary import figures_line, summary_table

NO_SRIOV = (
    "no NIC of this machine offers SR-IOV virtual functions (there is no sriov_totalvfs under /sys/bus/pci/devices): "
    "use a worker whose NIC does, with SR-IOV switched on in its firmware, or a virtual one (topologies/virtual.yaml)"
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results") / "2026-11-19_14-53"
    made_up.write_run(folder)
    return folder


def measured(name: str, folder: Path, **changes: Any) -> Record:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    return Record.of(made_up.document(replace(record, name=name, **changes), trials, folder))


def skipped(name: str, reason: str) -> Record:
    return Record.of(TestRecord(name, name, "s", ["sec-4.1.4"], outcome="skipped", reason=reason).to_json())


def noisy(record: Record, reason: str) -> Record:
    return replace(record, quietness=RecordedNoise(noisy=True, reason=reason))


def words(table: str) -> str:
    return " ".join(table.split())


def test_the_table_fits_80_columns_and_keeps_every_figure(results: Path) -> None:
    table = summary_table(read_run(results).records)
    assert max(map(len, table.splitlines())) <= 80
    assert "\033" not in table
    assert re.search(r"^Wire, 64 B +>=4 \d{3} +>=\d \d{3} +>=4 \d{3} +1\.20 +2\.10 +passed$", table, re.M)
    assert re.search(r"^Linux bridge, 64 B +281 +2\d\d +2\d\d +16\.0 +96\.0 +passed$", table, re.M)
    assert re.search(r"^Linux bridge, 64 B, 4 pods +87\.8 ", table, re.M)
    assert "linux-bridge" not in table, "what stands in the name needs no column"
    assert "19 tests: 15 passed, 1 failed, 1 interrupted, 2 skipped" in table


def test_a_narrow_terminal_gets_names_in_several_lines_and_no_letter_less(results: Path) -> None:
    records = read_run(results).records
    narrow = summary_table(records, width=60)
    assert "…" not in narrow
    for record in records:
        assert all(part in narrow for part in record.test.name.split())
    assert re.search(r"^Linux bridge, 64 +281 ", narrow, re.M) or re.search(r"^Linux bridge, +281 ", narrow, re.M)


def test_six_digits_are_never_cut_and_names_and_verdicts_share_the_rest(tmp_path: Path) -> None:
    rates = dict.fromkeys(("mrr", "ndr", "pdr"), Measured(148_809_523.0, lower_bound=True))
    latencies = {"latency_p50": Measured(16_000.0), "latency_p99": Measured(96_000.0)}
    names = ("PTP, 64 B", "SR-IOV, testpmd, 64 B", "Docker, 64 B")
    records = [measured(name, tmp_path / name, metrics={**rates, **latencies}) for name in names]
    records[1] = noisy(records[1], "CPU 0, 1: memory was at 60% of its best speed")
    table = summary_table(records)
    assert max(map(len, table.splitlines())) <= 80
    assert re.search(r"^PTP, 64 B +(>=148 810 +){3}16\.0 +96\.0 +passed$", table, re.M)
    assert re.search(r"^SR-IOV, testpmd, 64 B +(>=148 810 +){3}16\.0 +96\.0 +passed,\n +noisy$", table, re.M)


def test_a_reason_is_said_once_below_the_tests_that_it_is_for() -> None:
    names = ("SR-IOV, 64 B", "SR-IOV, 64 B, kernel", "SR-IOV and OVS-DPDK, 64 B, 2 pods")
    table = summary_table([*(skipped(name, NO_SRIOV) for name in names), skipped("IPVLAN, 64 B", "no ipvlan")])
    assert table.startswith("skipped  SR-IOV, 64 B\nskipped  SR-IOV, 64 B, kernel\nskipped  SR-IOV and OVS-DPDK")
    assert words(table).count(NO_SRIOV) == 1 and "kpps" not in table
    assert "\nskipped  IPVLAN, 64 B\n    no ipvlan\n" in table


def test_tests_without_figures_are_full_lines_with_their_verdicts(tmp_path: Path) -> None:
    held = Finding("exclusive is best", "refuted", "it is the other way round")
    others = [
        TestRecord("a", "Port With A Default Route Is Refused", "s", ["sec-5"], 0, 1, "passed"),
        TestRecord("b", "Exclusive over shared", "s", ["sec-4.2.1"], 0, 1, "passed", "refuted: so", findings=[held]),
    ]
    table = summary_table([*(Record.of(other.to_json()) for other in others), measured("Linux bridge, 64 B", tmp_path)])
    assert re.search(r"^refuted  Exclusive over shared\n    so$", table, re.M)
    assert re.search(r"^passed   Port With A Default Route Is Refused$", table, re.M)
    order = [table.index(each) for each in ("Linux bridge", "Exclusive over", "Port With")]
    assert order == sorted(order), "figures first, then the order of the draft's sections"


def test_a_drifted_figure_is_marked_and_its_row_says_why(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    doubt = "drifted: the upper bound is 447 kpps, but 27 of 38 trials at 466 to 672 kpps were good"
    record.metrics = {**record.metrics, "ndr": Measured(429e3, 429e3, 447e3, doubt=doubt)}
    record.methods = {**record.methods, "ndrpdr": {"method": "ndrpdr", "drifted": True}}
    found = made_up.document(record, trials, tmp_path)
    assert found["results"]["ndr"]["doubt"] == doubt and "doubt" not in found["results"]["pdr"]
    table = summary_table([Record.of(found)])
    assert re.search(r"^Linux bridge, 64 B +\d+ +429\? +\d+ .* passed,( |\n +)drifted$", table, re.M)
    assert f"NDR: {doubt}" in words(table)
    assert "?: in doubt, and judged by nothing" in words(table)


def test_constant_loss_is_said_also_where_every_load_was_too_high(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.metrics = {"ndr": Measured(1e3, upper_bound=True), "pdr": Measured(1e3, upper_bound=True)}
    record.methods = {"ndrpdr": {"method": "ndrpdr", "constant_loss": 0.0201}}
    table = summary_table([Record.of(made_up.document(record, trials, tmp_path))])
    assert "constant loss" in words(table) and words(table).count("frames are lost at every load (2 %)") == 1


def test_noise_is_said_once_for_all_rows_that_had_it(tmp_path: Path) -> None:
    reasons = {
        "A, 64 B": "latency: CPU 0, 1: memory was at 64% of its best speed",
        "B, 64 B": "NDR and PDR: CPU 0, 1: 7% of the time went to other processes: cc1 (12), pip (13) and memory was "
        "at 59% of its best speed; latency: CPU 0, 1: memory was at 55% of its best speed",
        "C, 64 B": "CPU 0, 1: 22% of the time went to other processes: cc1 (15)",
    }
    records = []
    for number, (name, reason) in enumerate(reasons.items()):
        records.append(noisy(measured(name, tmp_path / str(number)), reason))
    table = summary_table(records)
    memory, others = (
        "memory was at 55 to 64% of its best speed",
        "7 to 22% of the time went to other processes: cc1, pip",
    )
    assert f"\nA, 64 B (latency); B, 64 B (NDR and PDR, latency)\n    noisy: CPU 0, 1: {memory}\n" in table
    assert f"\nB, 64 B (NDR and PDR); C, 64 B\n    noisy: CPU 0, 1: {others}\n" in table


@given(
    st.dictionaries(
        st.sampled_from(["MRR", "NDR and PDR", "latency", "CPU time"]),
        st.builds(
            lambda stolen, foreign, speed: Noise((0, 1), 10.0, stolen, foreign, 1, 1, 0.01, speed),
            st.sampled_from([0.0, 1.0]),
            st.sampled_from([{}, {"cc1 (4711)": 3.0, "pip (12)": 1.0}]),
            st.builds(Speed, st.sampled_from([0.5, 1.0]), st.sampled_from([0.5, 1.0])),
        ),
        min_size=1,
    )
)
def test_every_sentence_about_noise_is_taken_apart(phases: dict[str, Noise]) -> None:
    """The words come from podperf.noise. If their form changes there, it must change here, too."""
    reason = why_noisy(phases)
    found = noise_words([("row", reason)] if reason else [])
    assert len(found) <= 4 and bool(found) == (reason is not None)
    assert not any(";" in each or "(" in each or "NDR" in each for each in found)


def test_noise_in_other_words_is_said_as_it_is() -> None:
    assert noise_words([("a", "foreign load on the CPUs")]) == {"foreign load on the CPUs": ["a"]}
    both = "tester, CPU 0: memory was at 60% of its best speed; worker, CPU 2, 3: 3.1% of the time was stolen by it"
    assert list(noise_words([("a", both)])) == both.split("; ")


def test_rows_that_are_called_alike_are_told_apart(tmp_path: Path) -> None:
    one = measured("Forwards", tmp_path / "1")
    two = measured("Forwards", tmp_path / "2", suite="Tests.My Suite")
    alone = measured("Forwards Quickly", tmp_path / "3")
    table = words(summary_table([one, two, alone], width=140))
    assert "Forwards (linux-bridge, 1 pod, 64B, 1 kernel space)" in table
    assert "Forwards (linux-bridge, 1 pod, 64B, My Suite)" in table
    assert "Forwards Quickly (linux-bridge, 64B)" in table, "its name says neither"


def test_colour_changes_nothing_but_colour(results: Path) -> None:
    records = read_run(results).records
    for width in (60, 80, 120):
        coloured = summary_table(records, width=width, colour=True)
        assert "\033[32mpassed\033[0m" in coloured and "\033[33mskipped\033[0m  " in coloured
        assert re.sub(r"\033\[[\d;]*m", "", coloured) == summary_table(records, width=width)


@pytest.mark.parametrize(("no_color", "coloured"), [(None, True), ("", True), ("1", False)])
def test_a_terminal_has_colours_unless_no_color_is_set(
    no_color: str | None, coloured: bool, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any non-empty value switches colours off (https://no-color.org)."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert ("\033[" in command.summary(results, Terminal())) == coloured
    assert "\033[" not in command.summary(results, io.StringIO())


@given(name=st.text(max_size=200), reason=st.text(max_size=300), width=st.integers(80, 160))
def test_any_name_fits_the_table(name: str, reason: str, width: int) -> None:
    record = TestRecord("x", name, "s", outcome="skipped", reason=reason)
    assert all(len(line) <= width for line in summary_table([Record.of(record.to_json())], width=width).split("\n"))


def test_the_figures_of_a_test_in_one_line(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.metrics = {**record.metrics, "ndr": Measured(200e3, 200e3, 260e3, unfinished=True)}
    document = made_up.document(record, trials, tmp_path)
    assert figures_line(Record.of(document)) == "MRR 281, NDR 200*, PDR 263 kpps, p50 16.0, p99 96.0, PDV 140 us"
    assert figures_line(skipped("IPVLAN, 64 B", "no ipvlan")) == ""


def test_a_clock_that_was_set_back_is_said(tmp_path: Path) -> None:
    made_up.write(tmp_path / "sound", *made_up.forwarding_record("linux-bridge", 281e3))
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    record.ended = record.started - 3600
    made_up.write(tmp_path / "back", record, trials)
    started = json.loads((tmp_path / "back" / "records" / f"{record.id}.json").read_text())["started"]
    words = f"clock was set back during the test: it started at {started}, and ended at "
    for name in ("sound", "back"):
        page = command.write_reports(tmp_path / name).read_text()
        table = " ".join(summary_table(read_run(tmp_path / name).records, width=120).split())
        assert (words in table, words in page) == (name == "back",) * 2
