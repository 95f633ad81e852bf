"""Boots virtual workers as those of a lab. A boot takes a minute. The first build of the image takes minutes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from podperf.dataplanes import DATA_PLANES
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.model import VirtualFunctionSettings
from podperf.run import session
from podperf.testbed.access import machines_of
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, load_topology
from podperf.virtual_worker.boot import unavailable
from robot_run import ROOT

TOPOLOGY = ROOT / "topologies" / "virtual.yaml"
ONLY_ON_REQUEST = pytest.mark.skipif(
    os.environ.get("PODPERF_VIRTUAL") != "1", reason="takes minutes: only with PODPERF_VIRTUAL=1"
)

# One line for each device, interface, namespace and count of free hugepages that a set-up may touch.
_STATE = """
for each in /sys/bus/pci/devices/*; do echo "$each $(readlink $each/driver) $(cat $each/driver_override)"; done
grep -H . /sys/bus/pci/devices/*/sriov_numvfs
grep -H . /sys/devices/system/node/node*/hugepages/*/*_hugepages
ip -brief link | sed 's/@.*//' | sort
ip link | grep ' vf '
for each in $(ls /sys/class/net); do echo "$each $(ethtool -l $each 2>/dev/null | tail -n 1)"; done
ip netns; ls /run /run/podperf /dev/vfio 2>/dev/null || :
"""


def need_qemu() -> None:
    """Skip the test, with the reason, if this machine cannot run the virtual worker."""
    if reason := unavailable(LocalHost()):
        pytest.skip(reason)


@dataclass(frozen=True)
class Lab:
    """Virtual workers from left to right, and a testbed with them."""

    topology: Topology
    workers: Sequence[Host]

    @property
    def worker(self) -> Host:
        """The only worker."""
        (worker,) = self.workers
        return worker

    @property
    def testbed(self) -> Testbed:
        """The testbed of this lab."""
        return Testbed.on(self.topology, LocalHost(), self.workers)

    def state(self) -> str:
        """The drivers, interfaces, namespaces and free hugepages of the workers."""
        return "".join(worker.ask("sh", "-c", _STATE).stdout for worker in self.workers)

    def with_functions(self, settings: VirtualFunctionSettings) -> Lab:
        """This lab with other settings of virtual functions."""
        (worker,) = self.topology.workers
        return replace(self, topology=replace(self.topology, workers=(replace(worker, sriov=settings),)))


@contextmanager
def booted(file: Path = TOPOLOGY) -> Iterator[Lab]:
    """The virtual workers of a topology file, which are up until the context ends."""
    need_qemu()
    with RunLock(), ExitStack() as undo:
        topology, _ = session.booted(load_topology(file, DATA_PLANES), LocalHost(), print, undo)
        _, *workers = machines_of(topology, LocalHost(), undo)
        yield Lab(topology, workers)
