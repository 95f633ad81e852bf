"""Streams: the width of their lines, their colours, and output that nobody takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO, cast

from podperf.errors import ExitCode
from podperf.printable import printable

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


def say(text: str, prefix: str = "podperf: ") -> None:
    """Print a line about what goes on, or what is wrong, to standard error. It may go to nobody."""
    try:
        print(f"{prefix}{printable(text)}", file=sys.stderr, flush=True)
    except OSError:  # nobody reads it any more, or it goes into a file on a full disk
        _to_nobody(sys.stderr)


def _to_nobody(stream: TextIO) -> None:
    """The output of this stream goes nowhere. Otherwise Python would print an error at its end, and exit with 120."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def with_output(command: Callable[[], int]) -> int:
    """The exit code of a command that prints to standard output. It is NOT_WRITTEN, with one line on standard error, if
    the output cannot be written. If its reader (head, less) has ended, that is no error."""
    stream, code = sys.stdout, 0
    if stream is None:
        say("standard output is closed: name a file for it, or /dev/null")
        return ExitCode.NOT_WRITTEN
    sys.stdout = cast(TextIO, _Watched(stream))
    try:
        try:
            code = command()
        except SystemExit:  # argparse has printed a help text
            code = ExitCode.FINE
        sys.stdout.flush()
    except _NotWritten as error:
        _to_nobody(stream)
        if not isinstance(error.reason, BrokenPipeError):
            say(f"standard output cannot be written: {error.reason.strerror}")
            return ExitCode.NOT_WRITTEN
    finally:
        sys.stdout = stream
        try:
            sys.stderr.flush()
        except OSError:
            _to_nobody(sys.stderr)
    return code


class _NotWritten(Exception):
    """A stream cannot be written. No OSError: who opens a file and handles its errors does not mean this one."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


class _Watched:
    """A stream for text, whose errors are _NotWritten."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            raise _NotWritten(error) from error

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            raise _NotWritten(error) from error
