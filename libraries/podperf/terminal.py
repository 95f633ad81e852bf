"""The width of a stream's lines, and whether the stream shows colours."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TextIO

USUAL_COLUMNS = 80  # the default width, without a terminal


def columns(stream: TextIO) -> int:
    """The width of the stream's terminal, in characters. The environment variable COLUMNS has precedence."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    with suppress(OSError, ValueError):  # the stream is no terminal, or has no file descriptor
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    return USUAL_COLUMNS


def wants_colour(stream: TextIO) -> bool:
    """Whether the stream is a terminal, and NO_COLOR is unset or empty (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def to_nobody(stream: TextIO) -> None:
    """The reader of this stream (head, less) has ended, so its output goes nowhere.

    Without this, Python would print an error when it exits, and its exit code would be 120.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
