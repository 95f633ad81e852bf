"""The status of each section of the draft, from the records of one or more runs. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import podperf
from podperf.figures import count
from podperf.history.newest import NOTHING_EARLIER, BesideEarlier
from podperf.metrics import METRICS
from podperf.records import Record
from podperf.report import successor_draft
from podperf.report.draft import NAME, SECTIONS, TITLE, URL, Section
from podperf.report.nodes import slowest_first
from podperf.report.results import (
    RunResults,
    counted,
    doubtful,
    explanation,
    missing,
    noisy,
    not_comparable,
    only_expected,
    tester_faults,
    unfinished,
    verdict_word,
)

SCHEMA_VERSION = 1


class SectionStatus(StrEnum):
    """The status of a section of the draft."""

    FAILED = "failed"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    CONFIRMED = "confirmed"
    PASSED = "passed"
    MEASURED = "measured"
    SKIPPED = "skipped"
    NOT_COVERED = "not covered"
    INFORMATIVE = "informative"


_BAD = (SectionStatus.FAILED, SectionStatus.REFUTED, SectionStatus.INCONCLUSIVE)


@dataclass(frozen=True)
class SectionReport:
    """A section, its status and the reason. `records` has the latest record of each test, the oldest test first."""

    section: Section
    status: SectionStatus
    reason: str
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Conformance:
    """The content of the report."""

    root: Path  # the future folder of the report, to which links are relative
    runs: tuple[RunResults, ...]  # oldest first
    sections: tuple[SectionReport, ...]
    by_successor: tuple[SectionReport, ...]  # the same tests by the sections of the draft's successor
    earlier: BesideEarlier = NOTHING_EARLIER  # the newest run beside earlier ones

    @property
    def latest(self) -> tuple[Record, ...]:
        """The latest record of every test of all runs."""
        return latest_of(self.runs)

    def run_of(self, record: Record) -> RunResults:
        """The run that a record belongs to."""
        return self._runs[id(record)]

    def link(self, record: Record) -> str:
        """The path of the record, relative to the report."""
        return os.path.relpath(self.run_of(record).path_of(record), self.root)

    def log_of(self, record: Record) -> str | None:
        """The record's place in Robot Framework's log, relative to the report. None if the log has no such place."""
        place = record.test.log
        return os.path.relpath(self.run_of(record).directory / place, self.root) if place else None

    def anchor(self, record: Record) -> str:
        """The id of the record's place on the page. It contains the run's number if several runs have records."""
        number = f"-{self.runs.index(self.run_of(record)) + 1}" if len(self.runs) > 1 else ""
        return f"record-{record.id}{number}"

    @cached_property
    def testbeds(self) -> tuple[str, ...]:
        """The testbeds that the tests ran on."""
        return tuple(dict.fromkeys(filter(None, map(self._testbed, self.latest))))

    def told_apart(self, record: Record) -> str:
        """The testbed of a record if the report has several testbeds, and otherwise an empty text."""
        return self._testbed(record) if len(self.testbeds) > 1 else ""

    def _testbed(self, record: Record) -> str:
        """The name of the record's testbed. If machines with different CPUs have this name, it includes the CPU."""
        name = record.testbed_name
        return ", ".join(filter(None, (name, _cpu(record)))) if len(self._cpus[name]) > 1 else name

    @cached_property
    def _cpus(self) -> Mapping[str, set[str]]:
        """The CPU models under each testbed's name."""
        found: dict[str, set[str]] = {}
        for each in self.latest:
            found.setdefault(each.testbed_name, set()).update(filter(None, [_cpu(each)]))
        return found

    def name_of(self, record: Record) -> str:
        """The test's name, with its testbed if the report has several."""
        name, testbed = record.test.name, self.told_apart(record)
        return f"{name} ({testbed})" if testbed else name

    def history(self, record: Record) -> list[tuple[RunResults, Record]]:
        """The same test in every run that has it, oldest first."""
        return self._histories[_identity(record)]

    @cached_property
    def _runs(self) -> Mapping[int, RunResults]:
        """The run of each record, by the record's id."""
        return {id(record): run for run in self.runs for record in run.records}

    @cached_property
    def _histories(self) -> Mapping[tuple[str, ...], list[tuple[RunResults, Record]]]:
        found: dict[tuple[str, ...], list[tuple[RunResults, Record]]] = {}
        for run in self.runs:
            for record in run.records:
                found.setdefault(_identity(record), []).append((run, record))
        return found


