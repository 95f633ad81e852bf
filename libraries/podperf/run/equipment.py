"""The equipment of a run on its machines: testbed, placement, environment, and the watch over noise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from podperf.errors import Unavailable
from podperf.hosts.base import Host
from podperf.hosts.host_facts import collect, podperf_version
from podperf.kernel.cpus import Cpus, read_cpus
from podperf.methods import ONLY_COST
from podperf.model import Placement
from podperf.quietness.machines import watch
from podperf.quietness.watch import Quietness
from podperf.testbed.by_worker import as_record
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.placement import remarks
from podperf.testbed.testbed import LiveTestbed
from podperf.topology import Topology


@dataclass(frozen=True)
class Equipment:
    """The testbed, and the watch over the CPUs of tester and system under test.

    `cpus` are all CPUs of each worker, from left to right. `environment` describes the machines in the records.
    `quietness` is the watch for a chain on one worker in the usual placement.
    """

    testbed: LiveTestbed
    cpus: Sequence[Cpus]
    environment: Mapping[str, Any]
    quietness: Quietness

    @classmethod
    def on(cls, topology: Topology, machines: Sequence[Host], here: Host, undo: ExitStack) -> Self:
        """The equipment on the machines of the tester and of the workers, until `undo`.

        Raises PodperfError if something else uses the testbed's ports, or if processes cannot be pinned to its CPUs.
        """
        tester, *workers = machines
        testbed = LiveTestbed.on(topology, tester, workers)
        testbed.refuse_shared_ports()
        testbed.refuse_unpinnable()
        undo.callback(testbed.close)
        usual = [each.placement.sut for each in testbed.workers[:1]]
        return cls(testbed, [*map(read_cpus, workers)], _environment(testbed, here), _watch(testbed, usual, undo))

    @property
    def placement(self) -> Placement:
        """The CPUs of the tester, and of a chain on one worker. Such a chain stands on the first worker."""
        return self.testbed.workers[0].placement

    def refuse_cost_only(self) -> None:
        """Raises Unavailable on a counted machine, where no rate is measured."""
        if self.testbed.topology.counts_instructions:
            raise Unavailable(ONLY_COST)

    def environment_for(self, directions: int, workers: int = 1) -> dict[str, Any]:
        """The environment, with remarks on the placement for a chain on so many workers that gets frames in
        `directions` directions."""
        # On a counted machine all share one CPU, and nothing waits for another.
        placed = () if self.testbed.topology.counts_instructions else self.testbed.workers[:workers]
        said = [
            f"{each.host.name}: {remark}" if workers > 1 else remark
            for each, cpus in zip(placed, self.cpus, strict=False)
            for remark in remarks(each.placement, cpus, directions)
        ]
        return {**self.environment, "placement_remarks": said}

    def watch(self, suts: Sequence[Collection[int]], undo: ExitStack) -> Quietness:
        """The watch over the tester's CPUs and CPUs `suts` of the workers, from left to right. It is the usual watch if
        that one has these CPUs; otherwise it lasts until `undo`."""
        if len(suts) == 1 and set(*suts) <= set(self.placement.sut):
            return self.quietness
        return _watch(self.testbed, suts, undo)


def _watch(testbed: LiveTestbed, suts: Sequence[Collection[int]], undo: ExitStack) -> Quietness:
    tester = testbed.tester_host
    if testbed.topology.in_a_cluster:  # other work on this machine does not disturb the nodes, which nobody watches
        return watch(tester, undo=undo)
    workers = [(each.host, sorted(sut)) for each, sut in zip(testbed.workers, suts, strict=False)]
    own = () if testbed.topology.tester.kind.runs_already else testbed.tester_cpus
    beside_tester = [cpu for host, sut in workers if host is tester for cpu in sut]
    elsewhere = [watch(host, sut=sut, undo=undo) for host, sut in workers if host is not tester]
    return watch(tester, sut=beside_tester, tester=own, workers=elsewhere, undo=undo)


def _environment(testbed: LiveTestbed, here: Host) -> dict[str, Any]:
    tester, workers = testbed.tester_host, testbed.workers
    if testbed.topology.in_a_cluster:  # the tester's pods tell about their nodes
        return {"host": "nodes of a cluster", "podperf": podperf_version(here)}
    return {
        **as_record({each.host.name: _facts(each) for each in workers}),
        "podperf": podperf_version(here),
        **({"tester": collect(tester)} if tester not in [each.host for each in workers] else {}),
    }


def _facts(worker: WorkerMachine) -> dict[str, Any]:
    return {**collect(worker.host), "placement": worker.placement.as_record()}
