"""The streams by which TRex sends one trial, as `trex_client.py` gives them to TRex. Pure.

TRex knows neither trials nor mixes of sizes. It knows streams: each has a frame, a rate and a number of frames. A mix
is one stream for each of its frames. Each stream starts one gap later, so that frames leave in the mix's order. A
separate stream measures latency. Its frames have a timestamp and are part of the load.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from podperf.model import FCS_BYTES, Direction, Entry, TrafficProfile, Trial
from podperf.testers.base import UNPACED

NETWORKS = {
    Direction.LEFT_TO_RIGHT: ("198.18.0.0", "198.19.0.0"),
    Direction.RIGHT_TO_LEFT: ("198.19.0.0", "198.18.0.0"),
}
FIRST_HOST = 16 << 8 | 1  # leaves 198.18.0.0/20 and 198.19.0.0/20 to the testbed
UDP_SOURCE_PORT, UDP_DESTINATION_PORT = 0xC020, 7  # RFC 2544, appendix C.2.6.4
TTL = 64
SOURCE_HOST, DESTINATION_HOST = 28, 32  # offsets of the low halves of the addresses in a frame

# Seconds from the start of the traffic to the first frame. TRex starts behind its own clock, and sends the frames that
# are due already in one burst. Without this lead these were the frames of 9 to 16 ms, and the trial was too short.
LEAD = 0.05
LATENCY_LOAD, LATENCY_SHARE = 1000.0, 0.1  # frames/s of the latency stream, and its largest share of a load


@dataclass(frozen=True)
class Stream:
    """One stream of TRex: `count` frames at `rate` frames/s, or without a count at `share` of the link's rate.

    `frame` is the first frame, without FCS. The stream writes the values from the first to the last of `hosts` to
    `places` in its frames, in turn.
    """

    frame: bytes
    rate: float = 0.0
    count: int | None = None
    share: float = 0.0  # percent of the port's speed, for a stream without count
    delay: float = 0.0  # µs from the start of the traffic to the first frame
    hosts: tuple[int, int] | None = None
    places: tuple[int, ...] = ()
    latency_group: int | None = None  # measures latency, under this number

    def as_request(self) -> dict[str, Any]:
        """The stream in JSON types, for the client's process."""
        return {**asdict(self), "frame": self.frame.hex()}


def streams_of(trial: Trial, direction: Direction, macs: tuple[str, str], group: int) -> list[Stream]:
    """The streams of one direction. `macs` are those of the sending and of the receiving port."""
    if trial.load == UNPACED:
        return list(_unpaced(trial.traffic, direction, macs, group))
    return list(_paced(trial, direction, macs, group))


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


def _unpaced(traffic: TrafficProfile, direction: Direction, macs: tuple[str, str], group: int) -> Iterator[Stream]:
    sequence = traffic.frame.sequence
    total = sum(sequence)
    for size in sequence:
        yield Stream(**{**_stream(traffic, direction, macs, size), "share": 100 * size / total})
    yield Stream(**{**_stream(traffic, direction, macs, sequence[0]), "rate": LATENCY_LOAD, "latency_group": group})


def _stream(traffic: TrafficProfile, direction: Direction, macs: tuple[str, str], size: int) -> dict[str, Any]:
    """The common settings of all streams of a direction."""
    entry = traffic.entry(direction)
    first = min(FIRST_HOST, 65536 - traffic.flows)
    places = (SOURCE_HOST,) if entry.address else (SOURCE_HOST, DESTINATION_HOST)
    several = traffic.flows > 1
    return {
        "frame": frame(size, direction, macs, entry, first),
        "hosts": (first, first + traffic.flows - 1) if several else None,
        "places": places if several else (),
    }


def frame(size: int, direction: Direction, macs: tuple[str, str], entry: Entry, host: int) -> bytes:
    """A UDP packet with this host number in its addresses. `size` includes the FCS, which the port adds."""
    length = size - FCS_BYTES
    sender, receiver = macs
    source, destination = (int(ipaddress.IPv4Address(network)) + host for network in NETWORKS[direction])
    if entry.address:
        destination = int(ipaddress.IPv4Address(entry.address))
    ethernet = _mac(entry.mac or receiver) + _mac(sender) + b"\x08\x00"
    head = struct.pack("!BBHHHBBHII", 0x45, 0, length - 14, 0, 0, TTL, 17, 0, source, destination)
    head = head[:10] + struct.pack("!H", _checksum(head)) + head[12:]
    # No UDP checksum: addresses and payload change from frame to frame (RFC 768 allows it).
    udp = struct.pack("!HHHH", UDP_SOURCE_PORT, entry.udp_port or UDP_DESTINATION_PORT, length - 34, 0)
    return (ethernet + head + udp).ljust(length, b"\0")


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def _checksum(header: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF
