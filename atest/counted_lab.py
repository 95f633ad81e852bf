"""A counted machine that is up, for the tests of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from podperf.counted_machine import boot
from podperf.counted_machine.profile import Profiler
from podperf.dataplanes import DATA_PLANES
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.run import session
from podperf.testbed.access import machines_of
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.topology import KernelSettings, load_topology
from robot_run import ROOT

TOPOLOGY = ROOT / "topologies" / "counted.yaml"
ONLY_IF_ASKED = [
    pytest.mark.skipif(os.environ.get("PODPERF_COUNTED") != "1", reason="takes minutes: only with PODPERF_COUNTED=1"),
    pytest.mark.usefixtures("machine_as_before"),
]


def demand() -> None:
    """Skip the test if this machine cannot run a counted machine."""
    if reason := boot.unavailable(LocalHost()):
        pytest.skip(reason)


@dataclass(frozen=True)
class CountedLab:
    """A testbed on a counted machine that is up."""

    testbed: Testbed
    inside: Host
    profiler: Profiler


@contextmanager
def booted(file: Path = TOPOLOGY, kernel: KernelSettings | None = None) -> Iterator[CountedLab]:
    """The testbed of a topology, as a run makes it, by default with the kernel of the topology."""
    with RunLock(), ExitStack() as undo:
        here = LocalHost()
        topology = load_topology(file, DATA_PLANES)
        first, *others = topology.workers
        counted = replace(first.counted, kernel=kernel or first.counted.kernel)
        topology, counted_machine = session.booted(
            replace(topology, workers=(replace(first, counted=counted), *others)), here, print, undo
        )
        inside, *workers = machines_of(topology, here, undo)
        profiler = session.prepared(topology, counted_machine, inside)
        assert profiler is not None
        yield CountedLab(Testbed.on(topology, inside, workers), inside, profiler)
