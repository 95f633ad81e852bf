"""A run posts its records to a results server at its end. No file of the results has the token."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from http_servers import http_server, status
from robot_run import ROOT, SHORT, Robot

TOKEN = "cj7-Xq2.this-is-secret"
ROWS = ("--test", "Linux bridge, 64 B", "--test", "MACVLAN, 64 B", str(ROOT / "tests"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces")
@pytest.mark.usefixtures("machine_as_before")
def test_the_server_of_the_topology_gets_the_records_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODPERF_RESULTS_TOKEN", TOKEN)
    with http_server(status(201)) as server:
        topology = f"{SHORT % (1, 0.2)}results: {{server: {server.url}}}\n"
        run = Robot(tmp_path, "--loglevel", "TRACE", *ROWS, topology=topology, short_search=True)
        assert run.wait() == 0, run.messages()
    published = [json.loads(request.body) for request in server.requests]
    assert sorted(published, key=lambda each: str(each["id"])) == run.records()
    assert {request.headers["Authorization"] for request in server.requests} == {f"Bearer {TOKEN}"}
    assert f"published 2 records on {server.url}" in run.output.read_text()
    written = [each for each in run.results.rglob("*") if each.is_file()]
    assert {"output.xml", "log.html", "report.html"} <= {each.name for each in written}
    assert not [each.name for each in written if TOKEN.encode() in each.read_bytes()]
