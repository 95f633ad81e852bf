"""memif: shared memory between two processes on one host, agreed over a UNIX socket (libmemif, protocol version 2).

One end is the server and listens on the socket. The other end is the client and owns the memory and the rings.
"""

from __future__ import annotations

from typing import Literal

Role = Literal["server", "client"]

# The binary logarithm of the number of descriptors. Rings of 1024, the default of DPDK and VPP, overflow on bursts.
RING_SIZE = 12
BUFFER_BYTES = 2048


def dpdk_device(port: int, role: Role, socket: str, connection: int = 0) -> str:
    """The EAL `--vdev` text of DPDK's driver net_memif. `connection` is the number of the memif on its socket.

    The socket has a path, because an abstract socket is visible in one network namespace only.
    """
    ring = f"rsize={RING_SIZE},bsize={BUFFER_BYTES}"
    return f"net_memif{port},role={role},id={connection},socket={socket},socket-abstract=no,{ring}"
