"""The machines of a run, taken for this run alone, and its equipment: testbed, environment, and the watch over
noise."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from podperf.cleanup import put_back
from podperf.counted_machine.boot import CountedMachine
from podperf.counted_machine.boot import boot as boot_counted
from podperf.counted_machine.profile import Profiler
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.host_facts import collect, podperf_version
from podperf.hosts.local import LocalHost
from podperf.hosts.ssh_login import Login
from podperf.kernel.cpus import Cpus, read_cpus
from podperf.kubernetes.settings import in_pods_alone, pods_of_tester
from podperf.methods.cost import ONLY_COST
from podperf.model import Placement
from podperf.progress import Progress
from podperf.quietness.watch import Quietness, watch
from podperf.records import set_aside
from podperf.testbed.access import behind_ssh, lock, login_to, machines_of
from podperf.testbed.counted_inputs import change_machine
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.placement import remarks
from podperf.testbed.run_lock import RUN, RunLock
from podperf.testbed.system_under_test import as_record
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology
from podperf.virtual_worker.boot import WorkerRow
from podperf.virtual_worker.boot import boot as boot_virtual


@dataclass(frozen=True)
class Equipment:
    """The testbed, and the watch over the CPUs of tester and system under test, for a chain on one worker in the usual
    placement.

    `cpus` are all CPUs of each worker, from left to right. `environment` describes the machines in the records.
    `quietness` is None for pods of a cluster: nobody watches the CPUs of their nodes.
    """

    testbed: Testbed
    cpus: Sequence[Cpus]
    environment: Mapping[str, Any]
    quietness: Quietness | None

    @classmethod
    def on(
        cls, topology: Topology, machines: Sequence[Host], here: Host, undo: ExitStack, facts: Facts = collect
    ) -> Self:
        """The equipment on the machines of the tester and of the workers, until `undo`. `facts` describes a machine.

        Raises PodperfError if something else uses the testbed's ports, or if processes cannot be pinned to its CPUs.
        """
        tester, *workers = machines
        testbed = Testbed.on(topology, tester, workers)
        testbed.refuse_shared_ports()
        testbed.refuse_unpinnable()
        undo.callback(testbed.close)
        usual = [worker.placement.sut for worker in testbed.workers[:1]]
        environment = _environment(testbed, here, facts)
        return cls(testbed, [*map(read_cpus, workers)], environment, _watch(testbed, usual, undo))

    @property
    def placement(self) -> Placement:
        """The CPUs of the tester, and of a chain on one worker. Such a chain stands on the first worker."""
        return self.testbed.workers[0].placement

    def refuse_cost_only(self) -> None:
        """Raises Unavailable on a counted machine, where no rate is measured."""
        if self.testbed.topology.counts_instructions:
            raise Unavailable(ONLY_COST)

    def environment_for(self, directions: int, workers: int = 1) -> dict[str, Any]:
        """The environment, with remarks on the placement of a chain on `workers` workers, for frames in one or two
        `directions`."""
        # On a counted machine all share one CPU, and nothing waits for another.
        placed = () if self.testbed.topology.counts_instructions else self.testbed.workers[:workers]
        said = [
            f"{each.name}: {remark}" if workers > 1 else remark
            for each, cpus in zip(placed, self.cpus, strict=False)
            for remark in remarks(each.placement, cpus, directions)
        ]
        return {**self.environment, "placement_remarks": said}

    def watch(self, suts: Sequence[Collection[int]], undo: ExitStack) -> Quietness | None:
        """The watch over the tester's CPUs and the CPUs `suts` of the workers: the usual one if it has them, or one
        until `undo`."""
        if len(suts) == 1 and set(*suts) <= set(self.placement.sut):
            return self.quietness
        return _watch(self.testbed, suts, undo)


def _watch(testbed: Testbed, suts: Sequence[Collection[int]], undo: ExitStack) -> Quietness | None:
    tester = testbed.tester_host
    if pods_of_tester(testbed.topology):  # other work here does not disturb the nodes
        return None
    workers = [(each.host, sorted(sut)) for each, sut in zip(testbed.workers, suts, strict=False)]
    own = () if testbed.topology.tester.kind.runs_already else testbed.tester_cpus
    beside_tester = [cpu for host, sut in workers if host is tester for cpu in sut]

    def pods_on(host: Host) -> Callable[[], Collection[int]]:
        return lambda: testbed.runtime.processes(host)

    watched = partial(watch, black_box=testbed.topology.black_box, undo=undo)
    elsewhere = [watched(host, sut=sut, pods=pods_on(host)) for host, sut in workers if host is not tester]
    return watched(tester, sut=beside_tester, tester=own, workers=elsewhere, pods=pods_on(tester))


def _environment(testbed: Testbed, here: Host, facts: Facts) -> dict[str, Any]:
    tester, workers = testbed.tester_host, testbed.workers
    if pods_of_tester(testbed.topology):  # the tester's pods tell about their nodes
        return {"host": "nodes of a cluster", "podperf": podperf_version(here)}
    return {
        **as_record({worker.name: _of_worker(worker, facts) for worker in workers}),
        "podperf": podperf_version(here),
        **({"black_box": list(programs)} if (programs := testbed.topology.black_box) else {}),
        **({"tester": facts(tester)} if tester not in [worker.host for worker in workers] else {}),
    }


def _of_worker(worker: WorkerMachine, facts: Facts) -> dict[str, Any]:
    return {**facts(worker.host), "placement": worker.placement.as_record()}


MachineRole = Literal["tester", "worker"]
Facts = Callable[[Host], Mapping[str, Any]]


class Session:
    """The topology and the results folder. From `open` to `close` also the machines, with the `equipment` on them."""

    equipment: Equipment

    def __init__(
        self, topology: Topology, results: Path, progress: Progress | None = None, password: str | None = None
    ) -> None:
        """`password` is offered to machines whose login in the topology is by password. None: the one of the
        environment."""
        self.topology = topology
        self.results = results
        self.progress = progress or Progress()
        self.profiler: Profiler | None = None  # of the counted machine
        self._host = LocalHost()
        self._password = password
        self._machines: tuple[Host, ...] = ()  # of tester and workers
        self._losses: list[int] = []  # of the connections over SSH, counted when the machines were taken
        self._undo = ExitStack()

    def open(self) -> None:
        """Take all machines for this run alone, or none. Remove the leftovers of earlier runs."""
        with ExitStack() as undo:
            undo.callback(self.close)
            self._open()
            undo.pop_all()

    def close(self) -> None:
        """Give the machines back. Safe to repeat."""
        self._undo.close()

    def _open(self) -> None:
        is_root = os.geteuid() == 0
        if self.topology.uses_this_machine and not is_root and not in_pods_alone(self.topology):
            raise PodperfError(
                "measuring on this machine needs root, for network namespaces and BPF programs: run it with sudo"
            )
        for line in self.topology.outdated:
            self.progress.note(line)
        if is_root and not self.topology.counts_instructions:  # which disturbs nobody, and is disturbed by nobody
            self._take_this_machine()
        if earlier := set_aside(self.results):
            self.progress.note(f"records of an earlier run lay in {self.results}; they are in {earlier.name} now")
        self.topology, counted = booted(self.topology, self._host, self.progress.note, self._undo)
        self._machines = machines_of(self.topology, self._host, self._undo, self._password)
        self.profiler = prepared(self.topology, counted, self._machines[0])
        self._take_machines()

    def _take_this_machine(self) -> None:
        self._undo.enter_context(RunLock(RUN, self.progress.note))
        self._undo.callback(put_back, self._host, keep=True)  # for chains that a signal left behind
        for leftover in put_back(self._host):
            self.progress.note(f"removed what an earlier run left: {leftover}")

    def _take_machines(self) -> None:
        undo = self._undo.enter_context(ExitStack())
        self._give_machines_back = undo.close
        # Nobody else reaches a counted machine, and all that is on it goes with the run.
        others = () if self.topology.counts_instructions else behind_ssh(self._machines)
        for machine in others:
            lock(machine, undo, RUN, self.progress.note)
            undo.callback(put_back, machine, keep=True)  # as for this machine
            for leftover in put_back(machine):
                self.progress.note(f"removed what an earlier run left on {machine.name}: {leftover}")
        self.equipment = Equipment.on(self.topology, self._machines, self._host, undo, self._facts)
        self._losses = [each.losses for each in behind_ssh(self._machines)]

    def _facts(self, machine: Host) -> Mapping[str, Any]:
        if self.profiler is None:
            return collect(machine)
        facts = json.loads(self.profiler.once("facts", lambda: json.dumps(collect(machine))))
        return {**facts, "counted_machine": {"start": self.profiler.start}}

    def login(self, machine: MachineRole, number: int = 1) -> Login:
        """The login that podperf uses on the tester's machine, or on a worker, counted from the left.

        Raises PodperfError if there is no such machine, or if it is the machine that runs podperf.
        """
        tester, *workers = self._machines
        machines = [tester] if machine == "tester" else workers
        if not 1 <= number <= len(machines):
            raise PodperfError(f"there is no {machine} {number}: the testbed has {len(machines)}")
        return login_to(machines[number - 1])

    def take_lost_machines_again(self) -> None:
        """Log in again if a connection was lost. The lock has ended, but the set-up of a test is still there."""
        machines = behind_ssh(self._machines)
        if [each.losses for each in machines] != self._losses:
            self.progress.note("an SSH connection was lost: logging in again")
            for machine in machines:
                machine.log_in_again()
            with suppress(PodperfError):
                self._give_machines_back()
            self._take_machines()


def booted(
    topology: Topology, host: Host, say: Callable[[str], None], undo: ExitStack
) -> tuple[Topology, CountedMachine | None]:
    """The same testbed with its own machines up, as a lab behind SSH, until `undo`; and its counted machine."""
    if topology.virtual:
        row = WorkerRow(tuple(worker.connection == "virtual" for worker in topology.workers))
        topology = boot_virtual(host, say, undo, row).as_lab(topology)
    if not topology.counts_instructions:
        return topology, None
    counted = boot_counted(host, topology.workers[0].counted, say, undo)
    return counted.as_lab(topology), counted


def prepared(topology: Topology, counted: CountedMachine | None, machine: Host) -> Profiler | None:
    """Change a counted machine that is up as the topology asks. Returns its profiler."""
    if counted is None:
        return None
    settings = topology.workers[0].counted
    change_machine(machine, settings)
    return Profiler(counted, machine, changed=settings.changes_machine)
