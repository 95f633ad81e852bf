"""Names that a person may have meant, for one that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path

MOST = 4  # names that are proposed


def near(wanted: str, known: Iterable[str]) -> list[str]:
    """The known names that are spelled like this one, contain it, or have a word that is spelled like it.

    The best come first. Upper and lower case are alike.
    """
    lower = {name.lower(): name for name in known}
    alike = get_close_matches(wanted.lower(), lower, n=MOST)
    containing = [name for name in lower if wanted.lower() in name]
    related = [name for name in lower if get_close_matches(wanted.lower(), re.split(r"\W+", name), n=1)]
    return [lower[name] for name in dict.fromkeys([*alike, *containing, *related])][:MOST]


def proposal(wanted: str, known: Iterable[str]) -> str:
    """`; near: …` to follow a sentence, or nothing where nothing is near."""
    return _sentence(near(wanted, known))


def proposed_paths(wanted: str, known: Iterable[str]) -> str:
    """The same for paths, by the names of the files and folders, without the suffixes that all have."""
    by_name = {_stem(path): path for path in known}
    return _sentence([by_name[name] for name in near(_stem(wanted), by_name)])


def _stem(path: str) -> str:
    return re.sub(r"\.(robot|ya?ml)$", "", Path(path).name)


def _sentence(names: Iterable[str]) -> str:
    shown = ", ".join(f'"{name}"' if " " in name else name for name in names)
    return f"; near: {shown}" if shown else ""
