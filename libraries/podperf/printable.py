"""Text of other machines and of files as a terminal, a log and a page can bear it. Pure."""

from __future__ import annotations

import unicodedata


def printable(text: str) -> str:
    """The text with each character that steers a terminal or hides others shown by its code: `\\x1b` for escape.

    Line ends and tabs stay, and so do the letters, signs and spaces of every language. What is no character at all
    (half of a surrogate pair, which no file can hold) gets its code, too.
    """
    if text.isprintable():
        return text
    return "".join(each if _harmless(each) else ascii(each)[1:-1] for each in text)


def _harmless(character: str) -> bool:
    return character.isprintable() or character in "\n\t" or unicodedata.category(character) == "Zs"
