"""Logins of HTTP sessions (package requests) whose token no log shows.

RequestsLibrary writes the headers and the answer of each request into Robot Framework's log. So a session never has the
token. Its adapter adds the token to a copy of the request, and takes it out of the answer.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from requests import PreparedRequest, RequestException, Response, Session
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict
from urllib3.exceptions import HTTPError

from podperf.errors import PodperfError, cause

TIMEOUT = 10.0  # seconds for a connection and for each part of an answer, unless a request has its own time-out
LONGEST_ANSWER = 1 << 16  # bytes that are read of an answer
_HIDDEN = "<secret>"


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

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:
        header = self._authorization()
        if header is not None and not (header.isascii() and header.isprintable()):  # else the error would quote it
            raise PodperfError(f"the token for {_address(request.url)} has a character that no header of HTTP can have")
        sent = request.copy()
        if header is not None:
            sent.headers["Authorization"] = header
        try:
            answer = super().send(sent, *arguments, **{**options, "timeout": options.get("timeout") or TIMEOUT})
            content = answer.raw.read(LONGEST_ANSWER, decode_content=True)
        except (RequestException, HTTPError, OSError) as error:
            raise PodperfError(f"{_address(request.url)} does not answer: {cause(error)}") from error
        answer.close()
        answer.request, answer.raw = request, io.BytesIO(_without(header, content.decode("latin-1")).encode("latin-1"))
        clean = {name: _without(header, value) for name, value in answer.headers.items() if name != "Content-Encoding"}
        answer.headers, answer.reason = CaseInsensitiveDict(clean), _without(header, answer.reason or "")
        return answer


def _address(url: str | None) -> str:
    parts = urlsplit(url or "")
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _without(header: str | None, text: str) -> str:
    """The text without the login in it: the whole header, or the word behind its scheme."""
    for each in (header, (header or "").rpartition(" ")[2]):
        text = text.replace(each, _HIDDEN) if each else text
    return text
