"""The token of a login reaches its server only, and nobody who reads the session's requests and answers."""

from __future__ import annotations

import base64
import socket
import threading
import traceback
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from kubernetes import client

from http_servers import SLOW, Request, http_server, raw_server, status
from podperf.errors import PodperfError
from podperf.http_login import HttpLogin, bearer, cut_after
from podperf.kubernetes.api import Api

TOKEN = "cj7-Xq2.this-is-secret"
Quote = Callable[[str], bytes]


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


def escaped(form: str) -> Quote:
    return lambda login: "".join(form.format(ord(each)) for each in login).encode()


QUOTES: dict[str, Quote] = {
    **{name: lambda login, name=name: login.encode(name) for name in ("utf-16", "utf-16-be", "utf-32", "utf-7")},
    "compressed": lambda login: zlib.compress(login.encode()),
    "URL": escaped("%{:02x}"),
    "HTML": escaped("&#{};"),
    "JSON": escaped("\\u{:04x}"),
    "JSON of PHP": lambda login: login.replace(".", "\\.").encode(),
    "hexadecimal": lambda login: login.encode().hex().encode(),
    "base64": lambda login: base64.b64encode(login.encode()),
    "base64, in lines": lambda login: base64.encodebytes(b"login of 1: " * 9 + login.encode()),
    "in lines": lambda login: "\n".join(login).encode(),
}


def words_of(content: bytes) -> str:
    """What a patient reader makes of an answer."""
    return "".join(content.decode(name, "ignore") for name in ("latin-1", "utf-16-le", "utf-16-be", "utf-32", "utf-7"))


@pytest.mark.parametrize("quote", QUOTES)
@pytest.mark.parametrize("charset", ["utf-16", "utf-7", "utf-8"])
def test_a_server_that_quotes_the_login_in_another_encoding_gives_it_to_no_log(quote: str, charset: str) -> None:
    said = QUOTES[quote](f"Bearer {TOKEN}")

    def answer(_: Request) -> tuple[int, dict[str, str], bytes]:
        return 200, {"Content-Type": f"text/plain; charset={charset}"}, b"h\xe9llo: " + said

    with http_server(answer) as server:
        found = session_with(server.url).get(server.url)
    assert found.content.isascii()
    assert TOKEN not in f"{found.text}{words_of(found.content)}"
    assert said not in found.content or quote == "compressed"


def test_other_text_of_a_server_stays() -> None:
    content = '{"message": "no pl\u00e4ce:\\n\tfull"}\n'.encode()
    with http_server(lambda _: (507, {}, content)) as server:
        assert session_with(server.url).get(server.url).text == '{"message": "no plce:\\n\tfull"}\n'


@pytest.mark.parametrize("end", ["\n", "\r\n", " "])
def test_a_token_may_be_in_a_file_that_ends_with_a_line_end(end: str) -> None:
    with http_server(status(200)) as server:
        session_with(server.url, f"Bearer {TOKEN}{end}").get(server.url)
    assert server.requests[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_library_that_refuses_a_value_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy can have a login in its URL, which is in the environment."""
    monkeypatch.setenv("HTTP_PROXY", f"http://user:{TOKEN}@[proxy")
    with pytest.raises(PodperfError, match="does not answer: ") as error:
        session_with("http://nowhere.invalid").get("http://nowhere.invalid")
    assert TOKEN not in "".join(traceback.format_exception(error.value))


def test_a_token_that_changes_is_the_newest_one() -> None:
    tokens = iter(["one", "two"])
    with http_server(status(200)) as server:
        session = requests.Session()
        HttpLogin(server.url, lambda: bearer(next(tokens))).apply(session)
        for _ in range(2):
            session.get(server.url)
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer one", "Bearer two"]


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
    assert ["Authorization" in request.headers for request in server.requests] == [True, False]


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


@pytest.mark.parametrize("slow", SLOW)
def test_a_server_that_never_ends_its_answer_is_one_line_in_time(slow: str) -> None:
    with raw_server(SLOW[slow]) as port:
        url = f"http://127.0.0.1:{port}/x"
        with pytest.raises(PodperfError, match=f"^{url} does not answer: the answer was not complete after 0.5 s"):
            session_with(url).get(url, timeout=0.5)


def test_a_proxy_that_answers_by_single_bytes_is_one_line_in_time() -> None:
    url = "https://192.0.2.1/x"  # nobody asks for it
    with raw_server(SLOW["status"]) as port:
        session = session_with(url, proxies={"https": f"http://127.0.0.1:{port}"})
        said = f"^{url} by the proxy http://127.0.0.1:{port} does not answer: no connection after 0.5 s"
        with pytest.raises(PodperfError, match=said):
            session.get(url, timeout=0.5)


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


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("ended", [EOFError(), ConnectionResetError("gone")], ids=repr)
def test_a_connection_that_ends_just_before_it_is_cut_is_no_error(ended: Exception) -> None:
    tried = threading.Event()

    def cut() -> None:
        tried.set()
        raise ended

    with cut_after(0, cut) as late:
        assert tried.wait(30)
        assert late.is_set()
    for each in threading.enumerate():
        if isinstance(each, threading.Timer):
            each.join(30)
