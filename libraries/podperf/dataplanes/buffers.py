"""The buffers that frames lie in beyond the kernel: 2048 bytes each, as programs have them unless told otherwise."""

from __future__ import annotations

from podperf.errors import Unavailable

LARGEST_MTU = 1500  # behind its headroom of 128 or 256 bytes a buffer has no room for much more


def refuse_large_frames(mtu: int, holder: str) -> None:
    """Unavailable when frames of this MTU would not fit a buffer of who holds them."""
    if mtu > LARGEST_MTU:
        raise Unavailable(
            f"a frame for an MTU of {mtu} does not fit one buffer of {holder}: those take frames of up to 1518 bytes"
        )
