"""A hostile API server, a hostile pod, and another tenant of the cluster."""

from __future__ import annotations

import base64
import gc
import hashlib
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
import requests

from http_servers import (
    OK,
    SLOW,
    Request,
    Serve,
    endless,
    http_server,
    kubeconfig_file,
    raw_server,
    request_of,
    silent,
    with_plugin,
)
from killed import gone, run_and_kill
from podperf.cluster.core import Authority
from podperf.cluster.other_clusters import state_of
from podperf.errors import PodperfError, understood
from podperf.kubernetes import api as of_api
from podperf.kubernetes import client, commands_in_pods, exec_plugins, ports
from podperf.kubernetes.api import ApiError, log_in
from podperf.kubernetes.chain_pods import ChainPod, ClusterRun
from podperf.kubernetes.checks import check_cluster, observe_node
from podperf.kubernetes.commands_in_pods import END, CommandInPodFailed, Conversation, execute
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.ports import PodFacts, PodPort
from podperf.kubernetes.run_namespace import forget_killed
from podperf.kubernetes.settings import ChainSettings, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.preflight.command import render
from podperf.testers.answers import whole
from time_limit import at_most


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits of half a second and of 1 MiB."""
    for name in ("TIMEOUT", "CHANGE_TIMEOUT"):
        monkeypatch.setattr(of_api, name, 0.5)
    monkeypatch.setattr(client, "MOST_MIB", 1)
    monkeypatch.setattr(client, "MOST_OF_STREAM_MIB", 1)
    monkeypatch.setattr(client.LimitedWebSocket, "seconds", 0.5)


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
WITHOUT_END = [
    *SLOW.values(),
    endless(CHUNKED, b"10000\r\n" + bytes(65536) + b"\r\n", pause=0),
    endless(b"HTTP/1.1 403 Forbidden\r\n\r\n", bytes(65536), pause=0),
]


@pytest.mark.parametrize(
    ("method", "serve"),
    [
        *(("GET", each) for each in WITHOUT_END),
        *((method, silent) for method in ("POST", "PATCH", "DELETE")),
    ],
)
@pytest.mark.usefixtures("quick")
def test_an_answer_without_end_ends(method: str, serve: Serve, tmp_path: Path) -> None:
    with raw_server(serve) as port, at_most(60):
        api = log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)
        said = rf"does not answer `{method} /x`: .*(not complete|more than 1 MiB)"
        with pytest.raises(ApiError, match=said):
            api.ask(method, "/x", {} if method != "GET" else None)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirection_of_the_api_server_is_not_followed(code: int, tmp_path: Path) -> None:
    def elsewhere(request: Request) -> tuple[int, dict[str, str], bytes]:
        return 200, {}, b"{}"

    with http_server(elsewhere) as other:

        def redirects(request: Request) -> tuple[int, dict[str, str], bytes]:
            return code, {"Location": other.url}, b""

        with http_server(redirects) as server:
            api = log_in(kubeconfig_file(tmp_path, server.url), None)
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


HUGE = bytes([0x82, 127]) + struct.pack(">Q", 2**40)  # the beginning of a frame


def stream(beginning: bytes, again: bytes = b"", pause: float = 0.0) -> Serve:
    """A WebSocket with these bytes, then again and again with others. `pause`: seconds before each of them, and before
    the end."""

    def serve(connection: socket.socket) -> None:
        upgraded(connection)
        connection.sendall(beginning)
        time.sleep(pause)
        while again:
            connection.sendall(again)
            time.sleep(pause)

    return serve


@pytest.mark.parametrize(
    "serve",
    [
        pytest.param(silent, id="no handshake"),
        pytest.param(endless(b"HTTP/1.1 101 Switching Protocols\r\n", b"x"), id="a handshake without end"),
        pytest.param(stream(HUGE + b"\x01", pause=5), id="half a frame"),
        pytest.param(stream(HUGE, b"x", pause=0.1), id="a frame by single bytes"),
        pytest.param(stream(HUGE, bytes(65536)), id="a huge frame"),
        pytest.param(stream(b"", frame(1, b"x" * 10_000)), id="endless output"),
        pytest.param(stream(frame(1, b"half")[:-2]), id="an end in the middle"),
        pytest.param(stream(bytes([0x81, 3]) + b"\x01\xff\xfe"), id="no UTF-8"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_a_command_in_a_pod_ends_whatever_the_server_sends(serve: Serve, tmp_path: Path) -> None:
    with raw_server(serve) as port:
        api = log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)
        with at_most(60), pytest.raises(PodperfError) as caught:
            execute(api, "p", "n", ["true"], timeout=0.5)
        assert isinstance(caught.value, ApiError | CommandInPodFailed)
        assert len(str(caught.value)) < 5000


def test_a_command_in_a_pod_is_answered(tmp_path: Path) -> None:
    said = frame(1, b"hel") + frame(1, b"lo\n") + frame(2, b"?") + frame(1, f"{END} 0\n".encode())
    with raw_server(stream(said, pause=1)) as port:
        api = log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)
        assert execute(api, "p", "n", ["true"]) == "hello\n"


ANSWERED: list[list[bytes]] = [
    [frame(1, b"one\n"), frame(1, b"two\n")],
    [frame(1, b"o") + frame(2, b"?") + frame(1, b"ne\n"), bytes([0x89, 1]) + b"\1" + frame(1, b"two\n")],
    [frame(1, b"one\ntwo\n"), b""],
]


def answering(connections: list[socket.socket], messages: Sequence[bytes]) -> Serve:
    """A WebSocket that notes its connection, and answers each message with one of these. Other requests have no
    answer."""

    def serve(connection: socket.socket) -> None:
        try:
            upgraded(connection)
        except StopIteration:
            return
        connections.append(connection)
        for each in messages:
            connection.recv(4096)
            connection.sendall(each)
        connection.recv(4096)

    return serve


@pytest.mark.parametrize("messages", ANSWERED, ids=["a message each", "parts, errors, a ping", "both in one message"])
def test_each_line_to_a_pod_has_its_answer_on_one_connection(messages: Sequence[bytes], tmp_path: Path) -> None:
    connections: list[socket.socket] = []
    serve = answering(connections, messages)
    with raw_server(serve) as port:
        api = log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)
        with closing(Conversation(api, "p", "n", "cat")) as conversation:
            assert [conversation.ask(line, 5.0) for line in ("1", "2")] == ["one", "two"]
    assert len(connections) == 1


def test_a_connection_to_a_pod_that_was_silent_for_long_is_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands_in_pods, "LONGEST_SILENCE", 0.0)
    connections: list[socket.socket] = []
    with raw_server(answering(connections, [frame(1, b"again\n")])) as port:
        api = log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)
        with closing(Conversation(api, "p", "n", "cat")) as conversation:
            assert {conversation.ask("?", 5.0) for _ in range(3)} == {"again"}
    assert len(connections) == 3


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (frame(2, b"sh: not found\n") + bytes([0x88, 0]), "has ended: sh: not found"),
        (b"", "does not answer `exec in pod p`: "),
        (HUGE, "does not answer `exec in pod p`: .*time"),
    ],
    ids=["the script ends", "the connection ends", "half a message"],
)
def test_a_lost_answer_of_a_pod_has_its_cause(sent: bytes, said: str, tmp_path: Path) -> None:
    with raw_server(answering([], [sent])) as port:
        api = log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)
        with (
            at_most(10),
            closing(Conversation(api, "p", "n", "cat")) as conversation,
            pytest.raises(PodperfError, match=said),
        ):
            conversation.ask("1", 0.5)


@pytest.mark.parametrize("shell", [["sh"], ["busybox", "sh"]])
def test_the_script_of_a_pod_passes_requests_and_answers_on(shell: Sequence[str], tmp_path: Path) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    os.mkfifo(tmp_path / "requests")
    (tmp_path / "answers").touch()
    script = ports._PASS_ON.replace(ports._FOLDER, str(tmp_path))
    lines = r'1 500 0.000 {"send": "a\nb"}', "2 0 0.000 x  y", "3 2 0.010 ", "2 500 0.000 ", ""
    with (tmp_path / "answers").open("a") as answers:
        requests_of_pod = os.open(tmp_path / "requests", os.O_RDWR)
        tester = subprocess.Popen(["cat"], stdin=requests_of_pod, stdout=answers)  # each request is its own answer
        try:
            told = subprocess.run(
                [*shell, "-c", script], input="\n".join(lines), capture_output=True, text=True, timeout=30, check=True
            )
        finally:
            os.close(requests_of_pod)
            tester.kill()
            tester.wait()
    first, late, none, again = told.stdout.split("\n")[:4]
    assert first == r'{"send": "a\nb"}'
    assert late in {"", "x  y"} and none == "" and again == "x  y"


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
        api = log_in(kubeconfig_file(tmp_path, f"https://127.0.0.1:{port}", authority.certificate), None)
        with pytest.raises(ApiError, match="certificate"):
            api.ask("GET", "/version")
        with pytest.raises(ApiError, match="certificate"):
            api.open_stream("p", "n", ["true"])
    assert seen == []


def with_certificate(folder: Path, url: str, authority: Authority) -> str:
    """A kubeconfig with the certificate and the private key of a client."""
    made = authority.certify("client")
    data = {"client-certificate-data": made.certificate, "client-key-data": made.key}
    login = {key: base64.b64encode(each).decode() for key, each in data.items()}
    return kubeconfig_file(folder, url, authority.certificate, **login)


def test_a_private_key_of_a_kubeconfig_lets_in(tmp_path: Path) -> None:
    """By requests of all three kinds: of the package, of a WebSocket, and of RequestsLibrary."""
    authority = Authority()
    made = authority.certify("server", addresses=["127.0.0.1"])
    (tmp_path / "server").write_bytes(made.certificate + made.key)
    (tmp_path / "authority").write_bytes(authority.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server")
    context.load_verify_locations(tmp_path / "authority")
    context.verify_mode = ssl.CERT_REQUIRED
    seen: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        seen.append(request_of(connection).split(b" ")[1].partition(b"?")[0])
        connection.sendall(OK + b"Content-Length: 2\r\n\r\n{}")

    with raw_server(serve, context) as port:
        url = f"https://127.0.0.1:{port}"
        api = log_in(with_certificate(tmp_path, url, authority), None)
        assert api.ask("GET", "/version") == {}
        with pytest.raises(ApiError, match="Handshake status 200"):
            api.open_stream("p", "n", ["true"])
        session = requests.Session()
        api.http_login().apply(session)
        assert session.get(f"{url}/api").status_code == 200
    assert seen == [b"/version", b"/api/v1/namespaces/n/pods/p/exec", b"/api"]


def test_a_killed_process_leaves_no_private_key_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    path = with_certificate(tmp_path, "https://127.0.0.1:1", Authority())
    lines = (
        "from podperf.kubernetes.api import log_in",
        "configuration = log_in(sys.argv[1], None)._client.configuration",
        "assert b'PRIVATE KEY' in open(configuration.key_file, 'rb').read()",
    )
    run_and_kill(*lines, arguments=(path,))
    assert list(temporary.iterdir()) == []


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
        path = kubeconfig_file(tmp_path, server.url)
        wishes = PodWishes("i")
        settings = KubernetesSettings(wishes, path, namespace="mine")
        chain = ChainSettings(wishes, path, namespace="mine")

        def run() -> None:
            pods = ClusterRun(log_in(path, None), chain)
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

    def _pass_on(self, line: str, patience: float, busy: float = 0.0) -> str:
        return self._said


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("said", NONSENSE_OF_PODS)
def test_an_answer_of_a_pod_that_is_none_is_one_line(said: str) -> None:
    with pytest.raises(PodperfError) as caught:
        Commanded(said).ask("", {"trial"}, 1.0)
    assert str(caught.value).isprintable() and len(str(caught.value)) < 400


@pytest.mark.parametrize("sent", ["1\nquit", None, [1], 1.5, True, -1, 2**64])
def test_no_answer_of_a_pod_is_a_request_to_the_tester_outside(sent: object) -> None:
    with pytest.raises(ValueError, match="sent is "):
        whole({"sent": sent}, "sent")


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


def test_an_exec_plugin_that_sleeps_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (child := tmp_path / "child").touch()
    known = with_plugin(tmp_path, f"sleep 1000 & echo $! >{child}; wait")
    for seconds in (0.5, 5.0, 30.0):  # in the first of them, a busy machine may not come as far as to the child
        monkeypatch.setattr(exec_plugins, "PLUGIN_SECONDS", seconds)
        with pytest.raises(PodperfError, match=r"no cluster: the exec plug-in `.*` of the kubeconfig gave no login"):
            log_in(known, None)
        if child.read_text():
            break
    assert gone(int(child.read_text()))


# --- the login in messages --------------------------------------------------------------------------------------------

SECRET = "sk-4fVx0a9_of-this-cluster"


KUBECONFIGS = [
    *(
        "[",
        "7",
        "[]",
        "hello",
        "\x00",
        "{a: *b}",
        "contexts: 7",
        "\x1b[2J",
        "current-context: a\ncontexts: [{name: a}]",
    ),
    "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: 7}]",
    *(f"users: *{SECRET}", f"users: [{{{SECRET}: x}}]", f"{SECRET}: !{SECRET} x", f'users: "\\{SECRET}"'),
]


@pytest.mark.parametrize("text", KUBECONFIGS)
def test_a_kubeconfig_that_is_none_is_one_line_and_not_quoted(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    with pytest.raises(PodperfError, match="no cluster: ") as error:
        log_in(str(path), None)
    assert SECRET not in "".join(traceback.format_exception(error.value))
    assert not re.search(r"\w+Error|object", str(error.value)), "no words of Python"


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_token_of_a_cluster_may_be_in_a_file_that_ends_with_a_line_end(end: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(f"{SECRET}{end}".encode())
    with http_server(lambda _: (200, {}, b"{}")) as server:
        path = kubeconfig_file(tmp_path, server.url, tokenFile=str(tmp_path / "token"))
        with closing(log_in(path, None)) as api:
            assert api.ask("GET", "/version") == {}
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("token", [f"{SECRET}\nHost: x", f"{SECRET}\x00", f"{SECRET}\u20ac"])
def test_check_does_not_tell_a_token_that_no_header_can_have(token: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(token.encode())
    with http_server(lambda _: (200, {}, b"{}")) as server:
        url = server.url
        path = kubeconfig_file(tmp_path, url, tokenFile=str(tmp_path / "token"))
        said = render(list(check_cluster(KubernetesSettings(PodWishes("i"), path))))
        with closing(log_in(path, None)) as api:
            for ask in (lambda: api.ask("GET", "/version"), lambda: api.open_stream("p", "n", ["true"])):
                with pytest.raises(PodperfError) as error:
                    ask()
                said += "".join(traceback.format_exception(error.value))
    assert "the token for http://127.0.0.1:" in said
    assert SECRET not in said


def test_what_the_server_quotes_of_the_login_is_in_no_message(tmp_path: Path) -> None:
    quotes = [b'{"message": "you are Bearer %s"}' % SECRET.encode(), SECRET.encode("utf-16"), SECRET.encode()]
    for code, body in [(status, body) for status in (403, 200) for body in quotes]:
        with http_server(lambda _, code=code, body=body: (code, {}, body)) as server:
            path = kubeconfig_file(tmp_path, server.url, token=SECRET)
            with closing(log_in(path, None)) as api:
                try:
                    said = str(api.ask("GET", "/version"))
                except ApiError as error:
                    said = str(error)
        assert SECRET not in said
