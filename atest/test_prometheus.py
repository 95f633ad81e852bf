"""Debian's Prometheus reads the figures of a run, over each of the two ways that docs/ci.md shows.

Everything listens on the loopback interface of a network namespace of the test.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import made_up_history
from debian_programs import program
from namespaces import add_namespace
from robot_run import podperf

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes a network namespace")]

RATE = 281_000.0
FETCH = "import sys, urllib.request as r; print(r.urlopen(r.Request(sys.argv[1], data=%s), timeout=5).read().decode())"
QUERY = 'podperf_rate_frames_per_second{testbed="local", metric="mrr"} unless podperf_figure_doubtful == 1'
CONFIG = """
global: {scrape_interval: 1s}
scrape_configs:
  - {job_name: podperf, honor_labels: true, static_configs: [{targets: ["127.0.0.1:%d"]}]}
"""


@pytest.fixture
def within() -> Iterator[list[str]]:
    """How a command runs in the namespace; what was started there is ended."""
    with ExitStack() as undo:
        namespace = add_namespace("prometheus", undo).namespace
        inside = ["ip", "netns", "exec", namespace]
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        yield inside


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    """The figures of a run as `podperf report` writes them."""
    record = made_up_history.record("linux-bridge", 0, 1.0, deviation=0) | {"version_under_test": 'OVS "3.6" \\ 2'}
    made_up_history.write(tmp_path / "results", 0, record)
    (tmp_path / "textfile").mkdir()
    file = tmp_path / "textfile" / "podperf.prom"
    podperf("report", *map(str, (tmp_path / "results").iterdir()), "--openmetrics", str(file))
    return file


@contextmanager
def running(within: list[str], name: str, *options: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as said:
        started = subprocess.Popen(
            [*within, "setpriv", "--pdeathsig", "KILL", program(name), *options], stdout=said, stderr=said
        )
        try:
            yield started
        finally:
            started.terminate()
            started.wait(30)


def fetch(within: list[str], url: str, send: Path | None = None) -> str | None:
    """The answer. None while nobody answers."""
    data = "None" if send is None else f"open({str(send)!r}, 'rb').read()"
    done = subprocess.run(
        [*within, "/usr/bin/python3", "-I", "-c", FETCH % data, url], capture_output=True, text=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def awaited(ask: Callable[[], str | None], started: subprocess.Popen[bytes], log: Path) -> str:
    """The answer, as soon as there is one."""
    deadline = time.monotonic() + 60
    while not (found := ask()):
        assert started.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)
    return found


def asked(within: list[str], port: int, folder: Path) -> list[dict[str, object]]:
    """Prometheus' answer to the query, after it has read what is at this port."""
    config = folder / "prometheus.yml"
    config.write_text(CONFIG % port)
    log = folder / "prometheus.log"
    options = (f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}")
    with running(within, "prometheus", *options, "--web.listen-address=127.0.0.1:9090", log=log) as started:

        def result() -> str | None:
            said = fetch(within, f"http://127.0.0.1:9090/api/v1/query?{urlencode({'query': QUERY})}")
            found = json.loads(said)["data"]["result"] if said else []
            return json.dumps(found) if found else None

        answer: list[dict[str, Any]] = json.loads(awaited(result, started, log))
        return answer


def check(answer: list[dict[str, Any]]) -> None:
    (series,) = answer
    labels, (_, value) = series["metric"], series["value"]
    assert isinstance(labels, dict) and float(value) == pytest.approx(RATE, rel=0.05)
    assert (labels["data_plane"], labels["frame"]) == ("linux-bridge", "64B")
    assert labels["version_under_test"] == 'OVS "3.6" \\ 2'


def test_the_node_exporter_takes_the_file_from_its_folder(within: list[str], figures: Path, tmp_path: Path) -> None:
    folder = f"--collector.textfile.directory={figures.parent}"
    options = ("--collector.disable-defaults", "--collector.textfile", folder, "--web.listen-address=127.0.0.1:9100")
    log = tmp_path / "exporter.log"
    with running(within, "prometheus-node-exporter", *options, log=log) as started:
        shown = awaited(lambda: fetch(within, "http://127.0.0.1:9100/metrics"), started, log)
        assert "node_textfile_scrape_error 0" in shown
        check(asked(within, 9100, tmp_path))


def test_the_pushgateway_takes_the_text_that_is_sent_to_it(within: list[str], figures: Path, tmp_path: Path) -> None:
    log = tmp_path / "gateway.log"
    with running(within, "prometheus-pushgateway", "--web.listen-address=127.0.0.1:9091", log=log) as started:
        awaited(lambda: fetch(within, "http://127.0.0.1:9091/-/ready"), started, log)
        assert fetch(within, "http://127.0.0.1:9091/metrics/job/podperf", send=figures) is not None, log.read_text()
        check(asked(within, 9091, tmp_path))
