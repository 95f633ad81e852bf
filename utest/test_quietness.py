"""Noise on the measuring CPUs is seen, and blamed on the right process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.metrics import METRICS
from podperf.noise import Noise, Speed, total, why_noisy
from podperf.quietness import watch as watching
from podperf.quietness.cpu_speed import CpuSpeeds
from podperf.quietness.cpu_times import Times
from podperf.quietness.watch import Quietness, Sample, compare, parse_sample, read_local_proc, read_proc_of, watch
from podperf.records import TestRecord
from podperf.records.json_values import noise_to_json
from scripted_host import ScriptedHost


def process(
    pid: int, name: str, ticks: int = 0, *, parent: int = 1, cpu: int = 1, started: int = 5, children: int = 0
) -> str:
    """A line of /proc/PID/stat: fields as in proc(5)."""
    before = ["R", parent, pid, pid, 0, -1, 0, 0, 0, 0, 0]  # 3 to 13
    times = [ticks, 0, children, 0]  # 14 to 17
    rest = [20, 0, 1, 0, started, *[0] * 16, cpu, 0, 0]  # 18 to 41
    return f"{pid} ({name}) " + " ".join(map(str, [*before, *times, *rest]))


def sample(*lines: str, taken: float = 0.0, stolen: tuple[int, int] = (0, 0)) -> Sample:
    """A sample of a machine of two CPUs."""
    cpus = [f"cpu{cpu} 9 9 9 9 9 9 9 {ticks} 0 0" for cpu, ticks in enumerate(stolen)]
    return parse_sample("\n".join(["cpu 1 2 3 4 5 6 7 8 9 0", *cpus, "ctxt 7", "procs_running 1", *lines]), taken, 100)


def test_foreign_work_is_named_and_own_work_is_not() -> None:
    before = sample(process(10, "suite"), process(11, "tester", parent=10), process(3, "napi/s0", parent=2))
    after = sample(
        process(10, "suite", 50),
        process(11, "tester", 90, parent=10),
        process(12, "pod", 90, parent=11),
        process(3, "napi/s0", 90, parent=2),
        process(40, "stress-ng (cpu) 1", 23),
        taken=1.0,
    )
    noise = compare(before, after, cpus=[1], own=[10])
    assert noise.foreign == {"stress-ng (cpu) 1 (40)": pytest.approx(0.23)}
    assert noise.reason == "CPU 1: 23% of the time went to other processes: stress-ng (cpu) 1 (40)"


def test_work_of_the_black_box_is_not_foreign() -> None:
    """The kernel keeps 15 characters of a name. A child of the black box is a part of it, as its worker threads are."""
    names = ["vpp_main", "a-vendors-appliance"]
    before = sample(process(40, "vpp_main"), process(41, "a-vendors-appli"), process(42, "sh", parent=41))
    after = sample(
        process(40, "vpp_main", 90),
        process(41, "a-vendors-appli", 90),
        process(42, "sh", 90, parent=41),
        process(43, "make", 9),
        taken=1.0,
    )
    assert compare(before, after, cpus=[1], own=[], black_box=names).foreign == {"make (43)": pytest.approx(0.09)}
    assert len(compare(before, after, cpus=[1], own=[]).foreign) == 4


HOSTILE_NAMES = (
    "\ncpu0 0 0",
    "x\ncpu0z",
    "\n2 (kthreadd",
    "\n10 (suite",
    "\x0bcpu1x",
    "\nctxt x",
    "\n77 (\n78 (",
    "a) S 1 1 (b",
)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_process_cannot_hide_or_disturb_by_its_name(name: str) -> None:
    """Any user can call his processes as he likes, in up to 15 bytes."""
    assert len(name) < 16
    before = sample(process(40, name), process(10, "suite"), stolen=(5, 5))
    after = sample(process(40, name, 23), process(10, "suite", 50), taken=1.0, stolen=(5, 5))
    assert set(after.processes) == {10, 40} and after.processes[10].name == "suite"
    assert (after.stolen, after.context_switches) == ({0: 0.05, 1: 0.05}, 7)
    noise = compare(before, after, cpus=[1], own=[10])
    assert noise.foreign == {f"{' '.join(name.split())} (40)": pytest.approx(0.23)}


@pytest.mark.parametrize("ticks", range(1200, 1260))
def test_one_tick_counts_at_any_age_of_a_process(ticks: int) -> None:
    before, after = sample(process(40, "daemon", ticks)), sample(process(40, "daemon", ticks + 1), taken=1.0)
    assert list(compare(before, after, cpus=[1], own=[]).foreign) == ["daemon (40)"]


def test_work_on_other_cpus_does_not_disturb() -> None:
    assert compare(sample(), sample(process(40, "make", 90, cpu=0), taken=1.0), cpus=[1], own=[]).reason is None


def test_children_that_come_and_go_count_once_with_their_parent() -> None:
    before = sample(process(40, "make", 10), process(41, "cc", 70, parent=40))
    after = sample(process(40, "make", 12, children=100), taken=1.0)
    assert compare(before, after, cpus=[1], own=[]).foreign == {"make (40)": pytest.approx(0.32)}


def test_a_whole_family_that_ends_brings_no_time_from_before_the_window() -> None:
    before = sample(
        process(30, "shell"), process(40, "make", 50, parent=30, children=400), process(41, "cc", 700, parent=40)
    )
    after = sample(process(30, "shell", children=50 + 400 + 700 + 20), taken=1.0)
    assert compare(before, after, cpus=[1], own=[]).foreign == {"shell (30)": pytest.approx(0.2)}


def test_adopted_orphans_are_not_blamed_on_init_nor_on_another_reaper() -> None:
    before = sample(process(1, "init"), process(30, "shim"), process(41, "cc", 700, parent=99))
    after = sample(process(1, "init", children=700), process(30, "shim", children=700), taken=1.0)
    assert compare(before, after, cpus=[1], own=[]).foreign == {}


def test_a_reused_pid_is_another_process() -> None:
    before = sample(process(40, "old", 500, started=5))
    after = sample(process(40, "new", 20, started=9), taken=1.0)
    assert compare(before, after, cpus=[1], own=[]).foreign == {"new (40)": pytest.approx(0.2)}


def test_stolen_time_above_one_per_cent_is_noise() -> None:
    def reason(ticks: int) -> str | None:
        return compare(sample(), sample(taken=10.0, stolen=(900, ticks)), cpus=[1], own=[]).reason

    assert reason(10) is None
    assert reason(30) == "CPU 1: 3.0% of the time was stolen by the hypervisor"


def test_one_tick_in_a_short_window_is_no_noise() -> None:
    noise = compare(sample(), sample(process(40, "sshd", 1), taken=0.1, stolen=(0, 1)), cpus=[1], own=[])
    assert noise.foreign_ratio == pytest.approx(0.1) and not noise.noisy


def noises() -> st.SearchStrategy[Noise]:
    """Windows on the same CPUs."""
    seconds = st.floats(0, 1e6)
    names = st.dictionaries(st.sampled_from(["a (1)", "b (2)", "c (3)"]), seconds)
    return st.builds(Noise, st.just((0, 1)), seconds, seconds, names, st.integers(0), st.integers(0), st.just(0.01))


@given(st.lists(noises(), min_size=1))
def test_windows_add_up(windows: list[Noise]) -> None:
    whole = total([None, *windows])
    assert whole is not None
    assert whole.window == pytest.approx(sum(window.window for window in windows))
    assert sum(whole.foreign.values()) == pytest.approx(sum(sum(window.foreign.values()) for window in windows))
    assert whole.run_queue == max(window.run_queue for window in windows)


@pytest.mark.parametrize(
    ("ndr", "pdr", "reason"),
    [
        (1.0, 1.0, None),
        (0.6, 1.0, "NDR: CPU 0: the slowest ran at 60% of its best speed"),
        (0.6, 0.6, "CPU 0: the slowest ran at 60% of its best speed"),
    ],
)
def test_a_search_is_judged_by_the_trials_that_decided_each_goal(ndr: float, pdr: float, reason: str | None) -> None:
    """The search as a whole is noisy here. Its trials far from the bounds decided nothing."""
    window = Noise((0,), 1.0, 0.0, {}, 9, 1, 0.01)
    goals = {"NDR": replace(window, speed=Speed(ndr)), "PDR": replace(window, speed=Speed(pdr))}
    slow = replace(window, window=9.0, speed=Speed(0.5))
    record = TestRecord("a", "a", "s", noises={"ndrpdr": slow}, decisive_noises={"ndrpdr": goals})
    assert record.why_noisy() == reason
    assert record.noisy(METRICS["ndr"]) == (ndr < 0.8) and record.noisy(METRICS["pdr"]) == (pdr < 0.8)
    assert replace(record, decisive_noises={}).why_noisy() == "CPU 0: the slowest ran at 50% of its best speed"


def test_a_noisy_search_is_not_hidden_by_the_longer_trials_of_mrr() -> None:
    quiet = Noise((0,), 8.0, 0.0, {}, 0, 0, 0.01, Speed(1.0, 1.0))
    slow, robbed = replace(quiet, window=2.0, speed=Speed(0.6, 1.0)), replace(quiet, stolen=0.5)
    assert why_noisy({"MRR": quiet, "NDR and PDR": slow}) == (
        "NDR and PDR: CPU 0: the slowest ran at 60% of its best speed"
    )
    assert why_noisy({"MRR": slow, "NDR and PDR": slow}) == "CPU 0: the slowest ran at 60% of its best speed"
    assert why_noisy({"MRR": robbed, "NDR and PDR": slow, "latency": quiet}) == (
        "MRR: CPU 0: 6.2% of the time was stolen by the hypervisor; "
        "NDR and PDR: CPU 0: the slowest ran at 60% of its best speed"
    )
    assert why_noisy({"MRR": quiet, "NDR and PDR": quiet}) is None
    assert why_noisy({}) is None


@given(st.dictionaries(st.text(), noises(), min_size=1))
def test_what_is_noisy_as_a_whole_or_in_a_phase_is_called_noisy(phases: dict[str, Noise]) -> None:
    together = total(phases.values())
    assert together is not None
    assert (why_noisy(phases) is not None) == (together.noisy or any(phase.noisy for phase in phases.values()))


@given(st.text())
def test_any_text_parses_or_is_refused_in_one_line(text: str) -> None:
    try:
        parse_sample(text, 0.0, 100)
    except PodperfError as error:
        assert "\n" not in str(error)


def test_a_busy_loop_on_this_machine_is_noticed_within_a_short_window() -> None:
    """Both ways of reading the real /proc. The test watches every CPU, because the loop can run on any of them."""
    for read in (read_local_proc, read_proc_of(LocalHost())):
        quietness = Quietness(range(os.cpu_count() or 1), own=[], read=read)
        with _busy_loop() as loop:
            noise = _while_it_runs(loop, quietness)
        assert any(name.endswith(f"({loop})") for name in noise.foreign)
        assert noise.noisy


def test_a_busy_loop_that_is_the_black_box_is_not_noticed() -> None:
    with ExitStack() as undo, _busy_loop() as loop:
        name = Path(f"/proc/{loop}/comm").read_text().strip()
        quietness = watch(LocalHost(), sut=range(os.cpu_count() or 1), black_box=[name], undo=undo)
        quietness.own = set()  # the loop is a child of this process, and would be no foreign work either
        noise = _while_it_runs(loop, quietness)
    assert not [each for each in noise.foreign if each.endswith(f"({loop})")]


def test_a_busy_loop_in_a_pod_that_a_cluster_runs_is_not_noticed() -> None:
    """The container runtime of the node is its parent, and no process of podperf's."""
    pods = set[int]()
    with ExitStack() as undo, _busy_loop() as loop:
        quietness = watch(LocalHost(), sut=range(os.cpu_count() or 1), pods=lambda: pods, undo=undo)
        quietness.own = set()
        assert f"({loop})" in str(_while_it_runs(loop, quietness).foreign)
        pods.add(loop)  # the chain starts after the watch
        assert f"({loop})" not in str(_while_it_runs(loop, quietness).foreign)


