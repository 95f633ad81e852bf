"""Sets the chain of a test up again and again, and measures each instance."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from podperf.errors import Unavailable
from podperf.methods import further_settings_by
from podperf.methods.repeated_instantiation import (
    RepeatedInstantiation,
    RepeatedInstantiationResult,
    StandingInstance,
)
from podperf.run.measurement import Measurement
from podperf.testbed.system_under_test import SystemUnderTest, addressed

Build = Callable[[], AbstractContextManager[SystemUnderTest]]


def repeat_instantiation(measurement: Measurement, set_ups: int | None = None) -> RepeatedInstantiationResult:
    """How much the chain varies from one set-up to the next. By default, the preset has the number of `set_ups`.

    No chain is left. Raises Unavailable on a counted machine, and for a variant of a comparison, which is set up anew
    in each round anyway.
    """
    measurement.known_limits()
    if (build := measurement.build) is None:
        raise Unavailable("each round of a comparison sets its variants up anyway")
    settings = further_settings_by(measurement.settings)
    method = RepeatedInstantiation(set_ups or settings.set_ups, settings.set_up_trial)
    measurement.test.take_down()
    result = method.run(lambda: _instance(measurement, method.name, build))
    measurement.keep(method.name, result)
    return result


@contextmanager
def _instance(measurement: Measurement, phase: str, build: Build) -> Iterator[StandingInstance]:
    with build() as sut:
        began = time.monotonic()
        there = addressed(measurement.traffic, sut)
        sut.probe(there)
        seconds = sut.set_up_seconds + time.monotonic() - began
        source = measurement.test.trials(sut, phase, there, measurement.known_limits())
        yield StandingInstance(source, seconds)
