"""The way to a cluster: exec plug-ins of a kubeconfig, and proxies. podperf says and does what kubectl does."""

from __future__ import annotations

import base64
import json
import os
import pwd
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import requests
import yaml

from http_servers import OK, Request, http_server, kubeconfig_file, raw_server, request_of, with_plugin
from podperf.errors import PodperfError
from podperf.kubernetes.api import ApiError, log_in
from podperf.kubernetes.client import LimitedWebSocket

VERSION = "client.authentication.k8s.io/v1"


def credential(**status: str) -> str:
    """A script that prints this login."""
    answer = {"apiVersion": VERSION, "kind": "ExecCredential", "status": status}
    return f"echo '{json.dumps(answer)}'"


# --- exec plug-ins ----------------------------------------------------------------------------------------------------


def test_the_login_of_an_exec_plugin_is_used(tmp_path: Path) -> None:
    api = log_in(with_plugin(tmp_path, credential(token="of-the-plug-in")), None)
    assert api.http_login().authorization() == "Bearer of-the-plug-in"


def test_an_exec_plugin_that_fails_says_why_itself(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Its words may have a secret. So they are on standard error, as with kubectl, and neither in the message, which
    stays in logs and reports, nor in a line of the library."""
    known = with_plugin(tmp_path, "echo secret-token: log in again >&2; exit 3")
    with pytest.raises(PodperfError, match=r"the exec plug-in `.*/plugin` of the kubeconfig failed with exit code 3, "):
        log_in(known, None)
    with pytest.raises(PodperfError, match=r"its own words are on standard error: try `kubectl version`") as caught:
        log_in(known, None)
    assert "secret" not in str(caught.value) and not caplog.records
    assert capfd.readouterr().err == "secret-token: log in again\n" * 2


NO_LOGIN = "printed neither a token nor a certificate with its key"
NO_CREDENTIAL = "printed no ExecCredential, which is JSON with a `status`"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo token-of-a-plug-in", NO_CREDENTIAL),
        ("echo 7", NO_CREDENTIAL),
        ("echo '[]'", NO_CREDENTIAL),
        ("echo '{}'", NO_CREDENTIAL),
        ("true", NO_CREDENTIAL),
        (credential(), NO_LOGIN),
        (credential(clientCertificateData="x"), NO_LOGIN),
        (credential(token="x").replace('"status": {', '"status": 7, "x": {'), NO_CREDENTIAL),
        (credential(token="x").replace("/v1", "/v1beta1"), f"answers with {VERSION}beta1 in place of {VERSION}"),
        (credential(token="x").replace(VERSION, "token-of-a-plug-in"), NO_CREDENTIAL),
        (credential(token="x", expirationTimestamp="soon"), "a wrong `expirationTimestamp`"),
    ],
)
def test_garbage_of_an_exec_plugin_is_no_login(script: str, said: str, tmp_path: Path) -> None:
    with http_server(lambda _: (200, {}, b"{}")) as server:
        with pytest.raises(PodperfError, match=r"^no cluster: the exec plug-in ") as caught:
            log_in(with_plugin(tmp_path, script, server.url), None)
        assert said in str(caught.value) and "token-of" not in str(caught.value)
        assert not server.requests, "no request goes without a login"


def test_an_exec_plugin_that_is_missing_is_named_with_the_hint_of_the_kubeconfig(tmp_path: Path) -> None:
    missing = {"command": "podperf-no-such-plugin"}
    with pytest.raises(PodperfError, match=r"plug-in `podperf-no-such-plugin` .* is not found: install it, and have"):
        log_in(with_plugin(tmp_path, "", **missing), None)
    with pytest.raises(PodperfError, match=r"is not found: Get it from example\.com$"):
        log_in(with_plugin(tmp_path, "", **missing, installHint="Get it\nfrom example.com"), None)
    known = with_plugin(tmp_path, "")
    (tmp_path / "plugin").chmod(0o644)
    with pytest.raises(PodperfError, match=r"does not start \(Permission denied\)"):
        log_in(known, None)


def test_an_exec_plugin_that_does_not_renew_its_login_is_named(tmp_path: Path) -> None:
    expired = credential(token="old", expirationTimestamp="2001-01-01T00:00:00Z")
    path = with_plugin(tmp_path, f"[ -e {tmp_path}/used ] && exit 4; touch {tmp_path}/used; {expired}")
    with closing(log_in(path, None)) as api:
        with pytest.raises(ApiError, match=r"API was not asked `GET /version`: the exec plug-in .* exit code 4"):
            api.ask("GET", "/version")
        with pytest.raises(PodperfError, match=r"the exec plug-in .* exit code 4"):
            api.open_stream("p", "n", ["true"])


ME = r"""printf '{"apiVersion": "%s", "kind": "ExecCredential", "status": {"token": "%s"}}' "$1" \
    "$(id -u):$(id -G):$HOME:$ROOTS:$GIVEN:$(pwd)" """


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that all users can enter, as those of other users are."""
    with TemporaryDirectory(prefix="podperf-") as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


def told(kubeconfig: str) -> list[str]:
    """The process of an exec plug-in: its user, groups, home, root's secret, its own variable, its folder."""
    with closing(log_in(kubeconfig, None)) as api:
        return (api.http_login().authorization() or "").removeprefix("Bearer ").split(":")


def asking_who(folder: Path) -> str:
    plugin = {"apiVersion": VERSION, "command": "sh", "args": ["-c", ME, "sh", VERSION]}
    return kubeconfig_file(folder, "http://127.0.0.1:1", exec={**plugin, "env": [{"name": "GIVEN", "value": "given"}]})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize("by_sudo", [True, False])
def test_root_starts_an_exec_plugin_as_the_user_who_wrote_it(
    by_sudo: bool, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = pwd.getpwnam("nobody")
    monkeypatch.setenv("ROOTS", "secret")
    monkeypatch.setenv("SUDO_UID", str(other.pw_uid)) if by_sudo else monkeypatch.delenv("SUDO_UID", raising=False)
    path = asking_who(open_folder)
    os.chown(path, other.pw_uid, other.pw_gid)
    user, groups, home, roots, given, folder = told(path)
    assert (user, groups, home) == (str(other.pw_uid), str(other.pw_gid), other.pw_dir)
    assert (given, folder) == ("given", str(open_folder))
    assert roots == ("secret" if by_sudo else ""), "the caller of sudo gave it, but nobody else has it from root"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_root_starts_an_exec_plugin_of_its_own_kubeconfig(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1000")
    assert told(asking_who(open_folder))[0] == "0"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_root_starts_no_exec_plugin_that_two_users_could_have_written(open_folder: Path) -> None:
    """Otherwise, one of them could let root start a program as the other one: by a link, for example."""
    nobody, daemon = (pwd.getpwnam(each).pw_uid for each in ("nobody", "daemon"))
    path = Path(asking_who(open_folder))
    os.chown(path, nobody, 0)
    link = open_folder / "link"
    link.symlink_to(path)
    os.chown(link, daemon, 0, follow_symlinks=False)
    said = r"the exec plug-in `sh` of the kubeconfig is not started by root, as others can change the kubeconfig \("
    with pytest.raises(PodperfError, match=said):
        told(str(link))
    path.chmod(0o666)
    with pytest.raises(PodperfError, match=rf"{said}all users can write to {path}\): run podperf without sudo"):
        told(str(path))


def test_no_command_of_an_auth_provider_is_started(tmp_path: Path) -> None:
    started = tmp_path / "started"
    settings = {"cmd-path": "/usr/bin/touch", "cmd-args": str(started)}
    path = kubeconfig_file(tmp_path, "http://127.0.0.1:1", **{"auth-provider": {"name": "gcp", "config": settings}})
    with pytest.raises(PodperfError, match=r"nor does podperf: use `exec`"):
        log_in(path, None)
    assert not started.exists()


# --- the kubelet ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pod", "named"), [({"spec": {"nodeName": "node7"}}, "node node7"), ({}, "the pod's node")])
def test_a_stopped_kubelet_is_named_and_not_the_api_server(pod: object, named: str, tmp_path: Path) -> None:
    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        if "/exec" not in request.path:
            return 200, {}, json.dumps(pod).encode()
        message = "error dialing backend: dial tcp 192.0.2.7:10250: connect: connection refused"
        return 500, {}, json.dumps({"kind": "Status", "message": message}).encode()

    with http_server(answer) as server, closing(log_in(kubeconfig_file(tmp_path, server.url), None)) as api:
        said = (
            f"API does not reach the kubelet of {named} for `exec in pod p`: error dialing backend: dial tcp 192.0.2.7"
        )
        with pytest.raises(ApiError, match=said) as caught:
            api.open_stream("p", "n", ["true"])
        assert caught.value.status == 500


def test_a_kubelet_that_hangs_is_named_if_the_api_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LimitedWebSocket, "seconds", 0.3)
    ended = threading.Event()

    def serve(connection: socket.socket) -> None:
        if b"/exec" in request_of(connection).partition(b"\r\n")[0]:
            ended.wait(10)
        else:
            pod = b'{"spec": {"nodeName": "node7"}}'
            connection.sendall(OK + b"Content-Length: %d\r\n\r\n%s" % (len(pod), pod))

    with raw_server(serve) as port:
        with closing(log_in(kubeconfig_file(tmp_path, f"http://127.0.0.1:{port}"), None)) as api:
            said = "API does not reach the kubelet of node node7 for `exec in pod p`: it answers other requests"
            with pytest.raises(ApiError, match=said):
                api.open_stream("p", "n", ["true"])
        ended.set()


def test_a_refused_command_in_a_pod_has_the_servers_words(tmp_path: Path) -> None:
    refused = json.dumps({"kind": "Status", "message": "pods is forbidden: User x"}).encode()
    with http_server(lambda _: (403, {}, refused)) as server:
        api = log_in(kubeconfig_file(tmp_path, server.url), None)
        with pytest.raises(ApiError, match=r"API refuses `exec in pod p`: pods is forbidden: User x$"):
            api.open_stream("p", "n", ["true"])


# --- proxies ----------------------------------------------------------------------------------------------------------


class Proxies:
    """A proxy, and a machine whose environment names none."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.environment = folder, monkeypatch.setenv
        self.asked: list[str] = []  # the first line of each request
        self.logins: list[str] = []
        for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
            monkeypatch.delenv(name, raising=False)
            monkeypatch.delenv(name.upper(), raising=False)
        self.url = ""

    def serve(self, connection: socket.socket) -> None:
        """Answer each request, and refuse each tunnel."""
        header = request_of(connection).decode()
        self.asked.append(header.splitlines()[0].rpartition(" ")[0].partition("?")[0])
        lines = [line for line in header.splitlines() if line.lower().startswith("proxy-authorization")]
        self.logins += [base64.b64decode(line.rpartition(" ")[2]).decode() for line in lines]
        refused = b"HTTP/1.1 407 Proxy Authentication Required\r\n"
        connection.sendall((refused if header.startswith("CONNECT") else OK) + b"Content-Length: 2\r\n\r\n{}")

    def kubeconfig(self, server: str, proxy_url: str | None = None) -> str:
        """The path of a kubeconfig for this server."""
        path = kubeconfig_file(self.folder, server)
        content = yaml.safe_load(Path(path).read_text())
        content["clusters"][0]["cluster"] |= {"proxy-url": proxy_url} if proxy_url else {}
        Path(path).write_text(yaml.safe_dump(content))
        return path

    def ask(self, server: str, proxy_url: str | None = None) -> str:
        """Send one request, start one command in a pod, and use one session. Returns the errors."""
        said = []
        with closing(log_in(self.kubeconfig(server, proxy_url), None)) as api:
            session = requests.Session()
            api.http_login().apply(session)
            for each in (
                lambda: api.ask("GET", "/version"),
                lambda: api.open_stream("p", "n", ["true"]),
                lambda: session.get(f"{server}/readyz", timeout=5),
            ):
                try:
                    each()
                except PodperfError as error:
                    said.append(str(error))
        return "\n".join(said)


@pytest.fixture
def proxies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxies]:
    """A proxy that runs."""
    found = Proxies(tmp_path, monkeypatch)
    with raw_server(found.serve) as port:
        found.url = f"http://127.0.0.1:{port}"
        yield found


HTTP, HTTPS = "http://cluster.invalid:8001", "https://cluster.invalid:6443"
BY_HTTP = [f"GET {HTTP}/version", "CONNECT cluster.invalid:8001", f"GET {HTTP}/readyz"]
BY_HTTPS = ["CONNECT cluster.invalid:6443"] * 3
NOBODY = "http://127.0.0.1:1"


def test_a_proxy_url_of_the_kubeconfig_is_for_all_requests(proxies: Proxies) -> None:
    """Also for a server that NO_PROXY names, and whatever the environment says."""
    proxies.environment("HTTPS_PROXY", NOBODY)
    proxies.environment("NO_PROXY", "cluster.invalid")
    proxies.ask(HTTPS, proxies.url)
    proxies.ask(HTTP, proxies.url)
    assert proxies.asked == BY_HTTPS + BY_HTTP


@pytest.mark.parametrize(("server", "asked"), [(HTTP, BY_HTTP), (HTTPS, BY_HTTPS)])
def test_the_proxy_of_the_environment_is_that_of_the_scheme(server: str, asked: list[str], proxies: Proxies) -> None:
    right, other = ("HTTP_PROXY", "HTTPS_PROXY")[:: 1 if server == HTTP else -1]
    proxies.environment(right, proxies.url.removeprefix("http://"))
    proxies.environment(other, NOBODY)
    proxies.ask(server)
    assert proxies.asked == asked


@pytest.mark.parametrize("names", ["cluster.invalid", "a.invalid,.invalid", "*", "invalid"])
def test_no_proxy_leads_to_a_server_that_no_proxy_names(names: str, proxies: Proxies) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY"):
        proxies.environment(name, proxies.url)
    proxies.environment("NO_PROXY", names)
    said = proxies.ask(HTTPS) + proxies.ask(HTTP)
    assert proxies.asked == [] and "by the proxy" not in said


def test_no_proxy_of_the_environment_leads_to_this_machine(proxies: Proxies) -> None:
    proxies.environment("HTTP_PROXY", NOBODY)
    with http_server(lambda _: (200, {}, b"{}")) as server:
        proxies.ask(server.url.removesuffix("/podperf"))
        assert len(server.requests) == 3


def test_messages_name_the_proxy_and_not_its_login(proxies: Proxies) -> None:
    of_proxy = proxies.url.replace("//", "//user:p%40ss:word@")
    said = proxies.ask(HTTPS, of_proxy)
    assert said.count(f"{HTTPS} by the proxy {proxies.url}") == 2
    assert said.count("407") == 3
    assert proxies.logins == ["user:p@ss:word"] * 3
    nobody = proxies.ask(HTTPS, NOBODY)
    assert nobody.count(f"by the proxy {NOBODY}") == 3 and nobody.count("refused") == 3
    assert "word" not in said


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1080", "https://127.0.0.1:1", "http://", "http://a:port"])
def test_a_proxy_that_podperf_cannot_use_is_named(proxy: str, proxies: Proxies) -> None:
    with pytest.raises(PodperfError, match=r"no cluster: the proxy .* leads there, and podperf can only use"):
        log_in(proxies.kubeconfig(HTTPS, proxy), None)
