"""Puts a machine back to its state before a run, if the run was killed before it could do so."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from podperf.caches import forget
from podperf.cluster.lifecycle import forget_killed as forget_cluster
from podperf.cluster.pod_image import CACHE as POD_IMAGES
from podperf.cluster.programs import CACHE as PROGRAMS
from podperf.errors import PodperfError, understood
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import end_processes, namespaces_named, remove_namespace
from podperf.hosts.run_directory import RUN_DIRECTORY, free_shared_memory
from podperf.hosts.way_back import JOURNAL, NotTakenBack, go_back
from podperf.kubernetes.api import log_in
from podperf.kubernetes.pods import clusters_named_in
from podperf.kubernetes.run_namespace import forget_killed
from podperf.kubernetes.settings import in_pods_alone
from podperf.ownership import hand_over_killed
from podperf.pods import POD_RUNTIMES
from podperf.printable import printable
from podperf.terminal import say
from podperf.testbed.access import behind_ssh, lock, machines_of
from podperf.testbed.run_lock import CLEAN, RunLock
from podperf.testers import TESTERS
from podperf.topology import Topology, load_topology
from podperf.virtual_worker.image import CACHE as IMAGES

RESULTS = Path(__file__).resolve().parents[2] / "results"


def put_back(host: Host, *, keep: bool = False) -> list[str]:
    """Remove the leftovers of killed runs from a machine, and return their names. Call this under the run lock.

    A run makes everything in namespaces with podperf's prefix, in its run directory, or in shared memory with podperf's
    prefix. The journal has the changes in other places. The processes of a run die with the run.

    PodperfError if a change cannot be undone; all others are undone first. A change that cannot be undone is then
    deleted from the journal; otherwise every later run would stop here. `keep` leaves it in the journal.
    """
    namespaces = namespaces_named(host)
    for namespace in namespaces:
        end_processes(host, namespace)  # a program that uses a device keeps the device from its driver
    directory = str(RUN_DIRECTORY)

    def shared_memory() -> list[str]:
        free_shared_memory(host)
        return []

    lost_with_namespaces = True  # until the journal is known to need none of them

    def take_back() -> list[str]:
        nonlocal lost_with_namespaces
        try:
            found = go_back(host)
        except NotTakenBack as error:
            lost_with_namespaces = error.in_namespace
            raise
        lost_with_namespaces = False
        return found

    def remove_namespaces() -> list[str]:
        if lost_with_namespaces:
            return []
        for namespace in namespaces:
            remove_namespace(host, namespace)
        return namespaces

    try:
        found = _each_of(shared_memory, take_back, remove_namespaces)
    except PodperfError:
        if not keep:
            host.do("rm", "-rf", JOURNAL, directory)
        raise
    for folder in (JOURNAL, directory):  # a kill may have left a half-written entry in the journal
        if not host.ask("test", "-e", folder, check=False).exit_code:
            host.do("rm", "-rf", folder)
            found.append(folder)
    return found


def _each_of(*steps: Callable[[], list[str]]) -> list[str]:
    """The findings of all steps. After a step that fails, the other steps run, and then PodperfError is raised."""
    found, failures = [], []
    for step in steps:
        try:
            found += step()
        except PodperfError as error:
            failures.append(str(error))
    if failures:
        raise PodperfError("; ".join(failures))
    return found


def _put_back_others(topology: Topology, here: Host, undo: ExitStack) -> list[str]:
    def there(host: Host) -> list[str]:
        lock(host, undo, CLEAN, say)
        return [f"{each} on {host.name}" for each in put_back(host)]

    return _each_of(*(partial(there, host) for host in behind_ssh(machines_of(topology, here, undo))))


def _forget_pods(topology: Topology) -> Iterator[str]:
    """Delete the pods that killed runs left in the clusters of a topology."""
    for settings in clusters_named_in(topology):
        with closing(log_in(settings.kubeconfig, settings.context)) as api, understood(api.where):
            yield from (f"{each} of {api.where}" for each in forget_killed(api, settings.namespace))


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the arguments."""
    parser.description = "Put the machine back, also after a killed run."
    parser.add_argument("topology", nargs="?", metavar="TOPOLOGY", help="whose other machines are put back, too")
    parser.add_argument("--all", action="store_true", help="remove cached images and programs, too")


def main(wanted: Namespace) -> int:
    """`podperf clean`: exit code 0 if this machine, and the machines of a topology, are as they were."""
    topology = load_topology(wanted.topology, pod_runtimes=POD_RUNTIMES, testers=TESTERS) if wanted.topology else None
    here = LocalHost()

    def pods() -> list[str]:
        return [] if topology is None else list(_forget_pods(topology))

    with RunLock(CLEAN, say), ExitStack() as undo:
        if topology is not None and in_pods_alone(topology) and os.geteuid() != 0:
            return _told(pods())  # such a run changes nothing here
        removed = _each_of(
            partial(put_back, here),
            *(partial(forget, here, each, wanted.all) for each in (IMAGES, POD_IMAGES, PROGRAMS)),
            partial(forget_cluster, say),
            pods,
            lambda: _put_back_others(topology, here, undo) if topology is not None else [],
        )
        for results in hand_over_killed(RESULTS):
            print(f"{printable(results)} belongs to the caller of its run now")
    return _told(removed)


def _told(removed: Sequence[str]) -> int:
    print(f"removed: {printable(', '.join(removed))}" if removed else "nothing was left behind")
    return 0
