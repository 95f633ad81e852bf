"""The tester whose two ports are pods of a cluster, or a pod and a host outside. The system under test is the cluster's
own network between them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, Self

from podperf.errors import PodperfError, Unavailable, understood
from podperf.frames import Address, AddressFamily, Headers
from podperf.kernel.full_tables import CONNECTIONS, CONNECTIONS_LIMIT, Place, read_tables
from podperf.kubernetes import manifests, own_agents
from podperf.kubernetes.api import Api, ApiError, log_in
from podperf.kubernetes.end_pair import SETTLE, EndPair
from podperf.kubernetes.new_flows import POD_PORTS, SERVICE_PORTS, NewFlows, demand_many, from_ports
from podperf.kubernetes.pod_network import PodNetwork, within, word
from podperf.kubernetes.pod_pairs import PodPairs
from podperf.kubernetes.pod_place import PodPlace
from podperf.kubernetes.ports import (
    DISCARDED,
    Outside,
    OutsidePort,
    PodFacts,
    PodPort,
    TesterEnd,
    attached_addresses,
)
from podperf.kubernetes.recognition import Recognition
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import READ, PodDidNotStart, PodPlacement, await_phase, first_ended
from podperf.kubernetes.settings import TESTER_SCHEMA, KubernetesSettings
from podperf.kubernetes.tester_objects import (
    ADDED,
    ADDED_POLICIES,
    INDICES,
    SERVICE_PORT,
    SIDES,
    WITHOUT_TSO,
    added_endpoint,
    added_policies,
    named_nodes,
    node_reader,
    other_services,
    pods_of,
    policies,
    service,
    tester_pod,
    thread_starter,
)
from podperf.kubernetes.unreached_service import why_unreached
from podperf.model import (
    AddressedTraffic,
    Changes,
    ChangeUnderLoad,
    Direction,
    Entry,
    FrameSize,
    TrafficProfile,
    Trial,
    TrialResult,
)
from podperf.testers.base import Ability, PortFacts, Site, TesterFacts
from podperf.testers.ends import ChainEnd

NAME = "podperf software tester in two pods"
SERVICE_TIMEOUT, SERVICE_TIME = 30.0, 0.02  # seconds for a cluster to know a new Service, and for each other one
OUTSIDE_TIMEOUT = 30.0  # seconds until frames reach a host outside of the cluster
POLICY_TIMEOUT, POLICY_TIME = 30.0, 0.2  # seconds for a cluster to know a first policy, and for each further one
CHANGE = 5.0  # seconds that a cluster usually takes to carry out a change under load
NOT_ADMITTED = DISCARDED + 1  # a UDP port that no NetworkPolicy of the run admits
PROBES_A_SECOND, PROBE_TIME = 1000.0, 0.02  # frames/s and seconds
MOST_FLOWS = 16_352  # UDP source ports from 49184 on
_FROM = dict(zip(SIDES, Direction, strict=True))  # the direction of the frames that a side sends
_SHARED = "the kernel forwards each frame on the sender's CPU, in the sender's own time (softirq)"
_CPU_MODEL = "grep -m 1 'model name' /proc/cpuinfo || :"  # `model name : …`; not every architecture has one


class KubernetesTester:
    """Starts two pods, on one node or on two, or one pod; measures between the pods, or to a host outside; deletes the
    pods."""

    shortest_trial: ClassVar[float] = 0.0
    settings_schema: ClassVar[Mapping[str, Any]] = TESTER_SCHEMA

    @understood("the cluster, or a pod of the tester,")
    def __init__(self, settings: KubernetesSettings, outside: Outside | None = None) -> None:
        """`outside` has the interface of `settings.host`."""
        self._settings, self._undo = settings, ExitStack()
        self._broken = False
        self._renewed_at = time.monotonic() + settings.wishes.longest_run / 2
        self._start_seconds: dict[str, float] = {}  # by side: from the request for a pod until it ran
        try:
            self._api: Api = log_in(settings.kubeconfig, settings.context)
            self._undo.callback(self._api.close)
            self._server = self._api.ask("GET", "/version")["gitVersion"]
            place = RunNamespace(self._api, settings.namespace)
            self._undo.callback(place.close)
            self._place = place
            self.pods = self._start()
            self._outside = self._start_outside(outside)
            ends = {each.side: each for each in (*self.pods.values(), self._outside) if each is not None}
            self.ports: Mapping[str, TesterEnd] = ends
            self._remark = None if settings.receive_threads else _SHARED
            if settings.receive_threads:
                self._start_receive_threads()
            self._tables, self._unread_tables = self._start_readers()
            self._numbers = count(random.randrange(65536))
            self._pair = EndPair(self.ports, self._numbers)
            self._services: dict[str, Address] = {}  # of the last family that was prepared, by the side of the pod
            self._entries: dict[AddressFamily, Mapping[Direction, Entry]] = {}
            self._new_flows = NewFlows(SERVICE_PORTS if settings.destination == "service" else POD_PORTS)
            family = self._first_family()
            self._start_other_services(family)
            self._prepare(family)
            if settings.network_policies:
                self._start_policies(family)
        except BaseException:
            self._undo.close()
            raise

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> KubernetesSettings:
        return KubernetesSettings.read(tester["settings"])

    @classmethod
    def at(cls, site: Site) -> Self:
        assert isinstance(site.settings.kind, KubernetesSettings)
        return cls(site.settings.kind, Outside(site.host, site.cpus))

    def _start(self) -> Mapping[str, PodPort]:
        """The pods. Without names of nodes, the scheduler chooses the node of the first one, and the second one goes
        there or to another node.

        The second pod is made when the first one runs. So two runs that wait for each other's nodes do so in the order
        of the topologies' names of nodes: if this order is the same in all runs, one of them always goes on."""
        settings, ports = self._settings, dict[str, PodPort]()
        node = None
        for side, wanted in zip(pods_of(settings), named_nodes(settings), strict=False):
            node = wanted or node
            pod = tester_pod(side, self._place.run, self._place.owners, settings, node)
            name = pod["metadata"]["name"]
            asked = time.monotonic()
            try:
                self._place.start(pod)
            except ApiError as error:
                if settings.host_network and error.status == 403:
                    raise Unavailable(f"the cluster allows no pod in the network of a node: {error.message}") from error
                raise
            try:
                running = await_phase(self._place, name, timeout=settings.start_timeout)
            except PodDidNotStart:
                if settings.interface is not None:  # without it the program ends at once
                    attached_addresses(self._place.pod(name), settings.interface)
                raise
            self._start_seconds[side] = time.monotonic() - asked
            facts = PodFacts.of(running, settings.interface)
            node = manifests.NodeOf(facts.node, other=settings.nodes > 1)
            ports[side] = PodPort(self._api, self._place.name, side, facts)
            self._undo.callback(ports[side].close)
            _placement(ports[side]).demand(settings.wishes.cpus, f"pod {name} on {facts.node}")
        return ports

    def _start_receive_threads(self) -> None:
        run, owners = self._place.run, self._place.owners
        for side, port in self.pods.items():
            port.execute(*WITHOUT_TSO)
            there, own = map(int, port.execute(*INDICES).split())  # a privileged pod reads these words
            indices = [str(there), str(own)]
            pod = thread_starter(side, run, owners, self._settings.wishes, port.facts.node, indices)
            self._place.start(pod)
            await_phase(self._place, pod["metadata"]["name"], "Succeeded")

    def _start_readers(self) -> tuple[Sequence[Place], str | None]:
        """The tables of the nodes that new flows fill, and the reason if these cannot be read."""
        settings = self._settings
        nodes = sorted({port.facts.node for port in self.pods.values()}) if settings.new_flows else []
        places: list[Place] = []
        try:
            for number, node in enumerate(nodes, 1):
                pod = node_reader(number, self._place.run, self._place.owners, settings.wishes, node)
                self._place.start(pod)
                await_phase(self._place, pod["metadata"]["name"], timeout=settings.start_timeout)
                reader = PodPlace(self._api, self._place.name, pod["metadata"]["name"])
                places.append(Place(f"node {node}", reader, (CONNECTIONS,)))
            if nodes and not read_tables(places):
                return [], "the kernel of the node shows no counters of connection tracking"
        except PodperfError as error:  # for example the pod security level `baseline`
            return [], str(error)
        return places, None

    def _first_family(self) -> AddressFamily:
        """IPv4 if both ports have such an address, otherwise IPv6."""
        left, right = (self.ports[side].addresses for side in SIDES)
        for family in AddressFamily:
            if family in left and family in right:
                return family
        raise Unavailable("the tester's ports have no addresses of one family")

    def _prepare(self, family: AddressFamily) -> Mapping[Direction, Entry]:
        """The entries of the frames of this family, as soon as such frames arrive."""
        if family not in self._entries:
            if self._settings.destination == "service":
                self._services = self._start_services(family)
            entries = self._ways(family)
            if self._settings.destination == "service":
                self._await_services(entries)
            if self._outside:
                self._await_outside(entries)
            self._entries[family] = entries
        return self._entries[family]

    @property
    def _last_pod(self) -> PodFacts:
        """The right pod, or the only one if a host is outside."""
        return self.pods[max(self.pods)].facts

    def _start_other_services(self, family: AddressFamily) -> None:
        """They are made before those of the pods, so that the cluster knows all of them when it knows these."""
        pod = self._last_pod.name
        for each in other_services(self._settings.other_services, pod, self._place.run, self._place.owners, family):
            self._place.start_service(each)

    def _start_services(self, family: AddressFamily) -> dict[str, Address]:
        """A Service for each pod. Returns their addresses by the side of the pod."""
        run, owners = self._place.run, self._place.owners
        names = {side: port.facts.name for side, port in self.pods.items() if port.address(family)}
        new = self._settings.new_flows
        return {
            side: self._place.start_service(service(side, pod, run, owners, family, new_flows=new))
            for side, pod in names.items()
        }

    def _start_outside(self, outside: Outside | None) -> OutsidePort | None:
        if self._settings.host is None:
            return None
        assert outside is not None
        port = OutsidePort(outside, self._settings.host)
        self._undo.callback(port.close)
        return port

    def _ways(self, family: AddressFamily, port: int = DISCARDED) -> Mapping[Direction, Entry]:
        """The entry of the frames that each pod sends: the address of the other port or of the Service before it."""
        others = dict(zip(SIDES, SIDES[::-1], strict=True))
        return {_FROM[side]: self._way(family, pod, others[side], port) for side, pod in self.pods.items()}

    def _far(self, port: PodPort, family: AddressFamily) -> Address | None:
        """The address of the other port, if it is on another machine. Only there does a tunnel need bytes of frames."""
        (other,) = (each for side, each in self.ports.items() if side != port.side)
        return None if other.machine == port.machine else other.address(family)

    def _way(self, family: AddressFamily, source: PodPort, destination: str, port: int) -> Entry:
        address = self.ports[destination].address(family)
        if self._services and port == DISCARDED:
            address, port = self._services[destination], SERVICE_PORT
        return Entry(source.next_hop(address), str(address), port, str(source.address(family)))

    def _await_services(self, entries: Mapping[Direction, Entry]) -> None:
        """Wait until frames reach both pods by the addresses of their Services."""
        seconds = SERVICE_TIMEOUT + SERVICE_TIME * self._settings.other_services
        if direction := self._stays(entries, arrives=False, seconds=seconds):
            raise Unavailable(
                f"after {seconds:.0f} s no frame {direction} came through the Service at "
                f"{entries[direction].address}: {why_unreached(self._api)}"
            )

    def _await_outside(self, entries: Mapping[Direction, Entry]) -> None:
        """Wait until frames reach the host outside. So no load is sent to a host where the tester does not count."""
        if self._stays(entries, arrives=False, seconds=OUTSIDE_TIMEOUT):
            raise Unavailable(
                f"after {OUTSIDE_TIMEOUT:.0f} s no frame of pod {self.pods['left'].facts.name} came to "
                f"{entries[Direction.LEFT_TO_RIGHT].address} on {self.ports['right'].machine}: is there a route, and "
                "no firewall?"
            )

    def _start_policies(self, family: AddressFamily) -> None:
        """Make the NetworkPolicies, and wait until frames that they admit arrive, and others do not.

        One policy is enough to refuse frames. So a cluster that enforces none is known before all others are made. The
        policy that admits frames is made last.
        """
        admitted, refused = self._prepare(family), self._ways(family, NOT_ADMITTED)
        number = self._settings.network_policies
        first, *others = policies(number, self._place.run, self._place.owners)
        self._place.start_policy(first)
        if self._stays(refused, arrives=True, seconds=POLICY_TIMEOUT):
            raise Unavailable("the cluster does not enforce NetworkPolicies")
        for other in others:
            self._place.start_policy(other)
        seconds = POLICY_TIMEOUT + POLICY_TIME * number
        if direction := self._stays(admitted, arrives=False, seconds=seconds):
            raise Unavailable(
                f"after {seconds:.0f} s no frame {direction} arrives, although one of {number} NetworkPolicies "
                "admits it"
            )
        if self._stays(refused, arrives=True, seconds=POLICY_TIMEOUT):
            raise Unavailable("the cluster does not enforce NetworkPolicies")

    @property
    def _changes(self) -> Changes:
        """A first NetworkPolicy would refuse all frames, so policies are only added to others."""
        found: dict[str, ChangeUnderLoad] = {}
        if self._settings.network_policies:
            words = f"{ADDED_POLICIES} NetworkPolicies are added"
            found["policies-added"] = ChangeUnderLoad(words, self._add_policies, CHANGE)
        if self._settings.destination == "service":
            found["endpoint-added"] = ChangeUnderLoad("a pod is added to a Service", self._add_endpoint, CHANGE)
        refused = "" if self._agent_word else own_agents.ELSEWHERE
        words = "the agent of the network on a node is restarted"
        found["agent-restarted"] = ChangeUnderLoad(words, self._restart_agent, CHANGE, refused)
        return found

    @cached_property
    def _agent_word(self) -> str:
        """The word by which podperf's own cluster restarts an agent. Empty for other clusters."""
        if not own_agents.can_restart():
            return ""
        with suppress(ApiError):
            node = self._api.ask("GET", f"/api/v1/nodes/{self._last_pod.node}")
            return word(within(node, "metadata", "annotations", own_agents.WORD))
        return ""

    def _restart_agent(self, undo: ExitStack) -> None:
        own_agents.restart_agent(self._agent_word, self._last_pod.node)

    def _add_policies(self, undo: ExitStack) -> None:
        undo.callback(self._place.delete_policies, ADDED)
        for each in added_policies(self._settings.network_policies, self._place.run, self._place.owners):
            self._place.start_policy(each)

    def _add_endpoint(self, undo: ExitStack) -> None:
        """Flows that the cluster tracks keep their pod. New ones would go to either."""
        there = self._place.pod(self._last_pod.name)
        pod = added_endpoint(there, self._place.run, self._place.owners, self._settings)
        name = pod["metadata"]["name"]
        self._place.start(pod)
        undo.callback(self._place.await_gone, [name])
        undo.callback(self._place.delete, name)
        await_phase(self._place, name)

    def _stays(self, entries: Mapping[Direction, Entry], *, arrives: bool, seconds: float) -> Direction | None:
        """Wait until frames to these entries no longer arrive or, without `arrives`, until they arrive. Returns the
        direction in which this does not happen within `seconds`, or None."""
        deadline = time.monotonic() + seconds
        for direction in entries:
            headers = Headers(AddressFamily.of(str(entries[direction].source)))
            smallest = FrameSize.parse(64).at_least(headers.smallest_frame)
            traffic = AddressedTraffic(TrafficProfile(smallest, (direction,), headers=headers))
            probe = Trial(traffic, PROBES_A_SECOND, PROBE_TIME)
            while bool(self._measure(probe, entries).received) is arrives:
                if time.monotonic() > deadline:
                    return direction
        return None

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. See `testers.base.Tester.measure`."""
        if self._broken:
            raise PodperfError("the tester's pods are gone; make a new tester")
        if trial.traffic.groups > 1:
            self.facts.demand(Ability.GROUPS)
        if trial.loop is not None or trial.overload is not None:
            raise Unavailable("the tester in two pods sends at one load")
        if not set(trial.traffic.directions) <= {_FROM[side] for side in self.pods}:
            raise Unavailable("a host outside sends no frames to a pod; write traffic.directions: left-to-right")
        headers = trial.traffic.profile.headers
        if headers.left:
            raise Unavailable("the tester in two pods sends frames without VLAN tags: take traffic.vlans out")
        if self._settings.new_flows:
            demand_many(trial.traffic, MOST_FLOWS)
        elif trial.traffic.flows > MOST_FLOWS:
            raise Unavailable(f"pods have one address each, which is enough for {MOST_FLOWS} flows")
        try:
            for pod in self.pods.values():
                pod.demand_mtu(trial.traffic.frame.largest, headers, self._far(pod, headers.family))
            entries = self._prepare(headers.family)
            return (
                self._measure_new_flows(trial, entries) if self._settings.new_flows else self._measure(trial, entries)
            )
        except Unavailable:
            raise
        except PodperfError as error:
            self._broken = True
            if (why := self._why_ended()) is not None:
                raise PodperfError(why) from error
            raise
        except BaseException:  # also Ctrl-C: the next answer would belong to this trial
            self._broken = True
            raise

    def _measure_new_flows(self, trial: Trial, entries: Mapping[Direction, Entry]) -> TrialResult:
        """No frame of the trial is of a flow that the nodes still know from another trial."""
        flows, ports = trial.traffic.flows, self._new_flows.ports
        source_ports, wait = self._new_flows.of_trial(flows, time.monotonic())
        time.sleep(wait)  # a pod cannot see when a node forgets a flow
        result = self._measure(replace(trial, traffic=from_ports(trial.traffic, ports, source_ports)), entries)
        self._new_flows.sent(max(each.sent for each in result.directions), flows, time.monotonic())
        return replace(result, trial=trial)

    def _why_ended(self) -> str | None:
        """The cause that the cluster gives for the end of one of the pods. None if both run."""
        nodes = {port.facts.name: port.facts.node for port in self.pods.values()}
        ended = first_ended(self._place, nodes)
        return None if ended is None else f"pod {ended[0]} on {nodes[ended[0]]} ended while it measured: {ended[1]}"

    @property
    def _returns_frames(self) -> bool:
        """Both ends are pods on two nodes, and no Service translates the addresses of one way only. A frame that comes
        back is of no new flow."""
        machines = {pod.machine for pod in self.pods.values()}
        return len(machines) > 1 and self._settings.destination == "pod" and not self._settings.new_flows

    @understood("a pod of the tester")
    def _measure(self, trial: Trial, entries: Mapping[Direction, Entry]) -> TrialResult:
        result = self._pair.measure(trial, entries)
        if result.cpu_time and (why := self._without_cpu_time):
            return replace(result, cpu_time=replace(result.cpu_time, parts={}, unread=why))
        return result

    @property
    def _without_cpu_time(self) -> str:
        """See PodNetwork.without_cpu_time. Neither the nodes' networks nor further networks are the pods' network."""
        elsewhere = self._settings.host_network or self._settings.networks
        return "" if elsewhere else self.network.without_cpu_time

    @property
    def broken(self) -> bool:
        """See `testers.base.Tester.broken`. The cluster ends pods that are too old, so the next test gets new ones."""
        return self._broken or time.monotonic() > self._renewed_at

    @property
    def facts(self) -> TesterFacts:
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
            reads_cpu_time=self._remark is not None,  # receive threads are no part of a pod
            returns_frames=self._returns_frames,
            changes=self._changes,
            ends=self._ends,
            pairs=self._pairs,
            tables=self._tables,
        )

    @contextmanager
    def _pairs(self, tell: Callable[[str], None]) -> Iterator[PodPairs]:
        """Pairs beside the tester's own pods, which do nothing meanwhile."""
        settings = self._settings
        if not settings.pod_to_pod or settings.host_network or settings.receive_threads or settings.new_flows:
            raise Unavailable(
                "many pairs are pods with networks of their own, without Services, NetworkPolicies, receive threads "
                "and new_flows"
            )
        nodes = [pod.facts.node for pod in self.pods.values()]
        with PodPairs(self._api, self._place, settings, nodes, self._numbers, tell) as pairs:
            yield pairs

    @contextmanager
    def _ends(self) -> Iterator[tuple[ChainEnd, ChainEnd]]:
        """The two pods, by the addresses of the interfaces under test. TCP goes from pod to pod only."""
        if not self._settings.pod_to_pod:
            raise Unavailable("application traffic goes between two pods, without Services and NetworkPolicies")
        family = self._first_family()
        places = ((pod.place, str(pod.address(family))) for pod in self.pods.values())
        left, right = (ChainEnd(place, address, cpu_time=place.cpu_time) for place, address in places)
        yield left, right

    @understood("a pod of the tester")
    def describe(self) -> Mapping[str, Any]:
        """The cluster with its network, the Services before the pods, the number of NetworkPolicies, each pod with its
        node, image, MTU and CPUs, and the host outside."""
        return {
            "name": NAME,
            "engine": self.facts.engine,
            "version": self.facts.version,
            "settle_seconds": SETTLE,
            "receive_threads": self._remark is None,
            **({"engine_remark": self._remark} if self._remark else {}),
            "cluster": {
                "server": self._api.where,
                "uid": self._uid,
                "version": self._server,
                "namespace": self._place.name,
                "network": self.network.describe(),
            },
            "services": {side: str(address) for side, address in self._services.items()},
            "networks": list(self._settings.networks),
            "host_network": self._settings.host_network,
            "other_services": self._settings.other_services,
            "network_policies": self._settings.network_policies,
            "new_flows": self._settings.new_flows,
            **(
                {"connections_limit": self._connections_limit, "connections_unread": self._unread_tables}
                if self._settings.new_flows
                else {}
            ),
            "pods": {side: dict(self._of_pod(port)) for side, port in self.pods.items()},
            **({"outside": self._outside.describe()} if self._outside else {}),
        }

    @cached_property
    def network(self) -> PodNetwork:
        """What the cluster shows of its pods' network."""
        return Recognition(self._api).network([port.facts.node for port in self.pods.values()])

    @cached_property
    def _uid(self) -> str:
        return Recognition(self._api).uid

    @property
    def _connections_limit(self) -> int | None:
        """The most connections that the kernel of the left pod's node tracks in a network. None: not readable."""
        said = self.pods["left"].execute("sh", "-c", f"cat {CONNECTIONS_LIMIT} 2>/dev/null || :").strip()
        return int(said) if said.isdigit() else None

    def _of_pod(self, port: PodPort) -> Iterator[tuple[str, Any]]:
        facts, addresses = port.facts, ", ".join(map(str, port.addresses.values()))
        yield from {"name": facts.name, "node": facts.node, "address": addresses, "mac": port.mac}.items()
        yield from {"image": facts.image, "mode": port.ready["ports"][port.side]["mode"]}.items()
        yield from _placement(port).describe().items()
        yield "start_seconds", self._start_seconds[port.side]
        yield "mtu", port.mtu
        yield "route_mtu", port.route_mtu(self._far(port, next(iter(self._entries))))
        yield "kernel", port.execute("cat", "/proc/sys/kernel/osrelease").strip()
        yield "cpu_model", port.execute("sh", "-c", _CPU_MODEL).partition(":")[2].strip()

    def close(self) -> None:
        self._broken = True
        self._undo.close()


def _placement(port: PodPort) -> PodPlacement:
    return PodPlacement.of(port.execute("sh", "-c", READ))
