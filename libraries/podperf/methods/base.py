"""The method seam: a method asks for trials and turns them into a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from podperf.metrics import Metrics
from podperf.model import TrialResult


class TrialSource(Protocol):
    """Where a method gets its trials from: a tester with fixed traffic, or a simulation.

    Every result that it returns is valid; invalid trials were repeated beneath, or TrialNotDelivered was raised.
    """

    maximum_load: float  # frames/s and direction: nothing above this can be asked for

    def measure(self, load: float, duration: float) -> TrialResult:
        """One valid trial at this load (frames/s and direction; UNPACED: all the tester can) for this many seconds."""


class MethodResult(Protocol):
    """What a method found."""

    @property
    def metrics(self) -> Metrics:
        """The figures that it tells, by the names that they have in `podperf.metrics.METRICS`."""

    def as_record(self) -> Mapping[str, Any]:
        """The result as JSON-serialisable data for the record: values, bounds, and every parameter that led to them."""


class Method(Protocol):
    """One way of measuring, with its parameters fixed."""

    @property
    def name(self) -> str:
        """The word that stands for it in records and on the screen."""

    def run(self, source: TrialSource) -> MethodResult:
        """Measure. Raises PodperfError when no honest result could be found."""
