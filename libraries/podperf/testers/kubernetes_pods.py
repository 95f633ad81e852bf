"""The tester whose two ports are pods of a cluster. The system under test is the cluster's own network between them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar, Self

from podperf.errors import PodperfError, Unavailable
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, log_in
from podperf.kubernetes.pods import await_running
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.model import Direction, DirectionResult, Entry, Trial, TrialResult
from podperf.testers.base import PortFacts, Site, TesterFacts
from podperf.testers.kubernetes_settings import SCHEMA, KubernetesSettings
from podperf.testers.pod_port import DISCARDED, PodFacts, PodPort, command
from podperf.testers.software import direction_result, request_line
from podperf.testers.validity import Account, judged

NAME = "podperf software tester in two pods"
SETTLE = 0.2  # seconds without a frame after which the rest counts as lost
ANSWER_TIMEOUT = 20.0  # seconds beyond the trial itself
MOST_FLOWS = 16_352  # UDP source ports from 49184 on
_SHARED = "the kernel forwards each frame on the sender's CPU, in the sender's own time (softirq)"
_CPU_MODEL = "grep -m 1 'model name' /proc/cpuinfo || :"  # not every architecture has one
SIDES = ("left", "right")


class KubernetesTester:
    """Starts two pods, on one node or on two, measures between them, and deletes them."""

    shortest_trial: ClassVar[float] = 0.0
    settings_schema: ClassVar[Mapping[str, Any]] = SCHEMA

    def __init__(self, settings: KubernetesSettings) -> None:
        self._undo = ExitStack()
        self._broken = False
        try:
            self._api: Api = log_in(settings.kubeconfig, settings.context)
            self._undo.callback(self._api.close)
            self._server = self._api.ask("GET", "/version")["gitVersion"]
            place = RunNamespace(self._api, settings.namespace)
            self._undo.callback(place.close)
            self._place = place
            self.ports = self._start(settings)
            self._entries = {
                Direction.LEFT_TO_RIGHT: self._way("left", "right"),
                Direction.RIGHT_TO_LEFT: self._way("right", "left"),
            }
        except BaseException:
            self._undo.close()
            raise
        self._trial = random.randrange(1, 65536)

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> KubernetesSettings:
        """See TesterType."""
        return KubernetesSettings.read(tester["settings"])

    @classmethod
    def at(cls, site: Site) -> Self:
        """The tester of a topology."""
        assert isinstance(site.settings.kind, KubernetesSettings)
        return cls(site.settings.kind)

    def _start(self, settings: KubernetesSettings) -> Mapping[str, PodPort]:
        """Both pods. The scheduler chooses the node of the first one. The second one goes there, or to another node."""
        ports: dict[str, PodPort] = {}
        node = None
        for side in SIDES:
            name = f"tester-{side}-{self._place.run}"
            pod = manifests.pod(name, self._place.run, self._place.owners, command(side), settings.wishes, node)
            self._place.start(pod)
            facts = PodFacts.of(await_running(self._place, name))
            node = manifests.NodeOf(facts.node, other=settings.nodes > 1)
            ports[side] = PodPort(self._api, self._place.name, side, facts)
        return ports

    def _way(self, source: str, destination: str) -> Entry:
        to = self.ports[destination].facts.address
        return Entry(self.ports[source].next_hop(to), str(to), DISCARDED)

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. See `testers.base.Tester.measure`. Each direction is a trial of its own."""
        if self._broken:
            raise PodperfError("the tester's pods are gone; make a new tester")
        if trial.loop is not None or trial.overload is not None or len(trial.traffic.directions) > 1:
            raise Unavailable("the tester in two pods sends in one direction at a time, and at one load")
        if trial.traffic.flows > MOST_FLOWS:
            raise Unavailable(f"pods have one address each, which is enough for {MOST_FLOWS} flows")
        try:
            return self._measure(trial)
        except BaseException:  # also Ctrl-C: the next answer would belong to this trial
            self._broken = True
            raise

    def _measure(self, trial: Trial) -> TrialResult:
        (direction,) = trial.traffic.directions
        sender, counter = (
            self.ports[each] for each in (SIDES if direction is Direction.LEFT_TO_RIGHT else SIDES[::-1])
        )
        self._trial = self._trial % 65535 + 1
        whole, addressed = (
            f"{request_line(replace(trial, traffic=replace(trial.traffic, entries=each)), SETTLE)} trial={self._trial}"
            for each in ({}, self._entries)
        )
        counter.request(f"{whole} part=count")
        counter.answer({"counting"}, ANSWER_TIMEOUT)
        sender.request(f"{addressed} {direction}.source={sender.facts.address} part=send")
        time.sleep(trial.longest)
        sent = sender.answer({"trial"}, ANSWER_TIMEOUT)["trial"]
        (sending,) = sent["directions"]
        counter.request(f"sent={sending['sent']}")
        counted = counter.answer({"trial"}, ANSWER_TIMEOUT)["trial"]
        # Clocks of two machines differ by more than a frame takes.
        return combined(trial, sent, counted, same_clock=sender.facts.node == counter.facts.node)

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
            engine_remark=_SHARED,
        )

    def describe(self) -> Mapping[str, Any]:
        """The cluster, its version, and each pod: name, node, address, MAC, image, and the CPUs that it may use."""
        return {
            "name": NAME,
            "engine": self.facts.engine,
            "version": self.facts.version,
            "engine_remark": _SHARED,
            "cluster": {"server": self._api.where, "version": self._server, "namespace": self._place.name},
            "pods": {side: dict(self._of_pod(port)) for side, port in self.ports.items()},
        }

    @staticmethod
    def _of_pod(port: PodPort) -> Iterator[tuple[str, Any]]:
        facts = port.facts
        yield from {"name": facts.name, "node": facts.node, "address": str(facts.address), "mac": port.mac}.items()
        yield from {"image": facts.image, "mode": port.ready["ports"][port.side]["mode"]}.items()
        yield "cpus", _value(port.execute("grep", "Cpus_allowed_list", "/proc/1/status"))
        yield "kernel", port.execute("cat", "/proc/sys/kernel/osrelease").strip()
        yield "cpu_model", _value(port.execute("sh", "-c", _CPU_MODEL))

    def close(self) -> None:
        """Delete the pods. Safe to call twice."""
        self._broken = True
        self._undo.close()