@contextmanager
def _busy_loop() -> Iterator[int]:
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield loop.pid
    finally:
        loop.kill()
        loop.wait()


def _while_it_runs(loop: int, quietness: Quietness) -> Noise:
    """The noise of a window in which the loop took 0.3 s of CPU time."""
    quietness.start()
    end, before = time.monotonic() + 10, _cpu_seconds(loop)
    while _cpu_seconds(loop) - before < 0.3 and time.monotonic() < end:
        os.sched_yield()
    return quietness.stop()


def _cpu_seconds(pid: int) -> float:
    return time.clock_gettime(~pid << 3 | 2)  # CLOCK_PROCESS_CPUTIME_ID of another process, clock_getcpuclockid(3)


def test_waits_until_the_cpus_run_near_their_best_speed() -> None:
    # Seconds for the same piece of work and the same copy: full speed, a half, 40 %, memory at a half, 91 %.
    times = (Times(*each) for each in [(1.0, 3.0), (2.0, 3.0), (2.5, 3.0), (1.0, 6.0), (1.1, 3.3)])
    quietness = Quietness([0], speeds=CpuSpeeds([0], lambda _cpu: next(times)))
    heard: list[Speed] = []
    assert quietness.await_speed(10, heard.append) < 10
    assert heard == []
    assert quietness.await_speed(10, heard.append) < 10
    assert heard == [Speed(0.5), Speed(0.4), Speed(1.0, 0.5)]


