"""CPU speed: a neighbour that slows a CPU without stealing time is noticed."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

from podperf.kernel import xdp_sockets
from podperf.noise import Noise, Speed
from podperf.quietness import cpu_times, watch
from podperf.quietness.cpu_speed import CpuSpeeds, remember, remembered
from podperf.quietness.cpu_times import Times, times_of
from podperf.records.json_values import noise_to_json


def test_speed_is_a_share_of_the_best_seen() -> None:
    times = (Times(*each) for each in [(2.0, 8.0), (4.0, 8.0), (1.0, 16.0), (4.0, 4.0)])
    speeds = CpuSpeeds([3], lambda cpu: next(times))
    assert [speeds.sample()[3] for _ in range(4)] == [(1.0, 1.0), (0.5, 1.0), (1.0, 0.5), (0.25, 1.0)]


def test_a_best_that_is_known_counts() -> None:
    speeds = CpuSpeeds([3], lambda cpu: Times(2.0, 4.0), {3: Times(1.0, 4.0)})
    assert speeds.sample() == {3: Times(0.5, 1.0)}
    assert speeds.best == {3: Times(1.0, 4.0)}


def test_the_best_of_each_cpu_is_kept_from_run_to_run(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    assert remembered(kept) == {}
    remember({0: Times(3.0, 3.0), 1: Times(2.0, 2.0)}, kept)
    remember({1: Times(4.0, 1.0), 2: Times(1.0, 1.0)}, kept)
    assert remembered(kept) == {0: Times(3.0, 3.0), 1: Times(2.0, 1.0), 2: Times(1.0, 1.0)}
    remember({0: Times(1.0, 1.0)}, tmp_path / "nowhere" / "kept.json")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"of": ["another boot", "3.11"], "best": {"0": [1e-9, 1e-9]}}'])
def test_what_is_damaged_or_of_another_boot_is_not_known(text: str, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(text)
    assert remembered(tmp_path / "kept.json") == {}


def test_work_is_timed_on_this_machine_and_this_thread_scheduled_as_before() -> None:
    cpus, policy = os.sched_getaffinity(0), os.sched_getscheduler(0)
    taken = times_of(min(cpus))
    assert 1e-5 < taken.work < 1
    assert 1e-4 < taken.memory < 1
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == (cpus, policy)


def test_what_is_timed_was_in_no_cache_however_short_before_the_last_look_was() -> None:
    """A second copy at once would find half of the memory in the cache. Its time would be a best that no trial can
    reach."""

    class Memory:
        def __init__(self) -> None:
            self.touched: list[range] = []

        def move(self, destination: int, source: int, count: int) -> None:
            self.touched += [range(source, source + count), range(destination, destination + count)]

    memory, cache = Memory(), 32 << 20
    for _ in range(3):
        cpu_times._copy(memory)  # type: ignore[arg-type]
    for number, again in enumerate(memory.touched[-2:], start=len(memory.touched) - 2):
        last = max(at for at in range(number) if again.start in memory.touched[at])
        assert sum(map(len, memory.touched[last + 1 : number])) >= 2 * cache


def test_a_slow_cpu_makes_noise_and_says_so() -> None:
    quiet = Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01, speed=Speed(0.95))
    slow = Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01, speed=Speed(0.47))
    assert not quiet.noisy
    assert slow.reason == "CPU 0, 1: the slowest ran at 47% of its best speed"
    assert (quiet + slow).speed == Speed(pytest.approx(0.71))
    assert (quiet + Noise((0, 1), 1.0, 0.0, {}, 0, 0, 0.01)).speed == Speed(0.95)


def test_slow_memory_makes_noise_and_says_so() -> None:
    """Other machines in a shared cache slow the forwarding, but not the computing."""
    slow = Noise((1,), 1.0, 0.0, {}, 0, 0, 0.01, speed=Speed(0.95, 0.6))
    assert slow.reason == "CPU 1: memory was at 60% of its best speed"
    data = noise_to_json(slow)
    assert data is not None and (data["speed"], data["memory_speed"]) == (0.95, 0.6)
    both = Noise((1,), 1.0, 0.0, {}, 0, 0, 0.01, speed=Speed(0.7, 0.6))
    assert both.reason == "CPU 1: the slowest ran at 70% of its best speed and memory was at 60% of its best speed"


@pytest.mark.parametrize("program", [Path(cpu_times.__file__).read_text() + watch._ANSWER, xdp_sockets._READ_SOCKETS])
def test_what_runs_on_other_machines_runs_with_python_3_6(program: str) -> None:
    """Some servers have it (RHEL 8). It knows neither these words nor the names that came later."""
    tree = ast.parse(program, feature_version=(3, 6))
    imported = {each.module for each in ast.walk(tree) if isinstance(each, ast.ImportFrom)}
    assert "__future__" not in imported
    assert not {"thread_time", "pidfd_open"} & {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute)}
    annotations = [each.annotation for each in ast.walk(tree) if isinstance(each, ast.arg | ast.AnnAssign)]
    annotations += [each.returns for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)]
    assert not [
        ast.unparse(annotation) for annotation in annotations if isinstance(annotation, ast.Subscript | ast.BinOp)
    ]
