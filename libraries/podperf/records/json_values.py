"""The values of a record as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from hdrh.histogram import HdrHistogram

from podperf.frames import PLAIN
from podperf.metrics import METRICS, RATE, Measured
from podperf.model import (
    LONGEST_LATENCY_NS,
    AddressedTraffic,
    DirectionResult,
    Latency,
    Loop,
    TrialResult,
    bucket_lower_ns,
    l1_bit_rate,
    l2_bit_rate,
    line_rate,
)
from podperf.noise import Noise
from podperf.testers.base import UNPACED
from podperf.topology import Threshold


def result_to_json(
    metric: str, measured: Measured, traffic: AddressedTraffic, link_bits_per_second: float | None
) -> dict[str, Any]:
    """The figure of a metric."""
    quantity = METRICS[metric].quantity
    if quantity is RATE:
        return _rate_to_json(measured, traffic, link_bits_per_second)
    interval = {f"low_{quantity.key}": measured.low, f"high_{quantity.key}": measured.high}
    found = {quantity.key: measured.value, **(interval if quantity.has_interval else {})}
    return {**found, "lower_bound": measured.lower_bound, **_doubt(measured)}


def _doubt(measured: Measured) -> dict[str, str]:
    return {"doubt": measured.doubt} if measured.doubt else {}


def latency_summary(latency: Latency, of: str = "") -> dict[str, Any]:
    """Minimum, mean, percentiles and maximum in ns, and the whole distribution in HdrHistogram's base64 form."""
    return {"of": of, **latency.as_record(), "hdr_histogram": to_hdr(latency)}


def traffic_to_json(traffic: AddressedTraffic) -> dict[str, Any]:
    """Traffic as JSON."""
    return {
        "frame": {"name": traffic.frame.name, "sequence": list(traffic.frame.sequence)},
        "directions": list(traffic.directions),
        "flows": traffic.flows,
        **({} if traffic.profile.headers == PLAIN else {"headers": plain(traffic.profile.headers)}),
        "entries": plain(traffic.entries),
        **({"further_entries": plain(further)} if (further := traffic.further_entries) else {}),
    }


def trial_to_json(result: TrialResult, phase: str) -> dict[str, Any]:
    """One trial with its counts. It also has the derived figures, for readers that are not Python programs.

    `phase` is the method that asked for the trial (`mrr`, `ndrpdr`, `latency`), or the chain in a comparison. A `load`
    of null means that the tester sent as fast as it could. The traffic is in the record and is not repeated here.
    """
    return {
        "phase": phase,
        "started": result.started,
        "load": None if result.trial.load == UNPACED else result.trial.load,
        "duration": result.trial.duration,
        "elapsed": result.elapsed,
        "effective_duration": result.effective_duration,
        "invalid": result.invalid,
        **({"impossible_latency": result.impossible_latency} if result.impossible_latency else {}),
        "stray": result.stray,
        "own_drops": result.own_drops,
        "loss_ratio": result.loss_ratio,
        "achieved_load": result.achieved_load,
        "receive_rate": result.receive_rate,
        "noise": noise_to_json(result.noise),
        **({"loop": _loop_to_json(loop, result.windows)} if (loop := result.trial.loop) else {}),
        **({"train": result.trial.train} if result.trial.train > 1 else {}),
        **({"frames": result.trial.frames} if result.trial.frames else {}),
        **({"round_trip": True} if result.trial.round_trip else {}),
        **({"overload": asdict(overload)} if (overload := result.trial.overload) else {}),
        **({"cpu_time": plain(cpu_time)} if (cpu_time := result.cpu_time) else {}),
        "directions": [_direction_to_json(direction) for direction in result.directions],
    }


def _loop_to_json(loop: Loop, windows: Sequence[int]) -> dict[str, Any]:
    """An instruction takes a nanosecond on a counted machine, the only one that has closed loops."""
    return {
        "frames_in_flight": loop.burst,
        "warm_up_frames": loop.warm_up,
        "instructions_of_each_window": list(windows),
    }


def noise_to_json(noise: Noise | None) -> dict[str, Any] | None:
    """The fields of `Noise.as_record`, and the same fields of each worker on a machine of its own in `workers`."""
    if noise is None:
        return None
    data = {**noise.as_record(), "stolen_seconds": noise.stolen, "resolution": noise.resolution}
    return {**data, "workers": [noise_to_json(worker) for worker in noise.workers]} if noise.workers else data


def _rate_to_json(measured: Measured, traffic: AddressedTraffic, link_bits_per_second: float | None) -> dict[str, Any]:
    """A rate in each unit of the report. Names with `aggregate_` are sums of the directions, others per direction."""
    rate = measured.value
    aggregate = rate * len(traffic.directions) if measured.aggregate is None else measured.aggregate
    share = rate / line_rate(link_bits_per_second, traffic.frame) * 100 if link_bits_per_second else None
    return {
        "frames_per_second": rate,
        "low_frames_per_second": measured.low,
        "high_frames_per_second": measured.high,
        "lower_bound": measured.lower_bound,
        "upper_bound": measured.upper_bound,
        "unfinished": measured.unfinished,
        "l1_bits_per_second": l1_bit_rate(rate, traffic.frame),
        "l2_bits_per_second": l2_bit_rate(rate, traffic.frame),
        "aggregate_frames_per_second": aggregate,
        "aggregate_l1_bits_per_second": l1_bit_rate(aggregate, traffic.frame),
        "aggregate_l2_bits_per_second": l2_bit_rate(aggregate, traffic.frame),
        "percent_of_line_rate": share,
        **_doubt(measured),
    }


def _direction_to_json(result: DirectionResult) -> dict[str, Any]:
    data = {field.name: getattr(result, field.name) for field in fields(result) if field.name != "latency"}
    for name in ("last_lost", "arrived"):
        if data[name] is None:
            del data[name]
    for name in ("hurried", "received_by_group", "negative_latencies"):
        if not data[name]:
            del data[name]
    latency = result.latency
    data["latency"] = latency and {
        **latency.as_record(),
        "counts": {str(index): count for index, count in sorted(latency.counts.items())},
    }
    return data


def threshold_to_json(threshold: Threshold) -> dict[str, Any]:
    """A threshold with its selectors; the frame by its name."""
    return {**asdict(threshold), "frame": threshold.frame and threshold.frame.name}


def plain(value: Any) -> Any:
    """A value as JSON types: dataclasses and mappings become objects, sequences arrays, the rest text or null."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return str(value)


def to_hdr(latency: Latency) -> str:
    """The distribution as a base64 HdrHistogram (V2, compressed): 1 ns to one hour, two significant digits."""
    histogram = HdrHistogram(1, LONGEST_LATENCY_NS, 2)
    for index, count in sorted(latency.counts.items()):
        histogram.record_value(min(bucket_lower_ns(index), LONGEST_LATENCY_NS), count)
    return str(histogram.encode().decode("ascii"))
