"""A hostile API server, a hostile pod, and another tenant of the cluster."""

from __future__ import annotations

import base64
import gc
import hashlib
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import yaml

from http_servers import Request, http_server
from podperf.cluster.certificates import Authority
from podperf.cluster.other_clusters import state_of
from podperf.errors import PodperfError
from podperf.kubernetes import api as of_api
from podperf.kubernetes import limits
from podperf.kubernetes.api import ApiError, log_in, understood
from podperf.kubernetes.execute import END, CommandInPodFailed, execute
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.run_namespace import forget_killed
from podperf.pods.kubernetes_run import ChainPod, ChainSettings, RunInCluster
from podperf.preflight.cluster_checks import check_cluster, observe_node
from podperf.preflight.table import render
from podperf.testers.kubernetes_pods import KubernetesTester, _count
from podperf.testers.kubernetes_settings import KubernetesSettings
from podperf.testers.pod_port import PodFacts, PodPort

Serve = Callable[[socket.socket], None]
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def kubeconfig(folder: Path, url: str, authority: bytes | None = None, token: str = "secret") -> str:
    """A kubeconfig for a server."""
    trusted = {} if authority is None else {"certificate-authority-data": base64.b64encode(authority).decode()}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url, **trusted}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)


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


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of half a second and of 1 MiB."""
    monkeypatch.setattr(of_api, "TIMEOUT", 0.5)
    monkeypatch.setattr(limits, "MOST_MIB", 1)
    monkeypatch.setattr(limits, "MOST_OF_STREAM_MIB", 1)
    monkeypatch.setattr(limits.LimitedWebSocket, "seconds", 0.5)


def silent(connection: socket.socket) -> None:
    request_of(connection)
    time.sleep(5)


def by_single_bytes(connection: socket.socket) -> None:
    request_of(connection)
    connection.sendall(OK + b"Content-Length: 1000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.1)


def endless(connection: socket.socket) -> None:
    request_of(connection)
    connection.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        connection.sendall(b"10000\r\n" + bytes(65536) + b"\r\n")


def endless_refusal(connection: socket.socket) -> None:
    request_of(connection)
    connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
    while True:
        connection.sendall(bytes(65536))


@pytest.mark.parametrize("serve", [silent, by_single_bytes, endless, endless_refusal])
@pytest.mark.usefixtures("quick")
def test_an_answer_without_end_ends(serve: Serve, tmp_path: Path) -> None:
    with raw_server(serve) as port:
        api = log_in(kubeconfig(tmp_path, f"http://127.0.0.1:{port}"), None)
        began = time.monotonic()
        with pytest.raises(
            ApiError, match=r"does not answer `GET /version`: .*(timed out|not complete|more than 1 MiB)"
        ):
            api.ask("GET", "/version")
        assert time.monotonic() - began < 3


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirection_of_the_api_server_is_not_followed(code: int, tmp_path: Path) -> None:
    def elsewhere(request: Request) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b"{}"

    with http_server(elsewhere) as other:

        def redirects(request: Request) -> tuple[int, dict[str, str], bytes]:
            return code, {"Location": other.url}, b""

        with http_server(redirects) as server:
            api = log_in(kubeconfig(tmp_path, server.url.removesuffix("/podperf")), None)
            for method in ("GET", "POST"):
                with pytest.raises(ApiError, match="refuses"):
                    api.ask(method, "/version")
            with pytest.raises(ApiError, match="Redirect limit exhausted"):
                api.open_stream("p", "n", ["true"])
            assert other.requests == []
            assert len(server.requests) == 3


def upgraded(connection: socket.socket) -> None:
    """Accept a WebSocket."""
    header = request_of(connection).decode()
    key = next(line.split(": ")[1] for line in header.splitlines() if line.lower().startswith("sec-websocket-key"))
    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
    answer = f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {base64.b64encode(digest).decode()}"
    connection.sendall(f"HTTP/1.1 101 Switching Protocols\r\n{answer}\r\n\r\n".encode())


def frame(channel: int, text: bytes) -> bytes:
    """A message of a command in a pod."""
    content = bytes([channel]) + text
    return bytes([0x82, 127]) + struct.pack(">Q", len(content)) + content


def no_handshake(connection: socket.socket) -> None:
    silent(connection)


def half_a_frame(connection: socket.socket) -> None:
    upgraded(connection)
    connection.sendall(bytes([0x82, 127]) + struct.pack(">Q", 2**40) + b"\x01")
    time.sleep(5)


def a_frame_by_single_bytes(connection: socket.socket) -> None:
    upgraded(connection)
    connection.sendall(bytes([0x82, 127]) + struct.pack(">Q", 2**40))
    while True:
        connection.sendall(b"x")
        time.sleep(0.1)


def a_huge_frame(connection: socket.socket) -> None:
    upgraded(connection)
    connection.sendall(bytes([0x82, 127]) + struct.pack(">Q", 2**40))
    while True:
        connection.sendall(bytes(65536))


def endless_output(connection: socket.socket) -> None:
    upgraded(connection)
    while True:
        connection.sendall(frame(1, b"x" * 10_000))


def header_by_single_bytes(connection: socket.socket) -> None:
    request_of(connection)
    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.1)


def an_end_in_the_middle(connection: socket.socket) -> None:
    upgraded(connection)
    connection.sendall(frame(1, b"half")[:-2])


def no_utf8(connection: socket.socket) -> None:
    upgraded(connection)
    connection.sendall(bytes([0x81, 3]) + b"\x01\xff\xfe")


@pytest.mark.parametrize(
    "serve",
    [
        *(no_handshake, half_a_frame, a_frame_by_single_bytes, a_huge_frame, endless_output, header_by_single_bytes),
        *(an_end_in_the_middle, no_utf8),
    ],
)
@pytest.mark.usefixtures("quick")
def test_a_command_in_a_pod_ends_whatever_the_server_sends(serve: Serve, tmp_path: Path) -> None:
    with raw_server(serve) as port:
        api = log_in(kubeconfig(tmp_path, f"http://127.0.0.1:{port}"), None)
        began = time.monotonic()
        with pytest.raises(PodperfError) as caught:
            execute(api, "p", "n", ["true"], timeout=0.5)
        assert time.monotonic() - began < 3
        assert isinstance(caught.value, ApiError | CommandInPodFailed)
        assert len(str(caught.value)) < 5000


def test_a_command_in_a_pod_is_answered(tmp_path: Path) -> None:
    def serve(connection: socket.socket) -> None:
        upgraded(connection)
        connection.sendall(frame(1, b"hel") + frame(1, b"lo\n") + frame(2, b"?") + frame(1, f"{END} 0\n".encode()))
        time.sleep(1)

    with raw_server(serve) as port:
        api = log_in(kubeconfig(tmp_path, f"http://127.0.0.1:{port}"), None)
        assert execute(api, "p", "n", ["true"]) == "hello\n"


@pytest.mark.parametrize(("name", "of_another"), [("127.0.0.1", True), ("other.example", False)])
def test_a_server_with_another_certificate_does_not_get_the_login(name: str, of_another: bool, tmp_path: Path) -> None:
    """Another authority, or the certificate of another server."""
    authority = Authority()
    made = (Authority() if of_another else authority).certify("server", addresses=[name])
    (tmp_path / "server").write_bytes(made.certificate + made.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server")
    seen: list[bytes] = []
    with raw_server(lambda connection: seen.append(request_of(connection)), context) as port:
        api = log_in(kubeconfig(tmp_path, f"https://127.0.0.1:{port}", authority.certificate), None)
        with pytest.raises(ApiError, match="certificate"):
            api.ask("GET", "/version")
        with pytest.raises(ApiError, match="certificate"):
            api.open_stream("p", "n", ["true"])
    assert seen == []


NONSENSE = [
    b"[" * 200_000,
    b"7",
    b"[7]",
    b"{}",
    b"\x1b[2J",
    b"9" * 5000,
    b'{"items": [7]}',
    b'{"metadata": []}',
    b"null",
]
NONSENSE_OF_PODS = ["", "[" * 200_000, "7", "{}", '{"ready": 7}', '{"ready": {"ports": 7}}', '{"trial": []}', "\x1b[2J"]


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Nothing is collected in the depth of a recursion: a finalizer would fail there, and pytest would count that."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("said", NONSENSE)
@pytest.mark.parametrize("asked", ["check", "tester", "chain", "clean", "cluster"])
def test_no_nonsense_of_an_api_server_is_a_traceback(said: bytes, asked: str, tmp_path: Path) -> None:
    with http_server(lambda _: (200, {}, said)) as server:
        path = kubeconfig(tmp_path, server.url.removesuffix("/podperf"))
        wishes = PodWishes("i")
        settings = KubernetesSettings(wishes, path, namespace="mine")
        chain = ChainSettings(wishes, path, namespace="mine")

        def run() -> None:
            pods = RunInCluster(log_in(path, None), chain)
            pods.await_running(pods.create(ChainPod("pod1")))

        ask: dict[str, Callable[[], object]] = {
            "check": lambda: list(check_cluster(settings)),
            "tester": lambda: KubernetesTester(settings),
            "chain": run,
            "clean": lambda: list(_forgotten(path)),
            "cluster": lambda: state_of(path),
        }
        with suppress(PodperfError):
            ask[asked]()


def _forgotten(path: str) -> Iterator[str]:
    api = log_in(path, None)
    with closing(api), understood(api.where):
        yield from forget_killed(api, "mine")


class Commanded(PodPort):
    """The port of a pod whose commands say this."""

    def __init__(self, said: str) -> None:
        self._said = said
        any_api: Any = None
        super().__init__(any_api, "n", "left", PodFacts("p", "n", IPv4Address("10.0.0.1"), "i"))

    def execute(self, *_: str, timeout: float = 10.0) -> str:
        return self._said


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("said", NONSENSE_OF_PODS)
def test_an_answer_of_a_pod_that_is_none_is_one_line(said: str) -> None:
    with pytest.raises(PodperfError) as caught:
        Commanded(said).answer({"trial"}, 1.0)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@pytest.mark.parametrize("sent", ["1\nquit", None, [1], 1.5])
def test_no_answer_of_a_pod_is_a_request_to_the_tester_outside(sent: object) -> None:
    with pytest.raises(TypeError, match="is no number of frames"):
        _count(sent)


def test_a_node_does_not_steer_the_terminal_of_check() -> None:
    """Nor does its name fill the terminal."""
    node = {
        "metadata": {"name": "\x1b[2J\nnode  OK " + "x" * 100_000},
        "status": {"conditions": [{"type": "Ready", "status": "False", "message": "\x1b[31m" + "y" * 1_000_000}]},
        "spec": {},
    }
    shown = render([observe_node(node, KubernetesSettings(PodWishes("i")))], width=100)
    assert "\x1b" not in shown and len(shown) < 20_000
    assert r"node \x1b[2J node OK" in shown.splitlines()[1]


KUBECONFIGS = [
    *("[", "7", "[]", "\x00", "{a: *b}", "contexts: 7", "\x1b[2J", "current-context: a\ncontexts: [{name: a}]"),
    "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: 7}]",
]


@pytest.mark.parametrize("text", KUBECONFIGS)
def test_a_kubeconfig_that_is_none_is_one_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(PodperfError, match="no cluster: "):
        log_in(str(path), None)
