"""A run on a testbed in simulated time. Trials, limits and records follow the topology and the tests."""

from __future__ import annotations

import errno
import io
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pytest
from robot.errors import ExecutionFailed

from podperf.counted_machine.boot import CountedMachine
from podperf.counted_machine.plugin import Plugin
from podperf.counted_machine.profile import Profiler
from podperf.counted_machine.snapshot import Snapshot
from podperf.cpu_plan import CpuPlan, plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import DataPlane, RunningDataPlane
from podperf.errors import PodperfError, TrialNotDelivered, Unavailable
from podperf.experiments.claim import Claim
from podperf.experiments.contender import Contender
from podperf.frames import PLAIN, Headers
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import Cpus
from podperf.kernel.thread_time import CpuUser, RunTime
from podperf.methods import METHODS
from podperf.metrics import METRICS, Measured, Metric, Metrics, Need, Quantity, Unit
from podperf.model import (
    BOTH_DIRECTIONS,
    IMIX,
    PORTS,
    Chain,
    Direction,
    DirectionResult,
    Ends,
    FrameSize,
    Latency,
    NetworkingModel,
    Placement,
    Trial,
    TrialResult,
)
from podperf.noise import Noise
from podperf.progress import Progress
from podperf.records import Record, read_record
from podperf.records.files import replace_file
from podperf.report.facts import environment_facts
from podperf.report.loss_curve import loss_curve
from podperf.run import Run, Session
from podperf.run import TestIdentity as Identity
from podperf.run.session import Equipment
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.scenarios import Placed
from podperf.testbed.system_under_test import PROBE_LOAD, PartOfChain, SystemUnderTest
from podperf.testers.base import UNPACED, Ability, PortFacts, TesterFacts, TrialSource
from podperf.testers.faults import Fault, FaultKind
from podperf.thresholds import Status
from podperf.topology import (
    SCHEMA_PATH,
    Engine,
    MethodSettings,
    SshSettings,
    Threshold,
    TrexSettings,
    WorkerSettings,
    load_topology,
    topology_schema,
)

SMALL = FrameSize.parse(64)
LATENCY = Latency(1000, 1000.0, 1000, {999: 1})
CEILING: Mapping[str, float] = {"auto": 1e6, "xdp": 1e6, "packet-ring": 1e5, "trex": 1e6}  # frames/s of each engine


class Part:
    """A part of a data plane. A `broken` part cannot be described."""

    broken = False

    def check(self) -> None:
        return

    def describe(self) -> Mapping[str, Any]:
        if self.broken:
            raise IndexError
        return {}


class SimulatedTester:
    """Sends as much as its engine can. 90 % of the frames come back from a chain, and all from a bare path."""

    shortest_trial: ClassVar[float] = 0.0
    broken = False
    able = frozenset({Ability.GROUPS})

    def __init__(self, engine: Engine, share: float, trials: list[Trial], testbed: SimulatedTestbed) -> None:
        self.engine, self.share, self.trials, self.testbed = engine, share, trials, testbed

    def measure(self, trial: Trial) -> TrialResult:
        self.trials.append(trial)
        self.testbed.now += trial.duration
        ceiling = CEILING[self.engine] if self.share == 1 else self.testbed.ceiling or CEILING[self.engine]
        load = ceiling if trial.load == UNPACED else min(trial.load, ceiling)
        sent = max(1, round(load * trial.duration))
        received = max(1, round(sent * self.share) - round(sent * self.testbed.own_loss))
        each = [
            DirectionResult(way, sent, sent, received, 0, 0, 0, trial.duration, latency=self.testbed.latency)
            for way in trial.traffic.directions
        ]
        late = "too slow" if load < 0.99 * trial.load else None
        if trial.loop and self.share < 1 and self.testbed.loses:
            late = "3 of 2049 frames of a closed loop were lost"
        return TrialResult(trial, 0.0, tuple(each), invalid=late, windows=self._windows(trial))

    def _windows(self, trial: Trial) -> tuple[int, ...]:
        """A frame costs 1000 instructions on the bare path, and ten times as many across a chain."""
        each = 64_000 if self.share == 1 else 640_000
        return (each,) * trial.loop.windows if trial.loop else ()

    @property
    def facts(self) -> TesterFacts:
        ports = PortFacts("02:00:00:00:00:01"), PortFacts("02:00:00:00:00:02")
        return TesterFacts("simulated", "1", self.engine, *ports, copies=False, abilities=self.able)

    def describe(self) -> Mapping[str, Any]:
        return {}

    def close(self) -> None:
        return


