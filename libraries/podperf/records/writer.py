"""Writes a record and its trials to the disk, also if the disk is full or the run is killed."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.figures import count
from podperf.model import TrialResult
from podperf.records.files import begin_file, replace_file, write_all
from podperf.records.json_values import trial_to_json
from podperf.records.record import TestRecord
from podperf.records.recorded import TRIALS_SUFFIX
from podperf.records.schema import schema_errors


class NotWritten(PodperfError):
    """A record is not in the folder of its run. The text names its place."""


_of_this_run: set[Path] = set()  # folders of records
_lost: dict[Path, tuple[int, str]] = {}  # by a file of trials: the trials of its test, and the place of its record


def interruption(path: Path, trials: int) -> str:
    """The reason why a test has no record, but this number of trials in this file."""
    if path.resolve() not in _lost:
        return f"interrupted after {count(trials, 'trial')}"
    measured, place = _lost[path.resolve()]
    of_all = f"{trials} of its {count(measured, 'trial')}"
    return f"the record could not be written, and {of_all} are in {path.name}; {place}"


def set_aside(results: Path) -> Path | None:
    """Move records of an earlier run in this folder to a new folder, because a report is of one run.

    Returns the new folder, or None if there are no such records. Raises PodperfError if they cannot be moved.
    """
    records = results.resolve() / "records"
    known = records in _of_this_run  # for example if each suite opens the testbed
    _of_this_run.add(records)
    if known or not records.is_dir() or not any(records.iterdir()):
        return None
    moment = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime(records.stat().st_mtime))
    aside, copy = records.with_name(f"records-{moment}"), 1
    while aside.exists():
        copy += 1
        aside = records.with_name(f"records-{moment}-{copy}")
    try:
        records.rename(aside)
    except OSError as error:
        raise PodperfError(f"cannot move {records}, which an earlier run wrote: {error.strerror}") from error
    return aside


class RecordWriter:
    """Keeps one test's trials and record on disk.

    A full disk or a read-only folder never stops a measurement. The writer keeps the data that it could not write, and
    `finish` raises a PodperfError about them.
    """

    def __init__(self, directory: Path | str, record: TestRecord) -> None:
        """Begin `<directory>/<id>.trials.jsonl`. The writer makes the id unique there, and sets it in the record.

        The present record becomes the first line, so that a report can show an interrupted test. So fill in all known
        fields before. The file has this line from the moment that it exists.
        """
        self.directory = Path(directory)
        self.trials: list[dict[str, Any]] = []
        self._file: int | None = None
        with contextlib.suppress(OSError):  # `finish` reports the error
            self._make_unique(record)
        self._path = self.directory / f"{record.id}{TRIALS_SUFFIX}"
        self._pending: list[Mapping[str, Any]] = [record.to_json()]
        with contextlib.suppress(OSError):  # the first trial tries again
            self._flush()

    def _make_unique(self, record: TestRecord) -> None:
        wanted, copy = record.id, 1
        # One run at a time writes in a folder, so nobody else takes the id after this look.
        while any((self.directory / f"{record.id}{suffix}").exists() for suffix in (TRIALS_SUFFIX, ".json")):
            copy += 1
            record.id = f"{wanted}-{copy}"

    def trial(self, result: TrialResult, phase: str) -> None:
        """Write one trial to the disk. On return it is there."""
        self.trials.append(trial_to_json(result, phase))
        self._pending.append(self.trials[-1])
        with contextlib.suppress(OSError):  # the next trial tries again, and `finish` reports the error
            self._flush()

    def _flush(self) -> None:
        if self._file is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._file = begin_file(self._path, _line(self._pending[0]))
            del self._pending[0]
        while self._pending:
            end = os.fstat(self._file).st_size
            try:
                write_all(self._file, _line(self._pending[0]))
                os.fsync(self._file)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._file, end)  # half a line would spoil the next one
                raise
            del self._pending[0]

    def finish(self, record: TestRecord) -> Path:
        """Write the whole record, remove the trials' file, and return the record's path.

        Raises PodperfError if the record does not fit the schema; it is on the disk nevertheless. Raises NotWritten if
        the record could not be written. The trials' file then stays, and the record is in the system's temporary folder
        if that folder can be written.
        """
        if record.ended is None:
            record.ended = time.time()
        document = record.to_json(self.trials)
        path = self.directory / f"{record.id}.json"
        self.close()
        try:
            replace_file(path, _readable(document))
        except OSError as error:
            place = _rescue(document)
            _lost[self._path.resolve()] = len(self.trials), place
            raise NotWritten(f"cannot write {path}: {error.strerror}; {place}") from error
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        if problems := schema_errors(document):
            raise PodperfError(f"the record {path} does not fit its schema: {'; '.join(problems[:3])}")
        return path

    def close(self) -> None:
        """Close the trials' file and keep it. Safe to repeat."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _rescue(document: Mapping[str, Any]) -> str:
    try:
        folder = Path(tempfile.mkdtemp(prefix="podperf-record-"))
        replace_file(folder / f"{document['id']}.json", _readable(document))
    except OSError as error:
        return f"it is nowhere else either ({error.strerror}): free some space and run the test again"
    return f"it is in {folder} instead: free some space, then move it there"


def _line(document: Mapping[str, Any]) -> bytes:
    return _compact(document) + b"\n"


def _compact(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode()


def _readable(document: Mapping[str, Any]) -> bytes:
    """The document as indented JSON, with one line for each trial."""
    head = json.dumps({**document, "trials": []}, allow_nan=False, indent=2).encode()
    trials = b",\n".join(b"    " + _compact(trial) for trial in document["trials"])
    return head.removesuffix(b"]\n}") + (b"\n" + trials + b"\n  " if trials else b"") + b"]\n}\n"
