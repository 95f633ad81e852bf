"""The result of one check of the preflight."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from podperf.topology import Topology, WorkerSettings

NEEDS_ROOT = "needs root"  # the detail of a check that was left out because only root can do it


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    MISSING = "missing"
    WRONG = "wrong"  # present, but cannot be used as it is
    WARNING = "warning"
    SKIPPED = "skipped"  # the testbed does not have it; tests that need it are skipped
    UNCHECKED = "not checked"


@dataclass(frozen=True)
class Observation:
    """The result of one check. If `needed` is true and the check fails, the quick run cannot be measured."""

    area: str
    subject: str
    state: State
    detail: str = ""
    remedy: str = ""
    needed: bool = False

    @property
    def in_the_way(self) -> bool:
        """True if the quick run cannot be measured because of this check."""
        return self.needed and self.state in {State.MISSING, State.WRONG, State.UNCHECKED}


def of_worker(topology: Topology, worker: WorkerSettings, observations: Iterable[Observation]) -> Iterator[Observation]:
    """Observations of one worker. If the topology has several workers, the area names the worker."""
    if len(topology.workers) == 1:
        yield from observations
        return
    for observation in observations:
        yield replace(observation, area=f"{observation.area.removesuffix(' of the worker')} of {worker.key}")
