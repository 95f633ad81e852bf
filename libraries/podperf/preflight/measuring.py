"""Checks by trials whether test frames cross the testbed, and which data planes can be measured there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import DataPlane
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.namespaces import namespaces_named
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.hosts.way_back import JOURNAL
from podperf.model import Chain, FrameSize
from podperf.observation import NEEDS_ROOT, Observation, State, of_worker
from podperf.preflight.mistakes import offers_virtual_functions, trex_on_vfs
from podperf.testbed.access import session_to
from podperf.testbed.isolation import refuse_shared_ports, refuse_shared_worker_ports
from podperf.testbed.run_lock import CHECK, RunLock
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.testers.base import TesterFacts
from podperf.topology import Topology

SMALLEST = FrameSize.parse(64)


def check_measuring(testbed: Testbed, root: bool) -> Iterator[Observation]:
    """The checks that only root can make, while no run measures."""
    topology, tester = testbed.topology, testbed.tester_host
    if not root:
        yield Observation("measuring", "test frames", State.UNCHECKED, NEEDS_ROOT, needed=True)
        yield Observation("measuring", "data planes", State.UNCHECKED, NEEDS_ROOT, needed=True)
        return
    try:
        with RunLock(CHECK):
            for machine in dict.fromkeys((tester, *(worker.host for worker in testbed.workers))):
                yield from _check_left_behind(machine)
            if topology.existing_ports:
                yield from _check_ports(testbed)
            yield _check_receive_threads(testbed)
            yield from check_bare_path(topology, testbed)
            yield from check_data_planes(testbed)
    except PodperfError as error:  # for example: another run has the machine
        yield Observation("measuring", "test frames", State.UNCHECKED, str(error), needed=True)


def _check_left_behind(host: Host) -> Iterator[Observation]:
    """A warning if a killed run has left something."""
    folders = (str(RUN_DIRECTORY), JOURNAL)
    there = [folder for folder in folders if not host.ask("test", "-e", folder, check=False).exit_code]
    left = [*namespaces_named(host), *there]
    if left:
        detail = f"on {host.name}, an earlier run left {', '.join(left)}"
        yield Observation(
            "machine", "left behind", State.WARNING, detail, "sudo ./podperf clean, or the next run does it"
        )


def _check_ports(testbed: Testbed) -> Iterator[Observation]:
    """Checks that nothing else uses the existing ports of the tester and of the workers."""
    topology, tester = testbed.topology, testbed.tester_host
    yield from _refusals("tester ports", lambda: refuse_shared_ports(topology, tester, ssh=session_to(tester)))
    for worker in testbed.workers:
        if worker.settings.left is not None:
            refuse = partial(refuse_shared_worker_ports, topology.path, worker.settings, worker.host)
            found = _refusals("worker ports", partial(refuse, session_to(worker.host)))
            yield from of_worker(topology, worker.settings, found)


def _refusals(ports: str, refuse: Callable[[], None]) -> Iterator[Observation]:
    try:
        refuse()
    except PodperfError as error:
        for line in str(error).splitlines():
            yield Observation("measuring", ports, State.MISSING, line, needed=True)
    else:
        yield Observation("measuring", ports, State.OK, "nothing else uses them")


def _check_receive_threads(testbed: Testbed) -> Observation:
    """Checks that the receive threads of the ports can be pinned to CPUs. A run pins them."""
    try:
        testbed.refuse_unpinnable()
    except PodperfError as error:
        return Observation("measuring", "receive threads", State.MISSING, str(error), needed=True)
    return Observation(
        "measuring", "receive threads", State.OK, "they can be held to the CPUs of the system under test"
    )


def _check_own_ports(testbed: Testbed) -> Iterator[Observation]:
    """Checks a tester with ports of its own: does it answer, and are its links up? Its ports cannot be joined here."""
    try:
        tester = testbed.tester_with_ports().facts
    except PodperfError as error:
        yield Observation("measuring", "tester", State.MISSING, str(error), needed=True)
        return
    finally:
        testbed.close()
    detail = f"{tester.name} {tester.version} at {tester.server}"
    down = [f"the link of its {side} port is down" for side, port in tester.ports.items() if not port.link_up]
    # A run brings the worker's ports up. Before that, many cards have no link.
    to_be_set_up = not testbed.topology.external
    state = (State.WARNING if to_be_set_up else State.MISSING) if down else State.OK
    remedy = "plug in the cable" + (", if it stays down once the worker's ports are up" if to_be_set_up else "")
    observation = "; ".join([detail, *down])
    yield Observation(
        "measuring", "tester", state, observation, remedy if down else "", bool(down) and not to_be_set_up
    )
    yield from _check_version(testbed, tester)


def _check_version(testbed: Testbed, tester: TesterFacts) -> Iterator[Observation]:
    """Checks the version that TRex itself tells. A label in the topology may be out of date, or missing."""
    if tester.engine != "trex":
        return
    offered = any(offers_virtual_functions(worker.host, worker.settings) for worker in testbed.workers)
    yield trex_on_vfs(tester.version, offered)


def check_bare_path(topology: Topology, testbed: Testbed) -> Iterator[Observation]:
    if topology.tester.kind.has_ports_of_its_own:
        yield from _check_own_ports(testbed)
        return
    try:
        with testbed.bare_path(SMALLEST) as bare:
            bare.probe(addressed(topology.traffic.profile(SMALLEST), bare))
            tester = bare.tester.facts
    except PodperfError as error:
        yield Observation("measuring", "test frames", State.MISSING, str(error), needed=True)
        return
    detail = f"frames of {SMALLEST.name} crossed the bare path, engine {tester.engine}"
    if why := tester.engine_remark:
        yield Observation("measuring", "test frames", State.WARNING, f"{detail}, the slower one: {why}")
    else:
        yield Observation("measuring", "test frames", State.OK, detail)
    yield from _check_version(testbed, tester)


def check_data_planes(testbed: Testbed) -> Iterator[Observation]:
    measurable = 0
    for name, kind in DATA_PLANES.items():
        if reason := _why_not(testbed, kind):
            yield Observation("data planes", name, State.SKIPPED, reason)
        else:
            measurable += kind.least_pods > 0 or testbed.topology.external
            yield Observation("data planes", name, State.OK, "measurable")
    if not measurable:
        yield Observation("data planes", "pods", State.MISSING, "no data plane with pods can be measured", needed=True)


def _why_not(testbed: Testbed, kind: type[DataPlane]) -> str | None:
    """The reason why a data plane cannot be measured on this testbed, or None."""
    try:
        testbed.demand(Chain(kind.name, kind.least_pods))
    except Unavailable as reason:
        return str(reason)
    worker, *_ = testbed.workers  # where a chain on one worker stands
    ports = (worker.settings.left, worker.settings.right)
    return kind.refused(worker.host, {port.interface: port.driver or "" for port in ports if port is not None})
