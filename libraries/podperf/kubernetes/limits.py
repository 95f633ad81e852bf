"""Limits for the answers of an API server: their size and their time, and no redirection.

The package kubernetes has none: it ignores a time limit that is no whole number, keeps answers of any size, and sends
the login to the server to which an exec is redirected.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from socket import SHUT_RDWR
from typing import Any

import urllib3
from kubernetes.client.rest import RESTClientObject
from kubernetes.stream import ws_client
from websocket import WebSocket, WebSocketException

MOST_MIB = 64  # of one answer: 3000 nodes
MOST_OF_STREAM_MIB = 16
_CHUNK = 65536  # bytes


class LimitedPool:
    """A pool of connections (urllib3) whose answers are read at once, within limits."""

    def __init__(self, pool: Any, seconds: float, change_seconds: float) -> None:
        """`seconds` are for a connection, and for an answer that changes nothing. Other answers may take longer."""
        self._pool, self._seconds, self._change_seconds = pool, seconds, change_seconds

    def request(self, method: str, url: str, **options: Any) -> urllib3.HTTPResponse:
        """One request. Raises urllib3's HTTPError for an answer that is too long, or takes too long."""
        seconds = self._seconds if method == "GET" else self._change_seconds
        deadline = time.monotonic() + seconds
        timeout = urllib3.Timeout(total=seconds, connect=self._seconds)
        options |= {"preload_content": False, "redirect": False, "timeout": timeout}
        answer = self._pool.request(method, url, **options)
        try:
            body = self._body(answer, deadline, seconds)
        except BaseException:
            answer.close()  # the rest of the answer is still to come
            raise
        answer.release_conn()
        return urllib3.HTTPResponse(body, answer.headers, answer.status, reason=answer.reason)

    def _body(self, answer: Any, deadline: float, seconds: float) -> bytes:
        body = bytearray()
        while chunk := answer.read1(_CHUNK):
            body += chunk
            if len(body) > MOST_MIB * 2**20:
                raise urllib3.exceptions.HTTPError(f"the answer has more than {MOST_MIB} MiB")
            if time.monotonic() > deadline:
                raise urllib3.exceptions.HTTPError(f"the answer was not complete after {seconds:.0f} s")
        return bytes(body)


def limit(client: Any, seconds: float, change_seconds: float) -> None:
    """Limit the answers to an ApiClient, and to all execs. The seconds are those of LimitedPool."""
    rest: RESTClientObject = client.rest_client
    if not isinstance(rest.pool_manager, LimitedPool):
        rest.pool_manager = LimitedPool(rest.pool_manager, seconds, change_seconds)
    ws_client.WebSocket = LimitedWebSocket


class LimitedWebSocket(WebSocket):
    """A WebSocket that follows no redirection. It receives a limited number of bytes until `ends_at` (time.monotonic),
    which its user sets."""

    seconds = 10.0  # for the connection

    def connect(self, url: str, **options: Any) -> None:
        """See WebSocket."""
        self.received, self.ends_at = 0, time.monotonic() + self.seconds
        watch = threading.Timer(self.seconds, self._give_up)  # the server may send its header by single bytes
        watch.start()
        try:
            super().connect(url, timeout=self.seconds, redirect_limit=0, **options)  # type: ignore[no-untyped-call]
        finally:
            watch.cancel()

    def _give_up(self) -> None:
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(SHUT_RDWR)

    def _recv(self, bufsize: int) -> bytes:
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise WebSocketException("the server did not send a whole message in time")
        if self.sock is not None:
            self.sock.settimeout(left)
        found: bytes = super()._recv(bufsize)  # type: ignore[no-untyped-call]
        self.received += len(found)
        if self.received > MOST_OF_STREAM_MIB * 2**20:
            raise WebSocketException(f"the server sent more than {MOST_OF_STREAM_MIB} MiB")
        return found
