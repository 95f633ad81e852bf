"""CPU time a frame: what is read of threads, what is left out, and what the record and the table say of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import made_up
from podperf.dataplanes.base import RunningDataPlane
from podperf.dataplanes.openvswitch import parse_pmd_cycles
from podperf.dataplanes.wire import External, Wire
from podperf.errors import TrialNotDelivered
from podperf.hosts.base import Completed, Host
from podperf.hosts.local import LocalHost
from podperf.kernel.poller_sharing import Turns, TurnsOnCpu
from podperf.kernel.thread_time import CpuUser, Cycles, ThreadClock, kernel_users, receiver
from podperf.methods.cpu_time import CpuTimeAtShare, CpuTimeResult
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.metrics import METRICS, Measured
from podperf.model import Chain, CpuTime, Trial, TrialResult
from podperf.pods.forwarders.testpmd import parse_cycles
from podperf.records import Record, read_record
from podperf.report.summary import figure_cell, further_figures, summary_table
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest
from podperf.thresholds import judge
from podperf.topology import Threshold
from scripted_host import ScriptedHost
from traffic import SMALL, TRAFFIC, counted

REST = {"the rest of the node": 5e6}
PMD_STATS = """\
pmd thread numa_id 0 core_id 1:
  packets received: 2000
  packet recirculations: 0
  avg. datapath passes per packet: 1.00
  idle cycles: 6000 (60.00%)
  processing cycles: 4000 (40.00%)
  avg cycles per packet: 5.00 (10000/2000)
  avg processing cycles per packet: 2.00 (4000/2000)
pmd thread numa_id 0 core_id 2:
  packets received: 0
  idle cycles: 10000 (100.00%)
  processing cycles: 0 (0.00%)
main thread:
  packets received: 7
  idle cycles: 1 (1.00%)
  processing cycles: 99 (99.00%)
"""
TESTPMD_STATS = """\
  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 17216          RX-dropped: 0             RX-total: 17216
  ++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++++

  CPU cycles/packet=151.02 (total cycles=2600000 / total io packets=17216) at 2600 MHz Clock
