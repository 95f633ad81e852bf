"""The buffers of frames in user-space programs: 2048 bytes each, which is the programs' default."""

from __future__ import annotations

from podperf.errors import Unavailable

LARGEST_MTU = 1500  # bytes; a buffer also has a headroom of 128 or 256 bytes


def refuse_large_frames(mtu: int, holder: str) -> None:
    """Raises Unavailable if frames of this MTU do not fit into one buffer of `holder`."""
    if mtu > LARGEST_MTU:
        raise Unavailable(
            f"a frame for an MTU of {mtu} does not fit one buffer of {holder}: those take frames of up to 1518 bytes"
        )
