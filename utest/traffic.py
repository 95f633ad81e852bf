"""Traffic, and the counts of a trial's direction, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podperf.model import AddressedTraffic, Direction, DirectionResult, FrameSize, TrafficProfile

SMALL = FrameSize.parse(64)
TRAFFIC = AddressedTraffic(TrafficProfile(SMALL))


def traffic_of(
    frame: int | str, directions: Sequence[Direction] = (Direction.LEFT_TO_RIGHT,), flows: int = 1, **more: Any
) -> AddressedTraffic:
    """Traffic of frames of this size, or of a mix."""
    return AddressedTraffic(TrafficProfile(FrameSize.parse(frame), tuple(directions), flows), **more)


def counted(sent: int, received: int | None = None, **more: Any) -> DirectionResult:
    """The counts of a trial of 1 s from left to right. By default, all frames come back in order."""
    came_back = sent if received is None else received
    nothing_wrong = {"duplicated": 0, "reordered": 0, "corrupted": 0, "duration": 1.0}
    usual = {"direction": Direction.LEFT_TO_RIGHT, "intended": sent, **nothing_wrong}
    return DirectionResult(**{**usual, "sent": sent, "received": came_back, **more})
