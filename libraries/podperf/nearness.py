"""Names that a person has typed: known names are proposed for unknown ones, and an empty one stands for none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

MOST = 4  # names that are proposed


def optional_path(typed: str) -> Path | None:
    """The path. None if the text is empty, as a parameter of a CI server that nobody filled in."""
    return Path(typed) if typed.strip() else None


def near(wanted: str, known: Iterable[str]) -> list[str]:
    """The known names with a similar spelling, that contain this name, or that have a word with a similar spelling.

    The best come first. Upper and lower case are equal.
    """
    lower = {name.lower(): name for name in known}
    alike = get_close_matches(wanted.lower(), lower, n=MOST)
    containing = [name for name in lower if wanted.lower() in name]
    related = [name for name in lower if get_close_matches(wanted.lower(), re.split(r"\W+", name), n=1)]
    return [lower[name] for name in dict.fromkeys([*alike, *containing, *related])][:MOST]


def proposal(wanted: str, known: Iterable[str]) -> str:
    """`; near: …` for the end of a sentence, or an empty text without a similar name."""
    return _sentence(near(wanted, known))


def proposed_paths(wanted: str, known: Iterable[str]) -> str:
    """`proposal` for paths. It compares names of files and folders, without the suffix that all of them have."""
    by_name = {_stem(path): path for path in known}
    return _sentence([by_name[name] for name in near(_stem(wanted), by_name)])


def _stem(path: str) -> str:
    return re.sub(r"\.(robot|ya?ml)$", "", Path(path).name)


def _sentence(names: Iterable[str]) -> str:
    shown = ", ".join(f'"{name}"' if " " in name else name for name in names)
    return f"; near: {shown}" if shown else ""
