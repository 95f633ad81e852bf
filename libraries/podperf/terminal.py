"""What a stream can show: how wide its lines are, and whether colours are wanted there."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TextIO

USUAL_COLUMNS = 80  # where there is no terminal


def columns(stream: TextIO) -> int:
    """The width of the terminal that the stream is; the variable COLUMNS has precedence."""
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    with suppress(OSError, ValueError):  # it is no terminal, or has no file descriptor
        return os.get_terminal_size(stream.fileno()).columns or USUAL_COLUMNS
    return USUAL_COLUMNS


def wants_colour(stream: TextIO) -> bool:
    """Colours are for terminals, unless NO_COLOR has any value that is not empty (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR")
