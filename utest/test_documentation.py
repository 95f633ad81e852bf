"""Messages that the documentation explains are messages that podperf gives."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("first-lab", "trex", "virtual-worker")
HEADS = ("| message |", "| it says |")


def quoted(document: str) -> Iterator[str]:
    """The messages in the first column of the tables of messages, in backquotes there."""
    inside = False
    for line in (ROOT / f"docs/{document}.md").read_text(encoding="utf-8").splitlines():
        inside = line.startswith("|") and (inside or line.startswith(HEADS))
        if inside:
            yield from re.findall(r"`([^`]+)`", line.split(" | ")[0])


@cache
def said() -> str:
    """Every text of the code between NULs, `…` in the place of what only a run knows."""
    texts = [""]
    for path in (ROOT / "libraries").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(each.value if isinstance(each, ast.Constant) else "…" for each in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\0".join([*texts, ""])


def fixed_words(message: str) -> list[list[str]]:
    """The words that are no example, as far as they stand together: examples have a digit in them, or are a `…`."""
    return [words for part in re.split(r"\S*[\d…]\S*", message) if (words := re.findall(r"\w+", part))]


def is_said(words: list[str]) -> bool:
    """Whether these words stand together in the code, or meet where one of its texts is put into another."""
    if found(words):
        return True
    places = range(1, len(words))
    return any(found(words[:each], after=r"\W*?[…\0]") and found(words[each:], before=r"[…\0]\W*?") for each in places)


def found(words: list[str], before: str = r"\b", after: str = r"\b") -> bool:
    return re.search(before + r"[^\w…\0]+".join(words) + after, said()) is not None


@pytest.mark.parametrize(("document", "message"), [(each, text) for each in DOCUMENTS for text in quoted(each)])
def test_a_message_that_is_explained_is_given(document: str, message: str) -> None:
    words = fixed_words(message)
    assert words, f"{document}.md quotes {message!r}, which has no fixed words"
    for part in words:
        assert is_said(part), f"{document}.md quotes {message!r}, and nothing in libraries/ says {' '.join(part)!r}"


def test_a_message_that_is_not_given_is_noticed() -> None:
    """What would pass anything proves nothing."""
    assert is_said(["has", "no", "carrier"])
    assert not is_said(["has", "no", "carrier", "pigeon"])
    assert not is_said(["carrier", "no", "has"])
