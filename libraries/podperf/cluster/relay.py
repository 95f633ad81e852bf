"""Leads connections to a port of the machine's loopback into the network of the cluster.

The listening socket belongs to the network in which it was made. A connection that this process makes belongs to the
network of the process. So the machine needs no interface and no route for the cluster.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_CHUNK = 65536  # bytes
_PATIENCE = 5.0  # seconds for a connection


def listen() -> socket.socket:
    """A socket that listens on a free port of the loopback."""
    return socket.create_server(("127.0.0.1", 0))


def relay(listening: socket.socket, address: str, port: int) -> None:
    """Accept connections, each in threads of its own, until the socket is shut down."""
    with suppress(OSError):
        while True:
            near, _ = listening.accept()
            threading.Thread(target=_lead, args=(near, address, port), daemon=True).start()


def _lead(near: socket.socket, address: str, port: int) -> None:
    with near:
        try:
            far = socket.create_connection((address, port), timeout=_PATIENCE)
        except OSError:  # the API server is not there yet, or no more: the caller's connection ends
            return
        with far:
            far.settimeout(None)
            back = threading.Thread(target=_copy, args=(far, near), daemon=True)
            back.start()
            _copy(near, far)
            back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
