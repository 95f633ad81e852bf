"""`podperf check` on a cluster: rights, nodes, taints, pod security."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from podperf.kubernetes import checks
from podperf.kubernetes.api import ApiError
from podperf.kubernetes.chain_pods import ChainPod, manifests_of
from podperf.kubernetes.checks import NodePolicies, check_cluster, observe_node
from podperf.kubernetes.known_networks import CILIUM, KnownCalico
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.rights import (
    GRANTED_BY,
    NAMESPACED_FILE,
    OF_A_READER,
    OF_A_RUN,
    OF_ATTACHMENTS,
    OF_POLICIES,
    OF_SERVICES,
    POLICIES_FILE,
    READER_FILE,
    Right,
    allowed,
)
from podperf.kubernetes.settings import KubernetesSettings
from podperf.observation import Observation, State
from podperf.pods.base import PodProgram
from test_kubernetes_pods import settings_of as chains

ROOT = Path(__file__).parents[1]


def granted(file: str, kind: str, group: str = "") -> set[str]:
    """The rights on an API group in an RBAC file."""
    documents = yaml.safe_load_all((ROOT / file).read_text())
    rules = [rule for document in documents if document["kind"] == kind for rule in document["rules"]]
    rules = [rule for rule in rules if rule["apiGroups"] == [group]]
    return {f"{verb} {resource}" for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_the_file_for_a_namespace_grants_what_a_run_needs_and_no_more() -> None:
    assert set(GRANTED_BY[NAMESPACED_FILE]) == {*OF_A_RUN, *OF_SERVICES}
    assert {each for rights in GRANTED_BY.values() for each in rights} == {
        *(*OF_A_RUN, *OF_SERVICES, *OF_POLICIES, *OF_ATTACHMENTS)
    }


@pytest.mark.parametrize("file", GRANTED_BY)
def test_each_file_for_a_namespace_grants_its_rights_and_no_more(file: str) -> None:
    """NetworkPolicies and NetworkAttachmentDefinitions have files of their own: not everybody needs to grant them."""
    groups = {""}
    documents = list(yaml.safe_load_all((ROOT / file).read_text()))
    for document in documents:
        groups |= {each for rule in document.get("rules", ()) for each in rule["apiGroups"]}
    wanted = GRANTED_BY[file]
    assert groups == {"", *(each.group for each in wanted)}
    for group in groups:
        assert granted(file, "Role", group) == {each.name for each in wanted if each.group == group}
    (role, binding) = [each for each in documents if each["kind"] in {"Role", "RoleBinding"}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"] and role["metadata"]["namespace"] == "podperf"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "podperf", "namespace": "podperf"}]


def test_the_file_for_reading_grants_what_is_read_and_no_more() -> None:
    of_networks = "get configmaps"
    assert granted(READER_FILE, "ClusterRole") == {each.name for each in OF_A_READER} | {of_networks}
    (role, _) = yaml.safe_load_all((ROOT / READER_FILE).read_text())
    (named,) = [rule["resourceNames"] for rule in role["rules"] if rule["resources"] == ["configmaps"]]
    others = ["kube-flannel-cfg", "canal-config", "antrea-config", "kube-proxy", "kube-proxy-config"]
    assert named == [CILIUM.rpartition("/")[2], *others], "all other config maps stay closed"
    of_calico = {each.right for each in KnownCalico().questions(None)}
    assert granted(READER_FILE, "ClusterRole", "crd.projectcalico.org") == of_calico
    assert granted(READER_FILE, "ClusterRole", "apps") == {"list daemonsets"}
    assert {each.split()[0] for each in granted(READER_FILE, "ClusterRole")} == {"get", "list"}


def test_the_namespace_of_the_file_has_the_level_that_the_pods_satisfy() -> None:
    namespace, *_ = yaml.safe_load_all((ROOT / NAMESPACED_FILE).read_text())
    assert namespace["metadata"]["labels"] == {"pod-security.kubernetes.io/enforce": "baseline"}


NODE: dict[str, Any] = {
    "metadata": {"name": "node1"},
    "spec": {},
    "status": {
        "allocatable": {"cpu": "3", "hugepages-2Mi": "128Mi", "hugepages-1Gi": "0", "intel.com/vf": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"containerRuntimeVersion": "containerd://1.6", "architecture": "s390x"},
        "images": [{"names": ["localhost/other:1"]}],
    },
}
SETTINGS = KubernetesSettings(PodWishes("registry.example.com/podperf/pod:1"))


def test_a_node_shows_what_it_offers() -> None:
    found = observe_node(NODE, SETTINGS)
    assert found == Observation(
        "cluster",
        "node node1",
        State.OK,
        "containerd://1.6; architecture: s390x; CPUs: 3; CPU manager: not read; hugepages-2Mi: 128Mi; intel.com/vf: 4",
    )


@pytest.mark.parametrize(("policy", "cpus", "state"), [("static", 1, "OK"), ("none", 0, "OK"), ("none", 1, "WARNING")])
def test_only_one_policy_of_the_cpu_manager_gives_cpus_alone(policy: str, cpus: int, state: str) -> None:
    settings = KubernetesSettings(PodWishes("i", cpus=cpus))
    found = observe_node(NODE, settings, NodePolicies(policy, "best-effort"))
    assert found.state is State[state]
    assert f"CPU manager: {policy}; topology manager: best-effort" in found.detail


def test_a_node_that_is_not_ready_says_why() -> None:
    status = {**NODE["status"], "conditions": [{"type": "Ready", "status": "False", "message": "no CNI"}]}
    found = observe_node({**NODE, "status": status}, SETTINGS)
    assert found.state is State.WARNING
    assert found.detail.endswith("not ready (no CNI)")


TAINT = {"key": "lab", "value": "net", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "lab", "operator": "Exists"}, True),
        ({"key": "lab", "value": "net", "effect": "NoSchedule"}, True),
        ({"key": "lab", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "lab", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_taint_is_in_the_way_unless_it_is_tolerated(toleration: dict[str, str], tolerated: bool) -> None:
    settings = KubernetesSettings(PodWishes("i", tolerations=[toleration]))
    found = observe_node({**NODE, "spec": {"taints": [TAINT]}}, settings)
    assert (found.state is State.OK) == tolerated
    assert tolerated or "taint lab:NoSchedule" in found.detail


def test_a_taint_that_only_prefers_other_nodes_is_not_in_the_way() -> None:
    taint = {**TAINT, "effect": "PreferNoSchedule"}
    assert observe_node({**NODE, "spec": {"taints": [taint]}}, SETTINGS).state is State.OK


def test_an_image_that_nobody_fetches_must_be_there() -> None:
    settings = KubernetesSettings(PodWishes("localhost/podperf/pod:1", pull_policy="Never"))
    assert "the image localhost/podperf/pod:1 is not there" in observe_node(NODE, settings).detail
    many = {**NODE, "status": {**NODE["status"], "images": NODE["status"]["images"] * 50}}
    assert "is not there" not in observe_node(many, settings).detail, "a kubelet tells of 50 images at most"


@pytest.mark.parametrize(
    ("machine", "image", "state"),
    [
        ("x86_64", "localhost/other:1", State.WARNING),
        ("s390x", "localhost/other:1", State.OK),
        ("x86_64", "registry.example.com/podperf/pod:1", State.OK),  # one name can be images of several architectures
    ],
)
def test_an_image_of_this_machine_runs_on_nodes_of_its_architecture(
    machine: str, image: str, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: machine)
    found = observe_node(NODE, KubernetesSettings(PodWishes(image)))
    assert found.state is state
    warning = "`podperf image build` makes localhost/other:1 for amd64 here: make it on a machine of s390x"
    assert found.detail.endswith(warning) == (state is State.WARNING)


@pytest.mark.parametrize(
    ("image", "given", "policy"),
    [
        ("localhost/podperf/pod:1", {}, "Never"),
        ("localhost/podperf/pod:1", {"pull_policy": "Always"}, "Always"),
        ("registry.example.com/podperf/pod:1", {}, "IfNotPresent"),
        ("localhost.example.com/podperf/pod:1", {}, "IfNotPresent"),
        ("localhost:5000/podperf/pod:1", {}, "IfNotPresent"),
    ],
)
def test_an_image_that_no_registry_has_is_never_fetched(image: str, given: dict[str, str], policy: str) -> None:
    """A node without it would ask whoever listens on its own ports."""
    for settings in (chains(image=image, **given), chains(program_image=image, **given)):
        program = PodProgram() if settings.program_image == image else None
        (_, pod) = manifests_of(ChainPod("pod1", program), "cafe", [{"uid": "1"}], settings)
        (container,) = pod["spec"]["containers"]
        assert (container["image"], container["imagePullPolicy"]) == (image, policy)


def test_a_device_that_no_plug_in_of_the_node_has_is_named() -> None:
    functions = {"left": "intel.com/vf", "right": "intel.com/other"}
    settings = chains(virtual_functions=functions, resources={"cmk.intel.com/exclusive-cores": 1})
    found = observe_node(NODE, settings)
    assert found.state is State.WARNING
    for each in ("intel.com/other", "cmk.intel.com/exclusive-cores"):
        assert f"{each} of pods.settings is not offered" in found.detail
    assert "intel.com/vf of" not in found.detail


@dataclass
class Cluster:
    """A cluster that refuses some rights."""

    refused: set[str] = field(default_factory=set)
    level: str = "baseline"
    multus: str | None = None  # the image
    where: str = "https://cluster"
    asked: list[dict[str, str]] = field(default_factory=list)  # for these rights

    def ask(self, method: str, path: str, body: Any = None, query: Sequence[tuple[str, str]] = ()) -> Any:
        if path == "/version":
            return {"gitVersion": "v1.34.4"}
        if path.endswith("selfsubjectaccessreviews"):
            asked = body["spec"]["resourceAttributes"]
            self.asked.append(asked)
            name = "/".join(filter(None, (asked["resource"], asked["subresource"])))
            return {"status": {"allowed": f"{asked['verb']} {name}" not in self.refused}}
        if path == "/apis/apps/v1/daemonsets" and self.multus is not None:
            images = ("quay.io/calico/node:v3.28.0", "example.com/logs:1", self.multus)
            pods = [{"hostNetwork": True, "containers": [{"image": image}]} for image in images]
            return {"items": [{"spec": {"template": {"spec": pod}}} for pod in pods]}
        if path == "/api/v1/nodes":
            return {"items": [NODE]}
        if path == "/api/v1/namespaces/mine":
            return {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": self.level}}}
        raise ApiError(path, 404, "not found")

    def exists(self, path: str) -> bool:
        return self.multus is not None

    def close(self) -> None:
        """Nothing is open."""


def checked(
    monkeypatch: pytest.MonkeyPatch, cluster: Cluster, namespace: str | None = None, **further: Any
) -> dict[str, Observation]:
    """The observations about a cluster, by their subjects."""
    monkeypatch.setattr(checks, "log_in", lambda *_: cluster)
    settings = KubernetesSettings(PodWishes("i"), namespace=namespace, **further)
    return {each.subject: each for each in check_cluster(settings)}


def test_the_network_of_a_cluster_and_multus_have_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, Cluster(multus="ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.2"))
    network = found["network (CNI)"]
    assert network.detail.startswith("Calico v3.28.0; not read: list ippools: there is none, get felixconfig")
    assert (network.state, network.remedy) == (State.OK, f"optional: {READER_FILE}")
    assert found["Multus"].state is State.OK and found["Multus"].detail.endswith("multus-cni:v4.2.2")


def test_multus_is_missing_only_where_the_topology_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, Cluster())
    assert (found["Multus"].state, found["network (CNI)"].state) == (State.SKIPPED, State.UNCHECKED)
    monkeypatch.setattr(KubernetesSettings, "further_rights", OF_ATTACHMENTS)
    missing = checked(monkeypatch, Cluster())["Multus"]
    assert missing.state is State.MISSING and missing.needed and "tester.settings.attached_by" in missing.remedy


def test_a_sound_cluster_has_nothing_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, Cluster())
    assert not any(each.in_the_way for each in found.values())
    assert found["API server"].detail == "Kubernetes v1.34.4 at https://cluster"


def test_a_missing_right_is_named_with_the_file_that_grants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, Cluster({"create pods/exec"}), "mine")["rights"]
    assert found.in_the_way
    assert found.detail == "not allowed: create pods/exec"
    assert found.remedy == f"an administrator applies {NAMESPACED_FILE}"


def test_rights_on_policies_are_asked_for_only_where_the_topology_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {policy.name for policy in OF_POLICIES}
    assert checked(monkeypatch, Cluster(refused), "mine")["rights"].state is State.OK
    found = checked(monkeypatch, Cluster(refused), "mine", network_policies=1)["rights"]
    assert found.in_the_way
    assert found.detail == "not allowed: create networkpolicies, deletecollection networkpolicies"
    assert found.remedy == f"an administrator applies {POLICIES_FILE}"


def test_a_login_without_rights_on_namespaces_is_told_to_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"create namespaces"}
    assert "tester.settings.namespace" in checked(monkeypatch, Cluster(refused))["rights"].remedy
    assert checked(monkeypatch, Cluster(refused), "mine")["rights"].state is State.OK


@pytest.mark.parametrize(
    ("level", "receive_threads", "needs"),
    [
        ("privileged", True, None),
        ("baseline", False, None),
        ("baseline", True, "privileged"),
        ("restricted", False, "baseline"),
    ],
)
def test_a_namespace_that_is_stricter_than_the_pods_is_in_the_way(
    monkeypatch: pytest.MonkeyPatch, level: str, receive_threads: bool, needs: str | None
) -> None:
    found = checked(monkeypatch, Cluster(level=level), "mine", receive_threads=receive_threads)["namespace mine"]
    assert found.in_the_way == (needs is not None)
    assert found.detail.startswith(f"its pod security level is `{level}`")
    assert needs is None or found.detail.endswith(f"a pod of the run needs `{needs}`")
    assert found.in_the_way or (found.state is State.WARNING) == (level != "privileged"), "no row of the base line"


def test_nodes_that_may_not_be_read_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    found = checked(monkeypatch, Cluster({"list nodes"}))["nodes"]
    assert (found.state, found.remedy) == (State.UNCHECKED, f"optional: {READER_FILE}")
    assert not found.in_the_way


def test_a_right_is_asked_for_in_its_namespace() -> None:
    cluster: Any = Cluster()
    assert allowed(cluster, Right("create", "pods", "exec"), "mine")
    assert allowed(cluster, Right("list", "nodes", cluster=True), "mine")
    assert cluster.asked == [
        {"verb": "create", "group": "", "resource": "pods", "subresource": "exec", "namespace": "mine"},
        {"verb": "list", "group": "", "resource": "nodes", "subresource": ""},
    ]
