"""The equipment of a run on its machines: testbed, placement, environment, and the watch over noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Self

from podperf.hosts.base import Host
from podperf.hosts.host_facts import collect, podperf_version
from podperf.kernel.cpus import Cpus, read_cpus
from podperf.model import Placement
from podperf.quietness.machines import watch
from podperf.quietness.watch import Quietness
from podperf.testbed.machines import WorkerMachine
from podperf.testbed.placement import remarks
from podperf.testbed.testbed import LiveTestbed
from podperf.topology import Topology


@dataclass(frozen=True)
class Equipment:
    """The testbed, and the watch over the CPUs of tester and system under test.

    `worker_cpus` are all CPUs of the first worker. `environment` describes the machines in the records.
    """

    testbed: LiveTestbed
    worker_cpus: Cpus
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
        quietness = _watch(testbed, testbed.workers[0].placement.sut, undo)
        return cls(testbed, read_cpus(workers[0]), _environment(testbed, here), quietness)

    @property
    def placement(self) -> Placement:
        """The CPUs that a record has: of the tester, and of a chain on one worker."""
        return self.testbed.workers[0].placement

    def environment_for(self, directions: int) -> dict[str, Any]:
        """The environment, with remarks on the placement for a test that sends in `directions` directions."""
        counted = self.testbed.workers[
            0
        ].settings.counts_instructions  # all share one CPU there, and nothing waits for another
        said = [] if counted else remarks(self.placement, self.worker_cpus, directions)
        return {**self.environment, "placement_remarks": said}

    def watch(self, sut: Sequence[int], undo: ExitStack, workers: int = 1) -> Quietness:
        """A watch over the tester's CPUs, CPUs `sut` of the first worker, and those of the next ones, until `undo`."""
        return _watch(self.testbed, sut, undo, workers)


def _watch(testbed: LiveTestbed, sut: Sequence[int], undo: ExitStack, workers: int = 1) -> Quietness:
    tester, (first, *others) = testbed.tester_host, testbed.workers[:workers]
    own = () if testbed.topology.tester.kind.runs_already else testbed.tester_cpus
    if first.host is tester:
        return watch(tester, sut=sut, tester=own, undo=undo)
    beyond = [watch(each.host, sut=each.placement.sut, undo=undo) for each in others]
    return watch(tester, tester=own, workers=[watch(first.host, sut=sut, undo=undo), *beyond], undo=undo)


def _environment(testbed: LiveTestbed, here: Host) -> dict[str, Any]:
    tester, (first, *others) = testbed.tester_host, testbed.workers
    further = {each.host.name: _facts(each) for each in others}
    return {
        **collect(first.host),
        "podperf": podperf_version(here),
        **({"tester": collect(tester)} if first.host is not tester else {}),
        **({"further_workers": further} if further else {}),
    }


def _facts(worker: WorkerMachine) -> dict[str, Any]:
    return {**collect(worker.host), "placement": worker.placement.as_record()}
