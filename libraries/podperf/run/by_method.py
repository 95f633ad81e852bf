"""Measures the metrics of a method by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podperf.methods import back_to_back, latency_by_load, loss_curve, repeated_instantiation, soak, system_recovery
from podperf.run import soaking
from podperf.run.further_methods import FurtherMethods
from podperf.run.instances import repeat_instantiation
from podperf.run.measurement import Measurement


def measure_by_method(measurement: Measurement, name: str) -> None:
    """Measure the metrics of this method (`podperf.metrics.Metric.method`). The figures go into the record."""
    MEASURES.get(name, _search_and_latency)(measurement)


def _search_and_latency(measurement: Measurement) -> None:
    """The search, and the trial at a share of its rate. Methods without a trial of their own take this trial."""
    measurement.ndr_and_pdr()
    measurement.latency()


def _search_and_cpu_time(measurement: Measurement) -> None:
    """The search, and the trial with trains at a share of its rate."""
    measurement.ndr_and_pdr()
    measurement.cpu_time()


MEASURES: Mapping[str, Callable[[Measurement], object]] = {
    "mrr": Measurement.mrr,
    "ndrpdr": Measurement.ndr_and_pdr,
    "cost": lambda measurement: measurement.cost(),
    "cpu_time": _search_and_cpu_time,
    loss_curve.NAME: lambda measurement: FurtherMethods(measurement).loss_curve(),
    back_to_back.NAME: lambda measurement: FurtherMethods(measurement).back_to_back(),
    latency_by_load.NAME: lambda measurement: FurtherMethods(measurement).latency_by_load(),
    system_recovery.NAME: lambda measurement: FurtherMethods(measurement).system_recovery(),
    repeated_instantiation.NAME: repeat_instantiation,
    soak.NAME: soaking.soak,
}
"""How the metrics of a method are measured, by the method's name. All others need `_search_and_latency`."""