def test_keeps_a_cpu_busy_that_began_slowly_after_a_rest() -> None:
    # This host's CPU has half its speed after a rest, until it has worked for 50 ms.
    worked, ended = 0.0, time.monotonic()

    def measure(_cpu: int) -> Times:
        nonlocal worked, ended
        if time.monotonic() - ended > 0.02:
            worked = 0.0
        began = time.monotonic()
        while (now := time.monotonic()) - began < 0.002:
            pass
        worked, ended = worked + now - began, now
        return Times(1.0 if worked > 0.05 else 2.0, 1.0)

    quietness = Quietness([0], speeds=CpuSpeeds([0], measure, {0: Times(1.0, 1.0)}))
    assert quietness.await_speed(10, lambda _speed: None) < 5


def test_waits_no_longer_than_there_is_patience() -> None:
    times = chain([Times(1.0, 1.0)], repeat(Times(2.0, 1.0)))
    quietness = Quietness([0], speeds=CpuSpeeds([0], lambda _cpu: next(times)))
    quietness.await_speed(1, lambda _speed: None)
    assert 0.1 <= quietness.await_speed(0.1, lambda _speed: None) < 5


def test_noise_of_two_machines_says_where_it_was() -> None:
    quiet, busy = Noise((0,), 1.0, 0.0, {}, 0, 0, 0.01), Noise((0,), 1.0, 0.0, {"stress (9)": 0.5}, 0, 0, 0.01)
    assert replace(quiet, workers=(quiet,)).reason is None
    assert (
        replace(quiet, workers=(busy,)).reason == "worker, CPU 0: 50% of the time went to other processes: stress (9)"
    )
    both = replace(busy, workers=(busy,)) + replace(busy, workers=(quiet,))
    (worker,) = both.workers
    assert worker.foreign == {"stress (9)": 0.5}
    assert both.reason is not None
    assert both.reason.count("CPU 0: ") == 2


