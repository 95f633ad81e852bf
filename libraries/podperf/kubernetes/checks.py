"""Checks a cluster in which a testbed has pods: its API, the rights of the login, nodes, add-ons and pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from podperf.errors import PodperfError, understood
from podperf.kubernetes import multus
from podperf.kubernetes.api import Api, ApiError, log_in
from podperf.kubernetes.manifests import policy_of
from podperf.kubernetes.pod_keys import SECURITY_LEVELS
from podperf.kubernetes.pod_network import images_of
from podperf.kubernetes.recognition import Recognition
from podperf.kubernetes.rights import (
    GRANTED_BY,
    NAMESPACED_FILE,
    OF_A_KUBELET,
    OF_A_READER,
    OF_A_RUN,
    OF_ATTACHMENTS,
    OF_NAMESPACES,
    READER_FILE,
    allowed,
)
from podperf.kubernetes.settings import ClusterSettings, architecture
from podperf.observation import Observation, State

_UNKNOWN = "none that podperf recognises"
_MOST_TOLD = 2000  # characters about one node
_MOST_IMAGES = 50  # that a kubelet tells of by default (nodeStatusMaxImages)
_LEVEL = "pod-security.kubernetes.io/enforce"


def check_cluster(settings: ClusterSettings) -> Iterator[Observation]:
    try:
        api = log_in(settings.kubeconfig, settings.context)
    except PodperfError as error:
        yield Observation("cluster", "login", State.MISSING, str(error), needed=True)
        return
    with closing(api), understood(api.where):
        try:
            version = api.ask("GET", "/version")["gitVersion"]
        except ApiError as error:
            yield Observation("cluster", "API server", State.MISSING, str(error), needed=True)
            return
        yield Observation("cluster", "API server", State.OK, f"Kubernetes {version} at {api.where}")
        yield from _check_rights(api, settings)
        yield from _check_namespace(api, settings)
        yield from _check_nodes(api, settings)
        yield from _check_networks(api, settings)


def _check_rights(api: Api, settings: ClusterSettings) -> Iterator[Observation]:
    namespace = settings.namespace
    wanted = (*OF_A_RUN, *settings.further_rights, *(() if namespace is not None else OF_NAMESPACES))
    lacking = [each.name for each in wanted if not allowed(api, each, namespace)]
    where = "a namespace for each run" if namespace is None else f"namespace {namespace}"
    if not lacking:
        yield Observation("cluster", "rights", State.OK, f"all that a run needs, with {where}")
        return
    own = namespace is None and not {each.name for each in OF_NAMESPACES}.isdisjoint(lacking)
    files = [file for file, rights in GRANTED_BY.items() if {each.name for each in rights} & set(lacking)]
    remedy = f"an administrator applies {' and '.join(files or [NAMESPACED_FILE])}"
    remedy += f"; name its namespace in {settings.key}.namespace" if own else ""
    yield Observation("cluster", "rights", State.MISSING, f"not allowed: {', '.join(lacking)}", remedy, needed=True)


def _check_namespace(api: Api, settings: ClusterSettings) -> Iterator[Observation]:
    """The namespace of the topology, and its pod security level."""
    namespace = settings.namespace
    if namespace is None:
        return
    try:
        labels = api.ask("GET", f"/api/v1/namespaces/{namespace}")["metadata"].get("labels", {})
    except ApiError as error:
        state = State.MISSING if error.status == 404 else State.UNCHECKED
        yield Observation("cluster", f"namespace {namespace}", state, error.message, needed=state is State.MISSING)
        return
    level = labels.get(_LEVEL, "privileged")
    if level in SECURITY_LEVELS and SECURITY_LEVELS.index(level) > SECURITY_LEVELS.index(settings.security_level):
        detail = f"its pod security level is `{level}`, and a pod of the run needs `{settings.security_level}`"
        yield Observation("cluster", f"namespace {namespace}", State.MISSING, detail, needed=True)
    elif level != "privileged":
        skipped = "rows with pods in the networks of their nodes (base line, shares) need `privileged`, and are skipped"
        detail, remedy = f"its pod security level is `{level}`: {skipped}", f"label it {_LEVEL}=privileged"
        yield Observation("cluster", f"namespace {namespace}", State.WARNING, detail, remedy)
    else:
        yield Observation("cluster", f"namespace {namespace}", State.OK, f"its pod security level is `{level}`")


def _check_nodes(api: Api, settings: ClusterSettings) -> Iterator[Observation]:
    lacking = [each.name for each in OF_A_READER if not allowed(api, each, None)]
    if lacking:
        detail = f"not read: the login may not {', '.join(lacking)}"
        yield Observation("cluster", "nodes", State.UNCHECKED, detail, f"optional: {READER_FILE}")
        return
    selector = ",".join(f"{key}={value}" for key, value in settings.wishes.node_selector.items())
    nodes = api.ask("GET", "/api/v1/nodes", query=[("labelSelector", selector)] if selector else [])["items"]
    if not nodes:
        yield Observation("cluster", "nodes", State.MISSING, f"none has the labels {selector}", needed=True)
    may_read = allowed(api, OF_A_KUBELET, None)
    for node in nodes:
        yield observe_node(node, settings, _read_policies(api, node["metadata"]["name"]) if may_read else None)


def _read_policies(api: Api, node: str) -> NodePolicies | None:
    """The policies of a kubelet. None if it does not tell them."""
    try:
        found = api.ask("GET", f"/api/v1/nodes/{node}/proxy/configz")["kubeletconfig"]
    except ApiError:
        return None
    return NodePolicies(found.get("cpuManagerPolicy", "none"), found.get("topologyManagerPolicy", "none"))


@dataclass(frozen=True)
class NodePolicies:
    """The policies of a kubelet that decide which CPUs a pod gets (Kubernetes, CPU and topology management)."""

    cpus: str
    topology: str

    def __str__(self) -> str:
        return f"CPU manager: {self.cpus}; topology manager: {self.topology}"


def observe_node(
    node: Mapping[str, Any], settings: ClusterSettings, policies: NodePolicies | None = None
) -> Observation:
    """The runtime, CPUs and devices of a node, and the reasons why pods of the topology would not start there."""
    status = node["status"]
    offered = status.get("allocatable", {})
    pages = [f"{name}: {amount}" for name, amount in offered.items() if name.startswith("hugepages-") and amount != "0"]
    devices = [f"{name}: {amount}" for name, amount in offered.items() if "/" in name]
    node_info = status.get("nodeInfo", {})
    runtime, kind = node_info.get("containerRuntimeVersion", "unknown runtime"), node_info.get("architecture", "?")
    said = str(policies or "CPU manager: not read")
    facts = [runtime, f"architecture: {kind}", f"CPUs: {offered.get('cpu', '?')}", said, *pages, *devices]
    why = list(_why_not(node, settings))
    if settings.wishes.cpus and policies is not None and policies.cpus != "static":
        why.append("pods of the topology ask for CPUs alone, and only the CPU manager policy `static` gives them")
    state = State.WARNING if why else State.OK
    return Observation("cluster", f"node {node['metadata']['name']}", state, "; ".join([*facts, *why])[:_MOST_TOLD])


def _why_not(node: Mapping[str, Any], settings: ClusterSettings) -> Iterator[str]:
    conditions = {condition["type"]: condition for condition in node["status"].get("conditions", ())}
    ready = conditions.get("Ready", {})
    if ready.get("status") != "True":
        yield f"not ready ({ready.get('message', 'it does not say why')})"
    tolerated = settings.wishes.tolerations
    for taint in node["spec"].get("taints", ()):
        if taint["effect"] != "PreferNoSchedule" and not _tolerates(tolerated, taint):
            yield f"taint {taint['key']}:{taint['effect']}, which {settings.key}.tolerations do not tolerate"
    offered = node["status"].get("allocatable", {})
    for device in sorted(settings.devices):
        if offered.get(device, "0") == "0":
            yield f"{device} of {settings.key} is not offered: no device plug-in of the node has it"
    told, image = node["status"].get("images", ()), settings.wishes.image
    kind = node["status"].get("nodeInfo", {}).get("architecture")
    if kind not in {None, architecture()} and policy_of(image) == "Never":
        yield f"`podperf image build` makes {image} for {architecture()} here: make it on a machine of {kind}"
    names = [name for each in told for name in each.get("names") or ()]
    never = (settings.wishes.pull_policy or policy_of(image)) == "Never"
    if never and names and image not in names and len(told) < _MOST_IMAGES:
        yield f"the image {image} is not there"


def _tolerates(tolerations: Sequence[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Whether one of the tolerations tolerates a taint (Kubernetes, taints and tolerations)."""
    for toleration in tolerations:
        same_key = toleration.get("key") in {None, "", taint["key"]}
        same_effect = toleration.get("effect") in {None, "", taint["effect"]}
        same_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
        if same_key and same_effect and same_value:
            return True
    return False


