"""Recognises the network of a cluster's pods, with few requests. Nothing here demands a right of the login."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from podperf.kubernetes.api import Api, ApiError
from podperf.kubernetes.known_networks import KNOWN, KnownCilium, KnownNetwork, kube_proxy, service_proxy
from podperf.kubernetes.pod_network import (
    Agent,
    PodNetwork,
    Question,
    Shown,
    agent_of,
    each_of,
    own_config_maps,
    told_by,
    within,
    word,
)

_CILIUM = KnownCilium()  # its config map alone shows it, too


def _found(shown: Shown) -> list[tuple[KnownNetwork, Agent | None, str]]:
    """The networks that show themselves, the main one first, each with its agent and the object that shows it.

    Nodes keep annotations of networks that were there before. So annotations count only where no agent is shown.
    """
    by_agent = [(each, agent) for each in KNOWN if (agent := each.agent(shown))]
    if by_agent:
        return [(each, agent, f"DaemonSet {agent.namespace}/{agent.name}") for each, agent in by_agent]
    by_node = [each for each in KNOWN if each.annotation and shown.annotation(each.annotation)]
    if by_node:
        return [(each, None, f"annotation {each.annotation}") for each in by_node]
    return [(_CILIUM, None, "config map kube-system/cilium-config")] if _CILIUM.settings(shown) is not None else []


def questions(shown: Shown) -> tuple[Question, ...]:
    """What else must be read to recognise the network."""
    found = _found(shown)
    own = found[0][0].questions(found[0][1]) if found else _CILIUM.questions(None)
    return tuple(dict.fromkeys((*own, *own_config_maps(kube_proxy(shown)))))


def recognised(shown: Shown) -> PodNetwork:
    """The network of these objects."""
    for told in map(told_by, shown.nodes):
        if told:
            return told
    network, found = PodNetwork(), _found(shown)
    if found:
        (first, agent, known_by), *others = found
        network = first.read(shown, agent)
        beside = tuple(f"{each.name} {each.version(shown, its)}".strip() for each, its, _ in others)
        version = word(first.version(shown, agent))
        network = replace(network, name=first.name, version=version, known_by=word(known_by), beside=beside)
    if network.service_proxy:
        return network
    proxy, mode = service_proxy(shown)
    return replace(network, service_proxy=proxy, service_proxy_mode=mode)


class Recognition:
    """Asks one cluster. Requests: one for each node, the DaemonSets, and at most four for settings."""

    def __init__(self, api: Api) -> None:
        self._api, self._unread = api, list[str]()

    @cached_property
    def daemon_sets(self) -> Sequence[object]:
        """All DaemonSets. Empty if the login may not list them."""
        return each_of(self._ask(Question("/apis/apps/v1/daemonsets", "list daemonsets")), "items")

    @property
    def agents(self) -> tuple[Agent, ...]:
        """All DaemonSets in the network of the nodes. Empty if the login may not list them."""
        return tuple(filter(None, map(agent_of, self.daemon_sets)))

    def network(self, nodes: Sequence[str] = ()) -> PodNetwork:
        """The network of the pods on these nodes or, without names, of any node."""
        shown = Shown(nodes=tuple(self._nodes(nodes)))
        if not any(map(told_by, shown.nodes)):
            shown = replace(shown, agents=self.agents)
            shown = replace(shown, objects={each.path: self._ask(each) for each in questions(shown)})
        return replace(recognised(shown), unread=tuple(dict.fromkeys(self._unread)))

    @property
    def uid(self) -> str:
        """The UID of the namespace kube-system, which no two clusters share. Empty if the login may not read it."""
        found = self._ask(Question("/api/v1/namespaces/kube-system", "get namespaces kube-system"))
        return word(within(found, "metadata", "uid"))

    def _nodes(self, names: Sequence[str]) -> Iterator[object]:
        for name in dict.fromkeys(names):
            yield self._ask(Question(f"/api/v1/nodes/{name}", "get nodes"))
        if not names:
            yield from each_of(self._ask(Question("/api/v1/nodes", "list nodes"), [("limit", "1")]), "items")

    def _ask(self, question: Question, query: Sequence[tuple[str, str]] = ()) -> object:
        """The object. None if it cannot be read; the reason is in `unread`."""
        try:
            return self._api.ask("GET", question.path, query=query)
        except ApiError as error:
            reasons = {403: "the login may not", 404: "there is none"}
            self._unread.append(word(f"{question.right}: {reasons.get(error.status, error.message)}"))
            return None
