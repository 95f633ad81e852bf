"""CPU speed: a neighbour that slows a CPU without stealing time is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podperf.noise import Noise
from podperf.quietness.best_times import remember, remembered
from podperf.quietness.cpu_speed import CpuSpeeds, work_time


def test_speed_is_a_share_of_the_best_seen() -> None:
    times: Iterator[float] = iter([2.0, 4.0, 1.0, 4.0])
    speeds = CpuSpeeds([3], lambda cpu: next(times))
    assert [speeds.sample()[3] for _ in range(4)] == [1.0, 0.5, 1.0, 0.25]


def test_a_best_that_is_known_counts() -> None:
    speeds = CpuSpeeds([3], lambda cpu: 2.0, {3: 1.0})
    assert speeds.sample() == {3: 0.5} and speeds.best == {3: 1.0}


def test_the_best_of_each_cpu_is_kept_from_run_to_run(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert remembered(kept) == {}
    remember({0: 3.0, 1: 2.0}, kept)
    remember({1: 4.0, 2: 1.0}, kept)
    assert remembered(kept) == {0: 3.0, 1: 2.0, 2: 1.0}
    remember({0: 1.0}, tmp_path / "nowhere" / "kept.json")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"of": ["another boot", "3.11"], "best": {"0": 1e-9}}'])
def test_what_is_damaged_or_of_another_boot_is_not_known(text: str, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(text)
    assert remembered(tmp_path / "kept.json") == {}


def test_work_is_timed_on_this_machine_and_the_affinity_restored() -> None:
    before = os.sched_getaffinity(0)
    assert 1e-5 < work_time(min(before)) < 1
    assert os.sched_getaffinity(0) == before


def test_a_slow_cpu_makes_noise_and_says_so() -> None:
    quiet = Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01, speed=0.95)
    slow = Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01, speed=0.47)
    assert not quiet.noisy
    assert slow.reason == "CPU 0, 1: the slowest ran at 47% of its best speed"
    assert (quiet + slow).speed == pytest.approx(0.71)
    assert (quiet + Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01)).speed == 0.95
