"""The keyword library `Cluster` asks an API server by RequestsLibrary, with the login of the topology."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from robot.api import ExecutionResult

from http_servers import Answer, Request, http_server, kubeconfig, status
from opened_testbed import OPENED_TESTBED

LIBRARIES = Path(__file__).parents[1] / "libraries"
TOKEN = "cj7-Xq2.this-is-secret"
OPENED = f"""{OPENED_TESTBED}
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.settings import KubernetesSettings

@keyword
def testbed_is_opened(kubeconfig=None):
    kind = KubernetesSettings(PodWishes("image"), kubeconfig) if kubeconfig else None
    open_with(SimpleNamespace(topology=SimpleNamespace(tester=SimpleNamespace(kind=kind))))
"""
SETTINGS = """*** Settings ***
Library    RequestsLibrary
Library    Testbed
Library    Cluster
Library    Opened.py
Test Teardown    Testbed Is Closed
*** Test Cases ***
no cluster
    Testbed Is Opened
    API Server Should Be Ready
no session
    Testbed Is Opened
    Open Session To API Server    mine
"""
CASE = """
%s
    Testbed Is Opened    %s
    API Server Should Be Ready
    Open Session To API Server    mine
    ${answer} =    GET On Session    mine    /api
    Should Be Equal    ${answer.json()}[gitVersion]    v1.34.4
"""


def ready(request: Request) -> tuple[int, dict[str, str], bytes]:
    """The answer of an API server that quotes the login."""
    if request.headers.get("Authorization") != f"Bearer {TOKEN}":
        return 401, {}, b"Unauthorized"
    return 200, {"X-Login": TOKEN}, json.dumps({"gitVersion": "v1.34.4"}).encode()


def not_ready(_: Request) -> tuple[int, dict[str, str], bytes]:
    """The answer of an API server without etcd."""
    return 500, {}, b"[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"


ANSWERS: dict[str, Answer] = {"ready": ready, "not ready": not_ready, "refused": status(401)}


Run = tuple[Path, dict[str, str], dict[str, list[str]]]
"""The folder of a run, the URL of each server, and the paths that it was asked for."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("asked")
    (folder / "Opened.py").write_text(OPENED)
    with ExitStack() as undo:
        servers = {name: undo.enter_context(http_server(answer)) for name, answer in ANSWERS.items()}
        urls = {name: server.url.removesuffix("/podperf") for name, server in servers.items()} | {
            "not there": "http://127.0.0.1:1"
        }
        for name, url in urls.items():
            (folder / f"{name}.yaml").write_text(kubeconfig(url, token=TOKEN))
        cases = [CASE % (name, folder / f"{name}.yaml") for name in urls]
        (folder / "suite.robot").write_text(SETTINGS + "".join(cases))
        command = [sys.executable, "-m", "robot", "--pythonpath", str(LIBRARIES), "--loglevel", "TRACE"]
        subprocess.run(
            [*command, "--outputdir", "results", "suite.robot"], capture_output=True, check=False, cwd=folder
        )
        asked = {name: [request.path for request in server.requests] for name, server in servers.items()}
        yield folder / "results", urls, asked


def messages(folder: Path) -> dict[str, str]:
    return {test.name: test.message for test in ExecutionResult(folder / "output.xml").suite.tests}


def test_an_api_server_is_asked_with_the_login_of_the_topology(
    run: Run,
) -> None:
    folder, _, asked = run
    assert not messages(folder)["ready"]
    assert asked["ready"] == ["/readyz", "/version", "/api"]


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (
            "not ready",
            "the API server answers 500 Internal Server Error to URL/readyz: [+]ping ok [-]etcd failed: reason "
            "withheld readyz check failed",
        ),
        ("refused", "the API server answers 401 Unauthorized to URL/readyz: your login is <secret>"),
        (
            "not there",
            "URL/readyz does not answer: Failed to establish a new connection: [Errno 111] Connection refused",
        ),
        ("no cluster", ""),
        ("no session", "the tester of this topology is in no cluster (topologies/kubernetes.yaml)"),
    ],
)
def test_an_api_server_that_is_not_ready_is_one_line(run: Run, case: str, said: str) -> None:
    folder, urls, _ = run
    assert messages(folder)[case] == said.replace("URL", urls.get(case, ""))


def test_no_file_of_the_results_has_the_token(run: Run) -> None:
    folder, _, _ = run
    assert "X-Login" in (folder / "output.xml").read_text()
    assert not [each for each in folder.iterdir() if TOKEN in each.read_text()]
