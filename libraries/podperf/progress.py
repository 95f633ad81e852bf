"""The progress of a run for people: test, trial, load, loss, and the time that is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TextIO

from podperf.figures import cut, kpps, percent, phase_words
from podperf.model import TrialResult
from podperf.noise import Speed
from podperf.printable import printable
from podperf.terminal import columns

# Seconds of a run at the expected pace, which weigh as much as the same time of the real run. Without them the first
# test alone would decide the pace.
PRIOR = 60.0
NEXT_TO_NOTHING = 2.0  # seconds; a shorter test tells nothing about the pace


@dataclass
class Forecast:
    """The expected seconds of each test of a run, in the order of the tests. The pace of this run corrects them.

    The pace is the time that the ended tests took, divided by their expected time.
    """

    expected: Sequence[float] = ()
    _ended: list[tuple[float, float]] = field(default_factory=list)  # expected and taken

    def test_ended(self, number: int, seconds: float) -> None:
        """Note that test `number`, counted from 0, took `seconds`."""
        # A test that was skipped although it usually runs, or the reverse, says nothing about the machine.
        if number < len(self.expected) and min(self.expected[number], seconds) > NEXT_TO_NOTHING:
            self._ended.append((self.expected[number], seconds))

    @property
    def pace(self) -> float:
        """1.0: the run takes the expected time; 2.0: twice that time."""
        return (PRIOR + sum(taken for _, taken in self._ended)) / (PRIOR + sum(expected for expected, _ in self._ended))

    def seconds_left(self, number: int, elapsed: float) -> float:
        """Seconds for the rest of this test, which has run for `elapsed` seconds, and for all later tests.

        Tests are counted from 0.
        """
        pace = self.pace
        this = self.expected[number] if 0 <= number < len(self.expected) else 0.0
        return max(0.0, this * pace - elapsed) + pace * sum(self.expected[number + 1 :])


LEAST_NAME = 8  # characters of a test's name; if they do not fit, the line leaves out the remaining time
LINE_INTERVAL = 5.0  # seconds between lines, if the output is no terminal
WAITING_INTERVAL = 0.2  # seconds between two lines about the CPUs' speed, which is measured hundreds of times a second


@dataclass
class Progress:
    """Writes the progress. On a terminal it is one line that changes, elsewhere a new line every few seconds."""

    stream: TextIO = field(default_factory=lambda: sys.__stderr__ or sys.stderr)
    forecast: Forecast = field(default_factory=Forecast)
    _number: int = 0
    _trial: int = 0
    _name: str = ""
    _test_began: float = 0.0
    _last_line: float = 0.0
    _last_waiting: float = 0.0
    _round: str = ""

    def run_begins(self, expected: Sequence[float]) -> None:
        """The run starts. `expected` has the expected seconds of each test, in the order of the tests."""
        self.forecast = Forecast(expected)

    def test_begins(self, name: str) -> None:
        """A test starts."""
        self._number += 1
        self._trial = 0
        self._round = ""
        self._name = printable(name)
        self._test_began = time.monotonic()
        self._show("set-up", force=True)

    def trial(self, phase: str, result: TrialResult) -> None:
        """A trial has ended. Its load is the one that the tester really offered (RFC 2285, 3.5.2)."""
        self._trial += 1
        loss = printable(result.invalid or "") or f"loss {percent(result.loss_ratio)}"
        loop = result.trial.loop
        load = f"frames in flight: {loop.burst}" if loop else f"offered load {kpps(result.achieved_load)} kpps"
        trial = f"trial {self._trial}"
        if self._round:
            self._show(self._round, f"now {phase_words(phase)}")
        else:
            self._show(f"{load}, {loss}", f"{phase_words(phase)}, {trial}", trial)

    def reached(self, text: str) -> None:
        """A test of many steps has come so far: `text` tells what is known. Trials show it in place of their load."""
        self._round = printable(text)
        self._show(self._round)

    def waiting(self, speed: Speed) -> None:
        """A trial waits until the machine is quiet. `speed` is the present speed of the measuring CPUs."""
        if time.monotonic() - self._last_waiting >= WAITING_INTERVAL:
            self._last_waiting = time.monotonic()
            self._show("waiting for a quiet machine", printable(" and ".join(speed.shortfalls)))

    def note(self, text: str) -> None:
        """Write a line that stays on the screen."""
        self._write(printable(text), stays=True)

    def table(self, text: str) -> None:
        """Write text that stays on the screen, with its colours. It must be printable already (podperf.printable)."""
        self._write(text, stays=True)

    def test_ends(self, verdict: str, figures: str = "", reason: str = "") -> None:
        """A test has ended. `verdict` is the word of the table, and `figures` is one line.

        A test without figures has a `reason`. On a terminal the line is cut. The table has the whole reason.
        """
        seconds, reason = time.monotonic() - self._test_began, printable(reason)
        self.forecast.test_ended(self._number - 1, seconds)
        end = f"{self._count} {self._name} {verdict}"
        took, said = (
            f" ({seconds:.0f} s)",
            figures or reason.removeprefix(f"{verdict}: "),
        )  # the reason of a finding begins with its verdict
        if verdict == "skipped" and self.stream.isatty():
            said = _clipped(said, columns(self.stream) - 1 - len(f"{end}: {took}"))
        self._write(f"{end}: {said}{took}" if said else f"{end}{took}", stays=True)

    @property
    def seconds_left(self) -> float:
        """An estimate of the remaining seconds. 0 at the end."""
        return self.forecast.seconds_left(self._number - 1, time.monotonic() - self._test_began)

    @property
    def expected(self) -> int:
        """The number of tests of the run; 0 while unknown."""
        return len(self.forecast.expected)

    @property
    def not_begun(self) -> int:
        """The tests of the run that have not begun."""
        return max(0, self.expected - self._number)

    @property
    def _count(self) -> str:
        return f"[{self._number}/{self.expected or '?'}]"

    def _show(self, text: str, *details: str, force: bool = False) -> None:
        """Write the text with the first of the details that fits.

        If no detail fits on the terminal, the line leaves out the details, then the end of the text, and the name last.
        """
        left = int(self.seconds_left)
        # An estimate of 0 means that this test takes longer than expected. Its remaining time is unknown.
        estimate = f" | {left // 60}:{left % 60:02d} left" if left else ""
        shown = [*(f"{text}, {detail}" for detail in details), text]
        if self.stream.isatty():
            room = columns(self.stream) - 1 - len(f"{self._count} {estimate}")
            if room < LEAST_NAME:
                room, estimate = room + len(estimate), ""
            name = cut(self._name, max(1, room))
            room -= len(f"{name} | ")
            said = _clipped(next((each for each in shown if len(each) <= room), text), room)
            self._write(f"{self._count} {name}{' | ' if said else ''}{said}{estimate}", stays=False)
        elif force or time.monotonic() - self._last_line >= LINE_INTERVAL:
            self._last_line = time.monotonic()
            self._write(f"{self._count} {self._name} | {shown[0]}{estimate}", stays=True)

    def _write(self, text: str, *, stays: bool) -> None:
        with suppress(OSError):  # a run goes on if its terminal or pipe is gone
            self._write_to_stream(text, stays=stays)

    def _write_to_stream(self, text: str, *, stays: bool) -> None:
        if not self.stream.isatty():
            self.stream.write(text + "\n")
        elif stays:
            self.stream.write(f"\r\x1b[K{text}\n")
        else:
            self.stream.write(f"\r\x1b[K{text}")
        self.stream.flush()


def _clipped(text: str, size: int) -> str:
    """The beginning of a text that does not fit into `size` characters. Empty if almost nothing fits."""
    if len(text) <= size:
        return text
    return f"{text[: size - 1].rstrip(' ,')}…" if size >= 8 else ""