class SimulatedTestbed:
    """Its chains are ready at once. `engine` sends across them. `calibrated` has the engines of bare paths so far."""

    ports: ClassVar[Mapping[str, Host]] = {}
    tester_ports: ClassVar[Mapping[str, Host]] = {}

    def __init__(self, engine: Engine = "xdp") -> None:
        self.engine = engine
        self.data_plane = RunningDataPlane({}, {}, dict)
        self.standing = 0  # chains
        self.shares: dict[str, float] = {}  # of the frames that come back, by data plane
        self.now = 0.0
        self.own_loss = 0.0  # of the tester
        self.latency = LATENCY
        self.loses = False  # whether frames of closed loops are lost in chains
        self.ceiling: float | None = None  # the ceiling across a chain, if it differs from the bare path's
        self.trials: list[Trial] = []
        self.calibrated: list[Engine] = []
        self.workers = [WorkerMachine(WorkerSettings("local", None), LocalHost(), Placement((0,), (1,)))]
        self.topology = load_topology(SCHEMA_PATH.parent / "local.yaml")

    def cpu_plans(self, chain: Chain) -> list[CpuPlan]:
        return [plan_cpus(worker.placement, chain.pods, with_switch=False) for worker in self.workers]

    def demand(self, chain: Chain) -> type[DataPlane]:
        return DATA_PLANES[chain.data_plane]

    def build_placed(
        self,
        _: Placed,
        chain: Chain,
        frame: FrameSize,
        directions: tuple[Direction, ...],
        first: Callable[[ExitStack], None] = lambda _: None,
        headers: Headers = PLAIN,
    ) -> AbstractContextManager[SystemUnderTest]:
        return self.build(chain, frame, directions, first, headers)

    @contextmanager
    def build(
        self,
        chain: Chain,
        _: FrameSize,
        directions: tuple[Direction, ...],
        first: Callable[[ExitStack], None] = lambda _: None,
        headers: Headers = PLAIN,
    ) -> Iterator[SystemUnderTest]:
        assert directions
        share = 1.0 if chain.data_plane == "wire" else self.shares.get(chain.data_plane, 0.9)
        with ExitStack() as undo:
            first(undo)
            self.standing += 1
            try:
                yield self._system(chain, SimulatedTester(self.engine, share, self.trials, self))
            finally:
                self.standing -= 1

    @contextmanager
    def bare_path(self, _: FrameSize, engine: Engine = "xdp", *, ends: Ends = PORTS) -> Iterator[SystemUnderTest]:
        self.calibrated.append(engine)
        yield self._system(Chain("wire", 0, ends=ends), SimulatedTester(engine, 1.0, [], self))

    def with_pods(self, changes: Mapping[str, Any], *, alone: bool = False) -> SimulatedTestbed:
        assert not changes
        return self

    def tester_with_ports(self) -> SimulatedTester:
        return SimulatedTester(self.engine, 0.9, self.trials, self)

    def _system(self, chain: Chain, tester: SimulatedTester) -> SystemUnderTest:
        return SystemUnderTest(
            chain, tester, [PartOfChain(replace(self.data_plane, ports=self.ports))], {}, self.tester_ports
        )


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that is open on a simulated testbed with CPU 1 for the system under test."""
    session = Session(load_topology(SCHEMA_PATH.parent / "local.yaml"), tmp_path, Progress())
    session.equipment = equipment(SimulatedTestbed())
    made = Run(session)
    made.shared.limits.clock = lambda: simulated(made).now
    return made


def between(first: Chain, second: Chain) -> Claim:
    """The claim that the first chain forwards more."""
    return Claim("made-up", "A is faster than B", tuple(Contender(str(each), each) for each in (first, second)))


def equipment(testbed: SimulatedTestbed) -> Equipment:
    """This testbed on a machine of two CPUs that nobody watches."""
    quietness: Any = None
    return Equipment(testbed, [Cpus((0, 1), (0, 1))], {}, quietness)  # type: ignore[arg-type]


def configure(run: Run, **settings: Any) -> None:
    """Let the topology of a run say something else."""
    run.session.topology = simulated(run).topology = replace(run.session.topology, **settings)


def simulated(run: Run) -> SimulatedTestbed:
    """The simulated testbed of a run."""
    testbed = run.session.equipment.testbed
    assert isinstance(testbed, SimulatedTestbed)
    return testbed


@pytest.fixture
def counted(run: Run, tmp_path: Path) -> Run:
    """This run on a counted machine."""
    settings = WorkerSettings("counted", None)
    simulated(run).workers = [WorkerMachine(settings, LocalHost(), Placement((0,), (0,)))]
    configure(run, workers=(settings,))
    run.session.profiler = Profiler(
        CountedMachine(SshSettings(), Plugin(missing="QEMU is too old"), Snapshot(tmp_path), "booted"), LocalHost()
    )
    return run


def test_a_counted_machine_measures_what_a_chain_costs_beyond_the_bare_path(counted: Run) -> None:
    for name in ("linux-bridge", "macvlan"):
        counted.begin_test(Identity(name, "suite"), Chain(name, 1), SMALL)
        assert counted.measurement.cost().cost(1) == 9000
        assert simulated(counted).standing == 0
        counted.end_test(Identity(name, "suite"), "passed")
    assert len(simulated(counted).calibrated) == 4, "the builds of one bare path serve both"
    (path,) = (counted.session.results / "records").glob("*macvlan*.json")
    record = json.loads(path.read_text())
    assert record["methods"]["cost"]["instructions_per_frame"] == 9000
    assert {burst["functions_missing"] for burst in record["methods"]["cost"]["bursts"]} == {"QEMU is too old"}
    assert record["results"]["cost_in_bursts"] == {"instructions_per_frame": 9000, "lower_bound": False}
    loops = [trial["loop"] for trial in record["trials"]]
    assert {loop["frames_in_flight"] for loop in loops} == {1, 32}
    assert all(len(loop["instructions_of_each_window"]) == 32 for loop in loops)
    assert {time.time() - trial["started"] < 3600 for trial in record["trials"]} == {True}, "by the host's clock"
    assert loss_curve(Record.of(record)) == "", "a closed loop has no load"
    assert record["environment"]["placement_remarks"] == [], "that all share one CPU is what makes the loop closed"


def test_a_chain_that_loses_frames_fails_but_one_with_processes_is_not_judged(counted: Run) -> None:
    testbed = simulated(counted)
    testbed.loses = True
    counted.begin_test(Identity("kernel", "suite"), Chain("linux-bridge", 1), SMALL)
    with pytest.raises(TrialNotDelivered, match="is not judged: 3 of 2049"):
        counted.measurement.cost()
    counted.end_test(Identity("kernel", "suite"), "failed")
    testbed.data_plane = replace(testbed.data_plane, parts=[Part()])
    counted.begin_test(Identity("poller", "suite"), Chain("af-xdp", 1), SMALL)
    with pytest.raises(Unavailable, match=r"is not judged: 3 of 2049 .* share the only CPU with the tester"):
        counted.measurement.cost()


def test_a_counted_machine_measures_no_rate_and_no_mix(counted: Run) -> None:
    counted.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    with pytest.raises(Unavailable, match="measures cost only"):
        counted.measurement.mrr()
    with pytest.raises(Unavailable, match="measures cost only"):
        counted.measurement.ndr_and_pdr()
    counted.end_test(Identity("test", "suite"), "skipped")
    counted.begin_test(Identity("mix", "suite"), Chain("linux-bridge", 1), IMIX)
    with pytest.raises(Unavailable, match="frames of one size"):
        counted.measurement.cost()


def test_cost_is_measured_on_a_counted_machine_only(run: Run) -> None:
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    with pytest.raises(Unavailable, match=r"topologies/counted\.yaml"):
        run.measurement.cost()


def test_a_skipped_test_leaves_no_patience_to_the_next(run: Run) -> None:
    each = run.session.topology.method.patience
    assert each > 0
    for outcome, left in (("passed", each), ("skipped", each), ("passed", 2 * each)):
        run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
        run.end_test(Identity("test", "suite"), outcome)  # type: ignore[arg-type]
        assert run.shared.patience.left == left


def test_a_test_waits_for_itself_alone(run: Run) -> None:
    """A record has the time that its test waited. A test without trials must not have the time of the previous test."""
    run.begin_test(Identity("patient", "suite"), Chain("linux-bridge", 1), SMALL)
    run.current.patience.spend(2)
    run.end_test(Identity("patient", "suite"), "passed")
    run.end_test(Identity("isolated", "suite"), "passed")
    paths = sorted((run.session.results / "records").glob("*.json"))
    assert [json.loads(path.read_text())["waited_for_quietness"] for path in paths] == [0.0, 2.0]


def test_a_mechanism_that_is_not_in_force_is_a_reason_to_skip_before_anything_is_described(run: Run) -> None:
    broken = Part()
    broken.broken = True
    simulated(run).data_plane = RunningDataPlane({}, {}, broken.describe, [broken], (), lambda: "nothing is polled")
    with pytest.raises(Unavailable, match="nothing is polled"):
        run.begin_test(Identity("test", "suite"), Chain("af-xdp-busy-poll", 1), SMALL)


def test_a_record_has_the_sections_of_both_networking_models(run: Run) -> None:
    simulated(run).data_plane = replace(simulated(run).data_plane, second_model=NetworkingModel.EBPF)
    run.begin_test(Identity("test", "suite", ("sec-4.1.2",)), Chain("ovs-dpdk", 1), SMALL)
    run.end_test(Identity("test", "suite", ("sec-4.1.2",)), "passed")
    (path,) = (run.session.results / "records").glob("*.json")
    assert json.loads(path.read_text())["test"]["sections"] == ["4.1.2", "4.1.3"]


def test_a_chain_is_taken_down_whatever_the_last_look_at_it_brings(run: Run) -> None:
    """Otherwise its namespaces stand in the way of every test that follows."""
    broken = Part()
    simulated(run).data_plane = RunningDataPlane({}, {}, broken.describe, [broken])
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    assert simulated(run).standing == 1
    broken.broken = True
    with pytest.raises(IndexError):
        run.tear_down_chain()
    assert simulated(run).standing == 0


def test_chains_are_compared_by_the_limits_of_the_engine_that_sends(run: Run) -> None:
    """The topology's `auto` may have come to the slower one, and then its limit makes a rate a lower bound."""
    testbed = SimulatedTestbed("packet-ring")
    run.session.equipment = equipment(testbed)
    claim = between(Chain("macvlan", 1), Chain("linux-bridge", 1))
    run.compare(Identity("test", "suite"), claim)
    record = run.current.record
    assert list(record.methods["comparison"]["maximum_loads"].values()) == pytest.approx([0.95 * 1e5] * 2)
    assert list(record.methods["comparison"]["frames"].values()) == ["64B", "64B"]
    assert record.limits is not None and record.limits.maximum_load == pytest.approx(0.95 * 1e5)
    assert testbed.calibrated == ["packet-ring"]  # type: ignore[attr-defined]


