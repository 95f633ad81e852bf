"""A run posts its records to a results server at its end. No file of the results has the token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from robot_run import ROOT, SHORT, Robot

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")
TOKEN = "cj7-Xq2.this-is-secret"
# Writes each body to a file, and the login beside it. Answers 201 to the token, and 401 to any other one.
SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

class Handler(BaseHTTPRequestHandler):
    number = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        right = self.headers.get("Authorization") == "Bearer " + sys.argv[2]
        Handler.number += 1
        (Path(sys.argv[1]) / f"{Handler.number}.json").write_bytes(body)
        self.send_response(201 if right else 401)
        self.end_headers()
        self.wfile.write(str(self.headers).encode())

server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""
ROWS = ("--test", "Linux bridge, 64 B", "--test", "MACVLAN, 64 B", str(ROOT / "tests"))


@contextmanager
def results_server(folder: Path, token: str) -> Iterator[str]:
    """A process that is a results server. Yields its URL."""
    folder.mkdir()
    command = [sys.executable, "-c", SERVER, str(folder), token]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/podperf"
        finally:
            process.kill()


def with_token(folder: Path) -> list[str]:
    files = [each for each in folder.rglob("*") if each.is_file()]
    assert {"output.xml", "log.html", "report.html"} <= {each.name for each in files}
    return [each.name for each in files if TOKEN.encode() in each.read_bytes()]


def test_the_server_of_the_topology_gets_the_records_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine_as_before: None
) -> None:
    monkeypatch.setenv("PODPERF_RESULTS_TOKEN", TOKEN)
    with results_server(tmp_path / "published", TOKEN) as url:
        topology = f"{SHORT % (1, 0.2)}results: {{server: {url}}}\n"
        run = Robot(tmp_path, "--loglevel", "TRACE", *ROWS, topology=topology, short_search=True)
        assert run.wait() == 0, run.messages()
    published = [json.loads(each.read_text()) for each in (tmp_path / "published").iterdir()]
    assert sorted(published, key=lambda each: str(each["id"])) == run.records()
    assert f"published 2 records on {url}" in run.output.read_text()
    assert not with_token(run.results)


def test_a_server_that_refuses_is_a_warning_and_the_results_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine_as_before: None
) -> None:
    monkeypatch.setenv("PODPERF_RESULTS_TOKEN", TOKEN)
    with results_server(tmp_path / "published", "another") as url:
        run = Robot(tmp_path, "--variable", f"RESULTS SERVER:{url}", *ROWS, short_search=True)
        assert run.wait() == 0, run.messages()
    said = f"0 of 2 records published: {url} answers 401 Unauthorized to {run.records()[0]['id']}.json; all are in"
    assert [line for line in run.output.read_text().splitlines() if said in line]
    assert [each["outcome"] for each in run.records()] == ["passed", "passed"]
    assert (run.results / "conformance.html").exists()
    assert not with_token(run.results)
