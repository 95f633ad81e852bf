"""Logins of HTTP sessions: no text shows their secret, and one deadline holds for a whole request.

The time-outs of urllib3, and so of the packages requests and kubernetes, are for a connection and for each part of an
answer. A server that sends its header by single bytes holds them for ever. It may also quote the secret.
"""

from __future__ import annotations

import base64
import html
import io
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import select_proxy
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError

from podperf.errors import PodperfError, cause

HIDDEN = "<secret>"
_ESCAPED = re.compile(r"\\(?:u00|x)([0-9a-fA-F]{2})|\\(.)")  # of JSON and of programming languages


def valid_header(header: str, of: str) -> str:
    """The header with a login for `of`, without the line end of its file. PodperfError if it is no header of HTTP: the
    error of a library would quote it."""
    header = header.strip()
    if not (header.isascii() and header.isprintable()):
        raise PodperfError(f"the token for {of} has a character that no header of HTTP can have")
    return header


def address(url: str) -> str:
    """A URL without user, password and query."""
    with suppress(ValueError):
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return "a URL that is none"


def by_proxy(where: str, proxy: str | None) -> str:
    """A server, with the proxy between if there is one. A connection that fails may be the proxy's fault."""
    return f"{where} by the proxy {address(proxy)}" if proxy else where


def withheld(text: str, secret: str) -> str:
    """The text without the header or word `secret`. Only printable ASCII, tabs and line ends stay.

    So the text of UTF-16 or of compressed data has no secret that a reader could decode. If the text has the secret in
    another encoding, nothing of the text stays.
    """
    text = "".join(each for each in text if " " <= each <= "~" or each in "\t\n")
    word = secret.rpartition(" ")[2]  # behind the scheme
    if not word:
        return text
    for each in (secret, word):
        text = text.replace(each, HIDDEN)
    whole = "".join(text.split())  # some encodings break lines
    encoded = any(word in each for each in _decoded(whole)) or any(each in whole for each in _encoded(word))
    return HIDDEN if encoded else text


def _decoded(text: str) -> Iterator[str]:
    yield text
    yield unquote(text)
    yield html.unescape(text)
    yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)
    yield text.encode().decode("utf-7", "ignore")


