"""`podperf cni-table`, which starts its own clusters."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from machine import once_as, snapshot
from own_cluster import STARTS_A_CLUSTER, awaited, need_programs
from podperf.cluster import lifecycle
from podperf.cluster.layout import FOLDER
from podperf.cluster.parts import network_named
from podperf.errors import ExitCode
from robot_run import ROOT, podperf
from run_command import cni_table

pytestmark = STARTS_A_CLUSTER


def test_a_network_stands_beside_that_of_its_nodes_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_programs(network=network_named("bird:plain"))
    monkeypatch.setattr("run_command.cni_table.WAYS", cni_table.WAYS[:1])
    monkeypatch.setattr("run_command.cni_table.PLACES", {})
    monkeypatch.setattr("signal.signal", lambda *_: None)  # pytest's own ones stay
    before = snapshot()
    assert cni_table.main(Namespace(networks=["bird:plain"], output=tmp_path / "table")) == 0
    assert once_as(before, snapshot) == before
    (row,) = rows_of_table(tmp_path / "table")
    (share,) = row["shares"].values()
    assert share["rounds"] >= 6 and 0.05 < share["share"] < 2, "two nodes are one machine here"
    assert (row["title"], row["mtu"]) == ("bird:plain", 1500) and row["network"].startswith("bird")
    assert row["reason"] == "" and 0 < row["pod_start"] < row["seconds"]
    assert 2e6 < row["agent"]["idle"]["memory"] < 100e6, "two processes of BIRD"
    assert 0 <= row["agent"]["idle"]["cpus"] < 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_table_has_what_was_measured_and_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    need_programs()
    before = snapshot()
    with measuring(tmp_path) as table:
        table.send_signal(how)
        out, _ = table.communicate(timeout=120)
    assert table.returncode == ExitCode.INTERRUPTED
    assert once_as(before, snapshot) == before and not FOLDER.exists()
    (row,) = rows_of_table(tmp_path / "table")
    assert row["reason"] == "interrupted" and "plain: interrupted" in out
    assert row["ready"] > 0 and "host network" in row["figures"], "also if a busy machine made it fail"


def test_the_cluster_ends_with_a_table_that_is_killed(tmp_path: Path) -> None:
    need_programs()
    before = snapshot()
    with measuring(tmp_path) as table:
        assert lifecycle.running()
    table.wait(30)
    awaited(lambda: not lifecycle.running(), lambda: "the cluster still runs", 30)
    podperf("clean")
    assert once_as(before, snapshot) == before and not FOLDER.exists()


@contextmanager
def measuring(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A table in the folder `table` there, whose first network is being measured. It is killed at the end."""
    command = ["env", "--default-signal=HUP", sys.executable, "-m", "podperf"]  # under nohup, SIGHUP would be ignored
    command += ["cni-table", "plain", "bird", "--output", str(folder / "table")]
    table = subprocess.Popen(command, cwd=ROOT / "libraries", stdout=subprocess.PIPE, text=True)
    records = folder / "table" / "plain" / "records"
    try:
        awaited(lambda: table.poll() is not None or len(list(records.glob("*.json"))) > 1, table.poll, 300)
        yield table
    finally:
        table.kill()  # does nothing after it has ended


def rows_of_table(folder: Path) -> list[dict[str, Any]]:
    """The networks of a table that is on the disk."""
    rows: list[dict[str, Any]] = json.loads((folder / "cni-table.json").read_text())["networks"]
    return rows
