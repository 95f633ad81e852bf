"""What a person sees while a run works: which test, which trial, load, loss, and the time that is left."""

from __future__ import annotations

import shutil
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO

from podperf.figures import cut, kpps, percent
from podperf.model import TrialResult
from podperf.noise import Speed

SHORTEST_NAME = 8  # characters of a test, where the terminal is narrow
LINE_INTERVAL = 5.0  # seconds between lines where the output is no terminal
WAITING_INTERVAL = 0.2  # seconds between two that say how fast the CPUs are: there are hundreds of looks a second


@dataclass
class Progress:
    """Writes to a terminal as one line that changes, elsewhere as a line now and then.

    `expected` is the number of tests of the run, 0 while unknown. Time left is the time that a test has taken so far on
    average, or `first_guess` seconds.
    """

    stream: TextIO = field(default_factory=lambda: sys.__stderr__ or sys.stderr)
    first_guess: float = 30.0
    expected: int = 0
    _number: int = 0
    _trial: int = 0
    _name: str = ""
    _spent: list[float] = field(default_factory=list)
    _test_began: float = 0.0
    _last_line: float = 0.0
    _last_waiting: float = 0.0

    def test_begins(self, name: str, expected: int) -> None:
        """A test starts; `expected` is how many the run has in all."""
        self.expected = expected
        self._number += 1
        self._trial = 0
        self._name = name
        self._test_began = time.monotonic()
        self._show("set-up", force=True)

    def trial(self, phase: str, result: TrialResult) -> None:
        """A trial has ended."""
        self._trial += 1
        loss = result.invalid or f"loss {percent(result.loss_ratio)}"
        load = kpps(result.achieved_load)
        self._show(f"{phase}, trial {self._trial}: {load} kpps, {result.duration:.2g} s, {loss}")

    def waiting(self, speed: Speed) -> None:
        """A trial waits until the machine is quiet, whose measuring CPUs are that fast."""
        if time.monotonic() - self._last_waiting >= WAITING_INTERVAL:
            self._last_waiting = time.monotonic()
            self._show(f"waiting for a quiet machine: {' and '.join(speed.shortfalls)}")

    def note(self, text: str) -> None:
        """A line that stays."""
        self._write(text, stays=True)

    def test_ends(self, outcome: str, summary: str) -> None:
        """A test has ended, with one line about how."""
        seconds = time.monotonic() - self._test_began
        if outcome != "skipped":
            self._spent.append(seconds)
        self._write(f"{self._count} {self._name} {outcome}: {summary} ({seconds:.0f} s)", stays=True)

    @property
    def seconds_left(self) -> float:
        """An estimate: nothing when all is done."""
        each = sum(self._spent) / len(self._spent) if self._spent else self.first_guess
        in_this = max(0.0, each - (time.monotonic() - self._test_began))
        return in_this + each * self.not_begun

    @property
    def not_begun(self) -> int:
        """The tests of the run that have not begun."""
        return max(0, self.expected - self._number)

    @property
    def _count(self) -> str:
        return f"[{self._number}/{self.expected or '?'}]"

    def _show(self, text: str, *, force: bool = False) -> None:
        left = int(self.seconds_left)
        # Nothing left by the estimate means that this test takes longer than others did: nobody knows how long.
        estimate = f" | {left // 60}:{left % 60:02d} left" if left else ""
        if self.stream.isatty():
            # A narrow terminal costs letters of the name first: load, loss and time left are what changes.
            width = shutil.get_terminal_size().columns - 1
            room = max(SHORTEST_NAME, width - len(f"{self._count}  | {text}{estimate}"))
            line = f"{self._count} {cut(self._name, room)} | {text}"
            self._write(f"{line[: max(0, width - len(estimate))]}{estimate}", stays=False)
        elif force or time.monotonic() - self._last_line >= LINE_INTERVAL:
            self._last_line = time.monotonic()
            self._write(f"{self._count} {self._name} | {text}{estimate}", stays=True)

    def _write(self, text: str, *, stays: bool) -> None:
        with suppress(OSError):  # a terminal or a pipe that is gone ends no run
            self._write_to_stream(text, stays=stays)

    def _write_to_stream(self, text: str, *, stays: bool) -> None:
        if not self.stream.isatty():
            self.stream.write(text + "\n")
        elif stays:
            self.stream.write(f"\r\x1b[K{text}\n")
        else:
            self.stream.write(f"\r\x1b[K{text}")
        self.stream.flush()
