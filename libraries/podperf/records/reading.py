"""One record from its file: a whole one, or what is left of a test that never ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.figures import count, cut
from podperf.printable import printable
from podperf.records.files import read_regular
from podperf.records.schema import SCHEMA_VERSION, schema_errors
from podperf.records.writer import TRIALS_SUFFIX

Record = dict[str, Any]
"""A record's document, known to fit its schema."""

_DEEPEST = 32  # levels; records of chains on several workers have a dozen
_LARGEST = 256 * 2**20  # bytes; a thousand trials with their latencies take a few million
_LONGEST = 10_000  # characters of a text that are shown; lines are broken in a time that grows with their square
_HIGHEST = 1e24  # nothing that is counted or timed gets near it, and what is computed from it is still a number

_TRIALS = '\n  "trials": ['  # where the trials begin in a record as podperf writes it, which ends with them

Place = tuple[str | int, ...]  # keys and positions from the top of the document


def record_files(folder: Path) -> list[Path]:
    """The files of a folder of records, and what is left there of tests that never ended."""
    paths = sorted(folder.glob("*.json"))
    # A record that is complete has replaced its trials, also when the run died before it could remove them.
    complete = {path.stem for path in paths}
    left = sorted(folder.glob(f"*{TRIALS_SUFFIX}"))
    return paths + [path for path in left if path.name.removesuffix(TRIALS_SUFFIX) not in complete]


def read_record(path: Path, *, trials: bool = True) -> Record:
    """The record in this file. PodperfError, which names the field, when it is none that a report can rely on.

    Its texts are fit to be shown: no character in them steers a terminal. Without `trials` the record has none, and is
    read ten times as fast, because trials are most of its bytes.
    """
    try:
        content = read_regular(path, _LARGEST + 1)
        if len(content) > _LARGEST:
            raise PodperfError(f"is larger than the {_LARGEST} bytes that a record may have")
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
    return record


def _without_trials(text: str) -> str:
    """The same record without its trials, where it has the form in which podperf writes it; otherwise the text."""
    head, found, rest = text.partition(_TRIALS)
    return f"{head}{found}]}}\n" if found and rest.endswith("\n  ]\n}\n") else text


def _interrupted(text: str) -> Record:
    """What is known of a test that never ended; a last line that was cut off is no trial."""
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
    """The value with its texts fit to be shown. PodperfError where something in it is beyond what a record may hold."""
    if isinstance(value, str):
        return printable(cut(value, _LONGEST))
    if isinstance(value, int | float):
        if not abs(value) <= _HIGHEST:  # nor is NaN
            raise PodperfError(f"does not fit the record schema: {_path(place)}: a number beyond every figure")
        return value
    if isinstance(value, dict | list) and len(place) >= _DEEPEST:
        raise PodperfError(f"does not fit the record schema: {_path(place)}: nested more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        return {printable(cut(key, _LONGEST)): _sound(each, (*place, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_sound(each, (*place, index)) for index, each in enumerate(value)]
    return value


def _path(place: Place) -> str:
    return cut("$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place), 120)
