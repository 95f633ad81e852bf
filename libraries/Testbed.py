"""Keyword library: the testbed of a run, and the chain that one test measures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, cast

from robot.api import logger
from robot.api.deco import keyword, library
from robot.api.types import Secret
from robot.libraries.BuiltIn import BuiltIn
from robot.result import TestCase

from podperf import __version__
from podperf.errors import PodperfError, Unavailable
from podperf.frames import AddressFamily
from podperf.hosts.suite_connection import connect
from podperf.kubernetes.settings import Destination, pods_of_tester
from podperf.model import BOTH_DIRECTIONS, CABLE, Chain, Direction, End, Ends, FrameSize
from podperf.progress import Progress
from podperf.records import Outcome
from podperf.run import MachineRole, Run, Session, TestIdentity
from podperf.testbed.access import read_topology
from podperf.thresholds import Status, ThresholdVerdict

ROOT = Path(__file__).parents[1]
TERMINATED = "Execution terminated by signal"  # Robot Framework's words for the test that a signal ends

Directions = Literal["left-to-right", "right-to-left", "bidirectional"]


@library(scope="GLOBAL", version=__version__, doc_format="MARKDOWN")
class Testbed:
    """Opens the testbed that a topology file describes and builds chains of pods on it.

    A *chain* is what one test measures: 0 or more pods between a `left` and a `right` end, joined by one *data plane*.
    An end is a port of the tester, or a pod with the tester's program in it. Everything that a chain needs is made when
    it is set up and gone when it is torn down.

    ```robotframework
    *** Settings ***
    Suite Setup       Open Testbed    topologies/local.yaml
    Suite Teardown    Close Testbed

    *** Test Cases ***
    Linux Bridge
        Set Up Chain    linux-bridge    pods=1    frame=64
        Tear Down Chain
    ```

    The library shows progress on the console by itself and closes each test's record when the test ends.
    """

    ROBOT_LISTENER_API_VERSION = 3

    def __init__(self) -> None:
        self.ROBOT_LIBRARY_LISTENER = self
        self._run: Run | None = None
        self._stopping = False
        self.test_id = ""  # of the test that runs now, as Robot Framework's log has it: s1-s2-t3

    @property
    def is_open(self) -> bool:
        """Whether there is a run."""
        return self._run is not None

    @property
    def run(self) -> Run:
        """The run that `Open Testbed` began."""
        if self._run is None:
            source = BuiltIn().get_variable_value("${SUITE SOURCE}")
            raise PodperfError(
                f"no testbed is open; the command that opens one: {ROOT}/podperf run {source} "
                "(a suite of your own also calls `Open Testbed` in its suite set-up)"
            )
        return self._run

    @keyword
    def open_testbed(
        self, topology: Path, password: Secret | None = None, version_under_test: str | None = None
    ) -> None:
        """Take the machine for measuring on the testbed of this `topology` file.

        `password` is for the machines behind SSH whose login in the topology is `password`. It is a `Secret`: no log
        shows it. The variable `${PASSWORD: Secret}    %{PODPERF_SSH_PASSWORD=}` takes it from the environment.

        `version_under_test` names the version that you measure, for example `OVS 3.6, patch 2`. Every record of the run
        and the report of a history have this text.

        Fails if the file is wrong, if another run is measuring on this machine, or if anything else uses an interface
        that the topology names (draft section 5).
        """
        try:
            _refuse_parallel_runs(BuiltIn().get_variable_value("${PABOTNUMBEROFPROCESSES}"))
            results = Path(BuiltIn().get_variable_value("${OUTPUT DIR}"))
            known = read_topology(topology)
            session = Session(known, results, password=password.value if password is not None else None)
            run = Run(session, version_under_test)
            run.open()
        except PodperfError as error:
            Progress().note(f"podperf: {error}")  # Robot's own console may be off
            raise
        except Exception as error:  # for example a machine behind SSH gives an answer that podperf cannot read
            Progress().note(f"podperf: {type(error).__name__}: {error}")
            raise
        self._run = run
        opened = run.session.topology
        logger.info(f"testbed {opened.name}: {opened.description}")

    @keyword
    def close_testbed(self) -> None:
        """Give the machine back, write the reports and show the summary table."""
        run, self._run = self._run, None
        if run is None:
            return
        summary = run.close()
        if self._stopping and run.progress.not_begun:
            summary += f"\n\nEnded early: {run.progress.not_begun} of {run.progress.expected} tests were not run."
        run.progress.table("\n" + summary)

    @keyword
    def set_up_chain(
        self,
        data_plane: str,
        pods: int,
        frame: str,
        directions: Directions | None = None,
        flows: int | None = None,
        forwarder: str | None = None,
        workers: int = 1,
        join: str = CABLE,
        left_end: End = End.PORT,
        right_end: End = End.PORT,
        family: AddressFamily | None = None,
        vlan: int | None = None,
        tester_pods: Mapping[str, Any] | None = None,
    ) -> None:
        """Build a chain and check that test frames cross it.

        `frame` is a size in bytes with FCS, 64 to 9022, or a mix such as `IMIX`. `directions` and `flows` are the
        topology's by default. `forwarder` moves frames within a pod, for data planes that leave a choice: `testpmd`,
        `testpmd-mac`, `testpmd-macswap`, `l2fwd`, or `kernel` on virtual functions. The pods are divided among
        `workers` workers of the topology, from left to right. A `join` carries frames between them: a `cable`, an
        encapsulation on it (`vlan`, `vxlan`, `geneve`, `gre`, `ipip`, `wireguard`), or a cable with routes by `bgp`.
        Test traffic begins and ends at a `port` of the tester, or in a `pod`: the tester's program then sends and
        receives in this pod, which is attached to the data plane. Two ends of the kind `container` are two containers
        of one pod. `pods` are those between the two ends.
        Test frames have addresses of a `family`, and a `vlan` tag with this ID, both by default the topology's. If the
        headers do not fit into the size, frames have the smallest size into which they do. `tester_pods` is a value of
        `Pods Of The Tester On`.

        If the testbed does not have this data plane or enough workers, or if frames with these headers cannot cross,
        the test is skipped with the reason.
        """
        size = frame_size(frame)
        chain = Chain(data_plane, pods, forwarder, workers, join=join, ends=Ends(left_end, right_end))
        self.run.begin_test(running_test(), chain, size, _directions(directions), flows, family, vlan, tester_pods)
        traffic = self.run.measurement.traffic.profile
        headers = f", {traffic.headers.words}" if traffic.headers.words else ""
        logger.info(f"{chain} forwards frames: {traffic.frame.name}{headers}")

    @keyword
    def pods_of_the_tester_on(
        self,
        nodes: int,
        destination: Destination = "pod",
        network_policies: int = 0,
        host_network: bool = False,
        other_services: int = 0,
        new_flows: bool = False,
    ) -> Mapping[str, Any]:
        """Return the value `tester_pods` of `Set Up Chain` for pods of a cluster on this number of `nodes` (1 or 2).

        Frames go to the address of the other `pod`, to that of a `service` before it, or to a `host` outside of the
        cluster. `network_policies` is the number of NetworkPolicies that select the pods, and `other_services` that of
        other Services in the cluster. With `host_network`, the pods are in the networks of two nodes. With `new_flows`,
        each frame of a trial is a new flow for the nodes. The test is skipped if the topology's tester is not in pods
        of a cluster, or if its settings forbid this.

        ```robotframework
        ${pods} =    Pods Of The Tester On    2    service
        Set Up Chain    external    0    64    tester_pods=${pods}
        ```
        """
        kind = pods_of_tester(self.run.session.topology)
        if kind is None:
            raise Unavailable("this test needs a topology whose tester is two pods (topologies/kubernetes.yaml)")
        return kind.for_row(nodes, destination, network_policies, host_network, other_services, new_flows)

    @keyword
    def tear_down_chain(self) -> None:
        """Take the chain down. Does nothing if there is no chain."""
        if self.is_open:
            self.run.tear_down_chain()

    @keyword
    def open_connection_to_machine(self, machine: MachineRole, number: int = 1, alias: str | None = None) -> int:
        """Open a connection of SSHLibrary to a machine of the testbed, for commands of your own.

        The suite must also import `SSHLibrary`; its keywords use the connection. The topology gives address, port,
        user, key, password and known host keys. `number` counts workers from left to right. Returns the index of the
        connection.

        ```robotframework
        Open Connection To Machine    worker
        ${kernel} =    Execute Command    uname -r
        Close Connection
        ```

        Fails when the host key of the machine is unknown or has changed, when the login is refused, and when the
        machine is the one on which podperf runs: there the library `Process` runs commands.
        """
        login = self.run.session.login(machine, number)
        library = _library_of_suite("SSHLibrary")
        index = library.open_connection(login.address, alias, login.port)
        try:
            connect(library.current.client, login)
        except PodperfError:
            library.close_connection()
            raise
        return cast(int, index)

    # --- Robot Framework's listener interface ---------------------------------------------------------------------

    def start_test(self, data: Any, result: TestCase) -> None:
        """Robot Framework's listener interface."""
        self.test_id = result.id
        if self._run is None or self._stopping:
            return
        progress = self._run.progress
        if not progress.expected:
            self._run.plan([_identity(test) for test in _whole(data).all_tests])
        progress.test_begins(result.name)

    def end_test(self, data: Any, result: TestCase) -> None:
        """Robot Framework's listener interface."""
        not_run = result.tags.robot("exit")  # a signal, or an option of Robot Framework's, ended the run before it
        self._stopping |= not_run or TERMINATED in result.message
        if self._run is None or not_run:
            return
        progress, message = self._run.progress, result.message
        ended = self._run.end_test(_identity(result, place_in_log(result.id)), _outcome(result), message)
        said = (ended.figures, message) if result.passed else (message, ended.figures)
        result.message = "; ".join(filter(None, said))
        progress.test_ends(ended.verdict, ended.figures, message)
        for problem in ended.problems:  # Robot Framework does not show errors of a listener
            progress.note(f"podperf: {problem}")
        if ended.html:  # in the test itself, where the reader sees it without opening a keyword
            with suppress(OSError):  # the disk is full; Robot Framework reports this for its whole output
                logger.info(ended.html, html=True)

    def close(self) -> None:
        """Robot Framework's listener interface: it calls this at the end of every run, also of an interrupted one."""
        self.close_testbed()


