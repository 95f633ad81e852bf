"""Reads a history: a folder in which every folder named `records`, at any depth, has the records of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from podperf.errors import PodperfError
from podperf.printable import printable
from podperf.records import Record, read_record, record_files


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
        if found:
            found.sort(key=lambda each: (each["started"], each["id"]))
            runs.append(PastRun(name, tuple(found)))
    if not runs:
        raise PodperfError(f"{folder}: no run in it (*/records/*.json); give a folder of results folders, like results")
    runs.sort(key=lambda each: (each.started, each.name))
    return History(folder, tuple(runs), tuple(problems))


def _folders_of_records(folder: Path) -> Iterator[Path]:
    """Links such as results/latest are not followed. Otherwise a run would count twice."""
    for path, folders, _ in os.walk(folder):
        folders.sort()
        if Path(path).name == "records":
            folders.clear()
            yield Path(path)
