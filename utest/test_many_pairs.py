"""Many pairs: the ramp, the figures of a step, the pods that send at the same time, and the report."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import made_up
from podperf.errors import PodperfError, Unavailable
from podperf.frames import AddressFamily
from podperf.kubernetes import commands_in_pods, manifests, pod_pairs
from podperf.kubernetes.commands_in_pods import Conversation
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.pod_pairs import AT_ONCE, PodPairs
from podperf.kubernetes.settings import KubernetesSettings
from podperf.methods.many_pairs import ManyPairs, PairsAtOnce, at_once, grows, ramp
from podperf.methods.trials import ignore
from podperf.model import Trial, TrialResult
from podperf.report import command
from podperf.testers.base import UNPACED, TesterLimits, no_pairs
from simulated_chain import SimulatedChain
from simulated_dut import SimulatedDut
from test_further_methods import reported
from test_report_page import Seen
from traffic import TRAFFIC, counted

TRIAL = Trial(TRAFFIC, UNPACED, 1.0)


def result(received: int, began: float = 5.0) -> TrialResult:
    return TrialResult(TRIAL, began, (counted(1000, received),))


def simulated(pairs: Any) -> SimulatedChain:
    facts = SimpleNamespace(pairs=pairs)
    return SimulatedChain(SimulatedDut(4e5, 1e6), {}, sut_differs={"tester": SimpleNamespace(facts=facts)})


@dataclass
class Network:
    """Pairs of which each has a rate of its own up to a sum, which they share."""

    of_one: float
    most: float
    asked: list[int] = field(default_factory=list)

    def measure(self, trial: Trial, pairs: int) -> Sequence[TrialResult]:
        self.asked.append(pairs)
        rate = min(self.of_one, self.most / pairs)
        return [result(round(rate), began=5.0 + number / 1e3) for number in range(pairs)]


def test_the_ramp_doubles_and_ends_with_the_largest_number() -> None:
    assert list(ramp(1, 16)) == [1, 2, 4, 8, 16]
    assert list(ramp(10, 75)) == [10, 20, 40, 75]
    assert list(ramp(16, 16)) == [16]


@pytest.mark.parametrize(
    ("sums", "goes_on"),
    [
        ([100.0], True),
        ([100.0, 100.0], True),
        ([100.0, 104.0, 104.9], False),
        ([100.0, 90.0, 106.0], True),  # one noisy step does not end it
        ([100.0, 200.0, 205.0, 150.0], False),
    ],
)
def test_the_ramp_goes_on_while_the_sum_grows(sums: list[float], goes_on: bool) -> None:
    assert grows(sums) is goes_on


@pytest.mark.parametrize(("to_the_end", "steps"), [(False, [1, 2, 4, 8]), (True, [1, 2, 4, 8, 16])])
def test_the_ramp_ends_two_steps_after_the_largest_sum(to_the_end: bool, steps: list[int]) -> None:
    network = Network(100.0, 200.0)
    found = ManyPairs.on(simulated(lambda _tell: nullcontext(network)), 16, first=1, to_the_end=to_the_end)
    assert network.asked == [number for number in steps for _ in range(3)]
    assert found.metrics["pairs_rate"].value == 200.0
    assert ("did not grow" in found.end) is not to_the_end


def test_all_pairs_share_the_highest_load_that_a_topology_allows() -> None:
    loads: list[float] = []

    class Listening(Network):
        def measure(self, trial: Trial, pairs: int) -> Sequence[TrialResult]:
            loads.append(trial.load * pairs)
            return super().measure(trial, pairs)

    chain = simulated(lambda _tell: nullcontext(Listening(100.0, 200.0)))
    held = TesterLimits(1e6, 0.0, "made up").held_to(8000.0)
    chain.known_limits = lambda: held  # type: ignore[method-assign]
    assert ManyPairs.on(chain, 4).as_record()["load"] == 8000.0
    assert set(loads) == {8000.0}


def test_the_sum_is_that_of_its_parts_and_the_index_is_jains() -> None:
    found = PairsAtOnce([result(100, 5.0), result(300, 5.002)]).as_record()
    assert found["sum"] == sum(each["rate"] for each in found["of_pairs"]) == 400
    assert (found["smallest"], found["largest"]) == (100, 300)
    assert found["fairness"] == pytest.approx(400**2 / (2 * (100**2 + 300**2)))
    assert found["apart"] == pytest.approx(0.002)


def test_a_sender_that_had_no_cpu_for_most_of_the_trial_has_no_high_rate() -> None:
    """Its few frames left in one batch."""
    (way,) = result(32).directions
    batch = replace(result(32), directions=(replace(way, duration=27e-6),))
    assert batch.receive_rate > 1e6
    assert PairsAtOnce([batch]).rates == [32]


@pytest.mark.parametrize(("late", "tried"), [(1, 2), (3, 3)])
def test_pairs_that_do_not_send_at_the_same_time_are_no_result(late: int, tried: int) -> None:
    class Late(Network):
        def measure(self, trial: Trial, pairs: int) -> Sequence[TrialResult]:
            found = super().measure(trial, pairs)
            apart = 2.0 if len(self.asked) <= late else 0.4
            return [replace(each, started=5.0 + number * apart) for number, each in enumerate(found)]

    network = Late(100.0, 200.0)
    if late < 3:
        assert at_once(network, TRIAL, 2).apart == pytest.approx(0.4)
    else:
        with pytest.raises(PodperfError, match=r"starts were 2 s apart.* too little CPU time"):
            at_once(network, TRIAL, 2)
    assert len(network.asked) == tried


def test_no_pairs_are_refused_and_other_testers_say_what_is_needed() -> None:
    for first, most in ((0, 4), (5, 4)):
        with pytest.raises(PodperfError, match="begins with 1 to"):
            ManyPairs.on(simulated(no_pairs), most, first=first, to_the_end=False)
    with pytest.raises(Unavailable, match="pods of a cluster"):
        ManyPairs.on(simulated(no_pairs))


def test_the_report_has_a_row_for_each_number_of_pairs(tmp_path: Path) -> None:
    found = ManyPairs.on(simulated(lambda _tell: nullcontext(Network(1e5, 2e5))), 4)
    table, html, record = reported(tmp_path, "many_pairs", found, [])
    assert "rate of many pairs 200 kpps" in table
    for said in ("Many pairs at once", "Jain&#x27;s index", "Smallest pair", "Fairness"):
        assert said in html
    assert [each["pairs"] for each in record["methods"]["many_pairs"]["steps"]] == [1, 2, 4]
    assert [len(each["of_pairs"]) for each in record["methods"]["many_pairs"]["steps"]] == [1, 2, 4]


def test_the_row_says_why_its_ramp_ended_early(tmp_path: Path) -> None:
    found = replace(ManyPairs.on(simulated(lambda _tell: nullcontext(Network(1e5, 2e5))), 4), incomplete="8 pairs: no")
    table, _, _ = reported(tmp_path, "many_pairs", found, [])
    assert "the ramp of pairs ended early: 8 pairs: no" in " ".join(table.split())


def test_the_page_shows_the_pairs_with_their_cluster(tmp_path: Path) -> None:
    found = ManyPairs.on(simulated(lambda _tell: nullcontext(Network(1e5, 2e5))), 4)
    record, trials = made_up.forwarding_record("external", 1e5, pods=0)
    record.name, record.methods, record.metrics = "Sixteen", {"many_pairs": found.as_record()}, found.metrics
    record.tester = {**record.tester, "cluster": {"server": "https://a:6443", "uid": "u1", "version": "v1.34.4"}}
    made_up.write(tmp_path, record, trials)
    text = Seen(command.write_reports(tmp_path).read_text()).text
    shown = text[text.index("The network of a cluster") : text.index("Measured sections")]
    assert shown.index("Sixteen") < shown.index("Many pairs at once") < shown.index("Largest pair, kpps")


class FakePlace:
    """A run namespace whose pods run at once."""

    def __init__(self) -> None:
        self.run, self.owners, self.name = "r", (), "podperf-r"
        self.made: dict[str, Mapping[str, Any]] = {}
        self.gone: list[str] = []
        self.most, self.reason = 1000, "RunContainerError"  # the pods that run, and why no more do
        self.seen = self.starting_at_once = 0

    def start(self, pod: Mapping[str, Any]) -> None:
        self.made[pod["metadata"]["name"]] = pod

    def pods(self) -> Mapping[str, Mapping[str, Any]]:
        self.starting_at_once = max(self.starting_at_once, len(self.made) - self.seen)
        self.seen = min(len(self.made), self.most)
        return {name: self._pod(name, number) for number, name in enumerate(self.made, 1)}

    def _pod(self, name: str, number: int) -> dict[str, Any]:
        there = {"metadata": {"name": name}, "spec": {"nodeName": "n"}}
        if number > self.most:
            waiting = {"state": {"waiting": {"reason": self.reason}}}
            return {**there, "status": {"phase": "Pending", "startTime": "now", "containerStatuses": [waiting]}}
        status = {"phase": "Running", "podIPs": [{"ip": f"10.0.0.{number}"}]}
        return {**there, "status": {**status, "containerStatuses": [{"imageID": "sha256:1"}]}}

    def events(self, pod: str) -> Sequence[str]:
        return ["FailedCreatePodSandBox: no address is left"]

    def delete(self, name: str) -> None:
        del self.made[name]

    def await_gone(self, names: Sequence[str]) -> None:
        self.gone = list(names)


class FakePort:
    """The conversation with a process in a pod. The first frame of a sender is due when all others count."""

    counting: list[str]
    moments: list[str]
    numbers: list[str]
    fails: str

    def __init__(self, api: object, namespace: str, side: str, facts: Any, silent: float) -> None:
        self.side, self.facts, self.machine = side, facts, facts.node
        self.addresses = facts.addresses
        self.mac = f"02:00:00:00:00:{facts.addresses[AddressFamily.IPV4].packed[-1]:02x}"

    def connect(self) -> None:
        pass

    def address(self, family: AddressFamily) -> Any:
        return self.addresses[family]

    def next_hop(self, address: object) -> str:
        return f"02:00:00:00:00:{ip_address(str(address)).packed[-1]:02x}"

    def keep(self) -> None:
        pass

    def ask(self, line: str, keys: object, timeout: float, busy: float = 0.0) -> dict[str, Any]:
        words = dict(word.split("=", 1) for word in line.split())
        if words.get("part") == "count":
            if self.facts.name == FakePort.fails:
                raise PodperfError("this pod ended")
            FakePort.counting.append(self.facts.name)
            FakePort.numbers.append(words["trial"])
            return {"counting": int(words["trial"])}
        if words.get("part") == "send":
            FakePort.moments.append(words["at"])
            assert FakePort.expected in {len(FakePort.counting), None}, "a pair sends before the last one counts"
        direction = {"direction": "left-to-right", "intended": 9, "sent": 9, "received": 9, "duration_ns": 1e9}
        direction |= dict.fromkeys(("duplicated", "reordered", "corrupted", "late", "hurried", "negative_latencies"), 0)
        common = {"started": 1.0, "elapsed": 1.0, "stray": 0, "own_drops": 0, "own_drops_reason": "", "unready": ""}
        return {"trial": {**common, "directions": [direction]}}

    def close(self) -> None:
        FakePort.closed.append(FakePort.gone())

    closed: list[bool]
    gone: Any
    expected: int | None = 0


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> FakePlace:
    monkeypatch.setattr(pod_pairs, "PodPort", FakePort)
    monkeypatch.setattr(pod_pairs, "execute", lambda *_: "1000\n")
    monkeypatch.setattr(pod_pairs, "_LOOK_AGAIN", 0.001)
    FakePort.counting, FakePort.moments, FakePort.numbers, FakePort.fails, FakePort.expected = [], [], [], "", 5
    made = FakePlace()
    FakePort.closed, FakePort.gone = [], staticmethod(lambda: bool(made.gone))
    return made


def pairs_on(place: Any, tell: Callable[[str], None] = ignore, start_timeout: float = 60.0) -> PodPairs:
    anything: Any = None
    settings = KubernetesSettings(PodWishes("image", cpus=2), start_timeout=start_timeout)
    return PodPairs(anything, place, settings, ["node-1", "node-2"], iter(range(100)), tell)


def test_all_pairs_send_from_one_moment_and_no_pod_stays(place: FakePlace) -> None:
    with pairs_on(place) as pairs:
        results = pairs.measure(TRIAL, 5)
        assert [each.received for each in results] == [9] * 5
        assert len(place.made) == 10
        for name, pod in place.made.items():
            assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "10m"
            (terms,) = pod["spec"]["affinity"]["nodeAffinity"].popitem()[1]["nodeSelectorTerms"]
            assert terms["matchFields"][0]["values"] == ["node-1" if "left" in name else "node-2"]
            assert pod["metadata"]["labels"][manifests.POD] == name
    assert len(set(FakePort.moments)) == 1 and len(FakePort.moments) == 5
    assert len(set(FakePort.numbers)) == 5, "a frame of another pair would count"
    assert not place.made and len(place.gone) == 10
    assert FakePort.closed == [True] * 10, "a connection to a pod that still runs takes a second to close"


def test_pods_of_earlier_steps_are_used_again(place: FakePlace) -> None:
    FakePort.expected = 2
    with pairs_on(place) as pairs:
        pairs.measure(TRIAL, 2)
        first = set(place.made)
        FakePort.expected = 2 + 3
        pairs.measure(TRIAL, 3)
        assert first < set(place.made) and len(place.made) == 6


def test_pods_that_go_slowly_take_no_figures_with_them(place: FakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    def stay(_names: object) -> None:
        raise PodperfError("pod tester-left-1-r of the cluster does not go away")

    monkeypatch.setattr(place, "await_gone", stay)
    monkeypatch.setattr(FakePort, "expected", None)
    found = ManyPairs.on(simulated(lambda tell: pairs_on(place, tell)), 5, first=5, to_the_end=True)
    assert len(found.steps) == 1 and not place.made


def test_few_pods_start_at_once_and_the_user_hears_how_many_are_ready(place: FakePlace) -> None:
    FakePort.expected, told = 30, list[str]()
    with pairs_on(place, told.append) as pairs:
        assert len(pairs.measure(TRIAL, 30)) == 30
    assert place.starting_at_once == AT_ONCE
    assert told[-1] == "60 of 60 pods are ready"
    assert any(0 < int(each.split()[0]) < 60 for each in told)


@pytest.mark.parametrize(
    ("reason", "timeout", "cause"), [("RunContainerError", 60, "RunContainerError"), ("", 0, "it has not started yet")]
)
def test_pods_that_do_not_start_end_the_ramp_with_what_was_measured(
    place: FakePlace, monkeypatch: pytest.MonkeyPatch, reason: str, timeout: float, cause: str
) -> None:
    """Whether waiting is useless, or too long."""
    monkeypatch.setattr(FakePort, "expected", None)
    place.most, place.reason = 9, reason
    chain = simulated(lambda tell: pairs_on(place, tell, start_timeout=timeout))
    found = ManyPairs.on(chain, 16, first=2, to_the_end=True)
    assert [each.median.as_record()["pairs"] for each in found.steps] == [2, 4]
    assert found.end.startswith("The ramp ends early: 8 pairs gave no result: pod tester-right-5-r")
    assert cause in found.end and "no address is left" in found.end
    assert "8 of 8 pods are ready" in chain.told
    assert not place.made, "those that did not start are deleted, too"
    with pytest.raises(PodperfError, match="pod tester-right-5-r"):
        ManyPairs.on(chain, 16, first=8, to_the_end=True)


def test_a_connection_that_waits_for_other_pods_is_not_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one takes the node a process, and the old one a second to close."""
    sent: list[str] = []
    now = 100.0
    monkeypatch.setattr(commands_in_pods.time, "monotonic", lambda: now)
    sock = SimpleNamespace(
        ping=lambda: sent.append("ping"),
        recv_data_frame=lambda _: (2, SimpleNamespace(data=b"\1said\n")),
    )
    stream = SimpleNamespace(sock=sock, write_stdin=sent.append)
    api: Any = SimpleNamespace(open_stream=lambda *_, **__: sent.append("open") or stream)
    talk = Conversation(api, "p", "n", "script")
    for passed in (0, 4, 10, 10, 10):
        now += passed
        talk.keep()
    assert talk.ask("a", 1) == "said"
    for passed in (4, 10, 10, 10):
        now += passed
        talk.keep()
    assert talk.ask("b", 1) == "said"
    assert sent == ["open", "a\n", "ping", "ping", "ping", "b\n"]


def test_a_pair_that_fails_ends_the_others_with_its_reason(place: FakePlace) -> None:
    FakePort.fails = "tester-right-3-r"
    with pairs_on(place) as pairs, pytest.raises(PodperfError, match="this pod ended"):
        pairs.measure(TRIAL, 5)
    assert not FakePort.moments and not place.made
    assert not [each for each in threading.enumerate() if each.name.startswith("ThreadPoolExecutor")]
