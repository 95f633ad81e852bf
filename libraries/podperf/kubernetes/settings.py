"""Reads the settings of a topology for a cluster: the login, the pods of the tester, and the pods of chains."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from podperf import __version__
from podperf.documents.yaml_document import key_path
from podperf.errors import PodperfError, Unavailable
from podperf.kubernetes import pod_keys
from podperf.kubernetes.manifests import LONGEST_RUN, OF_TESTER, PodWishes, secured
from podperf.kubernetes.pod_keys import SecurityLevel, level_of
from podperf.kubernetes.rights import OF_ATTACHMENTS, OF_POLICIES, OF_SERVICES, Right
from podperf.kubernetes.running_pods import START_TIMEOUT
from podperf.model import PageSize
from podperf.pods.forwarders.base import POD_MEMORY
from podperf.testers.base import TesterPort
from podperf.topology import Engine, Topology, WrongSetting

IMAGE = f"localhost/podperf/pod:{__version__}"  # `podperf image build` makes it
NETPERF_IMAGE = f"localhost/podperf/pod-with-netperf:{__version__}"  # `podperf image build --netperf`
DPDK_IMAGE = f"localhost/podperf/dpdk:{__version__}"  # with DPDK's testpmd: `podperf image build --dpdk`
WHOLE_IMAGE = f"localhost/podperf/whole:{__version__}"  # with podperf: `podperf image build --whole`

TEXT: Mapping[str, Any] = {"type": "string", "minLength": 1}


def _texts(title: str, of_one: str) -> Mapping[str, Any]:
    """The schema of names with a text each, such as labels."""
    values = {"title": f"value of {of_one}", "type": "string"}
    return {"title": title, "type": "object", "additionalProperties": values, "default": {}}


PROPERTIES: Mapping[str, Any] = {
    "kubeconfig": {"title": "a file with a login to the cluster", **TEXT},
    "context": {"title": "a context of the kubeconfig", **TEXT},
    "namespace": {"title": "a namespace for the pods, if the login may not make one", **TEXT},
    "image": {"title": "the image of the pods", "default": IMAGE, **TEXT},
    "pull_policy": {
        "title": "when the nodes fetch the image; by default Never for localhost/…, and IfNotPresent for others",
        "enum": ["Always", "IfNotPresent", "Never"],
    },
    "pull_secret": {"title": "a secret of the namespace for the registry", **TEXT},
    "node_selector": _texts("labels of the nodes", "a label"),
    "tolerations": {
        "title": "tolerations of the pods, as in a pod's specification",
        "type": "array",
        "items": {"title": "a toleration", "type": "object"},
        "default": [],
    },
    "runtime_class": {"title": "a runtime class", **TEXT},
    "priority_class": {"title": "a priority class", **TEXT},
    "service_account": {"title": "a service account; its token is not in the pods", **TEXT},
    "labels": _texts("labels of the pods, beside those of podperf", "a label"),
    "annotations": _texts("annotations of the pods", "an annotation"),
    "memory": {
        "title": "the limit of memory of each pod, as in a pod's specification",
        "type": "string",
        "pattern": "^[1-9][0-9]*([kMG]|[KMG]i)?$",
        "default": "256Mi",
    },
    "longest_run": {
        "title": "seconds after which the cluster ends the pods, whatever has become of the run",
        "type": "integer",
        "minimum": 60,
        "default": LONGEST_RUN,
    },
    **pod_keys.PROPERTIES,
}


def architecture() -> str:
    """This machine's architecture as images and nodes name it. `podperf image build` makes images for it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


