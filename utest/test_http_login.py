"""The token of a login reaches its server only, and nobody who reads the session's requests and answers."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
import requests
from kubernetes import client

from http_servers import http_server, status
from podperf.errors import PodperfError
from podperf.http_login import HttpLogin, bearer
from podperf.kubernetes.api import Api

TOKEN = "cj7-Xq2.this-is-secret"


def session_with(url: str, header: str | None = f"Bearer {TOKEN}", **settings: Any) -> requests.Session:
    session = requests.Session()
    HttpLogin(url, lambda: header, **settings).apply(session)
    return session


def test_the_server_gets_the_token_and_the_session_never_has_it() -> None:
    with http_server(status(200)) as server:
        answer = session_with(server.url).get(server.url)
    assert server.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"
    said = f"{answer.request.headers} {answer.headers} {answer.text} {answer.reason}"
    assert "your login is <secret>" in said
    assert TOKEN not in said


def test_a_token_that_changes_is_the_newest_one() -> None:
    tokens = iter(["one", "two"])
    with http_server(status(200)) as server:
        session = requests.Session()
        HttpLogin(server.url, lambda: bearer(next(tokens))).apply(session)
        for _ in range(2):
            session.get(server.url)
    assert [each.headers["Authorization"] for each in server.requests] == ["Bearer one", "Bearer two"]


def test_a_redirection_to_another_server_does_not_get_the_token() -> None:
    with http_server(status(200)) as other, http_server(status(302, Location=other.url)) as server:
        session_with(server.url).get(server.url)
    assert "Authorization" in server.requests[0].headers
    assert "Authorization" not in other.requests[0].headers


def test_a_login_of_the_users_netrc_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else")
    monkeypatch.setenv("NETRC", str(netrc))
    with http_server(status(200)) as server:
        requests.get(server.url, timeout=5)
        session_with(server.url, None).get(server.url)
    assert ["Authorization" in each.headers for each in server.requests] == [True, False]


@pytest.mark.parametrize("token", [f"{TOKEN}\nX-Other: 1", f"{TOKEN}\x00", f"{TOKEN}é"])
def test_a_token_that_no_header_can_have_is_not_quoted(token: str) -> None:
    with http_server(status(200)) as server, pytest.raises(PodperfError, match="no header of HTTP can have") as error:
        session_with(server.url, bearer(token)).get(server.url)
    assert TOKEN not in str(error.value)
    assert not server.requests


def test_a_server_that_is_not_there_is_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        with pytest.raises(PodperfError, match=f"^{url} does not answer: .*Connection refused$"):
            session_with(url).get(url)


def test_a_server_that_accepts_and_says_nothing_is_one_line_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(PodperfError, match=f"^{url} does not answer: Read timed out"):
            session_with(url).get(url, timeout=0.2)


def test_of_a_long_answer_only_the_beginning_is_read() -> None:
    with http_server(lambda _: (200, {}, b"x" * 1_000_000)) as server:
        assert len(session_with(server.url).get(server.url).content) == 1 << 16


def cluster(**settings: Any) -> Api:
    """A login to a cluster, with these settings of the package kubernetes."""
    configuration = client.Configuration()
    for name, value in settings.items():
        setattr(configuration, name, value)
    return Api(client.ApiClient(configuration), str(configuration.host))


def test_the_login_to_a_cluster_is_that_of_the_kubeconfig() -> None:
    with http_server(status(200)) as server:
        login = cluster(host=server.url, api_key={"authorization": f"Bearer {TOKEN}"}).http_login()
        session = requests.Session()
        login.apply(session)
        session.get(server.url)
    assert server.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"
    files: dict[str, Any] = {"ssl_ca_cert": "ca", "cert_file": "certificate", "key_file": "key"}
    found = cluster(host="https://c", tls_server_name="name", **files).http_login()
    assert (found.authority, found.certificate, found.server_name) == ("ca", ("certificate", "key"), "name")
    assert found.authorization() is None
    assert cluster(verify_ssl=False).http_login().authority is False
    assert cluster().http_login().authority is True


def test_the_proxy_of_a_cluster_is_that_of_its_login(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_server(status(200)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")  # the package kubernetes has read it, or has its own
        session = requests.Session()
        cluster(host="http://nowhere.invalid", proxy=proxy.url, no_proxy="").http_login().apply(session)
        session.get("http://nowhere.invalid/version")
    assert proxy.requests[0].path == "http://nowhere.invalid/version"
    assert cluster(host="http://near", proxy="http://p:1", no_proxy="near").http_login().proxies == {}


def test_no_representation_has_the_token() -> None:
    assert TOKEN not in repr(HttpLogin("https://c", lambda: TOKEN))
