"""Real HTTP servers in threads, for the tests of what podperf sends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

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
        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.command, self.path, dict(self.headers.items()), body)
            server.requests.append(request)
            code, headers, content = server.answer(request)
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.url = f"http://127.0.0.1:{listening.server_port}/podperf"
        threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield server
        finally:
            listening.shutdown()
