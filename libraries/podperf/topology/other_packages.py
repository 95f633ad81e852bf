"""The parts of a topology file that other Python packages bring: their folders, and the settings of their testers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from podperf.documents.schema_check import with_defaults
from podperf.documents.yaml_document import Document, Pointer, Problem
from podperf.errors import PodperfError
from podperf.third_party import add_package
from podperf.topology.disagreements import Sound
from podperf.topology.tester_types import KindSettings, RuntimeType, TesterType, WrongSetting

_SETTINGS: Pointer = ("tester", "settings")
_OF_PODS: Pointer = ("pods", "settings")


def add_packages(document: Document) -> Iterator[Problem]:
    """Add the parts of the packages whose folders the topology names. Returns the problems of packages without parts.

    A relative path begins at the folder of the topology file.
    """
    folders = document.data.get("third_party")
    for number, folder in enumerate(folders if isinstance(folders, list) else ()):
        if not isinstance(folder, str) or not folder:
            continue  # the schema refuses it
        try:
            add_package(Path(document.path).parent / Path(folder).expanduser())
        except (PodperfError, ValueError) as error:
            allowed = f"the folder of a Python package with parts of podperf ({error})"
            pointer = ("third_party", number)
            yield document.problem(pointer, f"found {document.shown(pointer, folder)}; allowed: {allowed}")


def type_of_tester(document: Document, testers: Mapping[str, TesterType]) -> TesterType | None:
    """The type of tester that the topology names, or the default. None if podperf has no such type."""
    tester = document.data.get("tester")
    name = tester.get("type", "software") if isinstance(tester, dict) else "software"
    return testers.get(name) if isinstance(name, str) else None


def runtime_of_pods(document: Document, runtimes: Mapping[str, RuntimeType]) -> RuntimeType | None:
    """The pod runtime that the topology names, or None if `runtimes` has none of that name."""
    pods = document.data.get("pods")
    name = pods.get("runtime") if isinstance(pods, dict) else None
    return runtimes.get(name) if isinstance(name, str) else None


def unread_settings(sound: Sound, runtime: RuntimeType | None) -> Iterator[Problem]:
    """The settings of a pod runtime that has none."""
    if runtime is not None and runtime.settings_schema is None and sound.value(*_OF_PODS):
        name = sound.value("pods", "runtime")
        yield sound.problem(_OF_PODS, f"nothing, as pods of the runtime {name} have no `settings`")


def tester_settings(
    sound: Sound, tester: TesterType | None, schema: Mapping[str, Any]
) -> tuple[KindSettings | None, list[Problem]]:
    """The settings that only this type of tester has, and their problems. None if they have problems.

    The schema refuses wrong values first.
    """
    if tester is None or not sound.whole("tester"):
        return None, []
    given = with_defaults(schema["properties"]["tester"], sound.document.data.get("tester", {}), schema)
    if sound.value(*_SETTINGS) and tester.settings_schema is None:
        return None, [sound.problem(_SETTINGS, f"nothing, as a tester of the type {given['type']} has no `settings`")]
    try:
        kind = tester.read_settings(given)
        said = kind.type
    except WrongSetting as error:
        return None, [sound.problem((*_SETTINGS, *error.key), error.allowed)]
    except Exception as error:  # foreign code may raise any exception
        text = f"the tester {given['type']} cannot read its settings: {type(error).__name__}: {error}"
        return None, [sound.document.problem(_SETTINGS, text)]
    if said != given["type"]:
        text = f"the tester {given['type']} says that its type is {said!r}"
        return None, [sound.document.problem(_SETTINGS, text)]
    return kind, []
