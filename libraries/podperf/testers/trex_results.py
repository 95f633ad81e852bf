"""Makes a judged TrialResult from the figures of TRex's client. Pure.

TRex counts frames by the counters of its ports. So a foreign frame counts as a frame of the trial. If more frames
arrive than were sent, the surplus counts as stray. Only latency frames have sequence numbers.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from hdrh.codec import HdrCookieException, HdrHistogramSettingsException, HdrLengthException
from hdrh.histogram import HdrHistogram

from podperf.model import (
    LONGEST_LATENCY_NS,
    Direction,
    DirectionResult,
    Latency,
    Trial,
    TrialResult,
    bucket_index,
)
from podperf.testers.answers import MOST, real, whole
from podperf.testers.base import UNPACED
from podperf.testers.validity import Account, judged

SIDES = {Direction.LEFT_TO_RIGHT: (0, 1), Direction.RIGHT_TO_LEFT: (1, 0)}  # sending and receiving port

# `wall` (from the request to the reported end) is longer than the traffic, by this many seconds at least and at most.
REPORTING_DELAY, LONGEST_REPORTING_DELAY = 0.03, 0.15
_LONGEST_US = LONGEST_LATENCY_NS // 1000
_COOKIE_BYTES = 8  # before the packed part of HdrHistogram's V2 form
_HEADER = struct.Struct(">IIIIQQQ")  # cookie, length, offset, digits, lowest and highest value, ratio
_MOST_DIGITS, _MOST_UNPACKED = 3, 2**20  # of a value; bytes
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
        started=real(counted, "started"),
        directions=directions,
        stray=strays,
        own_drops=own_drops,
        elapsed=real(counted, "elapsed"),
    )
    return judged(result, _account(counted, directions))


def _delta(counted: Mapping[str, Any], name: str, port: int) -> int:
    difference = int(counted["after"][port][name] - counted["before"][port][name])
    if abs(difference) > MOST:
        raise ValueError(f"{name} of a port of TRex has changed by {difference:.3g}")
    return difference


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
        duplicated=whole(errors, "dup", missing=0),
        reordered=whole(errors, "out_of_order", missing=0),
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
    wall = real(counted, "wall")
    longest = wall if trial.load == UNPACED else max(trial.duration, wall - REPORTING_DELAY)
    return float(min(sent * between / frames, longest))


def _account(counted: Mapping[str, Any], directions: Sequence[DirectionResult]) -> Account:
    unsettled = "the counters of the TRex ports did not come to rest: something else sends on this network"
    return Account(
        "" if counted["settled"] else unsettled,
        "receive errors of the TRex ports (ierrors)",
        max([real(counted, "wall") - LONGEST_REPORTING_DELAY, *(direction.duration for direction in directions)]),
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
    histogram = _decoded(encoded)
    return [
        (
            1000 * histogram.get_lowest_equivalent_value(each.value_iterated_to),
            1000 * histogram.get_highest_equivalent_value(each.value_iterated_to) + 999,
            each.count_added_in_this_iter_step,
        )
        for each in histogram.get_recorded_iterator()
    ]


def _decoded(encoded: str) -> HdrHistogram:
    """The histogram. ValueError for one that could fill the memory: some kilobytes can unpack to gigabytes."""
    try:
        head = zlib.decompressobj().decompress(base64.b64decode(encoded)[_COOKIE_BYTES:], _MOST_UNPACKED + 1)
        *_, digits, lowest, highest, _ratio = _HEADER.unpack_from(head)
        if len(head) > _MOST_UNPACKED or not (lowest == 1 <= digits <= _MOST_DIGITS and highest <= _LONGEST_US):
            raise ValueError(f"a histogram of {len(head)} bytes or more, {digits} digits, up to {highest} us")
        return HdrHistogram.decode(encoded.encode("ascii"))
    except (zlib.error, struct.error, HdrCookieException, HdrLengthException, HdrHistogramSettingsException) as error:
        raise ValueError(f"a latency histogram that is none: {error}") from error


def _coarse(histogram: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """The same for TRex's coarse histogram. A bucket's name is its lowest value in µs, and `0` is below 10 µs."""
    found = []
    for name, low in sorted(((name, int(name)) for name in histogram), key=lambda each: each[1]):
        if not 0 <= low <= _LONGEST_US:
            raise ValueError(f"a latency of {name[:50]} us")
        width = 10 ** (len(name) - 1) if low else 10
        found.append((1000 * low, 1000 * (low + width) - 1, whole(histogram, name)))
    return found
