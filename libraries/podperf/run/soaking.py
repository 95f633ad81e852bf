"""Soak: loads the chain of a test for a long time, and watches its memory."""

from __future__ import annotations

import time
from collections.abc import Mapping

from podperf.kernel.memory import kernel_memory, resident_memory
from podperf.methods import further_settings_by
from podperf.methods.soak import MemoryReading, Soak, SoakResult
from podperf.run.further_methods import FurtherMethods
from podperf.run.measurement import Measurement
from podperf.testbed.system_under_test import SystemUnderTest


def soak(measurement: Measurement, seconds: float | None = None) -> SoakResult | None:
    """At most how many frames the chain loses in so many seconds of sending, and whether its memory grows.

    By default, the preset has the seconds. None if the search finds no load that passes.
    """
    ndr = FurtherMethods(measurement).searched("ndr")
    if ndr is None:
        return None
    settings = further_settings_by(measurement.settings)
    duration = settings.soak if seconds is None else seconds
    method = Soak(ndr.value, duration, settings.soak_interval, lambda: read_memory(measurement.sut), time.monotonic)
    result: SoakResult = measurement.measure(method)
    return result


def read_memory(sut: SystemUnderTest) -> MemoryReading:
    """The memory of all processes of the system under test that handle frames, and of the kernel of each host."""
    processes: dict[str, int] = {}
    kernel: dict[str, int] = {}
    for place, part in enumerate(sut.parts):
        prefix = f"{part.worker}: " if place else ""
        for user in part.data_plane.cpu_users or ():
            found: Mapping[str, int] = resident_memory(user.host, user.threads())
            processes |= {f"{prefix}{name}": amount for name, amount in found.items()}
            if part.worker not in kernel and (amount := kernel_memory(user.host)) is not None:
                kernel[part.worker] = amount
    return MemoryReading(processes, kernel)