def measured(run: Run, data_plane: str, pods: int, name: str, **traffic: Any) -> Any:
    """The record of a test that measures MRR across this chain and is judged."""
    run.begin_test(Identity(name, "suite"), Chain(data_plane, pods), SMALL, **traffic)
    run.measurement.mrr()
    run.measurement.judge()
    record = run.current.record
    run.end_test(Identity(name, "suite"), "passed")
    return record


FAULT = "the tester itself loses frames: at least 0.0997 % in each of 12 trials on the bare path"


def searched(run: Run, data_plane: str = "linux-bridge", pods: int = 1, *thresholds: str) -> Any:
    """The record of a test with all measurements of this chain, and with these thresholds."""
    configure(run, thresholds=tuple(Threshold(threshold, "Mpps", minimum=1e-6) for threshold in thresholds))
    run.begin_test(Identity("test", "suite"), Chain(data_plane, pods), SMALL)
    run.measurement.mrr()
    run.measurement.ndr_and_pdr()
    run.measurement.judge()
    record = run.current.record
    run.end_test(Identity("test", "suite"), "passed")
    return record


def test_a_tester_that_loses_frames_by_itself_tells_no_ndr(run: Run) -> None:
    notes = run.progress.stream = io.StringIO()
    simulated(run).own_loss = 0.001
    record = searched(run, "wire", 0, "mrr", "ndr")
    assert notes.getvalue().startswith(f"{FAULT}. NDR is not judged"), "at the start of the run"
    assert "ndr" not in record.metrics and record.metrics["pdr"].value == pytest.approx(0.95e6, rel=0.01)
    assert record.methods["ndrpdr"]["missing"] == {"NDR": f"not judged: {FAULT}"}
    assert [outcome.status for outcome in record.verdict.outcomes] == [Status.PASSED, Status.NOT_JUDGED]
    assert record.verdict.status is Status.PASSED and f"NDR not judged: {FAULT}" in record.verdict.sentence
    again = searched(run, "wire", 0)
    assert again.limits.doubt == FAULT and notes.getvalue().count("NDR is not judged") == 1, "said once"
    said = " ".join(run.close().split())
    assert "passed, faulty tester" in said and "measured, faulty tester" in said
    assert f"NDR not judged: {FAULT} 0.0997 % of the frames are the tester's own loss" in said
    assert said.count(FAULT) == 1, "once for both rows"


