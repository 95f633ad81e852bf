"""Output of processes, read while they run. Its size is limited, so that endless output does not fill the memory."""

from __future__ import annotations

import queue
import re
import threading
import time

MOST_MIB = 16
MOST = MOST_MIB * 2**20  # bytes of one command's output, or of a process's unread lines
MOST_ERRORS = 2**20  # last bytes of the standard error of a background process
_LINE_OVERHEAD = 64  # bytes that Python takes for a line beside its text
_PART_OF_A_WAIT, _LATEST_WAKE_UP = 5.0, 1.0  # seconds; a wait that ends later than that was interrupted
_LINE_END = re.compile(rb"\r?\n")


def as_text(raw: bytes | bytearray) -> str:
    """The output as text. Line ends of a terminal (`\\r\\n`) become newlines."""
    return _LINE_END.sub(b"\n", raw).decode(errors="replace")


class Overflow(Exception):
    """The output was larger than the limit."""


class Whole:
    """The whole output of a command on one stream."""

    def __init__(self) -> None:
        self._said = bytearray()

    def add(self, chunk: bytes) -> None:
        """Keep output. Raises Overflow if it is too much."""
        if len(self._said) + len(chunk) > MOST:
            raise Overflow
        self._said += chunk

    def raw(self) -> bytes:
        return bytes(self._said)

    def text(self) -> str:
        return as_text(self._said)


class Latest:
    """The last output of a process on one stream, for error messages."""

    def __init__(self) -> None:
        self._said = bytearray()

    def add(self, chunk: bytes) -> None:
        self._said += chunk
        if len(self._said) > 2 * MOST_ERRORS:
            del self._said[:-MOST_ERRORS]

    def text(self) -> str:
        return as_text(self._said[-MOST_ERRORS:])


class Lines:
    """The lines of a process; each is read once. If too many lines are unread, further lines are lost."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[bytes | Overflow | None] = queue.SimpleQueue()  # None: there are no more
        self._rest = bytearray()
        self._unread = 0  # bytes that the lines take
        self._counting = threading.Lock()
        self._lost = False

    def add(self, chunk: bytes) -> None:
        """Take output. It is never refused, so that no process waits because nobody reads."""
        if self._lost:
            return
        self._rest += chunk
        if b"\n" in chunk:
            *whole, rest = _LINE_END.split(self._rest)
            self._rest = bytearray(rest)
            with self._counting:
                self._unread += sum(len(line) + _LINE_OVERHEAD for line in whole)
            for line in whole:
                self._lines.put(bytes(line))
        if self._unread + len(self._rest) > MOST:
            self._lost, self._rest = True, bytearray()
            self._lines.put(Overflow())

    def end(self) -> None:
        """Note the end of the output."""
        if self._rest:
            self._lines.put(bytes(self._rest))
        self._lines.put(None)

    def next(self, timeout: float) -> str | None:
        """The next line; None after the last one. Raises queue.Empty at the timeout, Overflow if lines were lost.

        Time in which this program itself stood still does not count: a signal can stop the whole program, and the
        thread that gathers the lines as well.
        """
        line = self._awaited(timeout)
        if line is None or isinstance(line, Overflow):
            self._lines.put(line)
            if line is None:
                return None
            raise line
        with self._counting:
            self._unread -= len(line) + _LINE_OVERHEAD
        return as_text(line)

    def _awaited(self, timeout: float) -> bytes | Overflow | None:
        while True:
            part, began = min(timeout, _PART_OF_A_WAIT), time.monotonic()
            try:
                return self._lines.get(timeout=part)
            except queue.Empty:
                if time.monotonic() - began > part + _LATEST_WAKE_UP:
                    continue  # this program stood still
                timeout -= part
                if timeout <= 0:
                    raise
