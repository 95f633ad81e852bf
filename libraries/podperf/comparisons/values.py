"""The values of a comparison file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from podperf.cpu_lists import format_cpu_list
from podperf.metrics import METRICS, Metric
from podperf.model import Chain, Direction, FrameSize
from podperf.testbed.scenarios import Scenario

RELEVANT, RELEVANT_COST = 0.05, 0.001  # shares. A counted machine repeats a figure within a few instructions


class Moment(StrEnum):
    """When a hook runs."""

    BEFORE = "before set-up"
    AFTER = "after set-up"


@dataclass(frozen=True)
class Hook:
    """A shell command around the set-up of a variant. `place` is `worker`, `pods`, or one pod such as `pod 1`."""

    run: str
    undo: str | None = None
    moment: Moment = Moment.AFTER
    place: str = "worker"

    @property
    def pod(self) -> int | None:
        """The number of the only pod in which the hook runs, counted from 1 on the left."""
        found = re.fullmatch(r"pod (\d+)", self.place)
        return int(found[1]) if found else None

    def as_record(self) -> dict[str, Any]:
        """The hook as the file has it."""
        return {"when": self.moment.value, "in": self.place, "run": self.run, "undo": self.undo}


@dataclass(frozen=True)
class VariantPlacement:
    """The CPUs of a variant's system under test: those of a scenario, or the named ones. Neither: the topology's."""

    scenario: Scenario | None = None
    cpus: tuple[int, ...] | None = None
    switch_cpus: tuple[int, ...] | None = None

    def __str__(self) -> str:
        named = {"CPUs": self.cpus, "switch on": self.switch_cpus}
        words = [self.scenario.name] if self.scenario else []
        return ", ".join([*words, *(f"{word} {format_cpu_list(cpus)}" for word, cpus in named.items() if cpus)])


@dataclass(frozen=True)
class Variant:
    """One of the set-ups that are compared. `topology` is a counted machine of its own."""

    name: str
    chain: Chain
    placement: VariantPlacement = VariantPlacement()
    hooks: tuple[Hook, ...] = ()
    topology: Path | None = None


@dataclass(frozen=True)
class VariantComparison:
    """A comparison. Its variants are compared with the first one.

    `metric` and `relevant` (a share) are None if the file leaves them to the testbed. `trial_seconds` is the duration
    of a trial of MRR.
    """

    path: Path
    name: str
    description: str
    variants: tuple[Variant, ...]
    frame: FrameSize
    flows: int | None = None
    directions: tuple[Direction, ...] | None = None
    topology: Path | None = None
    metric: Metric | None = None
    relevant: float | None = None
    rounds: int = 40
    trial_seconds: float = 0.5

    def metric_on(self, *, counted: bool) -> Metric:
        """The metric on a counted machine, or on another testbed."""
        return self.metric or METRICS["cost" if counted else "mrr"]

    def relevant_on(self, *, counted: bool) -> float:
        """A difference counts if it is larger than this share."""
        return self.relevant if self.relevant is not None else RELEVANT_COST if counted else RELEVANT

    @property
    def machines_of_their_own(self) -> bool:
        """Whether any variant names its own topology."""
        return any(each.topology for each in self.variants)
