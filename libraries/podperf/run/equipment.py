"""Everything that a run measures with, once it has the machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Self

from podperf.hosts.base import Host
from podperf.hosts.environment import collect, podperf_version
from podperf.kernel.cpus import Cpus, read_cpus
from podperf.model import Placement
from podperf.quietness.machines import watch
from podperf.quietness.watch import Quietness
from podperf.testbed.machines import FurtherWorker, further_workers
from podperf.testbed.placement import nic_node, place, remarks
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology


@dataclass(frozen=True)
class Equipment:
    """The testbed, the CPUs of tester and system under test, and the watch over these CPUs.

    `worker_cpus` are all CPUs of the worker, `environment` is what the records say of the machines.
    """

    testbed: Testbed
    placement: Placement
    worker_cpus: Cpus
    environment: Mapping[str, Any]
    quietness: Quietness

    @classmethod
    def on(cls, topology: Topology, machines: Sequence[Host], here: Host, undo: ExitStack) -> Self:
        """The equipment on the machines of tester, worker and further workers, until `undo`.

        PodperfError when the testbed's ports are not its own, or its CPUs cannot be had.
        """
        tester, worker, *others = machines
        apart = worker is not tester
        cpus = read_cpus(tester)
        worker_cpus = read_cpus(worker) if apart else cpus
        placement = place(topology, cpus, worker_cpus if apart else None, nic_node(worker, topology.worker))
        testbed = Testbed(topology, placement, tester, worker, further_workers(topology, cpus, others))
        testbed.refuse_shared_ports()
        testbed.refuse_unpinnable()
        undo.callback(testbed.close)
        quietness = _watch(testbed, placement.sut, undo)
        return cls(testbed, placement, worker_cpus, _environment(testbed, here), quietness)

    def environment_for(self, directions: int) -> dict[str, Any]:
        """The environment, with what is to be known of the placement in a test that sends in so many directions."""
        counted = self.testbed.topology.counts_instructions  # where all share one CPU, and none waits for another
        said = [] if counted else remarks(self.placement, self.worker_cpus, directions)
        return {**self.environment, "placement_remarks": said}

    def watch(self, sut: Sequence[int], undo: ExitStack, workers: int = 1) -> Quietness:
        """A watch over the tester's CPUs, these of the worker, and those of so many workers in all, until `undo`."""
        return _watch(self.testbed, sut, undo, workers)


def _watch(testbed: Testbed, sut: Sequence[int], undo: ExitStack, workers: int = 1) -> Quietness:
    tester, worker = testbed.host, testbed.worker_host
    own = () if testbed.topology.tester.runs_already else testbed.placement.tester
    if worker is tester:
        # The tester's CPUs come last: after reading its speed one stays on a CPU, and those of the SUT may be pollers'.
        return watch(tester, (*sut, *own), undo)
    beyond: Quietness | None = None
    for each in reversed(testbed.further[: workers - 1]):
        beyond = watch(each.host, each.placement.sut, undo, worker=beyond)
    return watch(tester, own, undo, worker=watch(worker, sut, undo, worker=beyond))


def _environment(testbed: Testbed, here: Host) -> dict[str, Any]:
    tester, worker = testbed.host, testbed.worker_host
    further = {each.host.name: _facts(each) for each in testbed.further}
    return {
        **collect(worker),
        "podperf": podperf_version(here),
        **({"tester": collect(tester)} if worker is not tester else {}),
        **({"further_workers": further} if further else {}),
    }


def _facts(worker: FurtherWorker) -> dict[str, Any]:
    return {**collect(worker.host), "placement": asdict(worker.placement)}