def _check_networks(api: Api, settings: ClusterSettings) -> Iterator[Observation]:
    """The cluster's network, and Multus with its version."""
    recognition = Recognition(api)
    network = recognition.network()
    unread = f"not read: {', '.join(network.unread)}" if network.unread else ""
    known = network.words if network.name else "; ".join(filter(None, (_UNKNOWN, network.words)))
    state = State.OK if network.name or not unread else State.UNCHECKED
    remedy = f"optional: {READER_FILE}" if unread else ""
    yield Observation("cluster", "network (CNI)", state, "; ".join(filter(None, (known, unread))), remedy)
    try:
        there = api.exists(multus.API_PATH)
    except ApiError as error:
        yield Observation("cluster", "Multus", State.UNCHECKED, error.message)
        return
    needed = set(OF_ATTACHMENTS) <= set(settings.further_rights)
    if there:
        images = sorted({image for each in recognition.daemon_sets for image in images_of(each)})
        said = ", ".join(image for image in images if "multus" in image) or "its version is not read"
        yield Observation("cluster", "Multus", State.OK, f"NetworkAttachmentDefinitions can be made; {said}")
    elif needed:
        remedy = "an administrator installs it (https://github.com/k8snetworkplumbingwg/multus-cni), or leave out"
        remedy += f" {settings.key}.attached_by; for a cluster of podperf's: sudo ./podperf cluster up --multus"
        yield Observation("cluster", "Multus", State.MISSING, "not installed", remedy, needed=True)
    else:
        yield Observation("cluster", "Multus", State.SKIPPED, "not installed; only `attached_by: multus` needs it")


