"""Answers of the processes that testers drive. An answer is a line: a JSON object that has one of the known keys."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Process


def receive_answer(process: Process, timeout: float, keys: Set[str], who: str) -> dict[str, Any]:
    """The next answer. Raises PodperfError with the name `who` for a wrong answer, or for none in `timeout` seconds."""
    line = process.receive(timeout)
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError):  # for example a number of 5000 digits, or very deep nesting
        answer = None
    if not isinstance(answer, dict) or not keys & answer.keys():
        raise PodperfError(f"{who} gave no valid answer: {line[:200]!r}")
    return answer