def test_a_tester_that_stamps_frames_wrongly_tells_rates_and_no_latency(run: Run) -> None:
    """Five milliseconds on a bare path. Across a chain nobody could tell that this latency is wrong."""
    notes = run.progress.stream = io.StringIO()
    simulated(run).latency = Latency(5_000_000, 5e6, 5_000_000, {2000: 1})
    fault = "the tester itself stamps frames with wrong times: at least 100 % in each of 12 trials on the bare path"
    run.begin_test(Identity("test", "suite"), Chain("wire", 0), SMALL)
    configure(run, thresholds=(Threshold("latency_p50", "us", maximum=1e6), Threshold("mrr", "Mpps", minimum=1e-6)))
    run.measurement.mrr()
    run.measurement.ndr_and_pdr()
    run.measurement.latency()
    run.measurement.by(METHODS["latency_by_load"])
    run.measurement.judge()
    record = run.current.record
    assert notes.getvalue().startswith(f"{fault}. no row shows a latency")
    assert {"mrr", "pdr"} <= record.metrics.keys() and not [metric for metric in record.metrics if "latency" in metric]
    assert record.latency is None
    assert record.methods["latency"]["missing"] == {"latency at 50 % of PDR": f"not known: {fault}"}
    assert set(record.methods["latency_by_load"]["missing"].values()) == {f"not known: {fault}"}
    run.end_test(Identity("test", "suite"), "passed")
    assert "latency at 50 % of PDR, latency at 10 % of PDR, " in (said := " ".join(run.close().split()))
    assert said.count(f"not known: {fault}") == 1


def test_a_tester_that_was_held_up_by_a_noisy_machine_is_believed_as_soon_as_it_is_quiet(run: Run) -> None:
    simulated(run).own_loss = 0.001
    assert searched(run).limits.faults
    simulated(run).own_loss = 0.0
    record = searched(run)
    assert not record.limits.faults and "ndr" in record.metrics
    calibrated = len(simulated(run).calibrated)
    searched(run)
    assert len(simulated(run).calibrated) == calibrated, "a sound tester is calibrated once"


def test_a_clock_that_once_ran_wrong_is_doubted_for_the_whole_run(run: Run) -> None:
    run.shared.limits.clock = lambda: simulated(run).now * 1.02
    (fault,) = searched(run).limits.faults
    assert fault.kind is FaultKind.CLOCK
    run.shared.limits.clock = lambda: simulated(run).now
    assert searched(run).limits.faults == (fault,), "noise of a later moment would have hidden it"


def test_a_finding_by_a_tester_that_loses_frames_is_inconclusive(run: Run) -> None:
    claim = between(Chain("wire", 0), Chain("linux-bridge", 1))
    simulated(run).own_loss = 0.001
    finding = run.compare(Identity("test", "suite"), claim)
    assert finding.verdict == "inconclusive" and finding.detail.startswith(f"{FAULT}; ")


