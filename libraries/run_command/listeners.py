"""Listeners of `podperf run`: the folder of results, properties in xunit.xml, and the last messages."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from robot.libraries.BuiltIn import BuiltIn

from podperf.errors import PodperfError
from podperf.figures import count
from podperf.metrics import METRICS
from podperf.ownership import Owner, hand_over, note_caller
from podperf.records import TRIALS_SUFFIX, Figure, Record, read_record, record_files
from podperf.records.files import replace_file
from podperf.report.results import caveats, explanation, verdict_word
from podperf.terminal import say


def measured(results: Path) -> bool:
    """Whether a test of the run in this folder has measured: a skipped test has a record without trials and figures."""
    return any(map(_has_measured, (results / "records").glob("*")))


def _has_measured(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        if path.name.endswith(TRIALS_SUFFIX):
            return len(text.splitlines()) > 1  # the first line is the record
        if path.suffix != ".json":
            return False
        document = json.loads(text)  # many pairs and application traffic have figures without trials
        return bool(document["trials"] or document["results"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


class ResultsFolder:
    """Used by `podperf run`. `folder` holds the results of all runs. Runs with output in other places are ignored.

    `latest` points to the newest run that has measured. Under sudo, a run gives its own results to the caller, and no
    others.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder).resolve()
        self._run: Path | None = None
        self._caller = Owner.caller(os.environ)

    def start_suite(self, data: Any, result: Any) -> None:
        if data.parent is not None:
            return
        run = Path(BuiltIn().get_variable_value("${OUTPUT DIR}")).resolve()
        if run.parent != self._folder or not run.exists():  # a dry run has no results
            return
        self._run = run
        if self._caller is not None:
            note_caller(run, self._caller)
            if self._folder.stat().st_uid == 0:  # the first run made it
                Owner.of(self._folder.parent).take(self._folder)

    def end_test(self, data: Any, result: Any) -> None:
        latest = self._folder / "latest"
        if self._run is None or (latest.is_symlink() and latest.readlink().name == self._run.name):
            return
        if measured(self._run):
            new = self._folder / f".latest-{os.getpid()}"  # another run may make its link at the same time
            new.unlink(missing_ok=True)
            new.symlink_to(self._run.name)
            if self._caller is not None:
                self._caller.take(new)
            new.replace(latest)

    def close(self) -> None:
        """Robot Framework's listener interface. Called last, after output, log, report and xunit files."""
        if self._run is not None and self._caller is not None:
            hand_over(self._run, self._caller)


class XunitProperties:
    """Used by `podperf run`. `results` is the folder of results, with the records."""

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, results: Path) -> None:
        self._results = results

    def xunit_file(self, path: Path) -> None:
        """Robot Framework's listener interface: the file is written."""
        found = {}
        for record_file in record_files(self._results / "records"):
            try:
                record = read_record(record_file, trials=False)
            except PodperfError:  # the report names it
                continue
            found[record.test.suite, record.test.name] = (record_file.name, record)
        with suppress(OSError):  # the disk is full: Robot Framework's own file stays
            self._add(Path(path), found)

    @staticmethod
    def _add(path: Path, found: Mapping[tuple[str, str], tuple[str, Record]]) -> None:
        tree = ElementTree.parse(path)
        for case in tree.iter("testcase"):
            if known := found.get((case.get("classname", ""), case.get("name", ""))):
                name, record = known
                add_properties(case, {"record": f"records/{name}", **properties(record)})
        ElementTree.indent(tree)
        replace_file(path, ElementTree.tostring(tree.getroot(), encoding="UTF-8", xml_declaration=True))


def add_properties(case: ElementTree.Element, properties: Mapping[str, str]) -> None:
    """Put the properties before the outcome, where JUnit has them."""
    parent = ElementTree.Element("properties")
    parent.extend(ElementTree.Element("property", name=name, value=value) for name, value in properties.items())
    case.insert(0, parent)


