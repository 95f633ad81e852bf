"""The keyword `Publish Results`: a results server gets the records, and no file of the results gets the token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from http_servers import Answer, Request, Server, http_server, status
from opened_testbed import OPENED_TESTBED

LIBRARIES = Path(__file__).parents[1] / "libraries"
TOKEN = "cj7-Xq2.this-is-secret"
OPENED = f"""{OPENED_TESTBED}
from pathlib import Path

@keyword
def testbed_is_opened(server=None):
    results = Path(BuiltIn().get_variable_value("${{OUTPUT DIR}}"))
    open_with(SimpleNamespace(results=results, topology=SimpleNamespace(results_server=server)))
"""
SUITE = """*** Settings ***
Library    RequestsLibrary
Library    Testbed
Library    ResultsServer
Library    Opened.py
Suite Teardown    Testbed Is Closed
*** Variables ***
${TOKEN: Secret}    %{PODPERF_RESULTS_TOKEN=}
*** Test Cases ***
Before A Testbed Is Open
    Publish Results    http://127.0.0.1:1    ${TOKEN}
"""
CASE = """
%s
    [Setup]    Testbed Is Opened    %s
    Publish Results    %s    %s
"""


def full(request: Request) -> tuple[int, dict[str, str], bytes]:
    """The answer of a server with place for two records."""
    return (507 if json.loads(request.body)["id"] == "c" else 200), {}, b""


def slow(_: Request) -> tuple[int, dict[str, str], bytes]:
    """The answer of a server that is too slow."""
    time.sleep(15)
    return 200, {}, b""


def in_utf_16(request: Request) -> tuple[int, dict[str, str], bytes]:
    """The answer of a server that quotes the login as an old framework does."""
    said = f"your login is {request.headers['Authorization']}"
    return 200, {"Content-Type": "text/html; charset=utf-16"}, said.encode("utf-16")


ANSWERS: dict[str, Answer] = {
    "in UTF-16": in_utf_16,
    "created": status(201),
    "unauthorized": status(401),
    "broken": status(500),
    "elsewhere": status(302, Location="http://127.0.0.1:1/"),
    "full": full,
    "slow": slow,
    "of topology": status(200),
    "without login": status(200),
}
REFUSED = {
    "nobody": "http://127.0.0.1:1/x",
    "ftp": "ftp://somewhere/x",
    "password": "https://somebody:else@somewhere/x",
}


@dataclass(frozen=True)
class Published:
    """A run whose tests published the same records, each on another server."""

    folder: Path
    servers: Mapping[str, Server]
    console: str

    def message(self, case: str) -> str:
        """The message of a test."""
        tests = {test.name: test for test in ExecutionResult(self.folder / "output.xml").suite.tests}
        return str(tests[case].message)

    def files_with(self, text: str) -> set[str]:
        """The files of the results folder that have this text."""
        files = [each for each in self.folder.rglob("*") if each.is_file()]
        return {file.name for file in files if text.encode() in file.read_bytes()}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    folder = tmp_path_factory.mktemp("published")
    (folder / "Opened.py").write_text(OPENED)
    results = folder / "results"
    (results / "records").mkdir(parents=True)
    for name in ("a", "b", "c"):
        (results / "records" / f"{name}.json").write_text(json.dumps({"id": name}))
    (results / "records" / "d.trials.jsonl").write_text("{}")  # of a test that has not ended
    with ExitStack() as undo:
        servers = {name: undo.enter_context(http_server(answer)) for name, answer in ANSWERS.items()}
        named = {name: server.url for name, server in servers.items()} | REFUSED
        of_topology = {"of topology": named.pop("of topology")}
        cases = [CASE % (name, "${None}", url, "${TOKEN}") for name, url in named.items() if name != "without login"]
        cases += [CASE % (name, url, "${None}", "${TOKEN}") for name, url in of_topology.items()]
        cases.append(CASE % ("without login", "${None}", named["without login"], "${None}"))
        cases.append(CASE % ("without a server", "${None}", "${None}", "${TOKEN}"))
        (folder / "suite.robot").write_text(SUITE + "".join(cases))
        # Written everywhere that Robot Framework can write, at its highest log level.
        written = ["--loglevel", "TRACE", "--debugfile", "debug.txt", "--xunit", "xunit.xml", "--outputdir", "results"]
        done = subprocess.run(
            [sys.executable, "-m", "robot", "--pythonpath", str(LIBRARIES), *written, "suite.robot"],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, "PODPERF_RESULTS_TOKEN": TOKEN},
        )
        yield Published(results, servers, done.stdout + done.stderr)


def test_the_server_gets_each_record_with_the_token(run: Published) -> None:
    assert not run.message("created")
    requests = run.servers["created"].requests
    assert [json.loads(request.body) for request in requests] == [{"id": "a"}, {"id": "b"}, {"id": "c"}]
    for request in requests:
        assert (request.method, request.path) == ("POST", "/podperf")
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.headers["Content-Type"] == "application/json"


def test_no_file_of_the_results_has_the_token(run: Published) -> None:
    assert {"output.xml", "log.html", "debug.txt", "xunit.xml"} <= {each.name for each in run.folder.iterdir()}
    # The servers quote the login in their answers, and Robot Framework writes these down.
    assert {"output.xml", "debug.txt"} <= run.files_with("X-Login")
    assert not run.files_with(TOKEN)
    for encoding in ("utf-16-le", "utf-16-be"):
        assert not run.files_with(TOKEN.encode(encoding).decode("latin-1"))
    assert TOKEN not in run.console


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("unauthorized", "0 of 3 records published: URL answers 401 Unauthorized to a.json"),
        ("broken", "0 of 3 records published: URL answers 500 Internal Server Error to a.json"),
        ("elsewhere", "0 of 3 records published: URL answers 302 Found to a.json"),
        ("full", "2 of 3 records published: URL answers 507 Insufficient Storage to c.json"),
        ("slow", "0 of 3 records published: URL does not answer: the answer was not complete after 10 s"),
        (
            "nobody",
            "0 of 3 records published: http://127.0.0.1:1/x does not answer: Failed to establish a new "
            "connection: [Errno 111] Connection refused",
        ),
        ("ftp", "0 of 3 records published: somewhere: a results server is https://NAME/PATH"),
        ("password", "0 of 3 records published: somewhere: a results server is https://NAME/PATH"),
    ],
)
def test_a_server_that_does_not_take_the_records_is_one_line(run: Published, case: str, said: str) -> None:
    url = run.servers[case].url if case in run.servers else ""
    assert run.message(case) == f"{said.replace('URL', url)}; all are in {run.folder}"
    assert len(list(run.folder.glob("records/*.json"))) == 3


def test_a_server_that_refuses_is_asked_once(run: Published) -> None:
    assert [len(run.servers[case].requests) for case in ("unauthorized", "broken", "elsewhere")] == [1, 1, 1]


def test_the_topology_names_the_server_unless_the_suite_does(run: Published) -> None:
    assert not run.message("of topology")
    assert len(run.servers["of topology"].requests) == 3


def test_a_server_without_a_login_gets_none(run: Published) -> None:
    assert ["Authorization" in request.headers for request in run.servers["without login"].requests] == [False] * 3


@pytest.mark.parametrize("case", ["Before A Testbed Is Open", "without a server"])
def test_without_a_testbed_or_a_server_nothing_is_sent(run: Published, case: str) -> None:
    assert not run.message(case)
