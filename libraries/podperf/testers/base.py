"""The tester seam: whatever sends test frames on two ports and counts what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from podperf.model import Trial, TrialResult

ACHIEVED_LOAD_FLOOR = 0.99  # a trial that sent less than this share of the intended load is invalid
TESTER_LIMIT_SHARE = 0.95  # a rate above this share of the tester's maximum is the tester's, not the SUT's
UNPACED = 0.0  # a Trial.load: as fast as the tester can send


@dataclass(frozen=True)
class TesterLimits:
    """What the tester itself can do with one kind of traffic, found on a bare path or known from the link.

    `maximum_load` is the highest load (frames/s, per direction) that it delivers and receives by itself;
    `own_loss_ratio` is what it lost at half of that. `source` is "calibration on the bare path" or "line rate".
    """

    maximum_load: float
    own_loss_ratio: float
    source: str

    def bounds(self, rate: float) -> bool:
        """True when a rate is so near the tester's own limit that it is a lower bound for the SUT, not a result."""
        return rate >= TESTER_LIMIT_SHARE * self.maximum_load


class Tester(Protocol):
    """One tester with its two ports. Instances are context managers; leaving stops everything that they started."""

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. A trial that the tester could not deliver comes back with `invalid` set.

        Raises PodperfError when the tester itself is broken (gone, port down, refused).
        """

    def describe(self) -> Mapping[str, Any]:
        """Name, version, engine, ports (MACs, driver) as read from the tester; JSON-serialisable."""

    def close(self) -> None:
        """Stop the tester and give back its ports. Safe to call twice."""