def properties(record: Record) -> dict[str, str]:
    """Verdict, figures with their unit in the name, and intervals. A figure that is a bound or in doubt says so."""
    found = {"verdict": verdict_word(record), "caveats": ", ".join(caveats(record)), "why": explanation(record)}
    found["version_under_test"] = record.version_under_test
    for metric in METRICS.values():
        if result := record.figures.get(metric.name):
            found |= _figure(metric.name, metric.quantity.key, result)
    for number, finding in enumerate(record.findings, 1):
        found[f"finding_{number}"] = f"{finding.verdict}: {finding.claim}: {finding.detail}"
    return {name: value for name, value in found.items() if value}


def _figure(name: str, key: str, result: Figure) -> Iterator[tuple[str, str]]:
    yield f"{name}_{key}", str(result.value)
    for end in ("low", "high"):
        if (amount := getattr(result, end)) is not None:
            yield f"{name}_{end}_{key}", str(amount)
    bounds = [word.replace("_", " ") for word in ("lower_bound", "upper_bound", "unfinished") if getattr(result, word)]
    bounds += ["in doubt"] if result.doubt else []
    if bounds:
        yield f"{name}_is", ", ".join(bounds)


LONGEST_LIST = 60  # tests that a dry run lists by name; with more, it prints only their number in each suite
SIGNAL = "Execution terminated by signal"  # Robot Framework's words for the test that a signal ends
SET_UP_FAILED = "Parent suite setup failed"  # the keyword that opens the testbed has said why


class LastWords:
    """Used by `podperf run`, because Robot Framework's console prints no tests there.

    `interrupted` is true if a signal ended the run. Robot Framework's exit code does not tell: it counts failed tests.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self, results: Path, resume: str, *, dry_run: bool = False) -> None:
        """`resume` is the command that measures the rest of an interrupted run."""
        self._results = results
        self._resume = resume
        self._dry_run = dry_run
        self._log = ""
        self._outcomes: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self.interrupted = False

    def start_suite(self, data: Any, result: Any) -> None:
        if self._dry_run and data.parent is None:
            say(f"a dry run, which measures nothing: a run would have {count(data.test_count, 'test')}")
            self._list(data)

    def _list(self, whole: Any) -> None:
        suites: dict[str, list[str]] = {}
        for test in whole.all_tests:
            suites.setdefault(test.parent.name, []).append(test.name)
        for suite, tests in suites.items():
            if whole.test_count <= LONGEST_LIST:
                say("\n    ".join([f"  {suite}", *tests]), "")
            else:
                say(f"  {suite}: {count(len(tests), 'test')}", "")

    def end_test(self, data: Any, result: Any) -> None:
        self._outcomes[result.status.lower()] += 1
        self.interrupted |= SIGNAL in result.message
        if result.failed and not result.message.startswith(SET_UP_FAILED):
            self._failures[result.message] += 1

    @property
    def nothing_measured(self) -> bool:
        """Whether there were tests, and each was skipped, or failed because the testbed could not be opened."""
        return bool(self._outcomes) and not self._outcomes["pass"] and not self._failures

    def log_file(self, path: Path | str) -> None:
        """Robot Framework's listener interface: the log is written."""
        self._log = str(path)

    def close(self) -> None:
        """Robot Framework's listener interface. Called last, after the table and the reports."""
        can_be_resumed = self.interrupted and bool(record_files(self._results / "records"))
        if can_be_resumed:
            say(f"to measure the rest: {self._resume}")
        if can_be_resumed or not self._outcomes or measured(self._results):
            return
        for message, times in self._failures.items():
            say(f"{count(times, 'test')} failed: {message}")
        if not self._dry_run:
            outcomes = ", ".join(f"{number} {_words[outcome]}" for outcome, number in self._outcomes.items())
            log = f"; see {self._log}" if self._log else ""
            say(f"no test was measured: {outcomes}{log}")


_words = {"pass": "passed", "fail": "failed", "skip": "skipped", "not run": "not run"}
