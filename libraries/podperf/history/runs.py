"""Reads a history: a folder in which every folder named `records` has the records of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from podperf.errors import PodperfError
from podperf.printable import printable
from podperf.records import Record, read_record, record_files

NEAREST = 12  # earlier runs that a table compares with
MOST_RECORDS = 300  # of earlier runs that it reads: they take about half a second
LARGEST = 8 * 2**20  # bytes of such a record: any user can put one beside results in /tmp
DEEPEST = 32  # levels of folders in which runs are looked for
COMPARED = {"variants", "variant"}  # the methods of comparisons, whose set-ups are no rows of a history
TestKey = tuple[str, str, str]  # testbed, suite, name


def test_of(record: Record) -> TestKey:
    """The key that tells one test of a history from another."""
    return testbed_of(record), record["test"]["suite"], record["test"]["name"]


def testbed_of(record: Record) -> str:
    """The name of its testbed. Empty if it is not known."""
    return str(record["testbed"]["name"]) if record["testbed"] else ""


@dataclass(frozen=True)
class PastRun:
    """The records of one run, without their trials, in the order of the tests' start."""

    name: str  # the name of the folder around the records, relative to the history
    records: tuple[Record, ...]

    @property
    def started(self) -> str:
        """The start of the first test (ISO 8601, UTC)."""
        return str(self.records[0]["started"])


@dataclass(frozen=True)
class History:
    """The runs of a history, oldest first. `problems` are files that could not be read, one sentence each."""

    folder: Path
    runs: tuple[PastRun, ...]
    problems: tuple[str, ...] = ()


def read_history(folder: Path) -> History:
    """The history in a folder. Raises PodperfError if there is no such folder, or if it has no run."""
    if not folder.is_dir():
        raise PodperfError(f"{folder}: no such folder; give a folder of results folders, like results")
    runs, problems = [], []
    for records in _folders_of_records(folder):
        name = printable(os.path.relpath(records.parent, folder))
        found = []
        for path in record_files(records):
            try:
                found.append(read_record(path, trials=False))
            except PodperfError as error:
                problems.append(f"{name}/records/{printable(path.name)}: {error}")
        found = [each for each in found if not COMPARED & set(each["methods"])]
        if found:
            found.sort(key=lambda each: (each["started"], each["id"]))
            runs.append(PastRun(name, tuple(found)))
    if not runs:
        raise PodperfError(f"{folder}: no run in it (*/records/*.json); give a folder of results folders, like results")
    runs.sort(key=lambda each: (each.started, each.name))
    return History(folder, tuple(runs), tuple(problems))


def earlier_runs(folder: Path, records: Sequence[Record]) -> list[PastRun]:
    """The runs beside this results folder that started before these records, with the same tests, oldest first.

    Only the newest of them are read, so that a table need not wait for them: see NEAREST. Files that cannot be read
    are left out. Empty if there is no such run.
    """
    if not records:
        return []
    wanted, started = {test_of(each) for each in records}, min(str(each["started"]) for each in records)
    found: list[PastRun] = []
    left = MOST_RECORDS
    for beside in _newest_first(folder):
        before = []
        for name in dict.fromkeys(str(each["id"]) for each in records):
            path = beside / f"{name}.json"
            if path.is_file() and left > 0:
                left -= 1
                with suppress(PodperfError, OSError):  # it may be gone
                    before.append(_read(path, path.stat().st_mtime_ns))
        before = [each for each in before if str(each["started"]) < started and test_of(each) in wanted]
        if before:
            before.sort(key=lambda each: (each["started"], each["id"]))
            found.append(PastRun(printable(beside.parent.name), tuple(before)))
        if len(found) == NEAREST or left <= 0:
            break
    return sorted(found, key=lambda each: (each.started, each.name))


@lru_cache(maxsize=MOST_RECORDS)
def _read(path: Path, changed: int) -> Record:
    """A record, which is read again if it has changed. A report of many runs beside each other asks for each often."""
    return read_record(path, trials=False, largest=LARGEST)


def _newest_first(folder: Path) -> list[Path]:
    """The folders of records in the results folders beside this one, without links such as results/latest."""
    with suppress(OSError):
        beside = [each / "records" for each in folder.resolve().parent.iterdir() if not each.is_symlink()]
        here = folder.resolve() / "records"
        found = [each for each in beside if each != here and each.is_dir() and not each.is_symlink()]
        return sorted(found, key=lambda each: (each.stat().st_mtime, each), reverse=True)
    return []


def _folders_of_records(folder: Path) -> Iterator[Path]:
    """Links such as results/latest are not followed. Otherwise a run would count twice."""
    for path, folders, _ in os.walk(folder):
        folders.sort()
        found = Path(path)
        if found.name == "records":
            yield found
        if found.name == "records" or len(found.relative_to(folder).parts) == DEEPEST:
            folders.clear()
