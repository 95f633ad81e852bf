"""Reads a history: a folder in which every folder named `records` has the records of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from podperf.errors import PodperfError
from podperf.printable import printable
from podperf.records import Record, read_record, read_records

NEAREST = 12  # earlier runs that a table compares with
MOST_RECORDS = 300  # of earlier runs that it reads: they take about half a second
LARGEST = 8 * 2**20  # bytes of such a record: any user can put one beside results in /tmp
DEEPEST = 32  # levels of folders in which runs are looked for
COMPARED = {"variants", "variant"}  # the methods of comparisons, whose set-ups are no rows of a history
TestKey = tuple[str, str, str]  # testbed, suite, name


def test_of(record: Record) -> TestKey:
    """The key that tells one test of a history from another."""
    return record.testbed_name, record.test.suite, record.test.name


@dataclass(frozen=True)
class PastRun:
    """The records of one run, without their trials, in the order of the tests' start.

    `problems` are files that could not be read, one sentence each.
    """

    name: str  # the name of the folder around the records, relative to the history
    records: tuple[Record, ...]
    problems: tuple[str, ...] = ()

    @property
    def started(self) -> str:
        """The start of the first test (ISO 8601, UTC)."""
        return self.records[0].started


@dataclass(frozen=True)
class History:
    """A history: its folders of records, those without a record that can be shown among them."""

    folder: Path
    folders: Sequence[PastRun]

    @cached_property
    def runs(self) -> tuple[PastRun, ...]:
        """The runs with records, oldest first. A test that a copied folder has again counts once."""
        seen = set[tuple[TestKey, str]]()
        found = list[PastRun]()
        for run in sorted(
            (folder for folder in self.folders if folder.records), key=lambda each: (each.started, each.name)
        ):
            new = tuple(record for record in run.records if (test_of(record), record.started) not in seen)
            seen |= {(test_of(each), each.started) for each in new}
            found += [replace(run, records=new)] if new else []
        return tuple(found)

    @property
    def copies(self) -> tuple[str, ...]:
        """The names of folders that have nothing but copies of other folders' records."""
        counted = {run.name for run in self.runs}
        return tuple(folder.name for folder in self.folders if folder.records and folder.name not in counted)

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each file that could not be read or shown."""
        return tuple(f"{run.name}/records/{problem}" for run in self.folders for problem in run.problems)


def read_history(folder: Path) -> History:
    """The history in a folder. Raises PodperfError if there is no such folder, or if it has no run."""
    if not folder.is_dir():
        raise PodperfError(f"{folder}: no such folder; give a folder of results folders, like results")
    found = []
    for folders_of_record in _folders_of_records(folder):
        records, problems = read_records(folders_of_record, trials=False)
        judged = tuple(record for record in records if not COMPARED & set(record.methods))
        found.append(PastRun(printable(os.path.relpath(folders_of_record.parent, folder)), judged, problems))
    history = History(folder, found)
    if not history.runs:
        raise PodperfError(f"{folder}: no run in it (*/records/*.json); give a folder of results folders, like results")
    return history


def earlier_runs(folder: Path, records: Sequence[Record]) -> list[PastRun]:
    """The runs beside this results folder that started before these records, with the same tests, oldest first.

    Only the newest of them are read, so that a table need not wait for them: see NEAREST. Files that cannot be read
    are left out. Empty if there is no such run.
    """
    if not records:
        return []
    wanted, started = {test_of(record) for record in records}, min(record.started for record in records)
    found: list[PastRun] = []
    left = MOST_RECORDS
    for beside in _newest_first(folder):
        before = []
        for name in dict.fromkeys(record.id for record in records):
            path = beside / f"{name}.json"
            if path.is_file() and left > 0:
                left -= 1
                with suppress(PodperfError, OSError):  # it may be gone
                    before.append(_read(path, path.stat().st_mtime_ns))
        before = [each for each in before if each.started < started and test_of(each) in wanted]
        if before:
            before.sort(key=lambda each: (each.started, each.id))
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
