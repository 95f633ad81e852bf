"""The estimate of the remaining time, compared with durations of real runs."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from robot.api import TestSuite

import made_up
from podperf.dataplanes import DATA_PLANES
from podperf.progress import Forecast
from podperf.records import earlier_durations, topology_digest
from podperf.run.run import usual_duration
from podperf.topology import MethodSettings, load_topology

ROOT = Path(__file__).parents[1]
LOCAL = load_topology(ROOT / "topologies" / "local.yaml", DATA_PLANES)
# Seconds of each test of two quick runs on one virtual machine, beside other programs that took up to 22 % and 48 % of
# its two CPUs. Tests that were skipped are left out.
QUICK_RUNS: dict[str, tuple[float, float]] = {
    "Bare path, 64 B": (14.9, 15.0),
    "Linux bridge, 64 B": (24.0, 22.8),
    "PTP, 64 B": (16.1, 15.2),
    "MACVLAN, 64 B": (33.9, 28.8),
    "Routed, 64 B": (23.9, 19.3),
    "Docker, 64 B": (24.4, 20.5),
    "Linux bridge, 1518 B": (24.0, 27.2),
    "OVS-DPDK, 64 B": (25.1, 26.7),
    "Memif, 64 B, 2 pods": (28.4, 37.9),
    "TC redirect peer, 64 B": (24.0, 15.6),
    "XDP redirect, 64 B": (37.4, 24.0),
    "AF_XDP, 64 B": (30.5, 34.3),
    "Ports Of This Testbed Are Isolated": (0.2, 0.1),
    "Port With A Default Route Is Refused": (0.2, 0.1),
    "Port With An Address Is Refused": (0.2, 0.1),
    "Port With The SSH Session Is Refused": (0.1, 0.1),
    "No Test Frame Leaves The Testbed": (9.3, 8.9),
}
FIRST, SECOND = ([each[number] for each in QUICK_RUNS.values()] for number in (0, 1))
ENOUGH_LEFT = 20.0  # seconds; a shorter rest is one test, and nobody plans by it


def errors(expected: Sequence[float], taken: Sequence[float]) -> Iterator[float]:
    """The error of the remaining time at the start of each test, as a share of the true time. Only if ENOUGH_LEFT is
    left."""
    forecast = Forecast(expected)
    for number, seconds in enumerate(taken):
        if (left := sum(taken[number:])) > ENOUGH_LEFT:
            yield forecast.seconds_left(number, 0.0) / left - 1
        forecast.test_ended(number, seconds)


def of_a_first_run() -> list[float]:
    """The expected seconds of the tests before a first run."""
    tests = {test.name: tuple(test.tags) for test in TestSuite.from_file_system(ROOT / "tests").all_tests}
    return [usual_duration(tests[name], LOCAL.method, DATA_PLANES) for name in QUICK_RUNS]


@pytest.mark.parametrize(("before", "taken"), [(None, FIRST), (None, SECOND), (FIRST, SECOND), (SECOND, FIRST)])
def test_a_run_is_foreseen_by_the_one_before_and_a_first_one_by_the_kinds_of_its_tests(
    before: list[float] | None, taken: list[float]
) -> None:
    found = list(errors(before or of_a_first_run(), taken))[1:]
    assert statistics.median(map(abs, found)) < 0.15
    assert sum(abs(each) <= 0.25 for each in found) >= 0.8 * len(found), found


def test_a_machine_that_is_half_as_fast_is_noticed_within_a_few_tests() -> None:
    forecast = Forecast([25.0] * 20)
    assert forecast.seconds_left(0, 0) == 500
    for number in range(6):
        forecast.test_ended(number, 50.0)
    assert forecast.seconds_left(6, 0) == pytest.approx(14 * 50, rel=0.2)


@pytest.mark.parametrize("expected", [25.0, 0.0])
def test_a_skipped_test_says_nothing_about_the_pace(expected: float) -> None:
    forecast = Forecast([expected, 25.0, 25.0])
    forecast.test_ended(0, 0.02)
    assert (forecast.pace, forecast.seconds_left(1, 10)) == (1, 40)


@pytest.mark.parametrize(
    ("tags", "least", "most"),
    [
        (["sec-4.1.1", "mrr", "ndrpdr", "ptp", "64B"], 20, 30),
        (["sec-5", "isolation", "linux-bridge", "64B"], 5, 12),
        (["sec-5", "isolation"], 0, 1),
        (["finding", "sec-4.1.1", "macvlan", "linux-bridge"], 25, 60),
        (["finding", "sec-4.2.4", "chain-length", "macvlan"], 50, 120),
        (["finding", "sec-4.2.1", "resources", "af-xdp"], 50, 120),
        (["sec-4.1", "reconfiguration", "cluster-reconfiguration", "external", "64B"], 180, 280),
        (["sec-4.2", "reconfiguration", "routed"], 25, 60),
        ([], 20, 30),
    ],
)
def test_tests_are_weighed_by_what_they_do(tags: list[str], least: float, most: float) -> None:
    assert least <= usual_duration(tags, LOCAL.method, DATA_PLANES) <= most
    longer = MethodSettings("csit", 10, 10.0)
    assert usual_duration(tags, longer, DATA_PLANES) >= usual_duration(tags, LOCAL.method, DATA_PLANES) - 3


def written(folder: Path, data_plane: str, seconds: float, age: float = 0.0) -> None:
    record, trials = made_up.forwarding_record(data_plane, 281e3)
    record.topology, record.ended = LOCAL, record.started + seconds
    path = made_up.write(folder, record, trials)
    os.utime(path.parent, (path.stat().st_mtime - age,) * 2)


def test_how_long_tests_took_is_read_from_the_newest_runs_on_this_topology(tmp_path: Path) -> None:
    digest = topology_digest(LOCAL)
    for age, seconds in enumerate([20, 40, 30, 30, 30, 90, 90, 90]):
        written(tmp_path / f"{age} days old", "linux-bridge", seconds, age=age)
    written(tmp_path / "3 days old", "ptp", 25, age=3)
    (tmp_path / "latest").symlink_to("0 days old")
    written(tmp_path / "this", "linux-bridge", 90)
    found = earlier_durations(tmp_path / "this", digest)
    assert found == {"Linux bridge, 64 B": 30, "Ptp, 64 B": 25}, "of five runs"
    assert earlier_durations(tmp_path / "this", "another") == {}
    assert earlier_durations(tmp_path / "nowhere" / "this", digest) == {}


def test_of_a_record_only_the_beginning_is_read_and_a_damaged_one_is_left_out(tmp_path: Path) -> None:
    digest = topology_digest(LOCAL)
    written(tmp_path / "earlier", "linux-bridge", 20)
    written(tmp_path / "earlier", "ptp", 30)
    whole, other = sorted((tmp_path / "earlier" / "records").glob("*.json"))
    text = whole.read_text()
    whole.write_text(text[: text.index('"trials"')])  # and everything behind it
    other.write_text(other.read_text()[:500])
    (other.parent / "empty.json").write_text("")
    (other.parent / "odd.json").write_text(json.dumps([1, 2]))
    (other.parent / "deep.json").write_text("[" * 20_000)
    os.mkfifo(other.parent / "pipe.json")
    assert earlier_durations(tmp_path / "this", digest) == {"Linux bridge, 64 B": 20}


def test_an_interrupted_test_is_no_measure(tmp_path: Path) -> None:
    record, trials = made_up.forwarding_record("linux-bridge", 281e3)
    made_up.write(tmp_path / "earlier", replace(record, topology=LOCAL, outcome="interrupted"), trials)
    assert earlier_durations(tmp_path / "this", topology_digest(LOCAL)) == {}
