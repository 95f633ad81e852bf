"""memif: shared memory between two processes on one host, agreed over a UNIX socket (libmemif, protocol version 2).

One end is the server, which listens on the socket, the other the client, which owns the memory and the rings.
"""

from __future__ import annotations

from typing import Literal

from podperf.errors import Unavailable

Role = Literal["server", "client"]

# As logarithm of 2. Rings of 1024 descriptors, which DPDK and VPP make unless told otherwise, overflow on bursts.
RING_SIZE = 12
BUFFER_BYTES = 2048
LARGEST_MTU = 1500  # behind its headroom a DPDK or VPP buffer of 2048 bytes has no room for much more


def dpdk_device(port: int, role: Role, socket: str, connection: int = 0) -> str:
    """The EAL `--vdev` text of DPDK's driver net_memif. `connection` tells apart those that share a socket.

    The socket has a path: an abstract one would be seen in one network namespace only.
    """
    ring = f"rsize={RING_SIZE},bsize={BUFFER_BYTES}"
    return f"net_memif{port},role={role},id={connection},socket={socket},socket-abstract=no,{ring}"


def refuse_large_frames(mtu: int) -> None:
    """Unavailable when frames of this MTU would not fit a buffer."""
    if mtu > LARGEST_MTU:
        raise Unavailable(
            f"memif is set up with buffers of {BUFFER_BYTES} bytes, which hold frames of up to 1518 bytes"
        )
