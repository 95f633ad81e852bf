"""The keys of earlier topology files, and the keys that replace them.

The first worker of a testbed once stood under `worker`, and the other workers under `further_workers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from podperf.documents.yaml_document import Document, Pointer, Problem, key_path

_FIRST, _OTHERS, _NOW = "worker", "further_workers", "workers"
_INSTEAD = {
    _FIRST: f"an old key; write this worker as the first item of the list `{_NOW}`",
    _OTHERS: f"an old key; write these workers as further items of the list `{_NOW}`, each with `connection: ssh`",
}
_MOVED: Mapping[Pointer, Pointer] = {
    ("bpf_object",): ("data_planes", "bpf-object"),
    ("tester", "trex"): ("tester", "settings"),
    ("tester", "engine"): ("tester", "settings", "engine"),
}
_Value = TypeVar("_Value")


def without_old_keys(document: Document) -> tuple[Document, list[Problem]]:
    """The document with the present keys, and for each old key one line that names its replacement.

    Problems of the document still name the keys in the file.
    """
    document, outdated = _with_list_of_workers(document)
    document, hook = _with_list_of_hooks(document)
    outdated += hook
    for before, now in _MOVED.items():
        if before not in document.lines or not _can_have(document.data, now):
            continue
        if now in document.lines:
            text = f"found beside {key_path(now)} in line {document.line(now)}; allowed: one of the two"
            problems, data = [*document.problems, document.problem(before, text)], _without(document.data, before)
            document = replace(document, data=data, problems=problems)
            continue
        value: Any = document.data
        for step in before:
            value = value[step]
        outdated.append(document.problem(before, f"an old key; write `{key_path(now)}`"))
        data = _with(_without(document.data, before), now, value)
        document = _moved(document, data, {before: now})
    return document, outdated


def _with_list_of_workers(document: Document) -> tuple[Document, list[Problem]]:
    """The document with `workers` in place of `worker` and `further_workers`."""
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
    moved = _moved(document, data, place)
    moved = replace(moved, lines={(_NOW,): document.line((old[0],)), **moved.lines}, problems=problems)
    return moved, [document.problem((key,), _INSTEAD[key]) for key in old]


def _with_list_of_hooks(document: Document) -> tuple[Document, list[Problem]]:
    """The document with `hooks` in place of `hook`, the program of a counted machine, which is the only worker."""
    here: Pointer = (_NOW, 0, "counted")
    before, now = (*here, "hook"), (*here, "hooks")
    if before not in document.texts:
        return document, []
    worker, *others = document.data[_NOW]
    counted = dict(worker["counted"])
    hook = counted.pop("hook")
    both = now in document.lines
    if not both:
        counted["hooks"] = [{"in": "machine", "program": hook}]
    data = {**document.data, _NOW: [{**worker, "counted": counted}, *others]}
    if both:
        text = f"found beside `hooks` in line {document.line(now)}; allowed: one of the two"
        return replace(document, data=data, problems=[*document.problems, document.problem(before, text)]), []
    written = f"an old key; write `hooks: [{{in: machine, program: {document.texts[before]}}}]`"
    return _moved(document, data, {before: (*now, 0, "program")}), [document.problem(before, written)]


def _moved(document: Document, data: Mapping[str, Any], place: Mapping[Pointer, Pointer]) -> Document:
    """The document with `data`, in which values have the new places of `place`."""
    return replace(
        document,
        data=data,
        lines=_by_place(document.lines, place),
        texts=_by_place(document.texts, place),
        renamed={**document.renamed, **{now: before for before, now in place.items()}},
    )


def _can_have(data: Any, pointer: Pointer) -> bool:
    """Whether there are mappings, or nothing, on the way to this place."""
    for step in pointer[:-1]:
        data = data.get(step, {})
        if not isinstance(data, Mapping):
            return False
    return True


def _without(data: Mapping[Any, Any], pointer: Pointer) -> Mapping[Any, Any]:
    first, *others = pointer
    if others:
        return {**data, first: _without(data[first], tuple(others))}
    return {key: value for key, value in data.items() if key != first}


def _with(data: Mapping[Any, Any], pointer: Pointer, value: Any) -> Mapping[Any, Any]:
    first, *others = pointer
    return {**data, first: _with(data.get(first, {}), tuple(others), value) if others else value}


def _behind_ssh(worker: Any) -> Any:
    """A worker with `connection: ssh`. Workers under the old key had no key `connection`."""
    return {"connection": "ssh", **worker} if isinstance(worker, Mapping) else worker


def _by_place(values: Mapping[Pointer, _Value], place: Mapping[Pointer, Pointer]) -> dict[Pointer, _Value]:
    """The values by their present places."""

    def now(pointer: Pointer) -> Pointer:
        length = next((length for length in range(1, len(pointer) + 1) if pointer[:length] in place), 0)
        return (*place.get(pointer[:length], ()), *pointer[length:])

    return {now(pointer): value for pointer, value in values.items()}
