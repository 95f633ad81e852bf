"""Pods that poll have their own CPUs and memory, begin together or one by one, and take turns with other pollers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import RunningDataPlane, Worker, WorkerPort
from podperf.dataplanes.polling_pods import PollingPods, together
from podperf.errors import PodperfError
from podperf.hosts.base import Completed, Host
from podperf.kernel.thread_time import Cycles
from podperf.model import Chain, Direction, Entry, FrameSize, PageSize, Placement, VirtualFunctionSettings
from podperf.pods.base import Pod
from podperf.pods.forwarders.base import Share
from podperf.pods.forwarders.dpdk import DpdkApplication
from podperf.preflight.plan import PlannedHost, plan
from podperf.topology import SCHEMA_PATH, load_topology
from scripted_host import ScriptedHost


class Silent(PlannedHost):
    """A host whose commands all succeed and say nothing."""

    def ask(self, *command: str, **_: Any) -> Completed:
        return Completed(command, 0, "", "")


HOST = Silent("worker", {})
POD = "of those of DPDK that poll"
ENTRIES = {Direction.LEFT_TO_RIGHT: Entry("02:00:00:00:00:01")}


class Recorded:
    """An application, and its forwarder. It notes the calls that it gets."""

    cycles: Callable[[], Cycles] | None = None

    def __init__(self, events: list[str]) -> None:
        self.events, self.name, self.ended = events, "", False

    def missing(self, host: Host) -> str | None:
        return None

    def launch(self, pod: Pod, devices: Any, share: Share, undo: ExitStack) -> Recorded:
        self.name = pod.name
        self.events.append(f"{self.name} on CPU {share.cpu}")
        return self

    def begin(self) -> None:
        self.events.append(f"{self.name} begins")

    def pollers(self) -> list[int]:
        return [int(self.name.removeprefix("pod"))]

    def allow(self, cpus: Iterable[int]) -> None:
        pass

    def await_file(self, path: str, timeout: float) -> bool:
        return True

    def hugepages_mib(self) -> dict[str, int]:
        return {}

    def sockets(self) -> list[dict[str, Any]]:
        return []

    def check(self) -> None:
        if self.ended:
            raise PodperfError(f"{self.name} has ended")

    def describe(self) -> dict[str, object]:
        return {"events": len(self.events)}


def pod(number: int, host: Host = HOST, own: Sequence[int] = ()) -> Pod:
    """A pod of a made-up runtime, with its `own` CPUs."""
    found: Any = SimpleNamespace(name=f"pod{number}", host=host, interfaces={}, own_cpus=own)
    return cast(Pod, found)


def polling(
    count: int, cpus: tuple[int, ...], undo: ExitStack, own: Mapping[int, Sequence[int]] = MappingProxyType({})
) -> tuple[PollingPods, list[Recorded], list[str]]:
    """Pods with started applications, and the calls so far. `own` has CPUs by the number of a pod."""
    left, right = (WorkerPort(side, "", "") for side in ("left", "right"))
    runtime: Any = None
    vfs = VirtualFunctionSettings()
    plan_of_cpus = plan_cpus(Placement((0,), cpus), count, with_switch=False)
    worker = Worker(HOST, "", left, right, runtime, 1500, plan_of_cpus, "/run", vfs, hugepages=PageSize.NONE)
    pods, events = PollingPods(worker, Chain("memif", count), undo), []  # type: ignore[var-annotated]
    forwarders = [Recorded(events) for _ in range(count)]
    for number, each in enumerate(forwarders, start=1):
        pods.launch(each, pod(number, own=own.get(number, ())), [])
    return pods, forwarders, events


def test_pods_have_the_cpus_in_turns_and_begin_when_all_were_launched() -> None:
    with ExitStack() as undo:
        pods, _, events = polling(3, (2, 3), undo)
        assert events == ["pod1 on CPU 2", "pod2 on CPU 3", "pod3 on CPU 2"]
        pods.begin()
        assert events[3:] == ["pod1 begins", "pod2 begins", "pod3 begins"]
        assert pods.pollers() == [{2: [1]}, {3: [2]}, {2: [3]}]


def test_a_pod_polls_on_the_cpus_that_its_runtime_gave_it_alone() -> None:
    with ExitStack() as undo:
        pods, _, events = polling(2, (2, 3), undo, own={2: (7, 8)})
        assert events == ["pod1 on CPU 2", "pod2 on CPU 7"]
        assert pods.pollers() == [{2: [1]}, {7: [2]}]


def test_what_runs_is_described_now_and_checked_in_each_part() -> None:
    with ExitStack() as undo:
        pods, forwarders, events = polling(2, (2,), undo)
        running = pods.running(together(*pods.pollers()), lambda: {"own": 1}, entries=ENTRIES, ports={"net1": HOST})
        assert (running.entries, running.ports, running.not_in_force()) == (ENTRIES, {"net1": HOST}, None)
        assert running.describe()["own"] == 1
        assert running.describe()["applications"] == {"pod1": {"events": 2}, "pod2": {"events": 2}}
        (turns,) = running.describe()["pollers"]
        assert (turns["cpu"], turns["pollers"]) == (2, 2)
        events.append("one more")
        assert running.describe()["applications"]["pod1"] == {"events": 3}
        running.check()
        forwarders[1].ended = True
        with pytest.raises(PodperfError, match="pod2 has ended"):
            running.check()


def test_an_application_is_let_onto_a_pool_with_all_its_threads() -> None:
    host = ScriptedHost(patient=True)
    process = HOST.spawn("dpdk-testpmd")
    DpdkApplication(pod(1, host), process, ["dpdk-testpmd"], 2).allow((3, 4))
    assert host.commands == [f"taskset --all-tasks --cpu-list --pid 3,4 {process.pid}"]


@given(st.lists(st.dictionaries(st.integers(0, 3), st.lists(st.integers(), max_size=3), max_size=4)))
def test_no_poller_is_lost_and_groups_keep_their_order(groups: list[dict[int, list[int]]]) -> None:
    found = together(*groups)
    for cpu in range(4):
        assert found.get(cpu, []) == [thread for group in groups for thread in group.get(cpu, [])]


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("memif", [POD, "net1", POD, "net2"]),
        ("af-xdp", [POD, POD, "net1", "net2"]),
        ("ovs-dpdk", ["w-left", "pmd-c", POD, POD, "w-right"]),
        ("vpp-vrf", ["vpp", "w-left", "w-right", POD, POD]),
    ],
)
def test_turns_on_a_cpu_go_in_this_order(name: str, order: list[str]) -> None:
    """A thread that sleeps in its turn leaves the CPU to the previous thread. So the order changes a measurement."""
    lab = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)
    lab = replace(lab, workers=(replace(lab.workers[0], cpus=(3,)),))
    texts = [step.text for step in plan(lab, Chain(name, 2), FrameSize.parse(64)).steps]
    (rotation,) = (text for text in texts if "podperf-rotation" in text and "3 100" in text)
    threads = re.findall(r"'<([^>]*)>'", rotation)
    assert len(threads) == len(order), threads
    assert all(each in thread for each, thread in zip(order, threads, strict=True)), threads


def test_each_process_that_has_ended_is_named() -> None:
    """The pod that was killed may not be the first one: its peer ends, too, when the shared memory is gone."""

    class Ended:
        def __init__(self, said: str = "") -> None:
            self.said = said

        def check(self) -> None:
            if self.said:
                raise PodperfError(self.said)

    RunningDataPlane({}, {}, dict, [Ended()]).check()
    with pytest.raises(PodperfError, match=r"^testpmd has ended in pod1; testpmd has ended in pod2$"):
        parts = [Ended(f"testpmd has ended in {pod}") for pod in ("pod1", "pod2")]
        RunningDataPlane({}, {}, dict, [*parts, Ended()]).check()