def check_pods(kubeconfig: str | None = None, context: str | None = None) -> Iterator[Observation]:
    """Whether the kubelet can pin the pods of a cluster with further interfaces to CPUs. Only such pods forward."""
    try:
        with closing(log_in(kubeconfig, context)) as api, understood(api.where):
            pods = parse_pods(api.ask("GET", "/api/v1/pods"))
    except PodperfError as error:
        yield Observation("mistakes", "pods", State.UNCHECKED, f"whether pods are pinned is not known: {error}")
    else:
        if pods:
            yield unpinned_pods(pods)


@dataclass(frozen=True)
class KubernetesContainer:
    """The requests and limits of a container of a Kubernetes pod, by resource: `cpu`, `memory`."""

    requests: Mapping[str, str]
    limits: Mapping[str, str]


def unpinned_pods(pods: Mapping[str, Sequence[KubernetesContainer]]) -> Observation:
    """The kubelet's static CPU manager must be able to pin the pods. It only pins Guaranteed pods with whole CPUs.

    A pod is Guaranteed if each of its containers has limits for CPU and memory, and requests as much.
    """
    reasons = {name: why for name, containers in pods.items() if (why := _why_unpinned(containers))}
    if not reasons:
        return Observation("mistakes", "pods", State.OK, f"{', '.join(pods) or 'none'}: Guaranteed, with whole CPUs")
    detail = "; ".join(f"{name} {why}" for name, why in reasons.items())
    remedy = "limits for cpu, a whole number, and for memory in each container, and no smaller requests"
    return Observation("mistakes", "pods", State.WARNING, f"not pinned to CPUs: {detail}", remedy)


def _why_unpinned(containers: Sequence[KubernetesContainer]) -> str | None:
    for container in containers:
        for resource in ("cpu", "memory"):
            limit = container.limits.get(resource)
            if limit is None:
                return f"is Burstable or BestEffort (no {resource} limit)"
            if container.requests.get(resource, limit) != limit:
                return f"is Burstable (requests {container.requests[resource]} of {limit} {resource})"
        if not container.limits["cpu"].isdigit():
            return f"asks for a part of a CPU ({container.limits['cpu']})"
    return None


def parse_pods(answer: Mapping[str, Any]) -> dict[str, list[KubernetesContainer]]:
    """The pods with additional interfaces in a list of pods."""
    return {
        pod["metadata"]["name"]: [
            KubernetesContainer(resources.get("requests", {}), resources.get("limits", {}))
            for resources in (container.get("resources", {}) for container in pod["spec"]["containers"])
        ]
        for pod in answer["items"]
        if multus.NETWORKS in pod["metadata"].get("annotations", {})
    }
