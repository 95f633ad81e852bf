"""Reads one record from its file: a whole record, or the trials of a test that never ended."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from podperf.closed_paths import read_regular
from podperf.errors import PodperfError
from podperf.figures import cut
from podperf.printable import printable
from podperf.records.older import converted
from podperf.records.recorded import TRIALS_SUFFIX, Record
from podperf.records.schema import SCHEMA_VERSION, schema_errors
from podperf.records.writer import interruption

_DEEPEST = 32  # levels; records of chains on several workers have a dozen
_LARGEST = 64 * 2**20  # bytes; a thousand trials with their latencies take a few million
_MOST_VALUES = 4_000_000  # each takes some 100 bytes of memory; a thousand trials have about a million
_LONGEST = 10_000  # characters of a shown text; the time to wrap its lines grows with the square of its length
_HIGHEST = 1e24  # far above every count and time, and small enough for further calculations
_LOWEST = 1e-24  # far below every figure, and large enough to divide by; what is less is 0

_TRIALS = '\n  "trials": ['  # the trials' key, as podperf writes it; the trials are the end of a record

UNFORESEEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of calculations with values that do not agree with each other."""

Place = tuple[str | int, ...]  # keys and positions from the top of the document


def record_files(folder: Path) -> list[Path]:
    """The records in a folder, and the files of trials of tests that did not end."""
    paths = sorted(folder.glob("*.json"))
    # A complete record replaces its file of trials, also if the run died before it could remove that file.
    complete = {path.stem for path in paths}
    left = sorted(folder.glob(f"*{TRIALS_SUFFIX}"))
    return paths + [path for path in left if path.name.removesuffix(TRIALS_SUFFIX) not in complete]


def read_records(folder: Path, *, trials: bool = True) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    """The records in a folder by the start of their tests, and a sentence for each file that cannot be read."""
    records, problems = [], []
    for path in record_files(folder):
        try:
            records.append(read_record(path, trials=trials))
        except PodperfError as error:
            problems.append(f"{printable(path.name)}: {error}")
    return tuple(sorted(records, key=lambda each: (each.started, each.id))), tuple(problems)


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
    if sum(map(text.count, ",[{")) > _MOST_VALUES:  # before they take memory; commas of texts count, too
        raise PodperfError(f"has more than the {_MOST_VALUES} values that a record may have")
    left = path.name.endswith(TRIALS_SUFFIX)
    document = _interrupted(path, text) if left else _parsed(text, "not a complete JSON document")
    document = converted(_sound(document if trials else {**document, "trials": []}, ()))
    version = document.get("schema_version")
    if version != SCHEMA_VERSION:
        raise PodperfError(
            f"schema version {version!r}, this podperf reads versions 1 to {SCHEMA_VERSION}: "
            "make its report with the podperf that wrote it"
        )
    if errors := schema_errors(document):
        raise PodperfError(f"does not fit the record schema: {errors[0]}")
    for key in ("started", "ended"):
        if document[key] is not None:
            _check_moment(key, document[key])
    try:
        return Record.of(document)
    except UNFORESEEN as error:
        raise PodperfError(disagreement(error)) from error


def disagreement(error: Exception) -> str:
    """The words for a record whose values do not agree with each other, which the schema cannot see."""
    return f"cannot be shown: its values do not agree ({printable(f'{type(error).__name__}: {error}')[:200]})"


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


def _interrupted(path: Path, text: str) -> dict[str, Any]:
    """The record of a test that never ended. An incomplete last line is no trial."""
    lines = text.splitlines()
    if not lines:
        raise PodperfError("empty: the test was interrupted before its first trial")
    head = _parsed(lines[0], "its first line is damaged")
    trials = []
    for line in lines[1:]:
        try:
            trials.append(_parsed(line, "no trial"))
        except PodperfError:
            continue
    reason = interruption(path, len(trials))
    return {**head, "trials": trials, "outcome": "interrupted", "reason": reason}


def _parsed(text: str, otherwise: str) -> dict[str, Any]:
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
