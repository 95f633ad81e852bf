"""A forecast of the time that the tests of a run still need. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
