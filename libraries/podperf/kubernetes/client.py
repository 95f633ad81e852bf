"""Extends the client of the package kubernetes: limits for answers, logins in memory, expiry of logins.

The package ignores a time limit that is no whole number, keeps answers of any size, and sends the login to the server
to which an exec is redirected. It writes certificates and private keys of a kubeconfig into temporary files, because
TLS libraries want paths: a process that is killed would leave them on the disk.
"""

from __future__ import annotations

import base64
import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from socket import SHUT_RDWR
from typing import Any

import urllib3
from cryptography import x509
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import kube_config
from kubernetes.stream import ws_client
from websocket import WebSocket, WebSocketException

from podperf.errors import PodperfError
from podperf.http_login import address, cut_after, keep_deadlines, valid_header, whole_request
from podperf.kubernetes.exec_plugins import forget_failure, plugin_failure
from podperf.kubernetes.proxies import BYPASSED, tunnel

MOST_MIB = 64  # of one answer: 3000 nodes
MOST_OF_STREAM_MIB = 16
_CHUNK = 65536  # bytes


class LoginConfiguration(Configuration):  # type: ignore[misc]  # kubernetes has no types
    """A Configuration whose token may be in a file that ends with a line end."""

    def get_api_key_with_prefix(self, identifier: str) -> str | None:
        """See Configuration. PodperfError for a token that no header can have, or that its plug-in did not renew."""
        forget_failure()
        header = super().get_api_key_with_prefix(identifier)
        if failure := plugin_failure():
            raise PodperfError(failure)
        return header and valid_header(header, address(str(self.host)))


class LimitedPool:
    """A pool of connections (urllib3) whose answers are read at once, within limits."""

    def __init__(self, pool: Any, seconds: float, change_seconds: float) -> None:
        """`seconds` are for a connection, and for an answer that changes nothing. Other answers may take longer."""
        self._pool, self._seconds, self._change_seconds = pool, seconds, change_seconds

    def request(self, method: str, url: str, **options: Any) -> urllib3.HTTPResponse:
        """One request. Raises urllib3's HTTPError for an answer that is too long, or takes too long."""
        seconds = self._seconds if method == "GET" else self._change_seconds
        timeout = urllib3.Timeout(total=seconds, connect=self._seconds)
        options |= {"preload_content": False, "redirect": False, "timeout": timeout}
        with whole_request(seconds):
            answer = self._pool.request(method, url, **options)
            try:
                body = self._body(answer)
            except BaseException:
                answer.close()  # the rest of the answer is still to come
                raise
        answer.release_conn()
        return urllib3.HTTPResponse(body, answer.headers, answer.status, reason=answer.reason)

    def _body(self, answer: Any) -> bytes:
        body = bytearray()
        while chunk := answer.read1(_CHUNK):
            body += chunk
            if len(body) > MOST_MIB * 2**20:
                raise urllib3.exceptions.HTTPError(f"the answer has more than {MOST_MIB} MiB")
        return bytes(body)


def limit(client: Any, seconds: float, change_seconds: float) -> None:
    """Limit the answers to an ApiClient, and to all execs. The seconds are those of LimitedPool."""
    rest: RESTClientObject = client.rest_client
    if not isinstance(rest.pool_manager, LimitedPool):
        keep_deadlines(rest.pool_manager)
        rest.pool_manager = LimitedPool(rest.pool_manager, seconds, change_seconds)
    ws_client.WebSocket = LimitedWebSocket
    ws_client.websocket_proxycare = tunnel


class LimitedWebSocket(WebSocket):
    """A WebSocket that follows no redirection. It receives a limited number of bytes until `ends_at` (time.monotonic),
    which its user sets."""

    seconds = 10.0  # for the connection

    def connect(self, url: str, **options: Any) -> None:
        self.received, self.ends_at = 0, time.monotonic() + self.seconds
        options = {**BYPASSED, **options}
        with cut_after(self.seconds, self._give_up):  # the server may send its header by single bytes
            super().connect(url, timeout=self.seconds, redirect_limit=0, **options)  # type: ignore[no-untyped-call]

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


_paths: dict[bytes, str] = {}  # by the content


def keep_in_memory() -> None:
    """From now on the package makes no temporary files."""
    kube_config._create_temp_file_with_content = _in_memory


def _in_memory(content: str | bytes, _folder: str | None = None, force_recreate: bool = False) -> str:
    """The path of a file with this content. Only this process and root can open it."""
    raw = content.encode() if isinstance(content, str) else content
    if raw not in _paths:
        file = os.memfd_create("podperf-login")  # stays open, and programs that this process starts do not inherit it
        with open(file, "wb", closefd=False) as writing:
            writing.write(raw)
        _paths[raw] = f"/proc/self/fd/{file}"
    return _paths[raw]


def expired(certificate: bytes | None, token: str | None, now: datetime) -> str:
    """The reason in words, if the client's certificate (PEM) or the token (a JWT) of a login has expired."""
    ends = {"client certificate": _end_of_certificate(certificate), "token": _end_of_token(token)}
    said = [f"the {what} of the login expired on {end:%Y-%m-%d %H:%M} UTC" for what, end in ends.items() if end < now]
    return "; ".join(said)


_NEVER = datetime.max.replace(tzinfo=UTC)


def _end_of_certificate(certificate: bytes | None) -> datetime:
    with suppress(ValueError):
        return x509.load_pem_x509_certificate(certificate or b"").not_valid_after_utc
    return _NEVER


def _end_of_token(token: str | None) -> datetime:
    with suppress(ValueError, LookupError, TypeError, OverflowError, OSError):
        _, content, _ = (token or "").split(".")
        claims = json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4)))
        return datetime.fromtimestamp(claims["exp"], UTC)
    return _NEVER
