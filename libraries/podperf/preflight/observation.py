"""What the preflight says of one thing that it checked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NEEDS_ROOT = "needs root"  # the detail of what is not checked without


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"  # it is there, and cannot be used as it is
    WARNING = "warning"
    SKIPPED = "skipped"  # the testbed does not offer it, and the tests that want it will say so
    UNCHECKED = "not checked"


@dataclass(frozen=True)
class Observation:
    """One thing that was checked. Without what is `needed`, the quick run cannot be measured."""

    area: str
    subject: str
    state: State
    detail: str = ""
    remedy: str = ""
    needed: bool = False

    @property
    def in_the_way(self) -> bool:
        """True when the quick run cannot be measured because of this."""
        return self.needed and self.state in {State.MISSING, State.WRONG, State.UNCHECKED}