def _value(line: str) -> str:
    """The value in a line such as `Cpus_allowed_list:  0-1` of proc(5)."""
    return line.partition(":")[2].strip()


def planned(settings: KubernetesSettings) -> list[dict[str, Any]]:
    """The objects that a run would make, for a run that is called `plan`. Only the cluster knows the first pod's node,
    and the number (uid) of the owner."""
    run, node = "plan", manifests.NodeOf("the-node-of-the-left-pod", other=settings.nodes > 1)
    owner = manifests.anchor(run, {})
    owners = manifests.owned_by(owner["metadata"]["name"], "of-the-config-map")
    pods = [
        manifests.pod(f"tester-{side}-{run}", run, owners, command(side), settings.wishes, place)
        for side, place in zip(SIDES, (None, node), strict=True)
    ]
    name = settings.namespace or f"{manifests.PREFIX}{run}"
    for each in (owner, *pods):
        each["metadata"]["namespace"] = name
    return [*([] if settings.namespace else [manifests.namespace(name, run)]), owner, *pods]


def combined(
    trial: Trial, sent: Mapping[str, Any], counted: Mapping[str, Any], *, same_clock: bool = True
) -> TrialResult:
    """One result of the answers of the process that sent and of the one that counted. Without a common clock, the
    result has no latency."""
    (sending,), (counting,) = sent["directions"], counted["directions"]
    keys = ("received", "duplicated", "reordered", "corrupted")
    both = {**sending, **{key: counting[key] for key in keys}}
    if same_clock and "latency" in counting:
        both["latency"] = counting["latency"]
    direction: DirectionResult = direction_result(both)
    result = TrialResult(
        trial=trial,
        started=sent["started"],
        directions=(direction,),
        stray=sent["stray"] + counted["stray"],
        own_drops=sent["own_drops"] + counted["own_drops"],
        elapsed=counted["elapsed"],
    )
    return judged(
        result,
        Account(
            sent["unready"] or counted["unready"],
            " and ".join(filter(None, (sent["own_drops_reason"], counted["own_drops_reason"]))),
        ),
    )
