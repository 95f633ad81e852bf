"""How long the tests of a run still take. A value; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

# Seconds that a run behaves as expected before what it does counts as much: one long test says little about others.
PRIOR = 60.0
NEXT_TO_NOTHING = 2.0  # seconds: a test that takes no longer tells nothing about the pace of others


@dataclass
class Forecast:
    """The seconds that each test of a run is expected to take, in their order, corrected by the pace of this run.

    The pace is what the tests that have ended took, divided by what was expected of them.
    """

    expected: Sequence[float] = ()
    _ended: list[tuple[float, float]] = field(default_factory=list)  # expected and taken

    def test_ended(self, number: int, seconds: float) -> None:
        """The test of this number, counted from 0, took so long."""
        # One that was skipped against all expectation, or measured so, says nothing about the machine.
        if number < len(self.expected) and min(self.expected[number], seconds) > NEXT_TO_NOTHING:
            self._ended.append((self.expected[number], seconds))

    @property
    def pace(self) -> float:
        """1: as expected; 2: twice as long."""
        return (PRIOR + sum(taken for _, taken in self._ended)) / (PRIOR + sum(expected for expected, _ in self._ended))

    def seconds_left(self, number: int, elapsed: float) -> float:
        """Seconds for the rest of this test, which has run for `elapsed` seconds, and for all later tests.

        Tests are counted from 0.
        """
        pace = self.pace
        this = self.expected[number] if 0 <= number < len(self.expected) else 0.0
        return max(0.0, this * pace - elapsed) + pace * sum(self.expected[number + 1 :])
