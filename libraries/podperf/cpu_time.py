"""The CPU time that the system under test took during a trial. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CpuTime:
    """The CPU time of the parts of a system under test during one trial.

    `parts` has nanoseconds by the name of the part. `runs` is how often their threads were put on a CPU: the fewer
    frames a thread finds then, the more of its time is for waking up. `polling` names the parts that poll, and do not
    tell how much of their time was for frames; `parts` does not have them. `unread` is the reason why the time of a
    part could not be read, or empty.
    """

    parts: Mapping[str, float] = field(default_factory=dict)
    runs: int = 0
    polling: tuple[str, ...] = ()
    unread: str = ""

    @property
    def total(self) -> float | None:
        """Nanoseconds of all parts. None if the time of a part is not known."""
        return None if self.polling or self.unread else sum(self.parts.values())
