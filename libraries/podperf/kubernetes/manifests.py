"""Makes the objects of a run as data for the API server: namespaces, pods, Services, policies. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podperf.frames import AddressFamily

MANAGER, RUN = "app.kubernetes.io/managed-by", "podperf/run"  # labels of each object
POD = "podperf/pod"  # a further label of each pod, by which a Service finds it
ANCHOR = "podperf-run"  # the object that owns all others of a run
PREFIX = "podperf-"  # of namespaces
# The tester needs root and CAP_NET_RAW, which containers have by default. The pod security level `baseline` does not
# let a pod ask for CAP_NET_RAW. So pods drop the other capabilities that containers have by default.
IN_CONTAINERS = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
OF_TESTER: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": list(IN_CONTAINERS)},
    "readOnlyRootFilesystem": True,
}


def with_capabilities(names: Sequence[str]) -> dict[str, Any]:
    """The security context of a program of root's with these capabilities, and no others."""
    capabilities = {"drop": ["ALL"], **({"add": list(names)} if names else {})}
    return {"allowPrivilegeEscalation": False, "capabilities": capabilities, "readOnlyRootFilesystem": True}


# A pod in which only the kernel forwards needs nothing. It satisfies the pod security level `restricted`.
WITHOUT_RIGHTS: Mapping[str, Any] = {**with_capabilities(()), "runAsNonRoot": True, "runAsUser": 65534}
LONGEST_RUN = 14_400  # seconds
_SHARED_CPU = "100m"  # that a pod without CPUs of its own asks for
OWN_VOLUMES = ("run", "sockets", "pipes")  # of podperf's in its pods
SECURITY_OF_POD = ("fsGroup", "fsGroupChangePolicy", "supplementalGroups", "sysctls")  # that a container has not


@dataclass(frozen=True)
class PodWishes:
    image: str
    pull_policy: str | None = None  # None: `policy_of` the image
    pull_secret: str | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, Any]] = ()
    runtime_class: str | None = None
    cpus: int | None = 0  # whole CPUs for the pod alone; 0: it shares the node's CPUs; None: it asks for nothing
    memory: str = "256Mi"
    further: Mapping[str, str] = field(default_factory=dict)  # resources that the pod needs beside CPUs and memory
    longest_run: int = LONGEST_RUN  # seconds after which the cluster ends the pods, also those of a killed run
    labels: Mapping[str, str] = field(default_factory=dict)  # beside those of podperf
    annotations: Mapping[str, str] = field(default_factory=dict)
    service_account: str | None = None  # its token is not in the pods
    priority_class: str | None = None
    alone: bool = False  # the pods wait until no pod of another run is on their nodes
    volumes: Sequence[Mapping[str, Any]] = ()
    mounts: Sequence[Mapping[str, Any]] = ()  # of these volumes
    security: Mapping[str, Any] = field(default_factory=dict)  # the keys of a pod's and of a container's context
    entrypoint: Sequence[str] = ()  # becomes the command of the pod, which are its arguments

    @property
    def of_helper(self) -> PodWishes:
        """The wishes of a pod beside the measured ones: it has nothing of what only they need."""
        return replace(self, cpus=0, further={}, volumes=(), mounts=(), security={}, entrypoint=())


def policy_of(image: str) -> str:
    """When the nodes fetch an image. No registry has one of the host localhost, as `image build` names it.

    A node without it would otherwise ask whoever listens on the node's own ports.
    """
    return "Never" if image.startswith("localhost/") else "IfNotPresent"


@dataclass(frozen=True)
class NodeOf:
    """The node of another pod. A pod goes to this node or, with `other`, to any other one."""

    name: str
    other: bool = False


def labels(run: str) -> dict[str, str]:
    return {MANAGER: "podperf", RUN: run}


def namespace(name: str, run: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels(run)}}


def anchor(run: str, alive: Mapping[str, str]) -> dict[str, Any]:
    """The owner of all objects of a run. Deleting it deletes them. `alive` tells who runs, and since when."""
    metadata = {"name": f"{ANCHOR}-{run}", "labels": labels(run)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(alive)}


def owned_by(anchor_name: str, uid: str) -> list[dict[str, Any]]:
    """The owner references of an object that the anchor owns."""
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": anchor_name, "uid": uid}]


