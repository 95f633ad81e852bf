"""Output of processes, gathered while they run. It has a limit, so that endless output does not fill the memory."""

from __future__ import annotations

import queue
import re
import threading

MOST_MIB = 16
MOST = MOST_MIB * 2**20  # bytes of one command's output, or of a process's lines that nobody has read yet
MOST_ERRORS = 2**20  # bytes of what a process in the background wrote to standard error: the last ones
_LINE_OVERHEAD = 64  # bytes that Python takes for a line beside its text
_LINE_END = re.compile(rb"\r?\n")


def as_text(raw: bytes | bytearray) -> str:
    """As Python reads what commands say: a terminal's line ends (`\\r\\n`) are newlines."""
    return _LINE_END.sub(b"\n", raw).decode(errors="replace")


class Overflow(Exception):
    """More was said than is kept."""


class Whole:
    """All that a command says on one stream."""

    def __init__(self) -> None:
        self._said = bytearray()

    def add(self, chunk: bytes) -> None:
        """Keep what was said. Overflow where that is too much."""
        if len(self._said) + len(chunk) > MOST:
            raise Overflow
        self._said += chunk

    def raw(self) -> bytes:
        return bytes(self._said)

    def text(self) -> str:
        return as_text(self._said)


class Latest:
    """The last that a process said on a stream that is looked at when something went wrong."""

    def __init__(self) -> None:
        self._said = bytearray()

    def add(self, chunk: bytes) -> None:
        self._said += chunk
        if len(self._said) > 2 * MOST_ERRORS:
            del self._said[:-MOST_ERRORS]

    def text(self) -> str:
        return as_text(self._said[-MOST_ERRORS:])


class Lines:
    """The lines that a process says, each to be read once. Beyond some amount that nobody has read, more is lost."""

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
        """Nothing more will be said."""
        if self._rest:
            self._lines.put(bytes(self._rest))
        self._lines.put(None)

    def next(self, timeout: float) -> str | None:
        """The next line, None behind the last. queue.Empty when none came in time, Overflow where lines were lost."""
        line = self._lines.get(timeout=timeout)
        if line is None or isinstance(line, Overflow):
            self._lines.put(line)
            if line is None:
                return None
            raise line
        with self._counting:
            self._unread -= len(line) + _LINE_OVERHEAD
        return as_text(line)
