"""The values of a record as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from podperf.metrics import METRICS, RATE, Measured
from podperf.model import (
    DirectionResult,
    Latency,
    Loop,
    TrafficProfile,
    TrialResult,
    l1_bit_rate,
    l2_bit_rate,
    line_rate,
)
from podperf.noise import Noise
from podperf.records.histogram import to_hdr
from podperf.testers.base import UNPACED
from podperf.topology import Threshold


def result_to_json(
    metric: str, measured: Measured, traffic: TrafficProfile, link_bits_per_second: float | None
) -> dict[str, Any]:
    """The figure of a metric."""
    quantity = METRICS[metric].quantity
    if quantity is RATE:
        return _rate_to_json(measured, traffic, link_bits_per_second)
    return {quantity.key: measured.value, "lower_bound": measured.lower_bound}


def latency_summary(latency: Latency, of: str = "") -> dict[str, Any]:
    """Minimum, mean, percentiles and maximum in ns, and the whole distribution in HdrHistogram's base64 form."""
    return {
        "of": of,
        "minimum_ns": latency.minimum,
        "mean_ns": latency.mean,
        "p50_ns": latency.percentile(50),
        "p90_ns": latency.percentile(90),
        "p99_ns": latency.percentile(99),
        "p99_9_ns": latency.percentile(99.9),
        "maximum_ns": latency.maximum,
        "hdr_histogram": to_hdr(latency),
    }


def traffic_to_json(traffic: TrafficProfile) -> dict[str, Any]:
    """Traffic as JSON."""
    return {
        "frame": {"name": traffic.frame.name, "sequence": list(traffic.frame.sequence)},
        "directions": list(traffic.directions),
        "flows": traffic.flows,
        "entries": {direction: asdict(entry) for direction, entry in traffic.entries.items()},
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
        "invalid": result.invalid,
        "stray": result.stray,
        "own_drops": result.own_drops,
        "loss_ratio": result.loss_ratio,
        "achieved_load": result.achieved_load,
        "receive_rate": result.receive_rate,
        "noise": noise_to_json(result.noise),
        **({"loop": _loop_to_json(loop, result.windows)} if (loop := result.trial.loop) else {}),
        **({"frames": result.trial.frames} if result.trial.frames else {}),
        **({"overload": asdict(overload)} if (overload := result.trial.overload) else {}),
        "directions": [_direction_to_json(each) for each in result.directions],
    }


def _loop_to_json(loop: Loop, windows: Sequence[int]) -> dict[str, Any]:
    """An instruction takes a nanosecond on a counted machine, the only one that has closed loops."""
    return {"frames_in_flight": loop.burst, "instructions_of_each_window": list(windows)}


def noise_to_json(noise: Noise | None) -> dict[str, Any] | None:
    """The fields of `Noise.as_record`, and the same fields of each worker on a machine of its own in `workers`."""
    if noise is None:
        return None
    data = {**noise.as_record(), "stolen_seconds": noise.stolen, "resolution": noise.resolution}
    return {**data, "workers": [noise_to_json(each) for each in noise.workers]} if noise.workers else data


def _rate_to_json(measured: Measured, traffic: TrafficProfile, link_bits_per_second: float | None) -> dict[str, Any]:
    """A rate in each unit of the report. Names with `aggregate_` are sums of the directions, others per direction."""
    rate, ways = measured.value, len(traffic.directions)
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
        "aggregate_frames_per_second": rate * ways,
        "aggregate_l1_bits_per_second": l1_bit_rate(rate * ways, traffic.frame),
        "aggregate_l2_bits_per_second": l2_bit_rate(rate * ways, traffic.frame),
        "percent_of_line_rate": share,
    }


def _direction_to_json(result: DirectionResult) -> dict[str, Any]:
    data = {each.name: getattr(result, each.name) for each in fields(result) if each.name != "latency"}
    if result.last_lost is None:
        del data["last_lost"]
    if not result.received_by_group:
        del data["received_by_group"]
    latency = result.latency
    data["latency"] = latency and {
        "minimum_ns": latency.minimum,
        "mean_ns": latency.mean,
        "maximum_ns": latency.maximum,
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
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return str(value)
