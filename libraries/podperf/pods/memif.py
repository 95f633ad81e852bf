"""memif: shared memory between two processes on one host, agreed over a UNIX socket (libmemif, protocol version 2).

One end is the server, which listens on the socket, the other the client, which owns the memory and the rings.
"""

from __future__ import annotations

from typing import Literal

Role = Literal["server", "client"]

# As logarithm of 2. Rings of 1024 descriptors, which DPDK and VPP make unless told otherwise, overflow on bursts.
RING_SIZE = 12
BUFFER_BYTES = 2048


def dpdk_device(port: int, role: Role, socket: str, connection: int = 0) -> str:
    """The EAL `--vdev` text of DPDK's driver net_memif. `connection` tells apart those that share a socket.

    The socket has a path: an abstract one would be seen in one network namespace only.
    """
    ring = f"rsize={RING_SIZE},bsize={BUFFER_BYTES}"
    return f"net_memif{port},role={role},id={connection},socket={socket},socket-abstract=no,{ring}"
