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
    """The value that `read` takes from a program's answer in JSON.

    Raises PodperfError, with the names of host and program, if the answer is no JSON, or if `read` lacks something.
    """
    try:
        return read(json.loads(said))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError, OverflowError) as error:
        quoted = repr(said[:MOST_QUOTED])
        raise PodperfError(f"on {host.name}, `{program}` gave no valid answer: {quoted}") from error
