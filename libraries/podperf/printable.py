"""Makes text of other machines and of files safe for a terminal, a log and a page. Pure."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with codes in place of characters that steer a terminal or hide others: `\\x1b` for escape.

    Line ends, tabs, and the letters, signs and spaces of every language stay. Half of a surrogate pair is no character,
    and no file can hold it. It gets its code, too.
    """
    if text.isprintable():
        return text
    return "".join(each if _harmless(each) else ascii(each)[1:-1] for each in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or unicodedata.category(character) == "Zs"
