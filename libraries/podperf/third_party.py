"""Loads parts of podperf from other Python packages: data planes, pod runtimes and claims.

A package names them by entry points (packaging.python.org, "Entry points specification"). docs/third-party.md has an
example.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TypeVar

Part = TypeVar("Part")


def with_third_party(group: str, own: Mapping[str, Part]) -> dict[str, Part]:
    """podperf's own parts by their names, followed by the parts of installed packages in this group.

    A part that cannot be loaded, or that has the name of another part, is left out. Standard error has the reason. All
    other parts work.
    """
    parts = dict(own)
    for entry in sorted(entry_points(group=group), key=lambda each: each.name):
        if entry.name in parts:
            _left_out(entry, "there is another part of this name")
            continue
        try:
            parts[entry.name] = entry.load()
        except Exception as error:  # foreign code may raise any exception
            _left_out(entry, f"{type(error).__name__}: {error}")
    return parts


def _left_out(entry: EntryPoint, why: str) -> None:
    package = entry.dist.name if entry.dist else "an unknown package"
    print(f"podperf: {entry.name} ({entry.group}) of the package {package} is left out: {why}", file=sys.stderr)