def _refuse_parallel_runs(processes: str | None) -> None:
    """PodperfError if pabot starts this run beside others: at most one of them would get the machine."""
    if processes is not None and processes.isdecimal() and int(processes) > 1:
        raise PodperfError(
            f"pabot starts {processes} runs at once, and a machine measures one test at a time: "
            "use robot, or pabot --processes 1"
        )


def open_run() -> Run:
    """The run that `Open Testbed` of the suite's library began."""
    return cast(Testbed, BuiltIn().get_library_instance("Testbed")).run


def testbed_is_open() -> bool:
    """Whether `Open Testbed` began a run that `Close Testbed` has not ended."""
    return cast(Testbed, BuiltIn().get_library_instance("Testbed")).is_open


def requests_library() -> Any:
    """The instance of RequestsLibrary that the suite imports."""
    return _library_of_suite("RequestsLibrary")


def _library_of_suite(name: str) -> Any:
    try:
        return BuiltIn().get_library_instance(name)
    except RuntimeError:
        raise PodperfError(f"import {name} in this suite: `Library    {name}` in its settings") from None


def tell_verdict(verdict: ThresholdVerdict) -> None:
    """Fail the test if a threshold is missed. A verdict that is not *passed* becomes the test's message."""
    if verdict.failed:
        raise AssertionError(verdict.sentence)
    logger.info(verdict.sentence)
    if verdict.status is not Status.PASSED:
        BuiltIn().set_test_message(verdict.sentence)