def test_noise_of_three_workers_says_on_which_it_was() -> None:
    quiet, busy = Noise((0,), 1.0, 0.0, {}, 0, 0, 0.01), Noise((0,), 1.0, 0.0, {"stress (9)": 0.5}, 0, 0, 0.01)
    third = replace(quiet, workers=(quiet, quiet, busy))
    assert third.reason == "worker 3, CPU 0: 50% of the time went to other processes: stress (9)"
    together = third + third
    assert [worker.foreign for worker in together.workers] == [{}, {}, {"stress (9)": 1.0}]
    data = noise_to_json(third)
    assert data is not None
    assert [worker["noisy"] for worker in data["workers"]] == [False, False, True]


def test_all_machines_are_watched_in_one_window() -> None:
    watched = Quietness([0], workers=[Quietness([0]), Quietness([0])])
    watched.start()
    noise = watched.stop()
    assert len(noise.workers) == 2
    assert min(worker.window for worker in noise.workers) >= noise.window > 0


class WithPython(ScriptedHost):
    """A machine with Python. It notes the CPUs whose speed a caller asks for."""

    def __init__(self) -> None:
        super().__init__(answers={"getconf CLK_TCK": "100", f"sh -c {watching._HAS_PYTHON}": ""})
        self.asked: list[int] = []

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Any:
        return self

    def send(self, line: str) -> None:
        self.asked.append(int(line))

    def receive(self, timeout: float) -> str:
        return "1.0 1.0"

    def stop(self) -> None: ...


def test_the_watch_ends_on_a_cpu_of_the_tester() -> None:
    """The process that measured stays there, and pollers may occupy the CPUs of the system under test."""
    host = WithPython()
    with ExitStack() as undo:
        watched = watch(host, tester=(0,), sut=(2, 3), undo=undo)  # type: ignore[arg-type]
        watched.await_speed(0, print)
    assert host.asked == [2, 3, 0]
    assert watched.cpus == (0, 2, 3)
