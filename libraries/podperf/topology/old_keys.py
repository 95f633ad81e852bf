"""The keys of earlier topology files, and the keys that replace them.

The first worker of a testbed once stood under `worker`, and the other workers under `further_workers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from podperf.documents.yaml_document import Document, Pointer, Problem

_FIRST, _OTHERS, _NOW = "worker", "further_workers", "workers"
_INSTEAD = {
    _FIRST: f"an old key; write this worker as the first item of the list `{_NOW}`",
    _OTHERS: f"an old key; write these workers as further items of the list `{_NOW}`, each with `connection: ssh`",
}
_Value = TypeVar("_Value")


def without_old_keys(document: Document) -> tuple[Document, list[Problem]]:
    """The document with the present keys, and for each old key one line that names its replacement.

    Problems of the document still name the keys in the file.
    """
    old = [key for key in _INSTEAD if key in document.data]
    if not old:
        return document, []
    data = {key: value for key, value in document.data.items() if key not in old}
    if _NOW in data:
        allowed = f"allowed: one of the two; {_NOW} has all workers"
        text = f"found beside {_NOW} in line {document.line((_NOW,))}; {allowed}"
        problems = [document.problem((key,), text) for key in old]
        return replace(document, data=data, problems=[*document.problems, *problems]), []
    others, problems = document.data.get(_OTHERS, []), list(document.problems)
    if not isinstance(others, list):
        problems.append(document.problem((_OTHERS,), f"found {document.shown((_OTHERS,), others)}; allowed: a list"))
        others = []
    data[_NOW] = [document.data.get(_FIRST, {}), *map(_behind_ssh, others)]
    place: dict[Pointer, Pointer] = {(_FIRST,): (_NOW, 0)}
    place |= {(_OTHERS, number): (_NOW, 1 + number) for number in range(len(others))}
    moved = replace(
        document,
        data=data,
        lines={(_NOW,): document.line((old[0],)), **_moved(document.lines, place)},
        texts=_moved(document.texts, place),
        problems=problems,
        renamed={now: before for before, now in place.items()},
    )
    return moved, [document.problem((key,), _INSTEAD[key]) for key in old]


def _behind_ssh(worker: Any) -> Any:
    """A worker with `connection: ssh`. Workers under the old key had no key `connection`."""
    return {"connection": "ssh", **worker} if isinstance(worker, Mapping) else worker


def _moved(values: Mapping[Pointer, _Value], place: Mapping[Pointer, Pointer]) -> dict[Pointer, _Value]:
    """The values by their present places."""

    def now(pointer: Pointer) -> Pointer:
        length = next((length for length in (1, 2) if pointer[:length] in place), 0)
        return (*place.get(pointer[:length], ()), *pointer[length:])

    return {now(pointer): value for pointer, value in values.items()}
