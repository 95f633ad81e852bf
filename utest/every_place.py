"""Every place of a JSON document, for tests that change a document at each of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """The way to everything within a document, outermost first."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        yield (*at, step)
        yield from places(inner, (*at, step))


def changed(document: Any, place: Place, change: Callable[[Any, str | int], None]) -> Any:
    """A changed copy of the document. `change` gets the mapping or list around the place, and its key or index."""
    result = copy.deepcopy(document)
    holder = result
    for step in place[:-1]:
        holder = holder[step]
    change(holder, place[-1])
    return result