def assess(runs: Sequence[RunResults], root: Path, earlier: BesideEarlier = NOTHING_EARLIER) -> Conformance:
    """Every section of both drafts with its status. If several runs have a test, its latest record counts."""
    records = latest_of(runs)
    by_successor = _reports(successor_draft.SECTIONS, records)
    return Conformance(root, tuple(runs), _reports(SECTIONS, records), by_successor, earlier)


def _reports(sections: Sequence[Section], records: Sequence[Record]) -> tuple[SectionReport, ...]:
    """Each of these sections with its tests and its status, in the same order."""
    reports: dict[str, SectionReport] = {}
    # From the innermost sections outwards, so that a section can sum up those within it.
    for section in sorted(sections, key=lambda each: -each.depth):
        own = tuple(record for record in records if section.has(record))
        inner = [reports[each.number] for each in sections if section.holds(each) and each.depth == section.depth + 1]
        reports[section.number] = _section_report(section, own, inner)
    return tuple(reports[section.number] for section in sections)


def latest_of(runs: Sequence[RunResults]) -> tuple[Record, ...]:
    """One record for each test, from the latest run that has the test."""
    found = {_identity(record): record for run in runs for record in run.records}
    return tuple(found.values())


def _cpu(record: Record) -> str:
    """The CPU model of the worker. Empty if it is not known."""
    return str((record.environment.get("cpu") or {}).get("model") or "")


def _identity(record: Record) -> tuple[str, ...]:
    """The identity of a test, with its testbed. The same testbed name on another CPU is another testbed."""
    return record.testbed_name, _cpu(record), record.test.suite, record.test.name


def _section_report(section: Section, records: tuple[Record, ...], inner: Sequence[SectionReport]) -> SectionReport:
    measurable = [each for each in inner if each.status is not SectionStatus.INFORMATIVE]
    covered = [each for each in measurable if each.status is not SectionStatus.NOT_COVERED]
    if records or covered:
        statuses, reasons = [each.status for each in covered], []
        if records:
            statuses.append(status_of(records))
            reasons.append(_reason(records, statuses[-1]))
        if measurable:
            skipped = [each.status for each in covered].count(SectionStatus.SKIPPED)
            of_these = f", {skipped} of them skipped" if skipped else ""
            reasons.append(f"{len(covered)} of {count(len(measurable), 'subsection')} covered{of_these}")
        status = min(statuses, key=list(SectionStatus).index)
        to_blame = [each.section.number for each in covered if each.status is status]
        if to_blame and status in _BAD:
            reasons.append(f"{', '.join(to_blame)} {status}")
        return SectionReport(section, status, "; ".join(reasons), records)
    if measurable:
        return SectionReport(section, SectionStatus.NOT_COVERED, "none of its subsections is covered")
    if section.informative:
        return SectionReport(section, SectionStatus.INFORMATIVE, "nothing to measure")
    reason = f"none of its tests ran: `--include {section.pattern}` runs those of {', '.join(section.suites)}"
    return SectionReport(section, SectionStatus.NOT_COVERED, reason)


