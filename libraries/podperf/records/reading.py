"""Reads one record from its file: a whole record, or the trials of a test that never ended."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.figures import count, cut
from podperf.printable import printable
from podperf.records.schema import SCHEMA_VERSION, schema_errors
from podperf.records.writer import TRIALS_SUFFIX
from podperf.regular_files import read_regular

Record = dict[str, Any]
"""A record's document, which fits its schema."""

_DEEPEST = 32  # levels; records of chains on several workers have a dozen
_LARGEST = 256 * 2**20  # bytes; a thousand trials with their latencies take a few million
_LONGEST = 10_000  # characters of a shown text; the time to wrap its lines grows with the square of its length
_HIGHEST = 1e24  # far above every count and time, and small enough for further calculations
_LOWEST = 1e-24  # far below every figure, and large enough to divide by; what is less is 0

_TRIALS = '\n  "trials": ['  # the trials' key, as podperf writes it; the trials are the end of a record

Place = tuple[str | int, ...]  # keys and positions from the top of the document


def record_files(folder: Path) -> list[Path]:
    """The records in a folder, and the files of trials of tests that did not end."""
    paths = sorted(folder.glob("*.json"))
    # A complete record replaces its file of trials, also if the run died before it could remove that file.
    complete = {path.stem for path in paths}
    left = sorted(folder.glob(f"*{TRIALS_SUFFIX}"))
    return paths + [path for path in left if path.name.removesuffix(TRIALS_SUFFIX) not in complete]


def read_record(path: Path, *, trials: bool = True, largest: int = _LARGEST) -> Record:
    """The record in this file, with printable texts.

    Without `trials` the record has none. podperf then reads it ten times as fast, because trials are most of its bytes.
    Raises PodperfError with the name of the wrong field if a report cannot use the record.
    """
    try:
        content = read_regular(path, largest + 1)
        if len(content) > largest:
            raise PodperfError(f"is larger than the {largest} bytes that a record may have")
        text = content.decode()
    except OSError as error:
        raise PodperfError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise PodperfError(f"is not UTF-8: {error.reason} at byte {error.start}") from error
    if not trials:
        text = _without_trials(text)
    left = path.name.endswith(TRIALS_SUFFIX)
    document = _interrupted(text) if left else _parsed(text, "not a complete JSON document")
    record: Record = _sound(document if trials else {**document, "trials": []}, ())
    version = record.get("schema_version")
    if version != SCHEMA_VERSION:
        raise PodperfError(
            f"schema version {version!r}, this podperf reads version {SCHEMA_VERSION}: "
            "make its report with the podperf that wrote it"
        )
    if errors := schema_errors(record):
        raise PodperfError(f"does not fit the record schema: {errors[0]}")
    for key in ("started", "ended"):
        if record[key] is not None:
            _check_moment(key, record[key])
    return record


def _check_moment(key: str, text: str) -> None:
    """Raises PodperfError if there is no such moment, such as 25:00. The schema knows only its form."""
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise PodperfError(f"does not fit the record schema: $.{key}: {error}") from error


def _without_trials(text: str) -> str:
    """The text of a record without its trials. If the text has not the form that podperf writes, it stays as it is."""
    head, found, rest = text.partition(_TRIALS)
    return f"{head}{found}]}}\n" if found and rest.endswith("\n  ]\n}\n") else text


def _interrupted(text: str) -> Record:
    """The record of a test that never ended. An incomplete last line is no trial."""
    lines = text.splitlines()
    if not lines:
        raise PodperfError("empty: the test was interrupted before its first trial")
    record = _parsed(lines[0], "its first line is damaged")
    trials = []
    for line in lines[1:]:
        try:
            trials.append(_parsed(line, "no trial"))
        except PodperfError:
            continue
    reason = f"interrupted after {count(len(trials), 'trial')}"
    return {**record, "trials": trials, "outcome": "interrupted", "reason": reason}


def _parsed(text: str, otherwise: str) -> Record:
    try:
        document = json.loads(text)
    except RecursionError as error:
        raise PodperfError(f"{otherwise} (nested too deeply)") from error
    except ValueError as error:
        raise PodperfError(f"{otherwise} ({error})") from error
    if not isinstance(document, dict):
        raise PodperfError(f"{otherwise} (not an object)")
    return document


def _sound(value: Any, place: Place) -> Any:
    """The value with printable texts. Raises PodperfError if a part of it is beyond the limits of a record."""
    if isinstance(value, str):
        return printable(cut(value, _LONGEST))
    if isinstance(value, int | float):
        if not abs(value) <= _HIGHEST:  # also true for NaN
            raise PodperfError(f"does not fit the record schema: {_path(place)}: a number beyond every figure")
        return value if abs(value) >= _LOWEST else type(value)()
    if isinstance(value, dict | list) and len(place) >= _DEEPEST:
        raise PodperfError(f"does not fit the record schema: {_path(place)}: nested more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        return {printable(cut(key, _LONGEST)): _sound(each, (*place, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_sound(each, (*place, index)) for index, each in enumerate(value)]
    return value


def _path(place: Place) -> str:
    return cut("$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place), 120)
