"""Loads parts of podperf from other Python packages: data planes, pod runtimes and testers.

A package names them by entry points (packaging.python.org, "Entry points specification"). Either the package is
installed, or a topology names its folder, whose pyproject.toml has the entry points. docs/third-party.md shows one.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, MutableMapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from podperf.closed_paths import content_open_to_others
from podperf.errors import PodperfError

GROUPS = ("podperf.dataplanes", "podperf.pod_runtimes", "podperf.testers")

Part = TypeVar("Part")

_registries: dict[str, Parts[Any]] = {}  # by group
_from_folders: dict[Path, list[tuple[EntryPoint, Any]]] = {}  # the parts of each folder that a topology has named


class Parts(MutableMapping[str, Part]):
    """podperf's own parts by their names, followed by the parts of other packages in this group.

    Those in `above` are in folders whose modules import the registry's folder. So each is named as in an entry point.
    They and installed packages are loaded when the parts are asked for, and not before: their modules import podperf's.
    A part of a package that cannot be loaded, or that has the name of another part, is left out. Standard error has the
    reason. All other parts work.
    """

    def __init__(self, group: str, own: Mapping[str, Part], above: Mapping[str, str]) -> None:
        self._group, self._found, self._above, self._looked = group, dict(own), above, False

    def __getitem__(self, name: str) -> Part:
        return self._parts[name]

    def __setitem__(self, name: str, part: Part) -> None:
        self._parts[name] = part

    def __delitem__(self, name: str) -> None:
        del self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def _parts(self) -> dict[str, Part]:
        if not self._looked:
            self._looked = True  # first: a package that is loaded may ask for the parts
            self._look()
        return self._found

    def _look(self) -> None:
        for name, at in self._above.items():
            self._found[name] = EntryPoint(name, at, self._group).load()
        for entry in sorted(entry_points(group=self._group), key=lambda each: each.name):
            if entry.name in self._found:
                _left_out(entry, "there is another part of this name")
                continue
            try:
                self._found[entry.name] = entry.load()
            except Exception as error:  # foreign code may raise any exception
                _left_out(entry, f"{type(error).__name__}: {error}")
        for entry, part in (each for found in _from_folders.values() for each in found):
            if entry.group == self._group and self._found.setdefault(entry.name, part) is not part:
                _left_out(entry, "there is another part of this name")


def with_third_party(
    group: str, own: Mapping[str, Part], above: Mapping[str, str] = MappingProxyType({})
) -> Parts[Part]:
    """The parts of a group; see Parts. `add_package` adds further parts to them."""
    parts = Parts(group, own, above)
    _registries[group] = parts
    return parts


def add_package(folder: Path) -> None:
    """Add the parts of the package in this folder, which need not be installed. Its Python code runs.

    Raises PodperfError, with the reason, unless all parts of the package can be used. A second call does nothing.
    """
    named, folder = folder.absolute(), folder.resolve()
    if folder in _from_folders:
        return
    if os.geteuid() == 0 and (reason := content_open_to_others(named, os.environ)) is not None:
        raise PodperfError(f"{reason}, and root would run its code")
    entries = list(_entries(folder / "pyproject.toml"))
    for entry in entries:
        if entry.name in _registries.get(entry.group, ()):
            raise PodperfError(f"there is another part with the name {entry.name} ({entry.group})")
    # At the end of the path: no module of the package takes the place of another module.
    sys.path += [str(each) for each in (folder, folder / "src") if each.is_dir() and str(each) not in sys.path]
    found = [(entry, _loaded(entry)) for entry in entries]
    for entry, part in found:
        if entry.group in _registries:
            _registries[entry.group][entry.name] = part
    _from_folders[folder] = found


def _entries(project: Path) -> Iterator[EntryPoint]:
    """The entry points of a pyproject.toml that name parts of podperf. PodperfError if there are none."""
    try:
        groups = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["entry-points"]
        found = [EntryPoint(name, at, group) for group in GROUPS for name, at in groups.get(group, {}).items()]
    except OSError as error:
        raise PodperfError(f"{project} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PodperfError(f"{project} is no TOML: {error}") from None
    except (AttributeError, KeyError, TypeError):
        found = []
    if not found:
        raise PodperfError(f"{project} names no part of podperf: no entry point in {', '.join(GROUPS)}")
    yield from found


def _loaded(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:  # foreign code may raise any exception
        raise PodperfError(f"{entry.name} ({entry.group}) cannot be loaded: {type(error).__name__}: {error}") from None


def _left_out(entry: EntryPoint, why: str) -> None:
    package = f"the package {entry.dist.name}" if entry.dist else "a package of the topology"
    print(f"podperf: {entry.name} ({entry.group}) of {package} is left out: {why}", file=sys.stderr)
