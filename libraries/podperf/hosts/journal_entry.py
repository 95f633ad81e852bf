"""The entries of a machine's journal, as text and as values. No I/O.

A worker keeps its own journal, and another version of podperf may have written it. So an entry can hold anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

Thing = Sequence[str]  # a command that succeeds for as long as a thing is there

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")  # the name of an entry's file, as podperf gives it


@dataclass(frozen=True)
class NotedChange:
    """One change of a machine, and the way to take it back: a command, or a function of podperf."""

    changed: str
    command: Sequence[str] = ()
    of: Thing = ()  # the changed thing, if it can disappear; without the thing there is nothing to take back
    function: str = ""  # MODULE:NAME, which `takes_back` marks; it is called with the host and with `arguments`
    arguments: Mapping[str, Any] = field(default_factory=dict)
    in_namespace: bool = False  # the changed thing may be in a namespace of the run, and would end with the namespace


def entry_numbers(names: Sequence[str]) -> list[int]:
    """The entries among the files of a journal, the oldest first. A half-written file has no number as its name."""
    return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def as_entry(change: NotedChange) -> bytes:
    """The entry of a change."""
    return json.dumps({name: value for name, value in asdict(change).items() if value}).encode()


def as_change(entry: bytes) -> NotedChange:
    """The change of an entry. ValueError if the entry is none."""
    try:
        change = NotedChange(**json.loads(entry))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from error
    sound = (
        isinstance(change.changed, str)
        and _words(change.command)
        and _words(change.of)
        and isinstance(change.function, str)
        and isinstance(change.arguments, dict)
        and isinstance(change.in_namespace, bool)
    )
    if not sound or not (change.command or change.function):
        raise ValueError("a value of the wrong type, or no way back")
    return change


def may_be_in_namespace(entry: bytes) -> bool:
    """True if the changed thing may be in a namespace of the run, also of an entry that is no `NotedChange` here."""
    with suppress(ValueError, RecursionError):
        found = json.loads(entry)
        return isinstance(found, dict) and bool(found.get("in_namespace"))
    return False


def _words(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