def test_a_search_begins_at_what_the_tester_has_delivered_in_this_test(run: Run) -> None:
    """A device, or the tester's own CPUs, can make the tester slower than on the bare path."""
    testbed = simulated(run)
    testbed.ceiling = 130e3
    configure(run, method=replace(run.session.topology.method, patience=0.0))
    record = searched(run)
    assert record.limits.maximum_load == pytest.approx(0.95e6)
    assert record.methods["mrr"]["delivered_load"] == pytest.approx(0.95 * 130e3)
    assert record.methods["ndrpdr"]["maximum_load"] == pytest.approx(0.95 * 130e3)
    loads = [trial.load for trial in testbed.trials if trial.load]
    assert max(loads) <= 130e3, "no trial was in vain"


def test_the_record_tells_how_long_trials_were_with_a_tester_that_needs_long_ones(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = searched(run).methods["ndrpdr"]["preset"]
    assert quick["adapted"] == ""
    monkeypatch.setattr(SimulatedTester, "shortest_trial", 0.5)
    configure(run, method=replace(run.session.topology.method, mrr_trial_duration=0.3))
    record = searched(run)
    assert record.methods["mrr"]["trial_duration"] == 0.5
    preset = record.methods["ndrpdr"]["preset"]
    assert {goal["final_trial_duration"] for goal in preset["goals"]} == {0.5}
    assert preset["adapted"] == "trials of 0.5 s, not 0.2 s: the shortest that this tester can do well"
    assert f"preset quick has {preset['adapted']}" in " ".join(run.close().split())


def test_a_record_names_the_one_that_its_ratios_are_of(run: Run) -> None:
    before = measured(run, "linux-bridge", 1, "before")
    assert before.verdict.status == "passed" and before.baseline is None, "held against the calibration"
    wire = measured(run, "wire", 0, "wire")
    after = measured(run, "linux-bridge", 1, "after")
    assert after.baseline == wire.id
    assert after.to_json()["baseline"] == wire.id
    configure(run, thresholds=(Threshold("mrr", "Mpps", minimum=0.1),))
    assert measured(run, "linux-bridge", 1, "absolute").baseline is None
    other = measured(run, "linux-bridge", 1, "other", directions=BOTH_DIRECTIONS)
    assert other.baseline is None, "other traffic, other baseline"


def test_a_bare_path_that_was_slower_than_the_calibration_is_no_baseline(run: Run) -> None:
    """The disturbance that slowed the bare path would make every chain look better."""
    run.begin_test(Identity("wire", "suite"), Chain("wire", 0), SMALL)
    run.current.keep({"mrr": Measured(1e5, lower_bound=True)})
    run.measurement.judge()
    run.end_test(Identity("wire", "suite"), "passed")
    record = measured(run, "linux-bridge", 1, "after")
    (outcome,) = (each for each in record.verdict.outcomes if each.metric == "mrr")
    assert outcome.measured == pytest.approx(0.9, rel=0.1)


def test_a_calibration_of_another_engine_does_not_replace_the_measured_baseline(run: Run) -> None:
    wire = measured(run, "wire", 0, "wire")
    run.session.equipment = equipment(SimulatedTestbed("packet-ring"))
    after = measured(run, "linux-bridge", 1, "after")
    assert after.baseline == wire.id
    (outcome,) = (each for each in after.verdict.outcomes if each.metric == "mrr")
    assert outcome.measured == pytest.approx(0.9e5 / wire.metrics["mrr"].value)


def test_ratios_of_the_calibration_are_of_the_engine_that_sent(run: Run) -> None:
    run.session.equipment = equipment(SimulatedTestbed("packet-ring"))
    slow = measured(run, "linux-bridge", 1, "slow")
    run.session.equipment = equipment(SimulatedTestbed("xdp"))
    fast = measured(run, "linux-bridge", 1, "fast")
    for record in (slow, fast):
        (outcome,) = (each for each in record.verdict.outcomes if each.metric == "mrr")
        assert outcome.measured == pytest.approx(0.9, rel=0.1)


@pytest.mark.parametrize("side", ["ports", "tester_ports"])
def test_a_link_that_is_slower_than_the_tester_is_its_limit(
    side: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frames that do not fit on the link are no loss of the system under test. A rate near it is a lower bound.

    The worker's ports may be driven by DPDK. The kernel then does not know their speed.
    """
    monkeypatch.setattr(SimulatedTestbed, side, {"ens4": LocalHost()})
    monkeypatch.setattr("podperf.run.measurement.interface_details", lambda *_: {"speed_bits_per_second": 336e6})
    record = measured(run, "linux-bridge", 1, "slow link")
    assert set(record.interfaces) == {"ens4" if side == "ports" else "tester ens4"}
    assert record.limits is not None
    assert (record.limits.maximum_load, record.limits.source) == (500_000, "the line rate of the link")
    assert {trial.load for trial in simulated(run).trials[-3:]} == {500_000}


def test_a_held_load_is_compared_with_what_the_bare_path_could_do_of_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bare path has no line rate. A ratio to 90 % of a link's rate must not depend on an earlier `wire` row."""
    wire = measured(run, "wire", 0, "wire")
    assert wire.metrics["mrr"].value > 500_000
    monkeypatch.setattr(SimulatedTestbed, "tester_ports", {"ens4": LocalHost()})
    monkeypatch.setattr("podperf.run.measurement.interface_details", lambda *_: {"speed_bits_per_second": 336e6})
    record = measured(run, "linux-bridge", 1, "slow link")
    (outcome,) = (each for each in record.verdict.outcomes if each.metric == "mrr")
    assert outcome.measured == pytest.approx(record.metrics["mrr"].value / 500_000)


def test_a_test_has_one_chain_and_one_record(run: Run) -> None:
    run.begin_test(Identity("loop", "suite"), Chain("linux-bridge", 1), SMALL)
    with pytest.raises(PodperfError, match="this test has measured already"):
        run.begin_test(Identity("loop", "suite"), Chain("macvlan", 1), SMALL)
    assert run.current.record.chain == Chain("linux-bridge", 1, run.current.record.chain.forwarder)  # type: ignore[union-attr]


def test_a_test_without_a_chain_is_of_the_same_testbed(run: Run) -> None:
    """Else its failure on one machine would be superseded by its success on another."""
    run.session.equipment = replace(run.session.equipment, environment={"cpu": {"model": "made up"}})
    run.end_test(Identity("isolated", "suite"), "passed")
    (path,) = (run.session.results / "records").glob("*.json")
    assert json.loads(path.read_text())["environment"] == {"cpu": {"model": "made up"}}


def test_no_flows_at_all_are_refused(run: Run) -> None:
    with pytest.raises(PodperfError, match="flow"):
        run.begin_test(Identity("flows", "suite"), Chain("linux-bridge", 1), SMALL, flows=0)


@pytest.mark.parametrize("error", [PodperfError, OSError, ExecutionFailed])
def test_a_machine_that_cannot_be_given_back_takes_nothing_from_the_reports(run: Run, error: type[Exception]) -> None:
    """Ctrl-C at that moment does no harm either. Robot Framework makes an exception of it."""

    def lost() -> None:
        raise error("the worker is gone")

    measured(run, "linux-bridge", 1, "measured")
    run.session._undo.callback(lost)
    said = run.close()
    assert "1 test: 1 passed" in said and "podperf: the worker is gone; once: sudo ./podperf clean" in said
    assert (run.session.results / "conformance.html").exists()


def test_a_report_that_cannot_be_written_takes_nothing_from_the_summary(run: Run) -> None:
    measured(run, "linux-bridge", 1, "measured")
    (run.session.results / "conformance.html").mkdir()
    said = run.close()
    assert "1 test: 1 passed" in said and "podperf: " in said and said.endswith("the records are untouched")


def test_no_frame_crosses_the_testbed_at_more_than_its_maximum_load(run: Run) -> None:
    """With ports of a TRex the limits are found across the testbed itself."""
    trex = replace(run.session.topology.tester, kind=TrexSettings(), maximum_load=5000.0)
    testbed = SimulatedTestbed("trex")
    run.session.equipment = equipment(testbed)
    configure(run, tester=trex)
    measured(run, "linux-bridge", 1, "held")
    loads = {trial.load for trial in testbed.trials}  # type: ignore[attr-defined]
    assert UNPACED not in loads and max(loads) == 5000
    schema = topology_schema()["properties"]["tester"]["properties"]["maximum_load"]
    assert schema["minimum"] >= PROBE_LOAD, "the first frames that cross a chain are a load, too"


def test_what_is_to_be_known_of_the_placement_goes_by_the_directions_of_the_test(run: Run) -> None:
    assert measured(run, "linux-bridge", 1, "one way").environment["placement_remarks"] == []
    both = measured(run, "linux-bridge", 1, "both ways", directions=BOTH_DIRECTIONS)
    assert both.environment["placement_remarks"] == ["2 directions share CPU 1 of the system under test"]
    assert (
        environment_facts(Record.of(both.to_json()))["Placement remarks"]
        == "2 directions share CPU 1 of the system under test"
    )


def test_the_methods_are_those_of_the_topology(run: Run) -> None:
    configure(run, method=MethodSettings("rfc2544", 7, 0.5))
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.measurement.mrr()
    run.measurement.ndr_and_pdr()
    found = run.current.record.methods
    assert (found["mrr"]["trial_count"], found["mrr"]["trial_duration"]) == (7, 0.5)
    assert found["ndrpdr"]["preset"]["name"] == "rfc2544"


@pytest.mark.parametrize(("preset", "rate"), [("quick", "pdr"), ("rfc2544", "ndr")])
def test_latency_is_of_half_the_pdr_or_of_half_the_ndr_where_the_preset_seeks_no_pdr(
    run: Run, preset: str, rate: str
) -> None:
    configure(run, method=replace(run.session.topology.method, search=preset))
    run.begin_test(Identity("test", "suite"), Chain("wire", 0), SMALL)
    run.measurement.ndr_and_pdr()
    assert run.measurement.latency()
    found = run.current.record
    assert found.methods["latency"]["load"] == found.metrics[rate].value / 2
    assert found.methods["latency"]["statement"] == f"1 s at 50% of the {rate.upper()}"


def test_cpu_time_is_that_of_trains_at_the_load_of_latency(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads have taken 2 µs more each time that somebody asks. Half a second at 225 kpps has 101 250 frames."""
    asked = count(0, 2000)

    def now(_: Host, threads: Sequence[int]) -> Mapping[int, RunTime]:
        return dict.fromkeys(threads, RunTime(next(asked)))

    monkeypatch.setattr("podperf.kernel.thread_time.run_times", now)
    users = [CpuUser("receive thread of w-left", LocalHost(), lambda: [7])]
    simulated(run).data_plane = replace(simulated(run).data_plane, cpu_users=users)
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.current.keep({"pdr": Measured(450e3)})
    assert run.measurement.latency() and run.measurement.cpu_time()
    latency, trial = simulated(run).trials[-2:]
    assert (latency.load, latency.train, trial.load, trial.train) == (225e3, 1, 225e3, 32)
    found = run.current.record
    assert found.metrics["cpu_time"].value == pytest.approx(2000 / 101_250)
    assert found.methods["cpu_time"]["train"] == 32
    assert next(asked) == 4000, "asked before and after that trial only"


def test_a_trial_that_the_tester_cannot_deliver_leaves_the_test_its_rates(run: Run) -> None:
    simulated(run).data_plane = replace(simulated(run).data_plane, cpu_users=[CpuUser("x", LocalHost(), lambda: [])])
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    simulated(run).ceiling = 1e5
    run.current.keep({"pdr": Measured(450e3)})
    assert not run.measurement.cpu_time()
    (reason,) = run.current.record.methods["cpu_time"]["missing"].values()
    assert reason.startswith("not read: the tester could not deliver a trial of 0.5 s at 225,000 frames/s")
    assert "cpu_time" not in run.current.record.metrics


def test_a_data_plane_that_names_no_threads_has_no_cpu_time_and_says_so(run: Run) -> None:
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    assert not run.measurement.cpu_time(), "there is no rate to halve"
    run.current.keep({"pdr": Measured(450e3)})
    assert run.measurement.cpu_time()
    assert "cpu_time" not in run.current.record.metrics
    missing = run.current.record.methods["cpu_time"]["missing"]
    assert missing == {"CPU time a frame": "not read: linux-bridge does not tell which threads handle frames"}


def test_latency_at_half_of_a_rate_that_is_not_known_passes_no_threshold(run: Run) -> None:
    configure(run, thresholds=(Threshold("latency_p99", "us", maximum=1e6),))
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.current.keep({"pdr": Measured(3e4, unfinished=True)})
    assert run.measurement.latency()
    found = run.current.record
    assert found.methods["latency"]["statement"] == "1 s at 50% of the PDR of an unfinished search"
    assert run.measurement.judge().status is Status.INCONCLUSIVE


CUT_SHORT = Measured(270e3, high=270e3, upper_bound=True, unfinished=True)


@pytest.mark.parametrize("found", [{}, {"ndr": CUT_SHORT, "pdr": CUT_SHORT}], ids=["nothing", "upper bounds"])
def test_a_search_that_found_no_load_to_halve_leaves_latency_out_and_the_rest_is_judged(
    run: Run, found: dict[str, Measured]
) -> None:
    configure(run, thresholds=(Threshold("pdr", "Mpps", minimum=0.1),))
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.current.record.metrics = found
    assert not run.measurement.latency()
    assert run.measurement.judge().status is (Status.INCONCLUSIVE if found else Status.NOT_JUDGED)


def test_a_bare_path_whose_search_was_cut_short_is_no_baseline_for_that_rate(run: Run) -> None:
    run.begin_test(Identity("wire", "suite"), Chain("wire", 0), SMALL)
    run.current.keep({"pdr": Measured(1e6, unfinished=True)})
    run.measurement.judge()
    run.end_test(Identity("wire", "suite"), "passed")
    configure(run, thresholds=(Threshold("pdr", "ratio of baseline", minimum=0.1),))
    run.begin_test(Identity("bridge", "suite"), Chain("linux-bridge", 1), SMALL)
    run.current.keep({"pdr": Measured(5e5)})
    assert "the search for the PDR of `wire` was not finished" in run.measurement.judge().sentence


def test_robots_log_shows_the_verdict_of_a_test_its_noise_and_its_trials(run: Run) -> None:
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.measurement.mrr()
    run.measurement.judge()
    run.current.note_noise("mrr", Noise((0,), 100.0, 0.0, {}, 0, 0, 0.01))
    run.current.note_noise("ndrpdr", Noise((0,), 1.0, 0.5, {}, 0, 0, 0.01))
    shown = run.end_test(Identity("test", "suite"), "passed").html
    assert "<b>passed</b>" in shown and "<b>noisy machine</b> NDR and PDR: CPU 0" in shown and "<svg" in shown


@pytest.mark.parametrize(
    ("outcome", "minimum", "word"),
    [("passed", 0.1, "passed"), ("passed", None, "measured"), ("interrupted", None, "interrupted")],
)
def test_a_test_ends_with_the_word_that_the_table_has_for_it(
    outcome: Any, minimum: float | None, word: str, run: Run
) -> None:
    configure(run, thresholds=(Threshold("mrr", "Mpps", minimum=minimum),) if minimum else ())
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.measurement.mrr()
    run.measurement.judge()
    ended = run.end_test(Identity("test", "suite"), outcome)
    assert (ended.verdict, ended.problems) == (word, ())
    assert re.fullmatch(r"MRR \d+ kpps", ended.figures)
    assert f"1 test: 1 {word}" in run.close()


TIDINESS = Metric(
    "tidiness",
    label="tidiness",
    head="tidy",
    quantity=Quantity(
        "tidiness",
        more_is_better=True,
        key="millipoints",
        unit="pt",
        scale=1e3,
        units=(Unit("points", "points of 1 to 10", lambda millipoints, _: millipoints / 1e3),),
    ),
    method="inspection",
    meaning="how few frames lie about",
    needs=frozenset((Need.COUNT,)),
)


class Inspected:
    """An inspection's result."""

    metrics: Metrics = MappingProxyType({"tidiness": Measured(4200.0)})

    def as_record(self) -> Mapping[str, Any]:
        return {"method": "inspection"}


class Inspection:
    """A method that nobody else knows."""

    name = "inspection"

    def run(self, source: TrialSource) -> Inspected:
        source.measure(1000, 0.1)
        return Inspected()


def test_a_new_metric_is_an_entry_of_the_table_and_a_method_that_measures_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(METRICS, "tidiness", TIDINESS)
    topology = tmp_path / "topology.yaml"
    topology.write_text("version: 1\nname: t\nthresholds: [{metric: tidiness, unit: points, minimum: 5}]\n")
    configure(run, thresholds=load_topology(topology).thresholds)
    run.begin_test(Identity("Sweep, 64 B", "suite", ["sec-4.1.1"]), Chain("linux-bridge", 1), SMALL)
    run.measurement.measure(Inspection())

    verdict = run.measurement.judge()
    assert verdict.sentence == "tidiness 4.2 points, at least 5 points was asked for: failed"
    ended = run.end_test(Identity("Sweep, 64 B", "suite"), "failed", verdict.sentence)
    assert ended.figures == "tidy 4.20 pt" and "tidiness" in ended.html

    table = run.close()
    assert re.search(r"^ +tidy\nTest +pt  Verdict$", table, re.M)
    assert re.search(r"^Sweep, 64 B  4\.20  failed$", table, re.M)
    (path,) = (tmp_path / "records").glob("*.json")
    record = read_record(path)
    assert record.document["results"] == {"tidiness": {"millipoints": 4200.0, "lower_bound": False}}
    page = (tmp_path / "conformance.html").read_text()
    assert all(words in page for words in (">tidy, pt</th>", ">4.20<", "tidy at least 5 points", "tidy missed"))
    assert "tidiness" in Fault(FaultKind.COUNTS_TWICE, 1.0, "").spoils

    monkeypatch.delitem(METRICS, "tidiness")
    with pytest.raises(PodperfError, match="'tidiness' was unexpected"):
        read_record(path)
    with pytest.raises(PodperfError, match=r"thresholds\[0\]\.metric: found 'tidiness'; allowed: mrr, ndr, pdr"):
        load_topology(topology)


def test_a_record_that_the_disk_did_not_take_is_named_in_the_last_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The table then shows the state that the trials' file has: interrupted."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run.begin_test(Identity("test", "suite"), Chain("linux-bridge", 1), SMALL)
    run.measurement.mrr()

    def full(path: Path, content: bytes) -> None:
        if path.parent.name == "records":
            raise OSError(errno.ENOSPC, "No space left on device")
        replace_file(path, content)

    monkeypatch.setattr("podperf.records.writer.replace_file", full)
    ended = run.end_test(Identity("test", "suite"), "passed")
    (saved,) = tmp_path.glob("podperf-record-*/*.json")
    assert ended.verdict == "interrupted" and ended.figures
    assert ended.problems == (run.close().rpartition("\n\npodperf: ")[2],)
    assert "No space left on device" in ended.problems[0] and str(saved.parent) in ended.problems[0]
    assert "1 test: 1 interrupted" in run.close()


def test_a_comparison_records_the_interfaces_of_each_chain(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedTestbed, "ports", {"w-left": LocalHost()})
    monkeypatch.setattr("podperf.run.measurement.interface_details", lambda _, name: {"driver": f"of {name}"})
    chains = (Chain("macvlan", 1), Chain("linux-bridge", 1))
    run.compare(Identity("test", "suite"), between(*chains))
    found = run.current.record.interfaces
    assert set(found) == {"macvlan, 1 pod: w-left", "linux-bridge, 1 pod: w-left"}
    assert found["macvlan, 1 pod: w-left"] == {"driver": "of w-left", "received_by": None}
    told = run.current.record.to_json()["parameters"]["chain_composition"]
    assert "linux-bridge, 1 pod: linux-bridge, 1 pod, each forwards by kernel" in told


def test_the_version_under_test_is_in_every_record(run: Run) -> None:
    run.version_under_test = "OVS 3.6"
    run.begin_test(Identity("measured", "suite"), Chain("linux-bridge", 1), SMALL)
    run.end_test(Identity("measured", "suite"), "passed")
    run.end_test(Identity("isolated", "suite"), "passed")
    paths = (run.session.results / "records").glob("*.json")
    assert [json.loads(path.read_text())["version_under_test"] for path in paths] == ["OVS 3.6"] * 2