def _encoded(word: str) -> Iterator[str]:
    content = word.encode()
    yield content.hex()
    yield content.hex().upper()
    for before in range(3):  # bytes before it decide at which bit of a letter it begins
        letters = slice(-(-before * 8 // 6), (before + len(content)) * 8 // 6)
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(bytes(before) + content).decode()[letters]


_current = threading.local()  # the request of this thread


@contextmanager
def cut_after(seconds: float, cut: Callable[[], None]) -> Iterator[threading.Event]:
    """Call `cut` from another thread if the block takes longer. `cut` closes what the block waits for.

    The event is set before, so the block can tell this from another end.
    """
    late = threading.Event()

    def end() -> None:
        late.set()
        with suppress(OSError, EOFError):  # the connection has ended meanwhile
            cut()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


class _Request:
    """The sockets of a request: while it is connected, and until its answer is read."""

    def __init__(self) -> None:
        self.connection: Any = None
        self.answering: Any = None

    def missing(self, seconds: float) -> str:
        """A request that took too long, in words: no connection, or an incomplete answer."""
        return f"{'no connection' if self.answering is None else 'the answer was not complete'} after {seconds:g} s"

    def cut(self) -> None:
        connecting = self.connection.sock if self.connection is not None else None
        for each in (connecting, self.answering):
            if each is not None:
                with suppress(OSError):  # not connected yet, or no longer
                    socket.socket.shutdown(each, socket.SHUT_RDWR)  # wakes the thread that waits there


class _Cut:
    """A connection that knows for which request it is used."""

    sock: Any

    def connect(self) -> None:
        request = getattr(_current, "request", None)
        if request is not None:
            request.connection = self
        super().connect()  # type: ignore[misc]
        if request is not None:
            request.answering = self.sock

    def putrequest(self, *arguments: Any, **options: Any) -> None:
        request = getattr(_current, "request", None)
        if request is not None:
            request.connection, request.answering = self, self.sock
        super().putrequest(*arguments, **options)  # type: ignore[misc]


class _Connection(_Cut, HTTPConnection):
    pass


class _SecureConnection(_Cut, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


def keep_deadlines(manager: PoolManager) -> None:
    """From now on, requests of this manager end at the deadline of `whole_request`."""
    manager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}


@contextmanager
def whole_request(seconds: float) -> Iterator[None]:
    """The block is one request and the reading of its answer. Raises urllib3's HTTPError after this time."""
    request = _current.request = _Request()
    ends_at = time.monotonic() + seconds
    try:
        with cut_after(seconds, request.cut):
            yield
    except Exception as error:
        if time.monotonic() < ends_at:
            raise
        raise HTTPError(request.missing(seconds)) from error
    else:
        if time.monotonic() >= ends_at:  # an answer without a length ends with its connection
            raise HTTPError(request.missing(seconds))
    finally:
        _current.request = None


TIMEOUT = 10.0  # seconds for a whole request with its answer, unless the request has its own time-out
LONGEST_ANSWER = 1 << 16  # bytes that are read of an answer


@dataclass(frozen=True)
class HttpLogin:
    """A server, and the login there. `authorization` returns the header of this name, which may change with time."""

    url: str
    authorization: Callable[[], str | None] = field(repr=False)
    authority: str | bool = True  # a file with the certificates of authorities; True: the usual ones; False: no check
    certificate: tuple[str, str] | None = None  # the files of a client's certificate and of its key
    server_name: str | None = None  # in the server's certificate; None: the name in the URL
    proxies: Mapping[str, str] | None = None  # by the URL's scheme; None: those of the environment

    def apply(self, session: Session) -> None:
        """Give a session this login, for this server only. A redirection to another server does not get it."""
        session.verify, session.cert = self.authority, self.certificate
        session.auth = _as_it_is  # otherwise requests takes a login from ~/.netrc
        if self.proxies is not None:
            session.trust_env, session.proxies = False, dict(self.proxies)
        server = urlsplit(self.url)
        session.mount(f"{server.scheme}://{server.netloc}/", _Adapter(self.authorization, self.server_name))


def _as_it_is(request: PreparedRequest) -> PreparedRequest:
    return request


def bearer(token: str) -> str:
    """The header with a token."""
    return f"Bearer {token.strip()}"


class _Adapter(HTTPAdapter):
    """Sends each request with the login. Each failure is a PodperfError with one line."""

    def __init__(self, authorization: Callable[[], str | None], server_name: str | None) -> None:
        self._authorization, self._server_name = authorization, server_name
        super().__init__()

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **options: Any) -> None:
        if self._server_name is not None:
            options["server_hostname"] = self._server_name
        super().init_poolmanager(connections, maxsize, block, **options)
        keep_deadlines(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        manager = super().proxy_manager_for(proxy, **options)
        keep_deadlines(manager)
        return manager

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        header = self._authorization()
        if header is not None:
            header = valid_header(header, address(request.url or ""))
        sent = request.copy()
        if header is not None:
            sent.headers["Authorization"] = header
        timeout = options.get("timeout") or TIMEOUT
        try:
            with whole_request(sum(timeout) if isinstance(timeout, tuple) else timeout):
                answer = super().send(sent, *arguments, **{**options, "timeout": timeout})
                content = answer.raw.read(LONGEST_ANSWER, decode_content=True)
        except (RequestException, HTTPError, OSError) as error:
            where = by_proxy(address(request.url or ""), select_proxy(request.url or "", options.get("proxies")))
            raise PodperfError(f"{where} does not answer: {cause(error)}") from None
        answer.close()
        secret = header or ""
        answer.request, answer.raw = request, io.BytesIO(withheld(content.decode("latin-1"), secret).encode())
        kept = {name: value for name, value in answer.headers.items() if name.lower() != "content-encoding"}
        answer.headers = CaseInsensitiveDict({name: withheld(value, secret) for name, value in kept.items()})
        answer.reason, answer.encoding = withheld(answer.reason or "", secret), "ascii"
        return answer