def service(
    name: str, run: str, owners: Sequence[Mapping[str, Any]], pod: str, ports: Mapping[int, int], family: AddressFamily
) -> dict[str, Any]:
    """A Service (ClusterIP) that leads to one pod of the run. `ports` has the pod's UDP port for each of its own."""
    metadata = {"name": name, "labels": labels(run), "ownerReferences": list(owners)}
    led = [{"name": f"udp-{own}", "protocol": "UDP", "port": own, "targetPort": port} for own, port in ports.items()]
    families = [{AddressFamily.IPV4: "IPv4", AddressFamily.IPV6: "IPv6"}[family]]
    of_family = {"ipFamilyPolicy": "SingleStack", "ipFamilies": families}
    spec = {"type": "ClusterIP", "selector": {RUN: run, POD: pod}, "ports": led, **of_family}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def network_policy(
    name: str, run: str, owners: Sequence[Mapping[str, Any]], source: Mapping[str, Any], port: int
) -> dict[str, Any]:
    """A NetworkPolicy that selects all pods of the run. It admits UDP frames to one port from one source, which is a
    peer as in a NetworkPolicy's specification."""
    metadata = {"name": name, "labels": labels(run), "ownerReferences": list(owners)}
    ingress = [{"from": [dict(source)], "ports": [{"protocol": "UDP", "port": port}]}]
    spec = {"podSelector": {"matchLabels": {RUN: run}}, "policyTypes": ["Ingress"], "ingress": ingress}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _resources(wishes: PodWishes) -> dict[str, Any]:
    """The resources of a container: those of a pod that is BestEffort, Burstable or Guaranteed."""
    if wishes.cpus is None and not wishes.further:
        return {}
    limits = {"memory": wishes.memory, **wishes.further}
    if wishes.cpus:
        limits |= {"cpu": str(wishes.cpus)}
        return {"requests": limits, "limits": limits}
    # A limit below a whole CPU would stop the program in each 100 ms.
    return {"requests": limits | ({} if wishes.cpus is None else {"cpu": _SHARED_CPU}), "limits": limits}


def secured(own: Mapping[str, Any], wished: Mapping[str, Any]) -> dict[str, Any]:
    """The security context of a container: that of podperf's program with these wishes of the user."""
    capabilities, further = (each.get("capabilities", {}) for each in (own, wished))
    added = dict.fromkeys([*capabilities.get("add", ()), *further.get("add", ())])
    kept = [each for each in capabilities.get("drop", ()) if each not in further.get("add", ())]
    dropped = dict.fromkeys([*kept, *further.get("drop", ())])
    found = {**own, **{key: value for key, value in wished.items() if key not in SECURITY_OF_POD}}
    lists = {"drop": [*dropped], "add": [*added]}
    if names := {key: each for key, each in lists.items() if each}:
        found["capabilities"] = names
    if wished.get("privileged") and "allowPrivilegeEscalation" not in wished:
        found.pop("allowPrivilegeEscalation", None)  # the API server refuses false
    if wished.get("runAsUser") == 0 and "runAsNonRoot" not in wished:
        found.pop("runAsNonRoot", None)
    return found


def _without_other_runs(run: str) -> dict[str, Any]:
    """The anti-affinity to pods of other runs, in all namespaces. The scheduler lets a pod wait for their end."""
    others = [{"key": RUN, "operator": "Exists"}, {"key": RUN, "operator": "NotIn", "values": [run]}]
    term = {
        "labelSelector": {"matchExpressions": others},
        "namespaceSelector": {},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


def pod(
    name: str,
    run: str,
    owners: Sequence[Mapping[str, Any]],
    command: Sequence[str],
    wishes: PodWishes,
    place: NodeOf | None = None,
    security: Mapping[str, Any] = OF_TESTER,
) -> dict[str, Any]:
    """A pod with one container. With CPUs of its own it is Guaranteed. `place` relates its node to another pod's.

    `security` is what the program needs as the security context of the container.
    """
    words = {"command": list(wishes.entrypoint or command), **({"args": list(command)} if wishes.entrypoint else {})}
    of_pod = {key: value for key, value in wishes.security.items() if key in SECURITY_OF_POD}
    container = {
        "name": "main",
        "image": wishes.image,
        "imagePullPolicy": wishes.pull_policy or policy_of(wishes.image),
        **words,
        "resources": _resources(wishes),
        "securityContext": secured(security, wishes.security),
        "volumeMounts": [{"name": "run", "mountPath": "/run/podperf"}, *wishes.mounts],
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "restartPolicy": "Never",
        "activeDeadlineSeconds": wishes.longest_run,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "dnsPolicy": "Default",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}, **of_pod},
        "nodeSelector": dict(wishes.node_selector),
        "tolerations": list(wishes.tolerations),
        "volumes": [{"name": "run", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}, *wishes.volumes],
    }
    if place is not None:
        operator = "NotIn" if place.other else "In"
        terms = [{"matchFields": [{"key": "metadata.name", "operator": operator, "values": [place.name]}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    if wishes.alone:
        spec.setdefault("affinity", {})["podAntiAffinity"] = _without_other_runs(run)
    if wishes.pull_secret is not None:
        spec["imagePullSecrets"] = [{"name": wishes.pull_secret}]
    if wishes.runtime_class is not None:
        spec["runtimeClassName"] = wishes.runtime_class
    if wishes.service_account is not None:
        spec["serviceAccountName"] = wishes.service_account
    if wishes.priority_class is not None:
        spec["priorityClassName"] = wishes.priority_class
    own = {**wishes.labels, **labels(run), POD: name}
    metadata = {"name": name, "labels": own, "ownerReferences": list(owners)}
    if wishes.annotations:
        metadata["annotations"] = dict(wishes.annotations)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
