"""Answers of the processes that testers drive: a line each, a JSON object that has one of the keys agreed upon."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Process


def receive_answer(process: Process, timeout: float, keys: Set[str], who: str) -> dict[str, Any]:
    """The next answer. PodperfError, which names `who`, when it is none, or none comes in `timeout` seconds."""
    line = process.receive(timeout)
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):  # also of a number of 5000 digits, or of nesting without end
        answer = None
    if not isinstance(answer, dict) or not keys & answer.keys():
        raise PodperfError(f"{who} gave an answer that is none: {line[:200]!r}")
    return answer
