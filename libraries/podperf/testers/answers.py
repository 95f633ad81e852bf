"""Answers of the processes that testers drive. An answer is a line: a JSON object that has one of the known keys."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Process
from podperf.model import LONGEST_LATENCY_NS, bucket_index

MOST = 2**63 - 1  # of any count, and of a sum of nanoseconds
_HIGHEST_INDEX = bucket_index(LONGEST_LATENCY_NS)
_LONGEST_TEXT = 500  # characters


def receive_answer(
    process: Process, timeout: float, keys: Set[str], who: str, assumed: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The next answer. Raises PodperfError with the name `who` for a wrong answer, or for none in `timeout` seconds."""
    line = process.receive(timeout, None if assumed is None else json.dumps(assumed))
    answer = in_line(line)
    if not keys & answer.keys():
        raise PodperfError(f"{who} gave no valid answer: {line[:200]!r}")
    return answer


def in_line(line: str) -> dict[str, Any]:
    """The answer in a line. Empty if the line is none."""
    try:
        answer = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):  # for example a number of 5000 digits, or very deep nesting
        return {}
    return answer if isinstance(answer, dict) else {}


def _refuse(constant: str) -> None:
    """JSON has neither NaN nor Infinity, and Python reads both."""
    raise ValueError(constant)


# A tester's machine may answer anything. A value of the wrong kind or size is a ValueError, before it is used: an index
# of a histogram is an exponent of 2, for example.


def whole(answer: Mapping[str, Any], key: str, *, missing: int | None = None) -> int:
    """A number of frames, or of nanoseconds. `missing` is the number if there is none."""
    if missing is not None and key not in answer:
        return missing
    return _whole(key, answer[key])


def real(answer: Mapping[str, Any], key: str) -> float:
    """A number of seconds."""
    number = answer[key]
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        raise ValueError(f"{key} is {number!r}")
    return float(number)


def words(answer: Mapping[str, Any], key: str) -> str:
    """A reason in words. Empty for none."""
    text = answer[key]
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        raise ValueError(f"{key} is no text of at most {_LONGEST_TEXT} characters")
    return text


def wholes(answer: Mapping[str, Any], key: str, most: int) -> tuple[int, ...]:
    """The whole numbers under this key, at most `most`. Empty if the key is not there."""
    found: Sequence[Any] = answer.get(key, ())
    if len(found) > most:
        raise ValueError(f"{key} has {len(found)} numbers, and at most {most} can be")
    return tuple(_whole(key, each) for each in found)


def histogram(pairs: Sequence[Sequence[Any]]) -> dict[int, int]:
    """The number of latencies for each index of an HdrHistogram. No latency is longer than an hour."""
    counts: dict[int, int] = {}
    for index, count in pairs:
        if _whole("an index of the latencies", index) > _HIGHEST_INDEX:
            raise ValueError(f"a latency has the index {index}, which is longer than an hour")
        if index in counts:
            raise ValueError(f"the index {index} of the latencies is there twice")
        counts[index] = _whole("a count of latencies", count)
    return counts


def _whole(what: str, number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MOST:
        raise ValueError(f"{what} is {number!r}")
    return number
