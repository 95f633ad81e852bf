"""Real HTTP servers in threads, for the tests of what podperf sends, and kubeconfigs that lead to them."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Serve = Callable[[socket.socket], None]
Answer = Callable[["Request"], tuple[int, dict[str, str], bytes]]


@dataclass(frozen=True)
class Request:
    """A request that a server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """A server that answers as it is told, and keeps the requests."""

    answer: Answer
    url: str = ""
    requests: list[Request] = field(default_factory=list)


def status(code: int, **headers: str) -> Answer:
    """An answer with this status, which quotes the login of the request in all of its parts."""

    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        login = request.headers.get("Authorization", "nobody")
        return code, {"X-Login": login, **headers}, f"your login is {login}".encode()

    return answer


@contextmanager
def http_server(answer: Answer) -> Iterator[Server]:
    """A server on a port of this machine."""
    server = Server(answer)

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, dict(self.headers.items()), body)
            server.requests.append(request)
            code, headers, content = server.answer(request)
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(BrokenPipeError, ConnectionResetError):  # a client may have read enough
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        # A client may reset its connection before it is accepted, and accept(2) would wait for another one for ever.
        listening.socket.settimeout(1)
        server.url = f"http://127.0.0.1:{listening.server_port}/podperf"
        threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            listening.shutdown()


def kubeconfig(url: str, authority: bytes | None = None, **user: Any) -> str:
    """The text of a kubeconfig for the server at this URL, of which only the host counts. The login is a token."""
    trusted = {} if authority is None else {"certificate-authority-data": base64.b64encode(authority).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url.removesuffix("/podperf"), **trusted}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "mine"}}],
        "current-context": "here",
    }
    return yaml.safe_dump(content)


def kubeconfig_file(folder: Path, url: str, authority: bytes | None = None, **user: Any) -> str:
    """The path of such a kubeconfig."""
    path = folder / "kubeconfig"
    path.write_text(kubeconfig(url, authority, **user))
    return str(path)


def with_plugin(folder: Path, script: str, url: str = "http://127.0.0.1:1", **settings: Any) -> str:
    """A kubeconfig whose exec plug-in is this script. `settings` are further keys of the plug-in."""
    plugin = folder / "plugin"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o755)
    asked = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), **settings}
    return kubeconfig_file(folder, url, exec=asked)


@contextmanager
def raw_server(serve: Serve, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server that does with each connection what the test wants. Yields its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def one(connection: socket.socket) -> None:
        with suppress(OSError):  # the client has enough
            found = context.wrap_socket(connection, server_side=True) if context else connection
            with found:
                serve(found)

    def accept() -> None:
        with suppress(OSError):
            while not ended.is_set():
                threading.Thread(target=one, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listening.getsockname()[1]
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def request_of(connection: socket.socket) -> bytes:
    """The header of a request."""
    found = b""
    while b"\r\n\r\n" not in found and (chunk := connection.recv(4096)):
        found += chunk
    return found


def endless(beginning: bytes, part: bytes, pause: float = 0.1) -> Serve:
    """An answer that begins like this, and never ends. Each part of it is there in time."""

    def serve(connection: socket.socket) -> None:
        request_of(connection)
        connection.sendall(beginning)
        while True:
            connection.sendall(part)
            time.sleep(pause)

    return serve


def silent(connection: socket.socket) -> None:
    """No answer."""
    request_of(connection)
    time.sleep(5)


SLOW = {
    "nothing": silent,
    "status": endless(b"", b"H"),
    "header": endless(b"HTTP/1.1 200 OK\r\nX-Endless: ", b"x"),
    "body": endless(OK + b"Content-Length: 1000\r\n\r\n", b" "),
    "body without length": endless(OK + b"Connection: close\r\n\r\n{}", b" "),  # a part of it looks whole
}
