"""Describes the network of a cluster's pods, and reads its values from objects of the API server. Pure.

Each version of a network writes these objects in its own way. So a reader takes the fields that it understands, and
leaves out all others. All text is short and printable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from podperf.figures import cut
from podperf.printable import printable

TOLD = "podperf/network"  # an annotation of the nodes of podperf's own cluster: its network as JSON
_MOST_TOLD = 300  # characters of one word; a name of Kubernetes has at most 253
MOST_READ = 1_000_000  # characters of a text; the API server takes no larger config map
ACROSS_SUBNETS = ", only across subnets"
# The bytes that a frame between two nodes with IPv4 addresses has more on the wire.
_OVERHEADS = {
    "none": 0,
    "IP in IP": 20,
    "UDP": 28,
    "GRE": 38,  # with an Ethernet header inside
    "VXLAN": 50,
    "Geneve": 50,
    "Geneve with an option": 58,
    "WireGuard": 60,
    "VXLAN in WireGuard": 110,
    "Geneve in WireGuard": 110,
}


@dataclass(frozen=True)
class PodNetwork:
    """What connects the pods of a cluster. A value that is not known is empty."""

    name: str = ""
    version: str = ""
    mode: str = ""
    encapsulation: str = ""  # of frames between nodes
    data_plane: str = ""  # that forwards the pods' frames and filters them
    service_proxy: str = ""  # that gives Services their addresses
    service_proxy_mode: str = ""
    known_by: str = ""  # the object that showed the name
    beside: tuple[str, ...] = ()  # further networks whose agents run
    unread: tuple[str, ...] = ()  # what the login could not read, and why
    process: str = ""  # that forwards the pods' frames, if it is not the kernel

    @property
    def encapsulation_bytes(self) -> int | None:
        """The bytes that a frame between two nodes has more on the wire, over IPv4. None if that is not known."""
        return _OVERHEADS.get(self.encapsulation)

    @property
    def without_cpu_time(self) -> str:
        """The reason why the pods' processes do not have the CPU time of the network. Empty if they have it."""
        return f"{self.process} forwards the frames, and not the kernel in the time of the pods" if self.process else ""

    def describe(self) -> Mapping[str, Any]:
        return {**asdict(self), "encapsulation_bytes": self.encapsulation_bytes}

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Self:
        """The network of a description (`describe`), also of a newer podperf. Values of other types are left out."""
        known = {each.name: description.get(each.name) for each in fields(cls)}
        found: dict[str, Any] = {name: value for name, value in known.items() if isinstance(value, str)}
        found |= {name: tuple(map(str, value)) for name, value in known.items() if isinstance(value, list | tuple)}
        return cls(**found)

    @property
    def words(self) -> str:
        """The network in one line. Empty if it is not known."""
        added = f" ({self.encapsulation_bytes} B)" if self.encapsulation_bytes else ""
        proxy_mode = f" ({self.service_proxy_mode})" if self.service_proxy_mode else ""
        parts = {
            "": f"{self.name} {self.version}".strip(),
            "mode: ": self.mode,
            "encapsulation: ": self.encapsulation and self.encapsulation + added,
            "data plane: ": self.data_plane,
            "Services: ": self.service_proxy and self.service_proxy + proxy_mode,
            "beside it: ": ", ".join(self.beside),
        }
        return "; ".join(f"{about}{said}" for about, said in parts.items() if said)


def word(value: object) -> str:
    """A value as a short text in one line. Empty for an object or a list."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return ""
    return cut(printable(" ".join(value[:_MOST_TOLD].split())), _MOST_TOLD)


def within(found: object, *names: str) -> Any:
    """The value under these names, one in another. None if there is none."""
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def each_of(found: object, *names: str) -> Sequence[Any]:
    """The list under these names. Empty if there is none."""
    inner = within(found, *names)
    return inner if isinstance(inner, list) else ()


_TOLD_KEYS = (
    "name",
    "version",
    "mode",
    "encapsulation",
    "data_plane",
    "process",
    "service_proxy",
    "service_proxy_mode",
)


def told_by(node: object) -> PodNetwork | None:
    """The network in the annotation of a node of podperf's own cluster. None on other nodes."""
    told = of_json(within(node, "metadata", "annotations", TOLD))
    known: dict[str, Any] = {key: word(told.get(key)) for key in _TOLD_KEYS}
    return PodNetwork(**known, known_by=f"annotation {TOLD}") if known["name"] else None