def frame_size(text: str) -> FrameSize:
    """The frame size of a number of bytes with FCS, or of `IMIX`. Raises PodperfError for any other text."""
    try:
        return FrameSize.parse(text)
    except ValueError as error:
        raise PodperfError(str(error)) from error


def running_test() -> TestIdentity:
    """The test that runs now."""
    test = BuiltIn().get_variables()
    place = place_in_log(cast(Testbed, BuiltIn().get_library_instance("Testbed")).test_id)
    return TestIdentity(test["${TEST NAME}"], test["${SUITE NAME}"], tuple(test["@{TEST TAGS}"]), place)


def place_in_log(test_id: str) -> str | None:
    """The place of a test in the log of this run. None if the log is not in the folder of the records."""
    log, folder = (Path(BuiltIn().get_variable_value(each)) for each in ("${LOG FILE}", "${OUTPUT DIR}"))
    return f"{log.name}#{test_id}" if log.parent == folder and re.fullmatch(r"[A-Za-z0-9_.-]+", log.name) else None


def _directions(word: Directions | None) -> tuple[Direction, ...] | None:
    if word is None:
        return None
    return BOTH_DIRECTIONS if word == "bidirectional" else (Direction(word),)


def _whole(suite_or_test: Any) -> Any:
    """The suite that holds all tests of the run."""
    return suite_or_test if suite_or_test.parent is None else _whole(suite_or_test.parent)


def _identity(test: Any, log: str | None = None) -> TestIdentity:
    return TestIdentity(test.name, test.parent.full_name, tuple(test.tags), log)


def _outcome(result: TestCase) -> Outcome:
    if result.skipped:
        return "skipped"
    if TERMINATED in result.message:  # behind "Setup failed:", for example
        return "interrupted"
    return "passed" if result.passed else "failed"
