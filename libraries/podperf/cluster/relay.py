"""Leads connections of this machine to the API server of the cluster, whose network the machine cannot reach."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_CHUNK = 65536  # bytes
_PATIENCE = 5.0  # seconds for a connection
_TRY_AGAIN = 0.05  # seconds
_MOST = 256  # connections at a time


def listen() -> socket.socket:
    """A socket that listens on a free port of the loopback."""
    return socket.create_server(("127.0.0.1", 0))


def relay(listening: socket.socket, address: str, port: int) -> None:
    """Lead connections from the machine's loopback into the network of this process, until the socket is shut down.

    The listening socket belongs to the network in which it was made. So the machine needs no interface and no route for
    the cluster. Every local user can connect. So the number of connections at a time is limited, and no error ends this
    function.
    """
    room = threading.BoundedSemaphore(_MOST)
    while True:
        room.acquire()
        try:
            near, _ = listening.accept()
        except OSError as error:
            room.release()
            if error.errno in {errno.EBADF, errno.EINVAL}:  # the socket is shut down
                return
            time.sleep(_TRY_AGAIN)  # for example: too many open files
            continue
        lead = threading.Thread(target=_lead, args=(near, address, port, room.release), daemon=True)
        try:
            lead.start()
        except RuntimeError:  # too many threads
            near.close()
            room.release()


def _lead(near: socket.socket, address: str, port: int, done: Callable[[], None]) -> None:
    try:
        with (
            near,
            suppress(OSError, RuntimeError),  # the API server is not there, or the machine is full
            socket.create_connection((address, port), timeout=_PATIENCE) as far,
        ):
            far.settimeout(None)
            back = threading.Thread(target=_copy, args=(far, near, socket.SHUT_RDWR), daemon=True)
            back.start()
            _copy(near, far, socket.SHUT_WR)
            back.join()
    finally:
        done()


def _copy(source: socket.socket, sink: socket.socket, then: int) -> None:
    """Copy until the source ends, and shut the sink down. If the API server ends a connection, both ways have ended:
    a user who keeps the other end open keeps nothing here."""
    with suppress(OSError):
        while chunk := source.recv(_CHUNK):
            sink.sendall(chunk)
    with suppress(OSError):
        sink.shutdown(then)
