"""CPU speed: a neighbour that slows a CPU without stealing time is noticed."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from podperf.noise import Noise
from podperf.quietness.cpu_speed import CpuSpeeds, work_time


def test_speed_is_a_share_of_the_best_seen() -> None:
    times: Iterator[float] = iter([2.0, 4.0, 1.0, 4.0])
    speeds = CpuSpeeds([3], lambda cpu: next(times))
    assert [speeds.sample()[3] for _ in range(4)] == [1.0, 0.5, 1.0, 0.25]


def test_work_is_timed_on_this_machine_and_the_affinity_restored() -> None:
    before = os.sched_getaffinity(0)
    assert 1e-5 < work_time(min(before)) < 1
    assert os.sched_getaffinity(0) == before


def test_a_slow_cpu_makes_noise_and_says_so() -> None:
    quiet = Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01, speed=0.95)
    slow = Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01, speed=0.47)
    assert not quiet.noisy
    assert slow.reason == "CPU 0, 1: the slowest ran at 47% of its best speed in this run"
    assert (quiet + slow).speed == pytest.approx(0.71)
    assert (quiet + Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01)).speed == 0.95