"""


class Threads(ScriptedHost):
    """A host whose threads have taken so many nanoseconds so far, and whose kernel has these settings."""

    def __init__(self, times: dict[int, int], names: Mapping[str, Sequence[int]] = {}, settings: str = "") -> None:
        super().__init__(patient=True)
        self.times, self.names, self.settings = times, names, settings

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        said = ""
        if command[:2] == ("grep", "-H"):
            known = {f"/proc/{thread}/schedstat": taken for thread, taken in self.times.items()}
            said = "".join(f"{path}:{known[path]} 5 {known[path] // 10}\n" for path in command if path in known)
        elif command[:2] == ("grep", "-lx"):
            numbers = self.names.get(command[2], ())
            said = "".join(f"{path}\n" for path in command if path in {f"/proc/{number}/comm" for number in numbers})
        elif command[0] == "sh" and command[-1] == "/proc":
            named = (found for name, found in self.names.items() if name.startswith(command[-2]))
            said = "\n".join(str(each) for found in named for each in found)
        elif command[-1] == "CONFIG_IRQ_TIME_ACCOUNTING":
            said = self.settings
        return Completed(command, 0, said, "")


def user(name: str, host: Host, *threads: int, **settings: Any) -> CpuUser:
    return CpuUser(name, host, lambda: threads, **settings)


def between(clock: ThreadClock, happens: Callable[[], None]) -> CpuTime:
    clock.start()
    happens()
    return clock.stop()


def test_the_time_of_each_part_is_that_of_its_threads_between_start_and_stop() -> None:
    host, other = Threads({1: 1000, 2: 50, 3: 7}), Threads({1: 9})
    clock = ThreadClock([user("switch", host, 1, 2), user("idle", host, 3), user("second worker", other, 1)])

    def happens() -> None:
        host.times = {1: 1500, 2: 60, 3: 7}
        other.times = {1: 10}

    found = between(clock, happens)
    assert found == CpuTime({"switch": 510.0, "idle": 0.0, "second worker": 1.0}, 52)
    assert found.total == 511.0


def test_a_thread_that_ends_during_the_trial_leaves_no_figure() -> None:
    host = Threads({1: 1000})
    found = between(ThreadClock([user("switch", host, 1)]), host.times.clear)
    assert found.total is None and "a thread of switch has ended" in found.unread


def test_a_poller_without_cycles_is_told_by_its_name_only() -> None:
    host = Threads({1: 0, 2: 0})
    clock = ThreadClock([user("receive thread", host, 1), user("pod1", host, 2, polls=True)])
    found = between(clock, lambda: host.times.update({1: 30, 2: 10**9}))
    assert found == CpuTime({"receive thread": 30.0}, 3, ("pod1",)) and found.total is None


def test_a_poller_that_tells_has_the_share_of_its_time_in_which_it_had_frames() -> None:
    host, cycles = Threads({1: 0}), [Cycles(100, 1000), Cycles(350, 2000)]
    clock = ThreadClock([user("PMDs", host, 1, polls=True, cycles=lambda: cycles.pop(0))])
    assert between(clock, lambda: host.times.update({1: 10**9})) == CpuTime({"PMDs": 0.25e9}, 10**8)


def test_a_poller_that_stops_telling_polls() -> None:
    host, cycles = Threads({1: 0}), [Cycles(100, 1000), None]
    clock = ThreadClock([user("PMDs", host, 1, polls=True, cycles=lambda: cycles.pop(0))])
    assert between(clock, lambda: None) == CpuTime({}, 0, ("PMDs",))


def test_cycles_of_pollers_that_share_a_cpu_tell_nothing() -> None:
    """They pass in the turns of the others, too."""
    rotation: Any = object()
    told = user("pod1", LocalHost(), 7, polls=True, cycles=lambda: Cycles(1, 1))
    alone = Turns([TurnsOnCpu(LocalHost(), 1, [7], None), TurnsOnCpu(LocalHost(), 2, [8, 9], rotation)])
    shared = Turns([TurnsOnCpu(LocalHost(), 1, [7, 8], rotation)])
    assert alone.told(told) is told
    assert shared.told(told).cycles is None


def test_open_vswitch_tells_the_cycles_of_its_pmds_without_its_main_thread() -> None:
    assert parse_pmd_cycles(PMD_STATS) == Cycles(4000, 20_000)
    assert parse_pmd_cycles("main thread:\n  packets received: 7\n") is None


def test_testpmd_tells_the_seconds_in_which_it_had_frames() -> None:
    assert parse_cycles(TESTPMD_STATS.splitlines(), 12.0) == Cycles(0.001, 12.0)
    since_23_03 = TESTPMD_STATS.replace("total cycles", "busy cycles")
    assert parse_cycles(since_23_03.splitlines(), 12.0) == Cycles(0.001, 12.0)
    no_frames = re.sub("17216|.*CPU cycles.*", "0", TESTPMD_STATS)
    assert parse_cycles(no_frames.splitlines(), 11.0) == Cycles(0.0, 11.0)
    unknown_words = TESTPMD_STATS.replace("total cycles", "other cycles")
    assert parse_cycles(unknown_words.splitlines(), 12.0) is None, "and not 0: there were frames"


NAMES = {"napi/w-left-8193": [11], "napi/w-right-8194": [12], "ksoftirqd/1": [21], "ksoftirqd/10": [22]}


def test_the_kernel_works_in_receive_threads_and_in_the_softirq_thread_of_their_cpu() -> None:
    host = Threads({11: 0, 12: 0, 21: 0, 22: 0}, NAMES)
    clock = ThreadClock(kernel_users({"w-left": host, "w-right": host}, (1, 1)))
    found = between(clock, lambda: host.times.update({11: 700, 12: 20, 21: 3, 22: 10**9}))
    parts = {"receive thread of w-left": 700.0, "receive thread of w-right": 20.0, "softirq thread of CPU 1": 3.0}
    assert found == CpuTime(parts, 72), "the thread of CPU 10 is another CPU's"


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        (Threads({}), "no thread of the kernel receives on w-left: its driver does, in interrupts"),
        (Threads({11: 0}, NAMES, "CONFIG_IRQ_TIME_ACCOUNTING=y"), "the kernel takes the time of softirqs off"),
    ],
    ids=["interrupts", "softirqs apart"],
)
def test_work_that_is_no_threads_is_not_read(host: Threads, reason: str) -> None:
    found = between(ThreadClock([receiver(host, "w-left")]), lambda: None)
    assert found.total is None and reason in found.unread


# --- the figure -------------------------------------------------------------------------------------------------------


def result(cpu_time: CpuTime | None, received: int = 1000, *, unfinished: bool = False) -> CpuTimeResult:
    trial = TrialResult(Trial(TRAFFIC, 1000, 1.0), 0.0, (counted(1000, received),), cpu_time=cpu_time)
    return CpuTimeResult(LatencyResult(trial, 0.5, "PDR", unfinished))


def test_the_figure_is_the_time_of_all_parts_by_the_frames_that_came_back() -> None:
    found = result(CpuTime({"receive thread of w-left": 800_000.0, "softirq thread of CPU 1": 10_000.0}), 900)
    assert found.metrics == {"cpu_time": Measured(900.0)}
    assert found.as_record()["parts"]["receive thread of w-left"] == pytest.approx(888.9, abs=0.1)
    assert found.as_record()["nanoseconds_per_frame"] == 900.0
    assert result(CpuTime({"a": 5.0}, runs=250)).as_record()["frames_per_run"] == 4.0
    assert result(CpuTime({"a": 5.0})).as_record()["frames_per_run"] is None
    assert result(CpuTime({"a": 1000.0}), unfinished=True).metrics["cpu_time"].unfinished


@pytest.mark.parametrize(
    ("cpu_time", "received", "polls", "missing"),
    [
        (CpuTime({"a": 5.0}, polling=("pod1",)), 1000, ["pod1"], None),
        (CpuTime({"a": 5.0}, unread="a reason"), 1000, [], "not read: a reason"),
        (CpuTime({"a": 0.0}), 1000, [], "not read: the kernel counts no CPU time of its threads"),
        (CpuTime({"a": 5.0}), 0, [], "not read: no frame came back"),
    ],
    ids=["polls", "not read", "nothing counted", "no frame"],
)
def test_without_a_figure_the_record_says_why(
    cpu_time: CpuTime, received: int, polls: list[str], missing: str | None
) -> None:
    found = result(cpu_time, received)
    assert found.metrics == {} and found.as_record()["nanoseconds_per_frame"] is None
    assert found.as_record()["polls"] == polls
    assert [each.startswith(missing or "") for each in found.as_record()["missing"].values()] == [True] * bool(missing)


def test_a_maximum_in_nanoseconds_is_a_threshold() -> None:
    metrics = result(CpuTime({"a": 800_000.0})).metrics
    for most, status in ((801, "passed"), (799, "failed")):
        verdict = judge([Threshold("cpu_time", "ns", maximum=most)], SMALL, metrics, None)
        assert verdict.status == status
    assert verdict.sentence == "CPU time a frame 800 ns, at most 799 ns was asked for: failed"


def test_the_bare_path_takes_no_time_and_a_black_box_does_not_tell() -> None:
    def clock(data_plane: RunningDataPlane, name: str) -> ThreadClock | None:
        tester: Any = None
        return SystemUnderTest(Chain(name, 0), tester, [PartOfChain(data_plane)], {}).cpu_clock()

    assert clock(Wire().between({}), "wire") is None
    black_box = clock(External().between({}), "external")
    assert black_box is not None
    assert between(black_box, lambda: None).unread == "external does not tell which threads handle frames"


def test_each_worker_of_a_chain_has_its_parts() -> None:
    hosts = [Threads({1: 0}), Threads({1: 0})]
    running = [RunningDataPlane({}, {}, dict, cpu_users=[user("receive thread", host, 1)]) for host in hosts]
    parts = [PartOfChain(each, worker=f"host{number}") for number, each in enumerate(running, start=1)]
    tester: Any = None
    clock = SystemUnderTest(Chain("linux-bridge", 2, workers=2), tester, parts, {}).cpu_clock()
    assert clock is not None
    found = between(clock, lambda: [each.times.update({1: 50}) for each in hosts] and None)
    assert found == CpuTime({"receive thread": 50.0, "host2: receive thread": 50.0}, 10)


# --- records and reports ----------------------------------------------------------------------------------------------


def record(folder: Path, name: str, found: CpuTimeResult) -> Record:
    made, trials = made_up.forwarding_record("linux-bridge", 281e3)
    methods = {**made.methods, "cpu_time": found.as_record()}
    made = replace(made, name=name, methods=methods, metrics={**made.metrics, **found.metrics})
    return read_record(made_up.write(folder / name, made, trials))


def test_the_table_has_a_column_of_it_and_fits_80_columns(tmp_path: Path) -> None:
    told = record(tmp_path, "Linux bridge, 64 B", result(CpuTime({"a": 812_000.0, "b": 0.0})))
    polls = record(tmp_path, "OVS-DPDK, 64 B, 2 pods", result(CpuTime({"a": 5.0}, polling=("pod1", "pod2"))))
    unread = record(tmp_path, "SR-IOV, testpmd, 64 B", result(CpuTime(unread="no thread receives")))
    table = summary_table([told, polls, unread])
    assert max(map(len, table.splitlines())) <= 80
    rows = {each.split("  ")[0]: each.split() for each in table.split("\n\n")[0].splitlines()}
    assert rows["Linux bridge, 64 B"][-2:] == ["812", "passed"]
    assert rows["OVS-DPDK, 64 B, 2 pods"][-2:] == ["polls", "passed"]
    assert rows["SR-IOV, testpmd, 64 B"][-2:] == ["-", "passed"]
    assert "SR-IOV, testpmd, 64 B\n    CPU time a frame not read: no thread receives" in table
    assert "polls: takes its whole CPU, with frames or without" in " ".join(table.split())


def test_the_report_names_the_parts(tmp_path: Path) -> None:
    told = record(tmp_path, "A", result(CpuTime({"receive thread of w-left": 800_000.0, "idle": 0.0})))
    polls = record(tmp_path, "B", result(CpuTime({"receive thread of w-left": 5000.0}, polling=("pod1",))))
    assert further_figures(told) == [("CPU time a frame", "800 ns/f (receive thread of w-left 800 ns)")]
    assert further_figures(polls) == [("CPU time a frame", "receive thread of w-left 5.00 ns; polls, not told: pod1")]
    assert json.dumps(told.document["results"]["cpu_time"]) == '{"nanoseconds_per_frame": 800.0, "lower_bound": false}'


def test_a_record_without_it_has_no_word_of_it(tmp_path: Path) -> None:
    made, trials = made_up.forwarding_record("linux-bridge", 281e3)
    older = read_record(made_up.write(tmp_path, made, trials))
    assert figure_cell(older, METRICS["cpu_time"]) == "-"
    assert further_figures(older) == []
    assert "CPU" not in summary_table([older]).splitlines()[0]


class Nodes:
    """Trials of two pods, whose nodes take so much time beside them, one after the other."""

    maximum_load = 1e6

    def __init__(self, *rest: Mapping[str, float]) -> None:
        self.rest, self.asked = [*rest], list[Trial]()

    def measure(self, load: float, duration: float) -> TrialResult:
        if not self.rest:
            raise TrialNotDelivered("too slow")
        self.asked.append(Trial(TRAFFIC, load, duration, train=32))
        times = CpuTime({"the port that sends": 9e6}, beside=self.rest.pop(0))
        return TrialResult(self.asked[-1], 0.0, (counted(1000),), cpu_time=times)


def test_the_rest_of_the_nodes_is_what_a_trial_with_frames_takes_more() -> None:
    at = LatencyAtShare(20e3, "PDR", duration=0.5)
    nodes = Nodes(REST, {"the rest of the node": 2e6})
    result = CpuTimeAtShare(at).run(nodes)
    assert [trial.load for trial in nodes.asked] == [10e3, 128], "two trains"
    found = result.as_record()
    assert result.nanoseconds == 9e3, "the rest is no part of the figure"
    assert found["rest_of_nodes_unread"] == ""
    (rest,) = found["rest_of_nodes"].values()
    assert (rest["nanoseconds_per_frame"], rest["resolution"]) == (3e3, 20e3)


@pytest.mark.parametrize("rest", [[{}], [REST], [REST, {}]])
def test_without_both_trials_the_rest_of_the_nodes_is_not_known(rest: list[Mapping[str, float]]) -> None:
    found = CpuTimeAtShare(LatencyAtShare(20e3, "PDR", duration=0.5)).run(Nodes(*rest)).as_record()
    assert found["rest_of_nodes"] is None and found["rest_of_nodes_unread"] and found["nanoseconds_per_frame"] == 9e3
