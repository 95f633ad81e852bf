"""The tester whose two ports are pods of a cluster, or a pod and a host outside. The system under test is the cluster's
own network between them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any, ClassVar, Self

from podperf.errors import PodperfError, Unavailable
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, log_in, understood
from podperf.kubernetes.placement import READ, PodPlacement
from podperf.kubernetes.pods import await_phase, first_ended
from podperf.kubernetes.receive_threads import INDICES, WITHOUT_TSO
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.model import Direction, Entry, FrameSize, TrafficProfile, Trial, TrialResult
from podperf.testers.base import Ability, PortFacts, Site, TesterFacts
from podperf.testers.kubernetes_plan import (
    SERVICE_PORT,
    SIDES,
    named_nodes,
    pods_of,
    policies,
    service,
    tester_pod,
    thread_starter,
)
from podperf.testers.kubernetes_settings import SCHEMA, KubernetesSettings
from podperf.testers.outside_port import Outside, OutsidePort
from podperf.testers.pod_port import DISCARDED, PodFacts, PodPort, TesterEnd
from podperf.testers.software import request_line
from podperf.testers.two_processes import combined

NAME = "podperf software tester in two pods"
SETTLE = 0.2  # seconds without a frame after which the rest counts as lost
ANSWER_TIMEOUT = 20.0  # seconds beyond the trial itself
SERVICE_TIMEOUT = 30.0  # seconds for a cluster to know a new Service
OUTSIDE_TIMEOUT = 30.0  # seconds until frames reach a host outside of the cluster
POLICY_TIMEOUT, POLICY_TIME = 30.0, 0.2  # seconds for a cluster to know a first policy, and for each further one
NOT_ADMITTED = DISCARDED + 1  # a UDP port that no NetworkPolicy of the run admits
PROBES_A_SECOND, PROBE_TIME = 1000.0, 0.02  # frames/s and seconds
MOST_FLOWS = 16_352  # UDP source ports from 49184 on
_FROM = dict(zip(SIDES, Direction, strict=True))  # the direction of the frames that a side sends
_SHARED = "the kernel forwards each frame on the sender's CPU, in the sender's own time (softirq)"
_CPU_MODEL = "grep -m 1 'model name' /proc/cpuinfo || :"  # not every architecture has one


class KubernetesTester:
    """Starts two pods, on one node or on two, or one pod; measures between the pods, or to a host outside; deletes the
    pods."""

    shortest_trial: ClassVar[float] = 0.0
    settings_schema: ClassVar[Mapping[str, Any]] = SCHEMA

    @understood("the cluster, or a pod of the tester,")
    def __init__(self, settings: KubernetesSettings, outside: Outside | None = None) -> None:
        """`outside` has the interface of `settings.host`."""
        self._undo = ExitStack()
        self._broken = False
        try:
            self._api: Api = log_in(settings.kubeconfig, settings.context)
            self._undo.callback(self._api.close)
            self._server = self._api.ask("GET", "/version")["gitVersion"]
            place = RunNamespace(self._api, settings.namespace)
            self._undo.callback(place.close)
            self._place = place
            self.pods = self._start(settings)
            self._outside = self._start_outside(settings, outside)
            ends = {each.side: each for each in (*self.pods.values(), self._outside) if each is not None}
            self.ports: Mapping[str, TesterEnd] = ends
            self._remark = None if settings.receive_threads else _SHARED
            if settings.receive_threads:
                self._start_receive_threads(settings)
            self._trial = random.randrange(1, 65536)
            self._services = self._start_services() if settings.destination == "service" else {}
            self._policies = settings.network_policies
            self._entries = self._ways()
            if self._services:
                self._await_services()
            if self._outside:
                self._await_outside()
            if self._policies:
                self._start_policies()
        except BaseException:
            self._undo.close()
            raise

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> KubernetesSettings:
        """See TesterType."""
        return KubernetesSettings.read(tester["settings"])

    @classmethod
    def at(cls, site: Site) -> Self:
        """The tester of a topology."""
        assert isinstance(site.settings.kind, KubernetesSettings)
        return cls(site.settings.kind, Outside(site.host, site.cpus))

    def _start(self, settings: KubernetesSettings) -> Mapping[str, PodPort]:
        """The pods. Without names of nodes, the scheduler chooses the node of the first one, and the second one goes
        there or to another node.

        The second pod is made when the first one runs. So two runs that wait for each other's nodes do so in the order
        of the topologies' names of nodes: if this order is the same in all runs, one of them always goes on."""
        ports: dict[str, PodPort] = {}
        node = None
        for side, wanted in zip(pods_of(settings), named_nodes(settings), strict=False):
            node = wanted or node
            pod = tester_pod(side, self._place.run, self._place.owners, settings, node)
            name = pod["metadata"]["name"]
            self._place.start(pod)
            facts = PodFacts.of(await_phase(self._place, name, timeout=settings.start_timeout))
            node = manifests.NodeOf(facts.node, other=settings.nodes > 1)
            ports[side] = PodPort(self._api, self._place.name, side, facts)
            _placement(ports[side]).demand(settings.wishes.cpus, f"pod {name} on {facts.node}")
        return ports

    def _start_receive_threads(self, settings: KubernetesSettings) -> None:
        run, owners = self._place.run, self._place.owners
        for side, port in self.pods.items():
            port.execute(*WITHOUT_TSO)
            there, own = map(int, port.execute(*INDICES).split())  # a privileged pod reads these words
            indices = [str(there), str(own)]
            pod = thread_starter(side, run, owners, settings.wishes, port.facts.node, indices)
            self._place.start(pod)
            await_phase(self._place, pod["metadata"]["name"], "Succeeded")

    def _start_services(self) -> Mapping[str, IPv4Address]:
        """A Service for each pod. Returns their addresses by the side of the pod."""
        run, owners = self._place.run, self._place.owners
        pods = {side: port.facts.name for side, port in self.pods.items()}
        return {side: self._place.start_service(service(side, pod, run, owners)) for side, pod in pods.items()}

    def _start_outside(self, settings: KubernetesSettings, outside: Outside | None) -> OutsidePort | None:
        if settings.host is None:
            return None
        assert outside is not None
        port = OutsidePort(outside, settings.host)
        self._undo.callback(port.close)
        return port

    def _ways(self, port: int = DISCARDED) -> Mapping[Direction, Entry]:
        """The entry of the frames that each pod sends: the address of the other port or of the Service before it."""
        others = dict(zip(SIDES, SIDES[::-1], strict=True))
        return {_FROM[side]: self._way(pod, others[side], port) for side, pod in self.pods.items()}

    def _way(self, source: PodPort, destination: str, port: int) -> Entry:
        address = self.ports[destination].address
        if self._services and port == DISCARDED:
            address, port = self._services[destination], SERVICE_PORT
        return Entry(source.next_hop(address), str(address), port)

    def _await_services(self) -> None:
        """Wait until frames reach both pods by the addresses of their Services."""
        if direction := self._stays(self._entries, arrives=False, seconds=SERVICE_TIMEOUT):
            raise Unavailable(
                f"after {SERVICE_TIMEOUT:.0f} s no frame {direction} came through the Service at "
                f"{self._entries[direction].address}: does the cluster have kube-proxy, or what replaces it?"
            )

    def _await_outside(self) -> None:
        """Wait until frames reach the host outside. So no load is sent to a host where the tester does not count."""
        if self._stays(self._entries, arrives=False, seconds=OUTSIDE_TIMEOUT):
            raise Unavailable(
                f"after {OUTSIDE_TIMEOUT:.0f} s no frame of pod {self.pods['left'].facts.name} came to "
                f"{self.ports['right'].address} on {self.ports['right'].machine}: is there a route, and no firewall?"
            )

    def _start_policies(self) -> None:
        """Make the NetworkPolicies, and wait until frames that they admit arrive, and others do not.

        One policy is enough to refuse frames. So a cluster that enforces none is known before all others are made. The
        policy that admits frames is made last.
        """
        refused = self._ways(NOT_ADMITTED)
        first, *others = policies(self._policies, self._place.run, self._place.owners)
        self._place.start_policy(first)
        if self._stays(refused, arrives=True, seconds=POLICY_TIMEOUT):
            raise Unavailable("the cluster does not enforce NetworkPolicies")
        for each in others:
            self._place.start_policy(each)
        seconds = POLICY_TIMEOUT + POLICY_TIME * self._policies
        if direction := self._stays(self._entries, arrives=False, seconds=seconds):
            raise Unavailable(
                f"after {seconds:.0f} s no frame {direction} arrives, although one of {self._policies} NetworkPolicies "
                "admits it"
            )
        if self._stays(refused, arrives=True, seconds=POLICY_TIMEOUT):
            raise Unavailable("the cluster does not enforce NetworkPolicies")

    def _stays(self, entries: Mapping[Direction, Entry], *, arrives: bool, seconds: float) -> Direction | None:
        """Wait until frames no longer arrive that are sent there or, without `arrives`, until they do. The direction
        where nothing changes in so many seconds, or None."""
        deadline = time.monotonic() + seconds
        for direction in entries:
            probe = Trial(TrafficProfile(FrameSize.parse(64), (direction,)), PROBES_A_SECOND, PROBE_TIME)
            while bool(self._measure(probe, entries).received) is arrives:
                if time.monotonic() > deadline:
                    return direction
        return None

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. See `testers.base.Tester.measure`. Each direction is a trial of its own."""
        if self._broken:
            raise PodperfError("the tester's pods are gone; make a new tester")
        if trial.traffic.groups > 1:
            self.facts.demand(Ability.GROUPS)
        if trial.loop is not None or trial.overload is not None or len(trial.traffic.directions) > 1:
            raise Unavailable("the tester in two pods sends in one direction at a time, and at one load")
        if not set(trial.traffic.directions) <= self._entries.keys():
            raise Unavailable("a host outside sends no frames to a pod; write traffic.directions: left-to-right")
        if trial.traffic.flows > MOST_FLOWS:
            raise Unavailable(f"pods have one address each, which is enough for {MOST_FLOWS} flows")
        try:
            return self._measure(trial, self._entries)
        except PodperfError as error:
            self._broken = True
            if (why := self._why_ended()) is not None:
                raise PodperfError(why) from error
            raise
        except BaseException:  # also Ctrl-C: the next answer would belong to this trial
            self._broken = True
            raise

    def _why_ended(self) -> str | None:
        """The cause that the cluster gives for the end of one of the pods. None if both run."""
        nodes = {port.facts.name: port.facts.node for port in self.pods.values()}
        ended = first_ended(self._place, nodes)
        return None if ended is None else f"pod {ended[0]} on {nodes[ended[0]]} ended while it measured: {ended[1]}"

    @understood("a pod of the tester")
    def _measure(self, trial: Trial, entries: Mapping[Direction, Entry]) -> TrialResult:
        (direction,) = trial.traffic.directions
        sender, counter = (
            self.ports[each] for each in (SIDES if direction is Direction.LEFT_TO_RIGHT else SIDES[::-1])
        )
        self._trial = self._trial % 65535 + 1
        whole, addressed = (
            f"{request_line(replace(trial, traffic=replace(trial.traffic, entries=each)), SETTLE)} trial={self._trial}"
            for each in ({}, entries)
        )
        counter.request(f"{whole} part=count")
        counter.answer({"counting"}, ANSWER_TIMEOUT)
        sender.request(f"{addressed} {direction}.source={sender.address} part=send")
        time.sleep(trial.longest)
        sent = sender.answer({"trial"}, ANSWER_TIMEOUT)["trial"]
        (sending,) = sent["directions"]
        counter.request(f"sent={_count(sending['sent'])}")
        counted = counter.answer({"trial"}, ANSWER_TIMEOUT)["trial"]
        # Clocks of two machines differ by more than a frame takes.
        return combined(trial, sent, counted, same_clock=sender.machine == counter.machine)

    @property
    def broken(self) -> bool:
        """See `testers.base.Tester`."""
        return self._broken

    @property
    def facts(self) -> TesterFacts:
        """See `testers.base.TesterFacts`."""
        left, right = (PortFacts(self.ports[side].mac, link_up=True) for side in SIDES)  # else it would not be ready
        ready = self.ports["left"].ready
        return TesterFacts(
            NAME,
            ready["version"],
            ready["engine"],
            left,
            right,
            copies=True,
            server=f"{self._api.where} (Kubernetes {self._server})",
            engine_remark=self._remark,
        )

    @understood("a pod of the tester")
    def describe(self) -> Mapping[str, Any]:
        """The cluster, the Services before the pods, the number of NetworkPolicies, each pod with its node, image and
        CPUs, and the host outside."""
        return {
            "name": NAME,
            "engine": self.facts.engine,
            "version": self.facts.version,
            "receive_threads": self._remark is None,
            **({"engine_remark": self._remark} if self._remark else {}),
            "cluster": {"server": self._api.where, "version": self._server, "namespace": self._place.name},
            "services": {side: str(address) for side, address in self._services.items()},
            "network_policies": self._policies,
            "pods": {side: dict(self._of_pod(port)) for side, port in self.pods.items()},
            **({"outside": self._outside.describe()} if self._outside else {}),
        }

    @staticmethod
    def _of_pod(port: PodPort) -> Iterator[tuple[str, Any]]:
        facts = port.facts
        yield from {"name": facts.name, "node": facts.node, "address": str(facts.address), "mac": port.mac}.items()
        yield from {"image": facts.image, "mode": port.ready["ports"][port.side]["mode"]}.items()
        yield from _placement(port).describe().items()
        yield "kernel", port.execute("cat", "/proc/sys/kernel/osrelease").strip()
        yield "cpu_model", _value(port.execute("sh", "-c", _CPU_MODEL))

    def close(self) -> None:
        """Delete the pods. Safe to call twice."""
        self._broken = True
        self._undo.close()


def _count(sent: object) -> int:
    """A number of frames in the answer of a pod. The other process of the tester reads the number in a line."""
    if not isinstance(sent, int):
        raise TypeError(f"{sent!r} is no number of frames")
    return sent


def _placement(port: PodPort) -> PodPlacement:
    return PodPlacement.of(port.execute("sh", "-c", READ))


def _value(line: str) -> str:
    """The value in a line such as `model name : ...` of /proc/cpuinfo."""
    return line.partition(":")[2].strip()
