"""The method seam: a method asks for trials and turns them into a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

from podperf.metrics import Metrics
from podperf.model import TrialResult


class TrialSource(Protocol):
    """The source of a method's trials: a tester with fixed traffic, or a simulation.

    Every result is valid. The source repeats invalid trials, or raises TrialNotDelivered.
    """

    maximum_load: float  # frames/s and direction; a method must not ask for more

    def measure(self, load: float, duration: float) -> TrialResult:
        """One valid trial at this load (frames/s and direction; UNPACED: all the tester can) for this many seconds."""


class MethodResult(Protocol):
    """The result of a method."""

    @property
    def metrics(self) -> Metrics:
        """The figures of the result, by their names in `podperf.metrics.METRICS`."""

    def as_record(self) -> Mapping[str, Any]:
        """The result in JSON types for the record: values, bounds, and all parameters of the method."""


Result_co = TypeVar("Result_co", bound=MethodResult, covariant=True)


class Method(Protocol[Result_co]):
    """One way of measuring, with its parameters fixed."""

    @property
    def name(self) -> str:
        """The name of the method in records and on the screen."""

    def run(self, source: TrialSource) -> Result_co:
        """Measure. Raises PodperfError if there is no trustworthy result."""