def status_of(records: Sequence[Record]) -> SectionStatus:
    """The worst status of the tests and their findings. A section is skipped only if none of its tests was measured.

    A claim of podperf alone counts as measured. It neither confirms nor refutes a section.
    """
    words = {"measured" if only_expected(record) else verdict_word(record) for record in records}
    claims = [finding for record in records if not only_expected(record) for finding in record.findings]
    findings = {finding.verdict for finding in claims}
    if "failed" in words:
        return SectionStatus.FAILED
    if "refuted" in findings:
        return SectionStatus.REFUTED
    if words & {"inconclusive", "not judged", "interrupted"} or "inconclusive" in findings:
        return SectionStatus.INCONCLUSIVE
    if "confirmed" in findings:
        return SectionStatus.CONFIRMED
    # A test without a threshold does not make a section pass, and does not stop it from passing. The same is true for a
    # skipped test.
    order = (SectionStatus.PASSED, SectionStatus.MEASURED)
    return next((each for each in order if each.value in words), SectionStatus.SKIPPED)


def _reason(records: Sequence[Record], status: SectionStatus) -> str:
    if status is SectionStatus.SKIPPED:
        return "; ".join(dict.fromkeys(explanation(record) for record in records))
    words = [verdict_word(record) for record in records]
    parts = [f"{words.count(word)} {word}" for word in dict.fromkeys(words)]
    noise = sum(1 for record in records if noisy(record))
    return ", ".join(parts) + (f"; {noise} on a noisy machine" if noise else "")


def to_json(conformance: Conformance) -> dict[str, Any]:
    """The report as data."""
    runs = conformance.runs
    return {
        "schema_version": SCHEMA_VERSION,
        "draft": {"name": NAME, "title": TITLE, "url": URL},
        "podperf": podperf.__version__,
        "runs": [
            {"name": run.name, "started": run.started, "tests": len(run.records), "problems": list(run.problems)}
            for run in runs
        ],
        "sections": [
            _section_to_json(
                section,
                [_test_to_json(record, conformance) for record in section.records],
                asks=section.section.asks,
                covered_by=section.section.covered,
            )
            for section in conformance.sections
        ],
        "successor": {
            "draft": {"name": successor_draft.NAME, "title": TITLE, "url": successor_draft.URL},
            "sections": [
                _section_to_json(each, [conformance.link(record) for record in each.records])
                for each in conformance.by_successor
            ],
        },
        "nodes": [
            {"name": each.name, "share_of_median": each.ratio, "rates": each.rates}
            for each in slowest_first(conformance.latest)
        ],
        "skipped": [
            {"test": each.test.name, "testbed": each.testbed_name, "reason": explanation(each)}
            for each in conformance.latest
            if each.outcome == "skipped"
        ],
    }


def _section_to_json(report: SectionReport, tests: Sequence[object], **words: str) -> dict[str, Any]:
    named = {"number": report.section.number, "title": report.section.title, **words}
    return {**named, "status": report.status, "reason": report.reason, "tests": tests}


def _changes_to_json(conformance: Conformance, record: Record) -> list[dict[str, Any]]:
    """The figures of the newest run that differ from those of earlier runs."""
    if conformance.run_of(record) is not conformance.runs[-1]:
        return []
    found = (conformance.earlier.of(record, metric) for metric in METRICS.values())
    return [
        {"metric": each.metric.name, "share": each.share, "worse": each.worse, "certainty": each.certainty}
        for each in found
        if each is not None
    ]


def _test_to_json(record: Record, conformance: Conformance) -> dict[str, Any]:
    return {
        "name": record.test.name,
        "testbed": record.testbed_name,
        "record": conformance.link(record),
        "log": conformance.log_of(record),
        "run": conformance.run_of(record).name,
        "verdict": verdict_word(record),
        "explanation": explanation(record),
        "noisy": noisy(record),
        "tester_faults": tester_faults(record),
        "missing": missing(record),
        "doubtful": doubtful(record),
        "unfinished": unfinished(record),
        "not_comparable": not_comparable(record),
        "results": record.document["results"],
        "counted": asdict(counted(record)),
        "findings": record.document["findings"],
        "changes": _changes_to_json(conformance, record),
        "history": [
            {"run": run.name, "record": conformance.link(each), "verdict": verdict_word(each)}
            for run, each in conformance.history(record)
        ],
    }
