"""Answers in JSON from programs on a host. A broken or hostile host may answer anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from podperf.errors import PodperfError
from podperf.hosts.base import Host

Value = TypeVar("Value")

MOST_QUOTED = 200  # characters of a wrong answer in a message


def json_answer(host: Host, program: str, said: str, read: Callable[[Any], Value]) -> Value:
    """The value that `read` finds in the answer of a program.

    PodperfError, with the name of the host and of the program, if the answer is no JSON, or if `read` does not find in
    it what it needs.
    """
    try:
        return read(json.loads(said))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError) as error:
        quoted = repr(said[:MOST_QUOTED])
        raise PodperfError(f"on {host.name}, `{program}` gave an answer that is none: {quoted}") from error
