"""Keyword library: the test network is isolated (draft section 5)."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Literal

from robot.api import logger
from robot.api.deco import keyword, library

from podperf import __version__
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import add_veth, ip
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import PREFIX, NetworkNamespace, add_namespace
from podperf.kubernetes.settings import pods_of_tester
from podperf.model import Direction, FrameSize, TrafficProfile, Trial
from podperf.run import Session
from podperf.testbed.frame_watch import FrameWatch, addresses_in_test_network
from podperf.testbed.isolation import SshSession, refuse_shared_ports
from podperf.testbed.system_under_test import addressed
from podperf.topology import PortSettings
from Testbed import open_run

Use = Literal["default route", "address", "SSH session"]
PUBLIC_ADDRESS, PEER = "192.0.2.1", "192.0.2.2"  # TEST-NET-1, RFC 5737


def _with_ports_of_its_own() -> Session:
    """The session of this run. Unavailable if the tester's ports are pods, which share a network with others."""
    session = open_run().session
    if pods_of_tester(session.topology) is not None:
        raise Unavailable(
            "the tester's ports are pods in the live network of a cluster: there is no network to isolate"
        )
    return session


@library(scope="SUITE", version=__version__, doc_format="MARKDOWN")
class Isolation:
    """Shows that test traffic stays on the testbed's own links, and that podperf refuses other ports as tester ports.

    ```robotframework
    *** Test Cases ***
    Default Route
        Port Should Be Refused When It Carries    default route
    ```
    """

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._watches: list[FrameWatch] = []

    @keyword
    def ports_should_be_isolated(self) -> None:
        """Fails unless the ports of this topology (the tester's and the workers') carry only test traffic."""
        session = _with_ports_of_its_own()
        session.equipment.testbed.refuse_shared_ports()
        logger.info(
            "the ports exist and are free" if session.topology.existing_ports else "the run makes its own ports"
        )

    @keyword
    def port_should_be_refused_when_it_carries(self, use: Use) -> None:
        """Make an interface that is in `use`, in a namespace of its own, and offer it as a tester port.

        Fails unless podperf accepts the interface before it is in use, and refuses it afterwards.
        """
        _with_ports_of_its_own()
        with ExitStack() as undo:
            namespace = add_namespace(LocalHost(), "in-use", undo)
            add_veth(namespace, near="port", far="other", mtu=1500)
            topology = open_run().session.topology
            ports = [PortSettings(name, PREFIX + "in-use") for name in ("port", "other")]
            topology = replace(topology, tester=replace(topology.tester, left=ports[0], right=ports[1]))
            refuse_shared_ports(topology)

            ssh = None
            if use == "address":
                ip(namespace, "address", "add", f"{PUBLIC_ADDRESS}/24", "dev", "port")
            elif use == "default route":
                ip(namespace, "route", "add", "default", "dev", "port")
            else:
                ssh = SshSession(peer=PEER, local=PUBLIC_ADDRESS)
                ip(namespace, "route", "add", PEER, "dev", "port")
            try:
                refuse_shared_ports(topology, ssh=ssh)
            except PodperfError as refusal:
                logger.info(str(refusal))
            else:
                raise AssertionError(f"an interface that carries a {use} was accepted as a tester port")

    @keyword
    def watch_machines_for_test_frames(self) -> None:
        """From now on, look for test frames at every interface outside of the testbed, on this machine, the tester's
        and the workers', and in the network namespaces of the tester's ports.

        A test frame has an address of the test network, or the signature of podperf's own tester, whatever its
        addresses are. Some VPNs give a machine an address in the test network. Frames from or to such an address do not
        count, unless they have the signature."""
        session = _with_ports_of_its_own()
        testbed, tester = session.equipment.testbed, session.topology.tester
        self._watches = []
        taken: dict[str | None, list[str]] = {}  # the tester's ports, by their namespace
        for port in (tester.left, tester.right):
            if port.interface is not None:
                taken.setdefault(port.namespace, []).append(port.interface)
        workers = [worker.host for worker in testbed.workers]
        machines: dict[str, Host] = {host.name: host for host in (LocalHost(), testbed.tester_host, *workers)}
        machines_of_ports = {testbed.tester_host.name: taken.get(None, [])}
        places = [(host, machines_of_ports.get(name, [])) for name, host in machines.items()]
        places += [(NetworkNamespace(each, testbed.tester_host), ports) for each, ports in taken.items() if each]
        for host, ports in places:
            self._watches.append(FrameWatch(host, self._undo, addresses_in_test_network(host), ports))

    @keyword
    def no_test_frame_should_have_left_the_testbed(self) -> None:
        """Fails if a test frame was seen outside. Also fails if the watch sees none inside, because it then proves
        nothing. The test is skipped if no kernel shows the ports of the chain."""
        if not self._watches:
            raise PodperfError("nothing was watched: call `Watch Machines For Test Frames` before the traffic")
        seen = [line for watch in self._watches for line in watch.stop()]
        self._watches = []
        if seen:
            raise AssertionError(f"test frames left the testbed: {seen[0]}")
        sut = open_run().measurement.sut
        if not sut.ports:
            raise Unavailable("no kernel shows the tester's ports, so no watch can prove that it sees test frames")
        host = next(iter(sut.ports.values())).host
        inside = FrameWatch(host, self._undo)
        traffic = addressed(TrafficProfile(FrameSize.parse(64), (Direction.LEFT_TO_RIGHT,)), sut)
        sut.tester.measure(Trial(traffic, load=1000, duration=0.2))
        found = len(inside.stop())
        if not found:
            raise AssertionError(f"the watch saw no test frame on {host.name} either, so it proves nothing")
        logger.info(f"no frame outside, {found} frames seen on {host.name}")

    @keyword
    def stop_watching(self) -> None:
        """End the watch. Does nothing if the watch has ended."""
        self._undo.close()
