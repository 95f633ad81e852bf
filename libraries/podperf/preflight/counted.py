"""Checks of a counted machine: it is started, and all that the topology changes about it is tried there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from podperf.counted_machine.boot import boot, functions_unavailable, missing_inputs, unavailable
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.model import Chain, TrafficProfile
from podperf.observation import NEEDS_ROOT, Observation, State
from podperf.preflight.measuring import SMALLEST, check_bare_path, check_data_planes
from podperf.terminal import say
from podperf.testbed.access import machines_of
from podperf.testbed.counted_inputs import InputsRefused, change_machine
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.topology import CountedSettings, Topology


def check_counted(topology: Topology, host: Host, root: bool, undo: ExitStack) -> Iterator[Observation]:
    """Start the machine until `undo`, as a run does, and try on it what the topology asks for."""
    settings = topology.workers[0].counted
    if lacking := unavailable(host) or "; ".join(missing_inputs(settings)):
        yield _of_machine(State.MISSING, lacking)
        return
    if reason := functions_unavailable(host):
        yield Observation("worker", "cost by function", State.MISSING, reason)
    if not root:
        yield _of_machine(State.UNCHECKED, NEEDS_ROOT)
        return
    try:
        counted = boot(host, settings, say, undo)
        topology = counted.as_lab(topology)
        machine, *workers = machines_of(topology, host, undo)
    except PodperfError as error:
        yield _of_machine(State.MISSING, str(error))
        return
    yield _of_machine(State.OK, f"Linux {machine.ask('uname', '-r').stdout.strip()}, {counted.start}")
    if settings.changes_machine:
        try:
            change_machine(machine, settings)
            yield _of_inputs("machine", State.OK, "the machine takes them")
        except InputsRefused as error:
            yield from _refused("machine", topology, error)
    testbed = Testbed.on(topology, machine, workers)
    undo.callback(testbed.close)
    yield from check_bare_path(topology, testbed)
    data_planes = [*check_data_planes(testbed)]
    yield from data_planes
    yield from _check_chains(testbed, settings, [each.subject for each in data_planes if each.state is State.OK])


def _check_chains(testbed: Testbed, settings: CountedSettings, measurable: list[str]) -> Iterator[Observation]:
    """Set up a chain of each data plane that the topology has settings of, or another one, if chains have inputs."""
    topology = testbed.topology
    own = [name for name in measurable if name in topology.data_planes]
    plain = [name for name in measurable if name not in topology.data_planes and DATA_PLANES[name].least_pods]
    tried = not settings.changes_chains
    for name in [*own, *plain[:1]]:
        if tried and name not in own:
            break
        pods = max(1, DATA_PLANES[name].least_pods, *(hook.pod or 1 for hook in settings.hooks))
        try:
            with testbed.build(Chain(name, pods), SMALLEST) as sut:
                sut.probe(addressed(TrafficProfile(SMALLEST, topology.traffic.directions), sut))
            yield _of_inputs(name, State.OK, "a chain takes them, and test frames cross it")
            tried = True
        except InputsRefused as error:
            yield from _refused(name, topology, error)
            tried = True
        except PodperfError as error:
            yield _of_inputs(name, State.WRONG, str(error))


def _refused(subject: str, topology: Topology, error: InputsRefused) -> Iterator[Observation]:
    return (_of_inputs(subject, State.WRONG, f"{topology.path}: {problem}") for problem in error.problems)


def _of_machine(state: State, detail: str) -> Observation:
    return Observation("worker", "counted machine", state, detail, needed=True)


def _of_inputs(subject: str, state: State, detail: str) -> Observation:
    return Observation("inputs", subject, state, detail, needed=True)