@dataclass(frozen=True)
class ClusterSettings:
    """A login to a cluster, and what all pods there have in common. `key` has these settings in the topology."""

    wishes: PodWishes
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None

    key: ClassVar[str]

    @property
    def security_level(self) -> SecurityLevel:
        """The strictest pod security level that all pods satisfy."""
        return level_of(self.wishes, "restricted")

    @property
    def devices(self) -> Collection[str]:
        """The resources of device plug-ins that pods may ask for."""
        return [name for name in self.wishes.further if not name.startswith("hugepages-")]

    @property
    def further_rights(self) -> tuple[Right, ...]:
        return ()

    @property
    def of_kubectl(self) -> tuple[str, ...]:
        """The options of kubectl for this login."""
        login = {"kubeconfig": self.kubeconfig, "context": self.context}
        return tuple(f"--{key}={value}" for key, value in login.items() if value)


def wishes(settings: Mapping[str, Any], cpus: int | None) -> PodWishes:
    """The settings for all pods. `cpus` is that of PodWishes. WrongSetting if no pod can have them."""
    pod_keys.refuse_wrong(settings)
    return PodWishes(
        image=settings["image"],
        pull_policy=settings.get("pull_policy"),
        pull_secret=settings.get("pull_secret"),
        node_selector=settings["node_selector"],
        tolerations=settings["tolerations"],
        runtime_class=settings.get("runtime_class"),
        cpus=cpus,
        memory=settings["memory"],
        further={name: str(amount) for name, amount in settings["resources"].items()},
        longest_run=settings["longest_run"],
        labels=settings["labels"],
        annotations=settings["annotations"],
        service_account=settings.get("service_account"),
        priority_class=settings.get("priority_class"),
        volumes=settings["volumes"],
        mounts=settings["volume_mounts"],
        security=settings["security_context"],
    )


