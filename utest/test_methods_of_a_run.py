"""The methods beside MRR and the search in a test: their trials, records and verdicts, on a simulated testbed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from Methods import Methods
from podperf.errors import PodperfError, Unavailable
from podperf.kernel.thread_time import CpuUser
from podperf.methods import METHODS
from podperf.model import Chain, Direction, DirectionResult, Trial, TrialResult
from podperf.progress import Progress
from podperf.run import Run, Session
from podperf.run import TestIdentity as Identity
from podperf.run.measurement import measure_by_method
from podperf.testbed.system_under_test import PartOfChain, SystemUnderTest
from podperf.testers.base import UNPACED, Ability, PortFacts, TesterFacts
from podperf.thresholds import Status
from podperf.topology import SCHEMA_PATH, Threshold, load_topology
from scripted_host import ScriptedHost
from test_run import CEILING, LATENCY, SMALL, SimulatedTestbed, SimulatedTester, equipment

CAPACITY, BUFFER, RECOVERY = 200e3, 500, 0.01  # frames/s, frames, seconds
STATUS = "/proc/5/status:Name:\ttestpmd\n/proc/5/status:Tgid:\t5\n/proc/5/status:VmRSS:\t1024 kB\n"


class Queue(SimulatedTester):
    """A tester whose frames cross a queue of BUFFER frames before a server of CAPACITY."""

    able = frozenset(Ability)

    def measure(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        self.testbed.now += trial.longest
        if trial.overload is not None:
            count = round(trial.overload.load * trial.overload.duration)
            lost = max(0, round((trial.overload.load - CAPACITY) * trial.overload.duration) - BUFFER)
            lost += round(RECOVERY * trial.load)
            last = count + round(RECOVERY * trial.load) - 1
            return self._counted(trial, count + round(trial.load * trial.duration), lost, trial.mean_load, last)
        load = trial.load or CEILING[self.engine]
        count = trial.frames or round(load * trial.duration)
        return self._counted(trial, count, max(0, round(count * (1 - CAPACITY / load)) - BUFFER), load)

    def _counted(self, trial: Trial, sent: int, lost: int, load: float, last: int | None = None) -> TrialResult:
        received = max(1, sent - max(0, lost))
        each = DirectionResult(
            Direction.LEFT_TO_RIGHT, sent, sent, received, 0, 0, 0, sent / load, latency=LATENCY, last_lost=last
        )
        return TrialResult(trial, 0.0, (each,))

    @property
    def facts(self) -> TesterFacts:
        ports = PortFacts("02:00:00:00:00:01"), PortFacts("02:00:00:00:00:02")
        return TesterFacts("simulated", "1", self.engine, *ports, copies=False, abilities=self.able)


class Testbed(SimulatedTestbed):
    """Its chains are queues, whose set-up took a quarter of a second. `able`: whether the tester has all abilities."""

    __test__ = False
    able = True

    def _system(self, chain: Chain, tester: SimulatedTester) -> SystemUnderTest:
        if chain.data_plane == "wire":
            return super()._system(chain, tester)
        queue = Queue(tester.engine, tester.share, self.trials, self)
        queue.able = frozenset(Ability) if self.able else frozenset()
        return SystemUnderTest(chain, queue, [PartOfChain(self.data_plane)], {}, set_up_seconds=0.25)


@pytest.fixture
def testbed() -> Testbed:
    return Testbed()


@pytest.fixture
def run(testbed: Testbed, tmp_path: Path) -> Run:
    session = Session(load_topology(SCHEMA_PATH.parent / "local.yaml"), tmp_path, Progress())
    session.equipment = equipment(testbed)
    made = Run(session)
    made.shared.limits.clock = lambda: testbed.now
    made.begin_test(Identity("test", "suite", ("sec-4.2",)), Chain("linux-bridge", 1), SMALL)
    return made


def recorded(run: Run) -> Mapping[str, Any]:
    ended = run.end_test(Identity("test", "suite"), "passed")
    assert not ended.problems
    (path,) = (run.session.results / "records").glob("*.json")
    return dict(json.loads(path.read_text()))


def test_a_loss_curve_is_in_the_record_with_its_trials(run: Run) -> None:
    run.measurement.by(METHODS["loss_curve"])
    record = recorded(run)
    points = record["methods"]["loss_curve"]["points"]
    assert [trial["phase"] for trial in record["trials"]] == ["loss_curve"] * 2 * len(points)
    loads = [point["load"] for point in points]
    assert loads == sorted(loads, reverse=True) and loads[0] == pytest.approx(0.95e6)
    found = record["results"]["loss_free_load"]
    assert found["frames_per_second"] <= CAPACITY * 1.01 < found["high_frames_per_second"]


def test_bursts_follow_the_search_and_tell_the_buffer(run: Run, testbed: Testbed) -> None:
    run.measurement.by(METHODS["back_to_back"])
    record = recorded(run)
    found = record["methods"]["back_to_back"]
    assert found["throughput"] == record["results"]["ndr"]["frames_per_second"]
    assert found["mean"] == pytest.approx(BUFFER / (1 - CAPACITY / 1e6), rel=0.03)
    assert record["results"]["buffer_time"]["seconds"] == pytest.approx(BUFFER / 1e6, rel=0.05)
    bursts = [trial for trial in testbed.trials if trial.frames]
    assert bursts and all(burst.load == UNPACED for burst in bursts)
    assert len([trial for trial in record["trials"] if "frames" in trial]) == len(bursts)


def test_latency_by_load_takes_the_trial_at_half_the_pdr_that_is_there(run: Run) -> None:
    run.measurement.by(METHODS["latency_by_load"])
    record = recorded(run)
    assert len(record["methods"]["latency_by_load"]["steps"]) == 4
    assert {"latency_p50", "latency_p99_at_ndr"} <= record["results"].keys()
    assert [trial["phase"] for trial in record["trials"][-4:]] == ["latency", *["latency_by_load"] * 3]


def test_the_recovery_is_the_time_to_the_last_lost_frame(run: Run) -> None:
    run.measurement.by(METHODS["system_recovery"])
    record = recorded(run)
    assert record["results"]["recovery_time"]["seconds"] == pytest.approx(RECOVERY, rel=0.01)
    assert record["trials"][-2]["overload"]["load"] == pytest.approx(
        1.1 * record["methods"]["system_recovery"]["throughput"]
    )


def test_each_instance_is_set_up_alone_and_none_is_left(run: Run, testbed: Testbed) -> None:
    standing: list[int] = []
    queue_measure = Queue.measure

    def noting(self: Queue, trial: Trial) -> TrialResult:
        standing.append(testbed.standing)
        return queue_measure(self, trial)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Queue, "measure", noting)
        result = run.measurement.by(METHODS["repeated_instantiation"], 5)
    assert set(standing) == {1} and testbed.standing == 0
    assert all(0.25 <= each < 0.3 for each in result.seconds)
    record = recorded(run)
    assert len(record["methods"]["repeated_instantiation"]["instances"]) == 5
    assert record["results"]["rate_variation"]["ratio"] == pytest.approx(0)


def test_each_chain_of_a_test_gets_its_flows_once_also_in_further_instances(run: Run, testbed: Testbed) -> None:
    run.end_test(Identity("test", "suite"), "passed")
    testbed.data_plane = replace(testbed.data_plane, further_entries=({},))
    testbed.trials.clear()
    run.begin_test(Identity("two", "suite"), Chain("macvlan", 1, chains=2), SMALL, flows=3)
    run.measurement.mrr()
    run.measurement.by(METHODS["repeated_instantiation"], 2)
    assert {(trial.traffic.groups, trial.traffic.flows) for trial in testbed.trials} == {(2, 6)}
    assert run.current.record.to_json()["traffic"]["flows"] == 6


def test_a_soak_reads_the_memory_of_processes(run: Run, testbed: Testbed) -> None:
    host = ScriptedHost(answers={"grep -HE": STATUS, "grep ^SUnreclaim": "SUnreclaim: 100 kB\n"})
    user = CpuUser("pod1", host, lambda: [5])
    part = replace(run.measurement.sut.parts[0], data_plane=replace(testbed.data_plane, cpu_users=[user]))
    run.measurement.sut = replace(run.measurement.sut, parts=[part])
    run.measurement.by(METHODS["soak"], 9.0)
    record = recorded(run)
    found = record["methods"]["soak"]
    assert found["memory"] == {"testpmd (5)": {"bytes": [2**20] * 3, "growth": 0, "flat": True}}
    assert next(iter(found["kernel_memory"].values()))["bytes"] == [102_400] * 3
    assert found["load"] == pytest.approx(0.9 * record["results"]["ndr"]["frames_per_second"])
    assert record["results"]["memory_growth"]["bytes"] == 0
    assert 0 < record["results"]["loss_bound"]["ratio"] < 1e-5


@pytest.mark.parametrize("name", ["back_to_back", "system_recovery"])
def test_a_tester_that_cannot_is_a_reason_to_skip_before_any_trial(run: Run, testbed: Testbed, name: str) -> None:
    testbed.able = False
    run.end_test(Identity("test", "suite"), "passed")
    run.begin_test(Identity("other", "suite"), Chain("macvlan", 1), SMALL)
    before = len(testbed.trials)
    with pytest.raises(Unavailable, match=r"this method needs a tester that .*, and simulated is none"):
        measure_by_method(run.measurement, name)
    assert len(testbed.trials) == before


@pytest.mark.parametrize("name", list(METHODS))
def test_a_counted_machine_has_none_of_them(run: Run, name: str) -> None:
    run.measurement.limits = None
    with pytest.raises(Unavailable, match="measures cost only"):
        measure_by_method(run.measurement, name)


def test_only_thresholds_of_the_methods_of_the_test_are_judged(run: Run) -> None:
    record = run.measurement.test.record
    record.thresholds = [
        Threshold("mrr", "Mpps", minimum=5.0),
        Threshold("loss_free_load", "Mpps", minimum=0.05),
    ]
    run.measurement.by(METHODS["loss_curve"])
    run.measurement.drop_thresholds_of_other_methods()
    verdict = run.measurement.judge()
    assert verdict.status is Status.PASSED
    assert [outcome.metric for outcome in verdict.outcomes] == ["loss_free_load"]


def test_the_keywords_pass_the_wanted_change_and_ramp_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("Methods.open_run", lambda: run)
    with pytest.raises(Unavailable, match="does not offer the change 'x'"):
        Methods().measure_reconfiguration("x")
    with pytest.raises(PodperfError, match="begins with 1 to 4 of them, not with 5"):
        Methods().measure_many_pairs(4, first=5)
