"""Makes a judged TrialResult from the figures of TRex's client. Pure.

TRex counts frames by the counters of its ports. So a foreign frame counts as a frame of the trial. If more frames
arrive than were sent, the surplus counts as stray. Only latency frames have sequence numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from hdrh.histogram import HdrHistogram

from podperf.model import Direction, DirectionResult, Latency, Trial, TrialResult
from podperf.testers.base import UNPACED
from podperf.testers.validity import Account, judged

SIDES = {Direction.LEFT_TO_RIGHT: (0, 1), Direction.RIGHT_TO_LEFT: (1, 0)}  # sending and receiving port

# `wall` (from the request to the reported end) is longer than the traffic, by this many seconds at least and at most.
REPORTING_DELAY, LONGEST_REPORTING_DELAY = 0.03, 0.15
LEAST_SAMPLED = 0.1  # seconds: the shortest time between the two samples that show the real rate


def trial_result(trial: Trial, counted: Mapping[str, Any], groups: Mapping[Direction, int]) -> TrialResult:
    """The result of a trial; `groups` are the latency groups by direction."""
    directions = tuple(
        _direction_result(trial, counted, direction, groups[direction]) for direction in trial.traffic.directions
    )
    strays = sum(max(0, _delta(counted, "ipackets", SIDES[each.direction][1]) - each.sent) for each in directions)
    receiving = {SIDES[each.direction][1] for each in directions}
    own_drops = sum(_delta(counted, "ierrors", port) for port in receiving)
    result = TrialResult(
        trial=trial,
        started=counted["started"],
        directions=directions,
        stray=strays,
        own_drops=own_drops,
        elapsed=counted["elapsed"],
    )
    return judged(result, _account(counted, directions))


def _delta(counted: Mapping[str, Any], name: str, port: int) -> int:
    return int(counted["after"][port][name] - counted["before"][port][name])


def _direction_result(trial: Trial, counted: Mapping[str, Any], direction: Direction, group: int) -> DirectionResult:
    sender, receiver = SIDES[direction]
    sent = _delta(counted, "opackets", sender)
    figures = counted["groups"].get(str(group), {})
    errors = figures.get("errors", {})
    return DirectionResult(
        direction=direction,
        intended=sent if trial.load == UNPACED else max(1, round(trial.load * trial.duration)),
        sent=sent,
        received=min(sent, _delta(counted, "ipackets", receiver)),
        duplicated=errors.get("dup", 0),
        reordered=errors.get("out_of_order", 0),
        corrupted=0,
        duration=real_duration(trial, counted, sender, sent),
        latency=latency_of(figures.get("latency", {})),
    )


def real_duration(trial: Trial, counted: Mapping[str, Any], sender: int, sent: int) -> float:
    """The real seconds of sending, from the rate between two samples within the trial.

    A stall at one of the samples makes the result too long. So the result is at most the time until the server reported
    the end of the traffic. If the samples are too close together, the result is the planned duration.
    """
    first, last = counted["samples"]
    between = (last["earliest"] + last["latest"] - first["earliest"] - first["latest"]) / 2
    frames = last["sent"][sender] - first["sent"][sender]
    if between < LEAST_SAMPLED or frames <= 0 or sent <= 0:
        return trial.duration
    longest = counted["wall"] if trial.load == UNPACED else max(trial.duration, counted["wall"] - REPORTING_DELAY)
    return float(min(sent * between / frames, longest))


def _account(counted: Mapping[str, Any], directions: Sequence[DirectionResult]) -> Account:
    unsettled = "the counters of the TRex ports did not come to rest: something else sends on this network"
    return Account(
        "" if counted["settled"] else unsettled,
        "receive errors of the TRex ports (ierrors)",
        max([counted["wall"] - LONGEST_REPORTING_DELAY, *(each.duration for each in directions)]),
    )


def latency_of(figures: Mapping[str, Any]) -> Latency | None:
    """Latency from TRex's histogram of microseconds. None if no latency frame came back.

    All figures come from the histogram, because TRex's `average` is a low-pass filter and no mean, and its maximum
    leaves the first frames out. The fine histogram exists if the server was started with --hdrh. The coarse one has
    buckets of 10 µs, 100 µs and so on.
    """
    buckets = list(_fine(figures["hdrh"])) if "hdrh" in figures else list(_coarse(figures.get("histogram", {})))
    buckets = [(low, high, count) for low, high, count in buckets if count > 0]
    if not buckets:
        return None
    counts: Counter[int] = Counter()
    for low, high, count in buckets:
        counts[bucket_index((low + high) // 2)] += count
    mean = fmean([(low + high) / 2 for low, high, _ in buckets], [count for _, _, count in buckets])
    return Latency(buckets[0][0], mean, buckets[-1][1], counts)


def _fine(encoded: str) -> list[tuple[int, int, int]]:
    """Lowest and highest value in ns, and number of frames, of each bucket of a base64 HdrHistogram of µs."""
    histogram = HdrHistogram.decode(encoded.encode("ascii"))
    return [
        (
            1000 * histogram.get_lowest_equivalent_value(each.value_iterated_to),
            1000 * histogram.get_highest_equivalent_value(each.value_iterated_to) + 999,
            each.count_added_in_this_iter_step,
        )
        for each in histogram.get_recorded_iterator()
    ]


def _coarse(histogram: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """The same for TRex's coarse histogram. A bucket's name is its lowest value in µs, and `0` is below 10 µs."""
    found = []
    for name, count in sorted(histogram.items(), key=lambda each: int(each[0])):
        low = int(name)
        width = 10 ** (len(name) - 1) if low else 10
        found.append((1000 * low, 1000 * (low + width) - 1, count))
    return found


def bucket_index(value: int) -> int:
    """The index of the bucket for a value in ns, the inverse of `model.bucket_lower_ns`."""
    if value < 256:
        return value
    exponent = value.bit_length() - 8
    return 128 * (exponent + 1) + (value >> exponent) - 128