def of_json(text: object) -> Mapping[str, Any]:
    """The object in a text of JSON. Empty if there is none."""
    with suppress(ValueError, RecursionError):
        if isinstance(text, str) and isinstance(found := json.loads(text[:MOST_READ]), dict):
            return found
    return {}


def of_yaml(text: object, key: str) -> str:
    """The word after a key of a text of YAML. A parser would need memory and depth for the rest of a foreign text."""
    found = re.search(rf"^[ \t]*{key}:[ \t]*[\"']?([\w.-]*)", text[:MOST_READ] if isinstance(text, str) else "", re.M)
    return word(found[1]) if found else ""


@dataclass(frozen=True)
class Agent:
    """A DaemonSet in the network of the nodes, as agents of a network are."""

    namespace: str
    name: str
    images: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    config_maps: tuple[str, ...] = ()  # those that it has as volumes

    def image(self, pattern: str) -> str | None:
        return next((each for each in self.images if re.search(pattern, each)), None)

    def argument(self, name: str) -> str:
        """The value of an argument `--name=value`. Empty without it."""
        found = (each.partition("=")[2] for each in self.arguments if each.startswith(f"--{name}="))
        return next(found, "")


def images_of(daemon_set: object) -> tuple[str, ...]:
    containers = each_of(daemon_set, "spec", "template", "spec", "containers")
    return tuple(filter(None, (word(within(each, "image")) for each in containers)))


def agent_of(daemon_set: object) -> Agent | None:
    """The agent that a DaemonSet is. None if its pods are not in the network of the nodes."""
    pod = within(daemon_set, "spec", "template", "spec")
    if within(pod, "hostNetwork") is not True:
        return None
    containers = each_of(pod, "containers")
    words = [word for each in containers for key in ("command", "args") for word in each_of(each, key)]
    variables = [each for container in containers for each in each_of(container, "env")]
    volumes = [word(within(each, "configMap", "name")) for each in each_of(pod, "volumes")]
    return Agent(
        word(within(daemon_set, "metadata", "namespace")),
        word(within(daemon_set, "metadata", "name")),
        images_of(daemon_set),
        tuple(map(word, words)),
        {word(within(each, "name")): word(within(each, "value")) for each in variables},
        tuple(filter(None, volumes)),
    )


@dataclass(frozen=True)
class Question:
    """An object of the API server, and the right to read it."""

    path: str
    right: str


def config_maps(namespace: str, *names: str) -> tuple[Question, ...]:
    """The questions for config maps, without names that Kubernetes does not allow."""
    label, subdomain = r"[a-z0-9][a-z0-9-]{0,62}", r"[a-z0-9][a-z0-9.-]{0,252}"
    allowed = [each for each in names if re.fullmatch(label, namespace) and re.fullmatch(subdomain, each)]
    folder = f"/api/v1/namespaces/{namespace}/configmaps"
    return tuple(Question(f"{folder}/{each}", f"get configmaps {namespace}/{each}") for each in allowed)


def own_config_maps(agent: Agent | None) -> tuple[Question, ...]:
    """The questions for the first two config maps that an agent has as volumes."""
    return () if agent is None else config_maps(agent.namespace, *agent.config_maps[:2])


@dataclass(frozen=True)
class Shown:
    """What the API server shows. `objects` are those of `questions`, by their paths."""

    agents: tuple[Agent, ...] = ()
    nodes: tuple[object, ...] = ()
    objects: Mapping[str, object] = field(default_factory=dict)

    def annotation(self, name: str) -> str:
        """The value of an annotation of the first node that has it."""
        return next(filter(None, (word(within(each, "metadata", "annotations", name)) for each in self.nodes)), "")

    @property
    def kubelet(self) -> str:
        """The version of the kubelet of the first node that tells it."""
        found = (word(within(each, "status", "nodeInfo", "kubeletVersion")) for each in self.nodes)
        return next(filter(None, found), "")

    def data(self, asked: Sequence[Question], key: str) -> Any:
        """The value under a key of the first of these config maps that has it."""
        found = (within(self.objects.get(each.path), "data", key) for each in asked)
        return next((each for each in found if each is not None), None)


def version_of(image: str) -> str:
    """The tag of an image or, without a tag, the beginning of its digest."""
    image, _, digest = image.partition("@")
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag or digest[:19]