def _login(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that tell how and where podperf logs in."""
    found = {key: settings[key] for key in ("kubeconfig", "context", "namespace") if key in settings}
    if "kubeconfig" in found:
        found["kubeconfig"] = str(Path(found["kubeconfig"]).expanduser())
    return found


MOST_OBJECTS = 10_000  # NetworkPolicies or Services: each one takes a request to the API server

Destination = Literal["pod", "service", "host"]

TESTER_SCHEMA: Mapping[str, Any] = {
    "additionalProperties": False,
    "properties": {
        **PROPERTIES,
        "hugepages": {**pod_keys.HUGEPAGES, "default": {}},
        "nodes": {"title": "the number of nodes on which the two pods are", "enum": [1, 2], "default": 1},
        "node_names": {
            "title": "the names of the node or of the two nodes for the pods; by default the scheduler chooses",
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "uniqueItems": True,
            "items": {"title": "the name of a node", **TEXT},
        },
        "alone": {
            "title": "whether the pods wait until no pod of another run of podperf is on their nodes",
            "type": "boolean",
            "default": False,
        },
        "start_timeout": {
            "title": "seconds for a pod to start, in which it may wait for other runs",
            "type": "integer",
            "minimum": 1,
            "default": int(START_TIMEOUT),
        },
        "destination": {
            "title": "the address to which frames are sent: the other pod's, that of a Service before it, or a host's",
            "enum": ["pod", "service", "host"],
            "default": "pod",
        },
        "networks": {
            "title": "networks that Multus attaches to the pods: names of NetworkAttachmentDefinitions that exist",
            "type": "array",
            "items": {"title": "NAME or NAMESPACE/NAME", **TEXT},
            "default": [],
        },
        "interface": {
            "title": "the interface of the pods under test, with `networks`",
            "pattern": "^[A-Za-z0-9_.-]{1,15}$",
            "default": "net1",
            **TEXT,
        },
        "host_network": {
            "title": "whether the pods are in the networks of their nodes: the base line of a pod network",
            "type": "boolean",
            "default": False,
        },
        "receive_threads": {
            "title": "let a privileged pod on the node give each pod's interface a receive thread of its own",
            "type": "boolean",
            "default": False,
        },
        "host": {
            "title": "an interface of the tester's machine, outside of the cluster, for `destination: host`",
            "type": "object",
            "additionalProperties": False,
            "required": ["interface"],
            "properties": {
                "interface": {"title": "an interface with an address", **TEXT},
                "namespace": {"title": "the network namespace of the interface", **TEXT},
            },
        },
        "network_policies": {
            "title": "the number of NetworkPolicies that select the two pods",
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_OBJECTS,
            "default": 0,
        },
        "other_services": {
            "title": "the number of other Services that the run makes, for `destination: service`",
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_OBJECTS,
            "default": 0,
        },
        "new_flows": {
            "title": "whether each frame of a trial is a flow that the nodes do not know yet",
            "type": "boolean",
            "default": False,
        },
        "cpus": {"title": "whole CPUs for each pod alone; 0: shared", "type": "integer", "minimum": 0, "default": 0},
    },
}


@dataclass(frozen=True)
class KubernetesSettings(ClusterSettings):
    """A login to a cluster, and the two pods there."""

    nodes: int = 1  # on which the two pods are
    destination: Destination = "pod"
    receive_threads: bool = False  # started by a privileged pod
    network_policies: int = 0
    node_names: tuple[str, ...] = ()  # of the left and the right pod, or of both; empty: the scheduler chooses
    start_timeout: float = START_TIMEOUT  # seconds
    host: TesterPort | None = None  # of the tester's machine, for the destination `host`
    host_network: bool = False
    other_services: int = 0  # beside those of the tester's pods
    new_flows: bool = False
    networks: tuple[str, ...] = ()  # that Multus attaches
    interface: str | None = None  # of these networks, under test; None: the pods' own one
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)  # all of this, as `read` got it

    key: ClassVar[str] = "tester.settings"
    type: ClassVar[str] = "kubernetes"
    engine: ClassVar[Engine] = "packet-ring"
    has_ports_of_its_own: ClassVar[bool] = True

    @property
    def runs_already(self) -> bool:
        return self.host is None

    @property
    def pod_to_pod(self) -> bool:
        """Whether frames go between two pods, without Services and NetworkPolicies."""
        return self.destination == "pod" and not self.network_policies

    @property
    def security_level(self) -> SecurityLevel:
        """See ClusterSettings. The tester needs CAP_NET_RAW, which `restricted` forbids."""
        return level_of(self.wishes, "privileged" if self.receive_threads or self.host_network else "baseline")

    @property
    def further_rights(self) -> tuple[Right, ...]:
        of_services = OF_SERVICES if self.destination == "service" else ()
        return (*of_services, *(OF_POLICIES if self.network_policies else ()))

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from `tester.settings` of a topology. WrongSetting for settings that contradict each other."""
        _refuse_contradictions(settings)
        common = wishes(settings, settings["cpus"])
        further = {**common.further, **pod_keys.amounts_of(settings["hugepages"])}
        host, names = settings.get("host"), tuple(settings.get("node_names", ()))
        return cls(
            replace(common, alone=settings["alone"], further=further),
            **_login(settings),
            nodes=len(names) or settings["nodes"],
            destination=settings["destination"],
            receive_threads=settings["receive_threads"],
            network_policies=settings["network_policies"],
            node_names=names,
            start_timeout=float(settings["start_timeout"]),
            host=None if host is None else TesterPort(host["interface"], host.get("namespace")),
            host_network=settings["host_network"],
            other_services=settings["other_services"],
            new_flows=settings["new_flows"],
            networks=tuple(settings["networks"]),
            interface=settings["interface"] if settings["networks"] else None,
            given=settings,
        )

    def varied(self, changes: Mapping[str, Any]) -> Self:
        """These settings with some others in their place. WrongSetting if they contradict each other."""
        return self.read({**self.given, **changes})

    def for_row(
        self,
        nodes: int,
        destination: Destination = "pod",
        network_policies: int = 0,
        host_network: bool = False,
        other_services: int = 0,
        new_flows: bool = False,
    ) -> Mapping[str, Any]:
        """The changes of these settings for a row of a suite: the number of nodes, the destination (the other pod,
        a Service or a host outside), the numbers of NetworkPolicies and of other Services, whether the pods are in the
        networks of the nodes, and whether each frame is a new flow.

        Unavailable if the settings of the topology do not leave this choice.
        """
        if (destination == "host") != (self.host is not None):
            there = self.destination if self.host is None else "host"
            raise Unavailable(f"{self.key}.destination of the topology is {there}, and this test needs {destination}")
        if self.node_names and len(self.node_names) < nodes:
            raise Unavailable(f"{self.key}.node_names of the topology names one node, and this test needs {nodes}")
        wanted = {
            "nodes": nodes,
            "destination": destination,
            "network_policies": network_policies,
            "host_network": host_network,
            "other_services": other_services,
            "new_flows": new_flows,
        }
        changes: dict[str, Any] = {key: value for key, value in wanted.items() if getattr(self, key) != value}
        if "nodes" in changes and self.node_names:
            changes["node_names"] = list(self.node_names[:nodes])
        try:
            self.varied(changes)
        except WrongSetting as error:
            key = ".".join(map(str, error.key))
            raise Unavailable(f"this test needs {key} of {self.key} to be {error.allowed}") from error
        return changes


def pods_of_tester(topology: Topology) -> KubernetesSettings | None:
    """The settings of the pods that are the ports of a topology's tester. None: its ports are no pods."""
    kind = topology.tester.kind
    return kind if isinstance(kind, KubernetesSettings) else None


def in_pods_alone(topology: Topology) -> bool:
    """Whether all test frames begin and end in pods of a cluster, so that podperf's machine has no part in it."""
    pods = pods_of_tester(topology)
    return pods is not None and pods.host is None and topology.external


def _refuse_contradictions(settings: Mapping[str, Any]) -> None:
    security = secured(OF_TESTER, settings["security_context"])
    for key, allowed in pod_keys.lacks(security, ("NET_RAW",)):
        raise WrongSetting("security_context", *key, allowed=allowed)
    own_interface = {"destination": "pod", "network_policies": 0, "receive_threads": False}
    if settings["networks"]:
        usual, why = own_interface | {"host_network": False}, "with `networks`: others know only eth0 of the pods"
        _demand(settings, usual, why)
    if settings["other_services"] and settings["destination"] != "service":
        raise WrongSetting("other_services", allowed="0 without `destination: service`")
    if settings["new_flows"] and (settings["network_policies"] or settings["destination"] == "host"):
        raise WrongSetting("new_flows", allowed="false with `network_policies`, and with `destination: host`")
    if settings["host_network"]:
        if (len(settings.get("node_names", ())) or settings["nodes"]) != 2:
            allowed = "2 with `host_network`, as two pods of one node would have one interface"
            raise WrongSetting("nodes", allowed=allowed)
        why = "with `host_network`, as the pods have no network of their own"
        _demand(settings, own_interface | {"new_flows": False}, why)
    if settings["destination"] != "host":
        if "host" in settings:
            raise WrongSetting("host", allowed="only with `destination: host`")
        return
    if "host" not in settings:
        raise WrongSetting("destination", allowed="host only with the settings `host` beside it")
    if settings["nodes"] != 1 or len(settings.get("node_names", ())) > 1:
        raise WrongSetting("nodes", allowed="1 with `destination: host`, as there is one pod")
    if settings["network_policies"]:
        raise WrongSetting("network_policies", allowed="0 with `destination: host`, as policies select pods")


def _demand(settings: Mapping[str, Any], values: Mapping[str, Any], why: str) -> None:
    for key, value in values.items():
        if settings[key] != value:
            raise WrongSetting(key, allowed=f"{str(value).lower()} {why}")


Isolation = Literal["none", "shared", "exclusive"]
AttachedBy = Literal["podperf", "multus"]

CHAIN_SCHEMA: Mapping[str, Any] = {
    "additionalProperties": False,
    "properties": {
        **PROPERTIES,
        "isolation": {
            "title": "the CPUs of the pods",
            "enum": ["none", "shared", "exclusive"],
            "default": "none",
        },
        "cpus": {
            "title": "whole CPUs for each pod alone, with `isolation: exclusive`",
            "type": "integer",
            "minimum": 1,
            "default": 1,
        },
        "attached_by": {
            "title": "the program that gives pods their interfaces",
            "enum": ["podperf", "multus"],
            "default": "podperf",
        },
        "virtual_functions": {
            "title": "the resources of a device plug-in whose devices are virtual functions of the worker's ports",
            "type": "object",
            "additionalProperties": False,
            "required": ["left", "right"],
            "properties": {"left": pod_keys.RESOURCE, "right": pod_keys.RESOURCE},
        },
        "program_image": {"title": "the image of pods that run a program", "default": DPDK_IMAGE, **TEXT},
        "hugepages": {
            "title": "the hugepages of pods with a program: 2Mi, 1Gi, or an amount of one of them, as {2Mi: 256Mi}",
            "anyOf": [{"enum": [*pod_keys.PAGES]}, {**pod_keys.HUGEPAGES, "minProperties": 1, "maxProperties": 1}],
        },
        "command": {
            "title": "the entrypoint of the pods' images; its arguments are podperf's command, which it becomes (exec)",
            "type": "array",
            "items": TEXT,
            "default": [],
        },
    },
}


@dataclass(frozen=True)
class ChainSettings(ClusterSettings):
    """A login to a cluster, and the pods of the chains there."""

    isolation: Isolation = "none"
    program_image: str = DPDK_IMAGE
    hugepages: Mapping[str, str] = field(default_factory=dict)  # the amount in a size, as Kubernetes writes both
    attached_by: AttachedBy = "podperf"
    functions: tuple[str, str] | None = None  # the resources with virtual functions of the left and the right port

    key = "pods.settings"

    @property
    def pages(self) -> PageSize:
        return PageSize(sum(pod_keys.PAGES[size] for size in self.hugepages))  # of at most one size

    @property
    def devices(self) -> Collection[str]:
        return {*super().devices, *(self.functions or ())}

    @property
    def further_rights(self) -> tuple[Right, ...]:
        return OF_ATTACHMENTS if self.attached_by == "multus" else ()

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> ChainSettings:
        """The settings from `pods.settings` of a topology, which has the defaults of the schema.

        PodperfError for what pods cannot have.
        """
        try:
            return cls._read(settings)
        except WrongSetting as error:
            raise PodperfError(f"{key_path((cls.key, *error.key))}: allowed: {error.allowed}") from error

    @classmethod
    def _read(cls, settings: Mapping[str, Any]) -> ChainSettings:
        isolation: Isolation = settings["isolation"]
        cpus = {"none": None, "shared": 0, "exclusive": settings["cpus"]}[isolation]
        functions = settings.get("virtual_functions")
        if functions and functions["left"] == functions["right"]:
            raise PodperfError(
                f"{cls.key}.virtual_functions names {functions['left']} for both ports: each port needs a resource of "
                "its own (`pfNames` of the SR-IOV device plug-in), because a pod gets any device of a resource"
            )
        return cls(
            replace(wishes(settings, cpus), entrypoint=settings["command"]),
            **_login(settings),
            isolation=isolation,
            program_image=settings["program_image"],
            hugepages=_hugepages(settings.get("hugepages", {})),
            attached_by=settings["attached_by"],
            functions=functions and (functions["left"], functions["right"]),
        )


def _hugepages(given: str | Mapping[str, str]) -> Mapping[str, str]:
    """The amount of hugepages of a pod with a program, by their size. WrongSetting if the program has not enough."""
    sizes = {given: f"{max(POD_MEMORY, pod_keys.PAGES[given])}Mi"} if isinstance(given, str) else given
    pod_keys.amounts_of(sizes)
    for size, amount in sizes.items():
        if pod_keys.mebibytes(amount) < POD_MEMORY:
            raise WrongSetting("hugepages", size, allowed=f"{POD_MEMORY}Mi or more, which the program needs")
    return sizes
