"""The streams by which TRex sends one trial, as `trex_client.py` gives them to TRex. Pure.

TRex knows neither trials nor mixes of sizes. It knows streams: each has a frame, a rate and a number of frames. A mix
is one stream for each of its frames. Each stream starts one gap later, so that frames leave in the mix's order. A
separate stream measures latency. Its frames have a timestamp and are part of the load.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from podperf.errors import Unavailable
from podperf.frames import FCS_BYTES, Value, complete
from podperf.model import MIN_FRAME_BYTES, AddressedTraffic, Direction, Trial
from podperf.testers.base import UNPACED
from podperf.testers.headers import flows_of, templates_of

# Seconds from the start of the traffic to the first frame. TRex starts behind its own clock, and sends the frames that
# are due already in one burst. Without this lead these were the frames of 9 to 16 ms, and the trial was too short.
LEAD = 0.05
LATENCY_LOAD, LATENCY_SHARE = 1000.0, 0.1  # frames/s of the latency stream, and its largest share of a load


@dataclass(frozen=True)
class Stream:
    """One stream of TRex: `count` frames at `rate` frames/s, or without a count at `share` of the link's rate.

    `frame` is the first frame, without FCS. The stream writes the values from the first to the last of `values` to
    `places` in its frames, in turn or in pseudo-random order.
    """

    frame: bytes
    rate: float = 0.0
    count: int | None = None
    share: float = 0.0  # percent of the port's speed, for a stream without count
    delay: float = 0.0  # µs from the start of the traffic to the first frame
    values: tuple[int, int] | None = None
    places: tuple[int, ...] = ()
    random: bool = False
    packet: int = 14  # the offset of IP in the frame
    udp: int | None = None  # the offset of UDP, if it has a checksum
    latency_group: int | None = None  # measures latency, under this number

    def as_request(self) -> dict[str, Any]:
        """The stream in JSON types, for the client's process."""
        return {**asdict(self), "frame": self.frame.hex()}


def streams_of(trial: Trial, direction: Direction, macs: tuple[str, str], group: int) -> list[Stream]:
    """The streams of one direction. `macs` are those of the sending and of the receiving port."""
    if trial.load == UNPACED:
        return list(_unpaced(trial.traffic, direction, macs, group))
    return list(_paced(trial, direction, macs, group))


def learning_stream(trial: Trial, direction: Direction, macs: tuple[str, str]) -> Stream:
    """A frame a second from a port that only receives in this trial, so that switches do not forget its MAC.

    The first one leaves before the frames of the trial. A switch floods frames to a MAC that it does not know.
    """
    traffic = replace(trial.traffic, profile=replace(trial.traffic.profile, flows=1), further_entries=())
    seconds = max(1, math.ceil(trial.duration) - 1)
    smallest = max(MIN_FRAME_BYTES, traffic.profile.headers.smallest_frame)
    return Stream(**{**_stream(traffic, direction, macs, smallest), "rate": 1.0, "count": seconds})


def intended(streams: list[Stream]) -> int:
    """The number of frames that streams with a count send."""
    return sum(stream.count or 0 for stream in streams)


def _paced(trial: Trial, direction: Direction, macs: tuple[str, str], group: int) -> Iterator[Stream]:
    total = max(1, round(trial.load * trial.duration))
    of_latency = int(min(LATENCY_LOAD, trial.load * LATENCY_SHARE) * trial.duration)
    sequence = trial.traffic.frame.sequence
    load = trial.load * (total - of_latency) / total
    for position, size in enumerate(sequence):
        count = (total - of_latency - position + len(sequence) - 1) // len(sequence)
        if count > 0:
            delay = LEAD * 1e6 + position / load * 1e6
            stream = _stream(trial.traffic, direction, macs, size)
            yield Stream(**{**stream, "rate": load / len(sequence), "count": count, "delay": delay})
    if of_latency:
        stream = _stream(trial.traffic, direction, macs, sequence[0])
        rate = trial.load * of_latency / total
        yield Stream(**{**stream, "rate": rate, "count": of_latency, "delay": LEAD * 1e6, "latency_group": group})


def _unpaced(traffic: AddressedTraffic, direction: Direction, macs: tuple[str, str], group: int) -> Iterator[Stream]:
    sequence = traffic.frame.sequence
    total = sum(sequence)
    for size in sequence:
        yield Stream(**{**_stream(traffic, direction, macs, size), "share": 100 * size / total})
    yield Stream(**{**_stream(traffic, direction, macs, sequence[0]), "rate": LATENCY_LOAD, "latency_group": group})


def _stream(traffic: AddressedTraffic, direction: Direction, macs: tuple[str, str], size: int) -> dict[str, Any]:
    """The common settings of all streams of a direction. `size` includes the FCS, which the port adds."""
    flows, headers = flows_of(traffic), traffic.profile.headers
    if Value.SECOND in flows.varying.values() or traffic.flows > flows.first[1]:
        raise Unavailable(
            "TRex lets one value differ from flow to flow, so it cannot send "
            f"{traffic.flows} flows that differ in {', '.join(flows.varying)}"
        )
    made, length, first = templates_of(traffic, direction, macs)[0], size - FCS_BYTES, flows.first[0]
    places = tuple(each.offset for each in made.fields if each.value is Value.FIRST and each.offset not in made.fixed)
    several = traffic.flows > 1
    return {
        "frame": complete(made, length, first).ljust(length, b"\0"),
        "values": (first, first + traffic.flows - 1) if several else None,
        "places": places if several else (),
        "random": headers.random,
        "packet": 14 + 4 * len(headers.left),
        "udp": len(made.header) - 8 if any(each.pseudo for each in made.checksums) else None,
    }
