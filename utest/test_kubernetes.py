"""The API of a cluster, the objects of a run there, and the tester between two pods."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from http_servers import Request, Server, http_server, kubeconfig_file
from podperf.__main__ import call
from podperf.errors import PodperfError, Unavailable
from podperf.frames import AddressFamily
from podperf.hosts.local import LocalHost
from podperf.kubernetes import manifests, run_namespace
from podperf.kubernetes.api import Api, ApiError, log_in
from podperf.kubernetes.commands_in_pods import END, CommandInPodFailed, ended, succeeded
from podperf.kubernetes.end_pair import combined, exchanged, round_trip
from podperf.kubernetes.known_networks import CILIUM
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.new_flows import SERVICE_PORTS
from podperf.kubernetes.ports import DISCARDED, PodFacts, addresses_of
from podperf.kubernetes.rights import OF_A_RUN
from podperf.kubernetes.run_namespace import RunNamespace, forget_killed, lives_here
from podperf.kubernetes.running_pods import PodDidNotStart, await_phase, why_ended, why_not_running
from podperf.kubernetes.settings import KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.kubernetes.tester_objects import (
    ADDED,
    ADDED_POLICIES,
    SERVICE_PORT,
    added_endpoint,
    added_policies,
    planned,
    policies,
)
from podperf.kubernetes.unreached_service import why_unreached
from podperf.methods.latency import LatencyResult
from podperf.model import Direction, Trial
from podperf.testers import TESTERS
from podperf.testers.base import TesterPort
from podperf.topology import load_topology
from traffic import TRAFFIC, traffic_of

Answers = dict[tuple[str, str], tuple[int, object]]


@pytest.fixture
def answers() -> Answers:
    """The status and content of the server's answers, by method and path."""
    return {}


@pytest.fixture
def server(answers: Answers) -> Iterator[Server]:
    def answer(request: Request) -> tuple[int, dict[str, str], bytes]:
        status, content = answers[request.method, request.path]
        return status, {}, json.dumps(content).encode()

    with http_server(answer) as found:
        yield found


@pytest.fixture
def api(server: Server, tmp_path: Path) -> Api:
    """A login to the server."""
    return log_in(kubeconfig_file(tmp_path, server.url), None)


def test_an_answer_is_data_with_fields_that_nobody_knows_yet(api: Api, answers: Answers) -> None:
    answers["GET", "/version"] = (200, {"gitVersion": "v1.99.0", "newField": {"a": [1]}})
    assert api.ask("GET", "/version") == {"gitVersion": "v1.99.0", "newField": {"a": [1]}}
    assert api.namespace == "mine"


def test_a_body_arrives_as_json(api: Api, answers: Answers, server: Server) -> None:
    answers["POST", "/api/v1/namespaces"] = (201, {})
    body = manifests.namespace("podperf-x", "x")
    api.ask("POST", "/api/v1/namespaces", body)
    (request,) = server.requests
    assert (request.method, json.loads(request.body)) == ("POST", body)


def test_a_refusal_has_the_servers_words(api: Api, answers: Answers) -> None:
    answers["GET", "/api/v1/nodes"] = (403, {"kind": "Status", "message": "nodes is forbidden: User x"})
    with pytest.raises(ApiError, match="refuses `GET /api/v1/nodes`: nodes is forbidden: User x") as error:
        api.ask("GET", "/api/v1/nodes")
    assert error.value.status == 403


def test_a_login_that_has_expired_is_told_from_one_that_is_wrong(
    server: Server, answers: Answers, tmp_path: Path
) -> None:
    answers["GET", "/version"] = (401, {"kind": "Status", "message": "Unauthorized"})
    claims = base64.urlsafe_b64encode(json.dumps({"exp": 1_000_000_000}).encode()).decode().rstrip("=")
    with pytest.raises(ApiError, match=r"Unauthorized; the token of the login expired on 2001-09-09 01:46 UTC$"):
        log_in(kubeconfig_file(tmp_path, server.url, token=f"e30.{claims}.x"), None).ask("GET", "/version")
    with pytest.raises(ApiError, match=r"Unauthorized$"):
        log_in(kubeconfig_file(tmp_path, server.url), None).ask("GET", "/version")


def test_what_is_gone_needs_no_deleting(api: Api, answers: Answers) -> None:
    answers["DELETE", "/x"] = (404, {"message": "not found"})
    api.delete("/x")
    answers["DELETE", "/x"] = (403, {"message": "no"})
    with pytest.raises(ApiError):
        api.delete("/x")


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    nobody = log_in(kubeconfig_file(tmp_path, "http://127.0.0.1:1"), None)
    with pytest.raises(ApiError, match=r"does not answer `GET /version`: http://127.0.0.1:1: .*refused"):
        nobody.ask("GET", "/version")


def test_a_kubeconfig_that_is_not_there_is_named_with_the_way_to_a_cluster(tmp_path: Path) -> None:
    path = tmp_path / "none"
    told = rf"^no cluster: {path}: no such file or directory; name a kubeconfig .*sudo ./podperf cluster up"
    with pytest.raises(PodperfError, match=told):
        log_in(str(path), None)


def test_an_unknown_context_is_named_with_those_of_the_file(server: Server, tmp_path: Path) -> None:
    path = kubeconfig_file(tmp_path, server.url)
    with pytest.raises(PodperfError, match=rf"^no cluster: {path} has no context 'there'; its contexts: here$"):
        log_in(path, "there")


@pytest.mark.parametrize(
    ("output", "errors", "said"),
    [
        ("half an answer", "", "in pod p, `cat x` did not end: half an answer"),
        (f"{END} 2\n", "no such file\n", "exit code 2: no such file"),
    ],
)
def test_a_command_that_did_not_end_well_has_failed(output: str, errors: str, said: str) -> None:
    with pytest.raises(CommandInPodFailed, match=said):
        succeeded("p", ended("p", ["cat", "x"], output, errors))


def test_a_pod_ends_by_itself_and_has_no_rights_of_the_cluster() -> None:
    spec = made_pod()["spec"]
    assert spec["activeDeadlineSeconds"] == 14_400
    assert spec["automountServiceAccountToken"] is False
    security = spec["containers"][0]["securityContext"]
    assert security["allowPrivilegeEscalation"] is False
    assert "add" not in security["capabilities"]
    assert "NET_RAW" not in security["capabilities"]["drop"]


def test_the_wishes_of_a_topology_are_in_the_pod() -> None:
    taint = {"key": "lab", "operator": "Exists"}
    wishes = PodWishes("i", pull_secret="s", node_selector={"zone": "a"}, tolerations=[taint], runtime_class="kata")
    spec = manifests.pod("p", "r", [], ["x"], wishes)["spec"]
    assert spec["nodeSelector"] == {"zone": "a"}
    assert (spec["tolerations"], spec["runtimeClassName"]) == ([taint], "kata")
    assert spec["imagePullSecrets"] == [{"name": "s"}]


@pytest.mark.parametrize(("other", "operator"), [(False, "In"), (True, "NotIn")])
def test_the_second_pod_goes_to_the_node_of_the_first_or_to_another(other: bool, operator: str) -> None:
    place = manifests.NodeOf("node7", other=other)
    affinity = manifests.pod("p", "r", [], ["x"], PodWishes("i"), place)["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": operator, "values": ["node7"]}]}


@pytest.mark.parametrize(
    ("metadata", "status", "why"),
    [
        ({}, {"phase": "Running"}, None),
        ({}, {"phase": "Failed", "reason": "Evicted", "message": "full"}, "Evicted: full"),
        ({"deletionTimestamp": "t"}, {"phase": "Running"}, "somebody deletes or evicts it"),
        ({}, None, "somebody deleted or evicted it"),
    ],
)
def test_the_end_of_a_pod_that_ran_has_a_cause_and_its_events(
    metadata: Mapping[str, str], status: Mapping[str, str] | None, why: str | None
) -> None:
    path = "/api/v1/namespaces/mine"
    fake = FakeApi()
    if status is None:
        fake.refused[f"{path}/pods/p"] = 404
    else:
        fake.objects[f"{path}/pods/p"] = {"metadata": {"name": "p", **metadata}, "status": status}
    fake.objects[f"{path}/events/e"] = {"metadata": {"name": "e"}, "reason": "Killing", "message": "Stopping"}
    place = RunNamespace(cluster(fake), "mine")
    assert why_ended(place, "p") == (None if why is None else f"{why}; events: Killing: Stopping")
    place.close()


def test_in_an_exchange_each_end_counts_what_the_other_one_sent() -> None:
    def told(ours: int, theirs: int, side: int) -> dict[str, Any]:
        own = answer(intended=ours, sent=ours, received=0)
        other = answer(intended=ours, sent=theirs, received=theirs - 1)["directions"][0]
        directions = [own["directions"][0], other]
        return {**own, "cpu_ns": 50 * ours, "directions": directions if side == 0 else directions[::-1]}

    trial = replace(TRIAL, traffic=traffic_of(64, tuple(Direction)), train=32)
    result = exchanged(trial, {"left": told(1000, 800, 0), "right": told(800, 1000, 1)}, same_clock=False)
    assert [(each.sent, each.received) for each in result.directions] == [(1000, 999), (800, 799)]
    assert result.cpu_time is not None
    assert result.cpu_time.parts == {"the left port": 50_000.0, "the right port": 40_000.0}


@pytest.mark.parametrize(("same_clock", "negative"), [(True, 990), (False, 0)])
def test_between_two_clocks_there_is_no_latency_and_no_negative_one(same_clock: bool, negative: int) -> None:
    sent, counted = answer(intended=1000, sent=1000), answer(received=990, negative_latencies=990)
    result = combined(TRIAL, sent, counted, same_clock=same_clock)
    assert (result.directions[0].negative_latencies, result.impossible_latency is None) == (negative, not negative)
    told_by_sender = combined(TRIAL, {**sent, "directions": [{**sent["directions"][0], "last_lost": 999}]}, counted)
    assert told_by_sender.directions[0].last_lost is None, "only the port that counts knows it"
    latency = {"min": 1, "sum": 990, "max": 9, "counts": [[3, 990]]}
    found = combined(TRIAL, sent, answer(received=990, latency=latency), same_clock=same_clock).directions[0]
    assert (found.latency is None) is not same_clock


def made_pod(**wishes: Any) -> dict[str, Any]:
    """A pod of a run."""
    return manifests.pod("p", "r", manifests.owned_by("a", "u"), ["x"], PodWishes("i", **wishes))


def container(state: str, **facts: object) -> list[Mapping[str, Any]]:
    """The statuses of a pod's containers."""
    return [{"state": {state: facts}}]


NO_NODE = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes fit"}
NO_IMAGE = container("waiting", reason="ErrImageNeverPull", message="no image")
KILLED = container("terminated", exitCode=137, reason="OOMKilled")


@pytest.mark.parametrize(
    ("status", "cause", "hopeless"),
    [
        ({"phase": "Pending"}, "it has not started yet", False),
        ({"phase": "Pending", "conditions": [NO_NODE]}, "no node takes it (0/3 nodes fit)", False),
        ({"phase": "Pending", "containerStatuses": NO_IMAGE}, "ErrImageNeverPull: no image", True),
        ({"phase": "Failed", "reason": "TopologyAffinityError", "message": "no"}, "TopologyAffinityError: no", True),
        (
            {"phase": "Failed", "reason": "DeadlineExceeded"},
            "DeadlineExceeded (`longest_run` in the settings of the topology)",
            True,
        ),
        (
            {"phase": "Failed", "containerStatuses": KILLED},
            "its program ended with exit code 137 (OOMKilled)",
            True,
        ),
    ],
)
def test_a_pod_that_does_not_run_has_a_cause(status: Mapping[str, Any], cause: str, hopeless: bool) -> None:
    assert why_not_running({"status": status}) == (cause, hopeless)


@pytest.mark.parametrize(
    ("started", "cause"),
    [
        ({}, "the kubelet of node node7 has not taken it yet: does it run there?"),
        ({"startTime": "t"}, "it has not started yet"),
    ],
)
def test_a_pod_that_no_kubelet_takes_names_the_node(started: Mapping[str, str], cause: str) -> None:
    assert why_not_running({"spec": {"nodeName": "node7"}, "status": {"phase": "Pending", **started}}) == (cause, False)


def test_the_longest_run_is_a_setting_and_old_pods_are_renewed(tmp_path: Path) -> None:
    spec = planned(settings_of(tmp_path, longest_run=86_400))[-1]["spec"]
    assert spec["activeDeadlineSeconds"] == 86_400
    tester = object.__new__(KubernetesTester)
    tester._broken, tester._renewed_at = False, time.monotonic() + 100
    assert not tester.broken
    tester._renewed_at = time.monotonic() - 1
    assert tester.broken


@dataclass
class FakeApi:
    """A cluster in memory, with namespaces, config maps and pods."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)  # path and status
    addresses: list[str] = field(default_factory=list)  # of Services to come
    asked: list[tuple[str, str]] = field(default_factory=list)  # method and path of each request

    def ask(self, method: str, path: str, body: Any = None, query: Sequence[tuple[str, str]] = ()) -> Any:
        self.asked.append((method, path))
        if path in self.refused:
            raise ApiError(f"{method} {path}", self.refused[path], "refused")
        if method == "POST":
            namespace = {"namespace": path.split("/")[4]} if "/namespaces/" in path else {}
            made = {**body, "metadata": {**body["metadata"], "uid": "u", **namespace}}
            if body["kind"] == "Service":
                made["spec"] = {**body["spec"], "clusterIP": self.addresses.pop()}
            self.objects[f"{path}/{body['metadata']['name']}"] = made
            return made
        if method == "PATCH":
            self.objects[path]["data"] = body["data"]
            return self.objects[path]
        if method == "DELETE":
            ((_, selector),) = query
            label, _, value = selector.partition("=")
            for key in [key for key, each in self.objects.items() if self._is_in(key, path, query)]:
                if self.objects[key]["metadata"]["labels"].get(label) == value:
                    del self.objects[key]
            return {}
        if path in self.objects:
            return self.objects[path]
        return {"items": [each for key, each in self.objects.items() if self._is_in(key, path, query)]}

    @staticmethod
    def _is_in(key: str, path: str, query: Sequence[tuple[str, str]]) -> bool:
        folder, _, _ = key.rpartition("/")
        everywhere = path == "/api/v1/configmaps" and folder.endswith("/configmaps")
        return folder == path or everywhere

    def exists(self, path: str) -> bool:
        self.asked.append(("GET", path))
        return path in self.objects

    def delete(self, path: str, seconds: int = 0) -> None:
        self.asked.append(("DELETE", path))
        for key in [key for key in self.objects if key == path or key.startswith(f"{path}/")]:
            del self.objects[key]


def cluster(fake: FakeApi) -> Any:
    """The fake as an Api."""
    return fake


def test_a_run_has_a_namespace_and_leaves_none() -> None:
    fake = FakeApi()
    place = RunNamespace(cluster(fake))
    place.start(made_pod())
    assert set(fake.objects) == {
        f"/api/v1/namespaces/{place.name}",
        f"/api/v1/namespaces/{place.name}/configmaps/podperf-run-{place.run}",
        f"/api/v1/namespaces/{place.name}/pods/p",
    }
    place.close()
    place.close()
    assert not fake.objects


def test_each_right_that_a_run_demands_is_used() -> None:
    fake = FakeApi({"/api/v1/namespaces/mine": {"metadata": {"name": "mine"}}})
    place = RunNamespace(cluster(fake), "mine")
    place.start(made_pod())
    place.pod("p")
    place.events("p")
    place.delete("p")
    place.close()
    list(forget_killed(cluster(fake), "mine"))
    asked = {(method, *path.split("/")[5:]) for method, path in fake.asked}
    verbs = {
        "create": ("POST", 1),
        "list": ("GET", 1),
        "get": ("GET", 2),
        "patch": ("PATCH", 2),
        "delete": ("DELETE", 2),
    }
    used = {(method, words[0], len(words)) for method, *words in asked if words}
    used |= {("PATCH", "configmaps", 2)}  # the beat of a run, after 10 s
    demanded = {(verbs[each.verb][0], each.resource, verbs[each.verb][1]) for each in OF_A_RUN if not each.subresource}
    assert demanded == used


def test_a_run_in_a_given_namespace_leaves_the_namespace() -> None:
    fake = FakeApi({"/api/v1/namespaces/mine": {"metadata": {"name": "mine"}}})
    place = RunNamespace(cluster(fake), "mine")
    assert set(fake.objects) == {
        "/api/v1/namespaces/mine",
        f"/api/v1/namespaces/mine/configmaps/podperf-run-{place.run}",
    }
    place.close()
    assert set(fake.objects) == {"/api/v1/namespaces/mine"}


@pytest.mark.parametrize(
    ("settings", "sure"),
    [
        ({"kube-proxy-replacement": "true"}, True),
        ({"kube-proxy-replacement": "strict", "bpf-lb-sock-hostns-only": "false"}, True),
        ({"kube-proxy-replacement": "false", "bpf-lb-sock": "true"}, True),
        ({"kube-proxy-replacement": "true", "bpf-lb-sock-hostns-only": "true"}, False),
        ({"kube-proxy-replacement": "false"}, False),
    ],
)
def test_a_service_behind_socket_load_balancing_has_this_reason(settings: dict[str, str], sure: bool) -> None:
    """Cilium's settings are from the config maps of its Helm chart, 1.12 (`strict`) and 1.20."""
    found = why_unreached(cluster(FakeApi({CILIUM: {"data": settings}})))
    assert ("socketLB.hostNamespaceOnly=true" in found) is sure
    assert ("kube-proxy, or what replaces it?" in found) is not sure


def agent_of(image: str, namespace: str) -> dict[str, Any]:
    """All DaemonSets of a cluster, as the API server lists them."""
    pod = {"hostNetwork": True, "containers": [{"name": "agent", "image": image}]}
    named = {"metadata": {"name": "agent", "namespace": namespace}, "spec": {"template": {"spec": pod}}}
    return {"/apis/apps/v1/daemonsets": {"items": [named]}}


def test_cilium_has_its_settings_in_the_namespace_of_its_agents() -> None:
    settings = {"/api/v1/namespaces/cilium/configmaps/cilium-config": {"data": {"kube-proxy-replacement": "true"}}}
    agents = agent_of("quay.io/cilium/cilium:v1.18.3", "cilium")
    found = why_unreached(cluster(FakeApi({**agents, **settings}, refused={CILIUM: 404})))
    assert found.startswith("Cilium's socket load balancing") and "socketLB.hostNamespaceOnly=true" in found


@pytest.mark.parametrize(
    ("objects", "refused", "named"),
    [
        ({}, {CILIUM: 403}, True),
        ({}, {CILIUM: 404, "/apis/apps/v1/daemonsets": 403}, True),  # Cilium may be in another namespace
        (agent_of("quay.io/cilium/cilium:v1.18.3", "kube-system"), {CILIUM: 404}, True),
        (agent_of("ghcr.io/flannel-io/flannel:v0.27.4", "kube-flannel"), {CILIUM: 404}, False),
    ],
)
def test_settings_that_are_not_read_leave_a_likely_reason(
    objects: dict[str, Any], refused: dict[str, int], named: bool
) -> None:
    found = why_unreached(cluster(FakeApi(objects, refused=refused)))
    assert found.startswith("does the cluster have kube-proxy")
    assert ("If its network is Cilium" in found) is named


def test_a_login_that_may_not_make_a_namespace_is_told_what_to_do() -> None:
    with pytest.raises(Unavailable, match=r"tester\.settings\.namespace, with the rights of"):
        RunNamespace(cluster(FakeApi(refused={"/api/v1/namespaces": 403})))


def test_a_namespace_without_an_anchor_does_not_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeApi()
    monkeypatch.setattr(run_namespace, "token_hex", lambda _: "77")
    fake.refused["/api/v1/namespaces/podperf-77/configmaps"] = 403
    with pytest.raises(ApiError):
        RunNamespace(cluster(fake))
    assert not fake.objects


def test_this_process_lives_and_others_are_unknown() -> None:
    place = RunNamespace(cluster(FakeApi()), "mine")
    (anchor,) = place._api.ask("GET", "/api/v1/namespaces/mine/configmaps")["items"]
    assert lives_here(anchor["data"]) is True
    assert lives_here({**anchor["data"], "machine": "another"}) is None
    assert lives_here({**anchor["data"], "process": f"{os.getpid()} 1"}) is False  # the number was used again
    boot, _ = anchor["data"]["machine"].split()
    assert lives_here({**anchor["data"], "machine": f"{boot} pid:[1]"}) is None  # in another container of this machine
    place.close()


def test_clean_deletes_killed_runs_and_no_others() -> None:
    fake = FakeApi({"/api/v1/namespaces/mine": {"metadata": {"name": "mine"}}})
    places = [RunNamespace(cluster(fake)), RunNamespace(cluster(fake)), RunNamespace(cluster(fake), "mine")]
    killed, alive, killed_in_given = places
    for each in (killed, killed_in_given):
        fake.objects[f"/api/v1/namespaces/{each.name}/configmaps/podperf-run-{each.run}"]["data"]["process"] = "1 1"
    assert set(forget_killed(cluster(fake))) == {
        f"namespace {killed.name}",
        f"pods of podperf-run-{killed_in_given.run} in namespace mine",
    }
    assert f"/api/v1/namespaces/{alive.name}" in fake.objects
    assert "/api/v1/namespaces/mine" in fake.objects
    for place in places:
        place._closed.set()


def test_a_run_on_another_machine_lives_if_it_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeApi()
    places = [RunNamespace(cluster(fake)), RunNamespace(cluster(fake))]
    for place in places:
        place._closed.set()
    paths = [f"/api/v1/namespaces/{place.name}/configmaps/podperf-run-{place.run}" for place in places]
    for path in paths:
        fake.objects[path]["data"] = {"machine": "another", "process": "1 1", "beats": "0"}

    def a_while(_: float) -> None:
        fake.objects[paths[0]]["data"] = {"machine": "another", "process": "1 1", "beats": "2"}

    monkeypatch.setattr(run_namespace.time, "sleep", a_while)
    assert list(forget_killed(cluster(fake))) == [f"namespace {places[1].name}"]


def test_a_namespace_of_somebody_else_is_never_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"metadata": {"name": "shop", "labels": {manifests.MANAGER: "podperf"}}}
    fake = FakeApi({"/api/v1/namespaces/shop": other})
    monkeypatch.setattr(run_namespace.time, "sleep", lambda _: None)
    assert list(forget_killed(cluster(fake))) == []
    assert fake.objects


def planted(namespace: str, run: str, data: object) -> tuple[str, dict[str, Any]]:
    """A config map with the name of an anchor. Everybody who may make config maps in a namespace can make it."""
    name = f"podperf-run-{run}"
    metadata = {"name": name, "namespace": namespace, "labels": manifests.labels(run)}
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}", {"metadata": metadata, "data": data}


def test_an_anchor_of_another_tenant_deletes_no_namespace() -> None:
    """The tenant may only make config maps in the namespace, whose name begins as podperf's do."""
    fake = FakeApi({"/api/v1/namespaces/podperf-shop": {"metadata": {"name": "podperf-shop", "labels": {"team": "a"}}}})
    path, anchor = planted("podperf-shop", "shop", {"machine": run_namespace._machine(), "process": "1 1"})
    fake.objects[path] = anchor
    assert list(forget_killed(cluster(fake))) == ["pods of podperf-run-shop in namespace podperf-shop"]
    assert set(fake.objects) == {"/api/v1/namespaces/podperf-shop"}


@pytest.mark.parametrize(
    "data",
    [None, {}, {"process": "1 1"}, *({"machine": run_namespace._machine(), "process": each} for each in ("", "x", 7))],
)
def test_an_anchor_of_another_tenant_keeps_no_killed_run_from_being_deleted(
    data: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeApi({"/api/v1/namespaces/a": {"metadata": {"name": "a"}}})
    killed = RunNamespace(cluster(fake))
    killed._closed.set()
    fake.objects[f"/api/v1/namespaces/{killed.name}/configmaps/podperf-run-{killed.run}"]["data"]["process"] = "1 1"
    path, anchor = planted("a", "x", data)
    fake.objects[path] = anchor
    fake.refused["/api/v1/namespaces/a/pods"] = 403
    monkeypatch.setattr(run_namespace.time, "sleep", lambda _: None)
    said: list[str] = []
    with pytest.raises(PodperfError, match="refuses `GET /api/v1/namespaces/a/pods`"):
        said.extend(forget_killed(cluster(fake)))
    assert said == [f"namespace {killed.name}"]
    assert f"/api/v1/namespaces/{killed.name}" not in fake.objects


def test_what_a_pod_or_a_tenant_writes_is_cut() -> None:
    long = "\x1b[2J<script>" + "x" * 100_000
    path = "/api/v1/namespaces/mine"
    ended = {"exitCode": 1, "message": long, "reason": "Error"}
    status = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": ended}}]}
    fake = FakeApi({f"{path}/pods/p": {"metadata": {"name": "p"}, "status": status}})
    for number in range(50):
        fake.objects[f"{path}/events/{number}"] = {"metadata": {"name": "e"}, "reason": long, "message": long}
    place = RunNamespace(cluster(fake), "mine")
    assert len(why_ended(place, "p") or "") < 6000
    with pytest.raises(PodDidNotStart) as caught:
        await_phase(place, "p")
    assert str(caught.value).isprintable() and len(str(caught.value)) < 6000
    place.close()


def test_facts_of_a_pod_have_its_first_address_of_each_family() -> None:
    addresses = [{"ip": "fd00::5"}, {"ip": "10.1.2.3"}, {"ip": "fd00::6"}]
    status = {"podIPs": addresses, "containerStatuses": [{"imageID": "sha256:1"}]}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": status}
    found = {family: str(address) for family, address in PodFacts.of(pod).addresses.items()}
    assert found == {AddressFamily.IPV4: "10.1.2.3", AddressFamily.IPV6: "fd00::5"}


def test_the_interface_under_test_is_one_that_multus_has_attached() -> None:
    told = [{"name": "cbr0", "interface": "eth0", "ips": ["10.1.2.3"]}, {"interface": "net1", "ips": ["10.77.0.2"]}]
    annotations = {"k8s.v1.cni.cncf.io/network-status": json.dumps([*told, {"interface": "net2"}])}
    status = {"podIPs": [{"ip": "10.1.2.3"}], "containerStatuses": [{"imageID": "sha256:1"}]}
    pod: dict[str, Any] = {"metadata": {"name": "p", "annotations": annotations}, "spec": {"nodeName": "n"}}
    pod["status"] = status
    assert str(PodFacts.of(pod, "net1").addresses[AddressFamily.IPV4]) == "10.77.0.2"
    for wrong in ("net2", "net3"):
        with pytest.raises(Unavailable, match=f"gave pod p no {wrong} with an address: it tells eth0 10.1.2.3"):
            PodFacts.of(pod, wrong)
    del pod["metadata"]["annotations"]
    with pytest.raises(Unavailable, match="Multus does not attach interfaces on node n"):
        PodFacts.of(pod, "net1")


def test_pods_are_as_the_topology_wants_them(tmp_path: Path) -> None:
    wanted = {"labels": {"team": "net", manifests.RUN: "mine"}, "annotations": {"a.example/b": "c"}}
    names = {"service_account": "bench", "priority_class": "high", "memory": "1Gi"}
    settings = settings_of(tmp_path, **wanted, **names, networks=["one", "other/two"], interface="net2")
    pods = [each for each in planned(settings) if each["kind"] == "Pod"]
    assert len(pods) == 2
    for pod in pods:
        labels, spec = pod["metadata"]["labels"], pod["spec"]
        assert labels["team"] == "net" and labels[manifests.RUN] == "plan", "podperf finds its pods by its own labels"
        assert pod["metadata"]["annotations"] == {"a.example/b": "c", "k8s.v1.cni.cncf.io/networks": "one, other/two"}
        assert (spec["serviceAccountName"], spec["priorityClassName"]) == ("bench", "high")
        assert not spec["automountServiceAccountToken"]
        assert spec["containers"][0]["resources"]["limits"]["memory"] == "1Gi"
        assert {"name": "PODPERF_INTERFACE", "value": "net2"} in spec["containers"][0]["env"]


@pytest.mark.parametrize("key", ["destination", "network_policies", "receive_threads"])
def test_what_knows_eth0_alone_does_not_go_with_other_networks(tmp_path: Path, key: str) -> None:
    wrong = {"destination": "service", "network_policies": 10, "receive_threads": True}[key]
    with pytest.raises(PodperfError, match=rf"tester\.settings\.{key}: .* with `networks`"):
        settings_of(tmp_path, networks=["one"], **{key: wrong})


def answer(**values: Any) -> dict[str, Any]:
    """An answer of one of the tester's processes."""
    names = ("intended", "sent", "received", "duplicated", "reordered", "corrupted", "late")
    direction = {"direction": "left-to-right", "duration_ns": 1e9, **dict.fromkeys(names, 0)}
    of_trial = {"started": 5.0, "elapsed": 1.5, "stray": 0, "own_drops": 0, "own_drops_reason": "", "unready": ""}
    of_trial |= {"cpu_ns": 0, **{name: values[name] for name in ("machine_busy_ns", "boot_id") if name in values}}
    direction |= {name: value for name, value in values.items() if name not in of_trial}
    return {
        **of_trial,
        **{name: value for name, value in values.items() if name in of_trial},
        "directions": [direction],
    }


TRIAL = Trial(TRAFFIC, 1000.0, 1.0)


def test_one_process_tells_what_was_sent_and_the_other_one_what_arrived() -> None:
    latency = {"min": 1, "sum": 990, "max": 9, "counts": [[3, 990]]}
    result = combined(
        TRIAL, answer(intended=1000, sent=1000, late=3), answer(received=990, reordered=2, latency=latency)
    )
    (found,) = result.directions
    assert (found.direction, found.sent, found.received, found.late) == (Direction.LEFT_TO_RIGHT, 1000, 990, 3)
    assert (result.lost, result.invalid) == (10, None)
    assert found.latency is not None and found.latency.maximum == 9


def test_a_result_of_trains_has_the_cpu_time_of_both_processes() -> None:
    sent, counted = answer(intended=1000, sent=1000, cpu_ns=5_000_000), answer(received=990, cpu_ns=1_000_000)
    assert combined(TRIAL, sent, counted).cpu_time is None, "between single frames the sender polls"
    found = combined(replace(TRIAL, train=32), sent, counted).cpu_time
    assert found is not None and found.total == 6_000_000
    assert found.parts == {"the port that sends": 5_000_000, "the port that counts": 1_000_000}
    del counted["cpu_ns"]
    older = combined(replace(TRIAL, train=32), sent, counted).cpu_time
    assert older is not None and older.total is None and "./podperf image build" in older.unread


@pytest.mark.parametrize(
    ("boots", "rest"),
    [
        (("a", "b"), {"the rest of the node that sends": 2e6, "the rest of the node that counts": 8e6}),
        (("a", "a"), {"the rest of the node": 3e6}),
    ],
)
def test_the_rest_of_a_node_is_what_neither_process_took(boots: tuple[str, str], rest: dict[str, float]) -> None:
    """The looks at one machine are at the same CPUs: they are no sum."""
    sent = answer(intended=1000, sent=1000, cpu_ns=5_000_000, machine_busy_ns=7_000_000, boot_id=boots[0])
    counted = answer(received=990, cpu_ns=1_000_000, machine_busy_ns=9_000_000, boot_id=boots[1])
    found = combined(replace(TRIAL, train=32), sent, counted).cpu_time
    assert found is not None and (found.beside, found.total) == (rest, 6_000_000)
    del counted["machine_busy_ns"]
    found = combined(replace(TRIAL, train=32), sent, counted).cpu_time
    assert found is not None and found.beside == {}, "an older image, or a kernel that does not tell"


def test_a_round_trip_is_counted_where_it_began() -> None:
    latency = {"min": 1, "sum": 990, "max": 9, "counts": [[3, 990]]}
    sent = answer(intended=1000, sent=1000, received=990, latency=latency)
    result = round_trip(replace(TRIAL, round_trip=True), sent, answer(received=995, latency={**latency, "max": 99}))
    assert (result.sent, result.received, result.invalid) == (1000, 990, None)
    assert result.latency is not None and result.latency.maximum == 9
    assert set(LatencyResult(result, 0.5, "PDR").metrics) == {
        "round_trip_p50",
        "round_trip_p99",
        "round_trip_variation",
    }
    full = {**sent, "own_drops": 5, "own_drops_reason": "the receive ring of eth0 was full"}
    assert "the tester itself lost 5 frames" in str(round_trip(TRIAL, full, answer()).invalid)
    far_end = answer(own_drops=5, own_drops_reason="the receive ring of eth0 was full")
    assert "the tester itself lost 5 frames" in str(round_trip(TRIAL, sent, far_end).invalid)


def test_troubles_of_both_processes_count() -> None:
    sound = answer(intended=1000, sent=1000, received=1000)
    assert combined(TRIAL, {**sound, "unready": "eth0 is down"}, sound).invalid == "eth0 is down"
    full = {**sound, "own_drops": 5, "own_drops_reason": "the receive ring of eth0 was full"}
    assert combined(TRIAL, sound, full).invalid == "the tester itself lost 5 frames: the receive ring of eth0 was full"


@pytest.mark.parametrize(
    ("given", "kinds"), [(None, ["Namespace", "ConfigMap", "Pod", "Pod"]), ("mine", ["ConfigMap", "Pod", "Pod"])]
)
def test_a_plan_has_the_objects_of_a_run_in_one_namespace(given: str | None, kinds: list[str]) -> None:
    found = planned(KubernetesSettings(PodWishes("i"), namespace=given))
    assert [each["kind"] for each in found] == kinds
    places = {each["metadata"].get("namespace") or each["metadata"]["name"] for each in found}
    assert places == {given or "podperf-plan"}


def test_a_service_leads_to_the_pod_whose_label_it_selects() -> None:
    found = planned(KubernetesSettings(PodWishes("i"), destination="service"))
    pods, services = ([each for each in found if each["kind"] == kind] for kind in ("Pod", "Service"))
    assert len(services) == len(pods) == 2
    for pod, made in zip(pods, services, strict=True):
        assert made["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        (port,) = made["spec"]["ports"]
        assert (port["protocol"], port["port"], port["targetPort"]) == ("UDP", SERVICE_PORT, DISCARDED)
    assert services[0]["spec"]["selector"] != services[1]["spec"]["selector"]


def test_only_the_pods_that_start_receive_threads_have_rights_on_the_node() -> None:
    found = planned(KubernetesSettings(PodWishes("i", cpus=1), receive_threads=True))
    pods = {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "Pod"}
    assert {name: pod.get("hostNetwork", False) for name, pod in pods.items()} == {
        "tester-left-plan": False,
        "tester-right-plan": False,
        "thread-left-plan": True,
        "thread-right-plan": True,
    }
    for name, pod in pods.items():
        (container,) = pod["containers"]
        security = container["securityContext"]
        assert security.get("privileged", False) == name.startswith("thread-")
        assert name.startswith("thread-") or security["capabilities"]["add"] == ["NET_ADMIN"]
    assert "limits" in pods["thread-left-plan"]["containers"][0]["resources"]
    assert "cpu" not in pods["thread-left-plan"]["containers"][0]["resources"]["limits"], "it takes no CPU of its own"


OUTSIDE = {"destination": "host", "host": {"interface": "eth1", "namespace": "outside"}}


def settings_of(folder: Path, **settings: Any) -> KubernetesSettings:
    """The settings of the tester in a topology file."""
    path = folder / "topology.yaml"
    content = {"version": 1, "name": "t", "tester": {"type": "kubernetes", "settings": settings}}
    path.write_text(yaml.safe_dump(content))
    kind = load_topology(path, testers=TESTERS).tester.kind
    assert isinstance(kind, KubernetesSettings)
    return kind


def test_with_a_host_outside_there_is_one_pod(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, **OUTSIDE)
    assert settings.host == TesterPort("eth1", "outside")
    assert [each["kind"] for each in planned(settings)] == ["Namespace", "ConfigMap", "Pod"]
    assert not settings.runs_already, "its other part runs on the tester's machine"
    assert settings_of(tmp_path).runs_already


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"destination": "host"}, "destination"),
        ({"host": {"interface": "eth1"}}, "host"),
        ({**OUTSIDE, "nodes": 2}, "nodes"),
        ({**OUTSIDE, "network_policies": 10}, "network_policies"),
    ],
)
def test_settings_that_a_host_outside_does_not_go_with_are_named(
    tmp_path: Path, settings: dict[str, Any], key: str
) -> None:
    with pytest.raises(PodperfError, match=rf"tester\.settings\.{key}"):
        settings_of(tmp_path, **settings)


def test_the_base_line_of_a_pod_network_is_pods_in_the_networks_of_two_nodes(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, nodes=2, host_network=True)
    pods = [each for each in planned(settings) if each["kind"] == "Pod"]
    assert [pod["spec"]["hostNetwork"] for pod in pods] == [True, True]
    assert settings.security_level == "privileged", "no other level allows the network of a node"
    assert not settings.varied({"host_network": False}).host_network


@pytest.mark.parametrize(
    "wrong",
    [{"nodes": 1}, {"destination": "service"}, {"network_policies": 10}, {"receive_threads": True}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_what_pods_in_the_networks_of_nodes_cannot_have_is_named(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(PodperfError, match=rf"tester\.settings\.{next(iter(wrong))}: .* `host_network`"):
        settings_of(tmp_path, **{"nodes": 2, "host_network": True, **wrong})


@pytest.mark.parametrize(
    ("given", "row", "changes"),
    [
        ({}, {"nodes": 1}, {}),
        ({"nodes": 2}, {"nodes": 1}, {"nodes": 1}),
        ({"network_policies": 7}, {"nodes": 2}, {"nodes": 2, "network_policies": 0}),
        ({}, {"nodes": 2, "host_network": True}, {"nodes": 2, "host_network": True}),
        ({}, {"nodes": 1, "destination": "service"}, {"destination": "service"}),
        (
            {"destination": "service"},
            {"nodes": 1, "destination": "service", "other_services": 99},
            {"other_services": 99},
        ),
        ({"new_flows": True}, {"nodes": 1}, {"new_flows": False}),
        ({"node_names": ["a", "b"]}, {"nodes": 1}, {"nodes": 1, "node_names": ["a"]}),
        ({"node_names": ["a", "b"]}, {"nodes": 2}, {}),
        (OUTSIDE, {"nodes": 1, "destination": "host"}, {}),
    ],
)
def test_a_row_changes_what_it_needs_of_the_topology_s_pods(
    tmp_path: Path, given: dict[str, Any], row: dict[str, Any], changes: dict[str, Any]
) -> None:
    settings = settings_of(tmp_path, **given)
    assert settings.for_row(**row) == changes
    assert settings.varied(changes).for_row(**row) == {}


@pytest.mark.parametrize(
    ("given", "row", "why"),
    [
        ({}, {"nodes": 1, "destination": "host"}, "destination of the topology is pod, and this test needs host"),
        (OUTSIDE, {"nodes": 1}, "destination of the topology is host, and this test needs pod"),
        ({"node_names": ["a"]}, {"nodes": 2}, "names one node"),
        ({}, {"nodes": 1, "network_policies": 1, "new_flows": True}, "needs new_flows of .* to be false"),
        ({"receive_threads": True}, {"nodes": 2, "host_network": True}, "needs receive_threads of .* to be false"),
    ],
)
def test_a_row_that_the_topology_s_pods_cannot_have_is_skipped(
    tmp_path: Path, given: dict[str, Any], row: dict[str, Any], why: str
) -> None:
    with pytest.raises(Unavailable, match=why):
        settings_of(tmp_path, **given).for_row(**row)


def test_a_cluster_of_one_node_has_no_place_for_the_second_pod() -> None:
    """The scheduler's words are those of Kubernetes 1.34."""
    said = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
    place = manifests.NodeOf("node1", other=True)
    pod = manifests.pod("p", "r", [], ["x"], PodWishes("i"), place) | {"status": {"conditions": [scheduled]}}
    fake = FakeApi({"/api/v1/namespaces/mine/pods/p": pod})
    with pytest.raises(Unavailable, match="the cluster has one"):
        await_phase(RunNamespace(cluster(fake), "mine"), "p")
    waits = manifests.pod("p", "r", [], ["x"], PodWishes("i", alone=True), manifests.NodeOf("node1"))
    fake.objects["/api/v1/namespaces/mine/pods/p"] = waits | {"status": {"conditions": [scheduled]}}
    with pytest.raises(PodDidNotStart, match="no node takes it"):  # for the pods of another run, which will end
        await_phase(RunNamespace(cluster(fake), "mine"), "p", timeout=0)
    fake.objects["/api/v1/namespaces/mine/pods/p"] = pod
    scheduled["message"] = said.replace("0/1", "0/2")
    with pytest.raises(PodDidNotStart, match="no node takes it"):
        await_phase(RunNamespace(cluster(fake), "mine"), "p", timeout=0)


def test_the_address_of_a_host_outside_is_that_of_its_interface() -> None:
    assert str(addresses_of(LocalHost(), TesterPort("lo"))[AddressFamily.IPV4]) == "127.0.0.1"


def test_other_services_lead_to_a_pod_and_go_with_frames_to_a_service(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, destination="service", other_services=3)
    services = [each for each in planned(settings) if each["kind"] == "Service"]
    assert len({each["metadata"]["name"] for each in services}) == 2 + 3
    pods = {each["metadata"]["name"] for each in planned(settings) if each["kind"] == "Pod"}
    assert {each["spec"]["selector"][manifests.POD] for each in services} <= pods
    with pytest.raises(PodperfError, match="other_services"):
        settings_of(tmp_path, other_services=3)


def test_a_service_for_new_flows_leads_each_further_port_to_the_same_one_of_the_pod(tmp_path: Path) -> None:
    """Two flows to one port of the pod could need another source port: the cluster must tell their answers apart."""
    for new in (False, True):
        services = [
            each["spec"]["ports"]
            for each in planned(settings_of(tmp_path, destination="service", new_flows=new))
            if each["kind"] == "Service"
        ]
        assert len(services) == 2
        for ports in services:
            targets = {each["port"]: each["targetPort"] for each in ports}
            assert targets.pop(7) == DISCARDED
            assert len(targets) == (SERVICE_PORTS if new else 0)
            assert all(port == target for port, target in targets.items())
            assert len({each["name"] for each in ports}) == len(ports)


def test_one_of_the_policies_admits_the_frames_and_each_selects_both_pods() -> None:
    found = planned(KubernetesSettings(PodWishes("i"), network_policies=300))
    pods, policies = ([each for each in found if each["kind"] == kind] for kind in ("Pod", "NetworkPolicy"))
    assert len(policies) == len({policy["metadata"]["name"] for policy in policies}) == 300
    for policy in policies:
        for pod in pods:
            assert policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert policy["metadata"]["ownerReferences"] == pods[0]["metadata"]["ownerReferences"]
        (rule,) = policy["spec"]["ingress"]
        assert rule["ports"] == [{"protocol": "UDP", "port": DISCARDED}]
    *sources, admitted = [policy["spec"]["ingress"][0]["from"][0] for policy in policies]
    assert admitted["podSelector"]["matchLabels"].items() <= pods[0]["metadata"]["labels"].items()
    networks = {ip_network(source["ipBlock"]["cidr"]) for source in sources}
    assert len(networks) == 299
    assert all(network.num_addresses == 1 and network.subnet_of(ip_network("198.18.0.0/15")) for network in networks)


def test_a_single_policy_admits_the_frames() -> None:
    (policy,) = policies(1, "r", [])
    assert "podSelector" in policy["spec"]["ingress"][0]["from"][0]


def test_a_run_deletes_its_policies_in_a_given_namespace_and_no_others() -> None:
    path = "/apis/networking.k8s.io/v1/namespaces/mine/networkpolicies"
    others = {"metadata": {"name": "theirs", "labels": {}}}
    fake = FakeApi({"/api/v1/namespaces/mine": {"metadata": {"name": "mine"}}, f"{path}/theirs": others})
    place = RunNamespace(cluster(fake), "mine")
    for policy in policies(3, place.run, place.owners):
        place.start_policy(policy)
    assert sum(each.startswith(path) for each in fake.objects) == 4
    place.close()
    assert set(fake.objects) == {"/api/v1/namespaces/mine", f"{path}/theirs"}


def test_policies_that_a_change_adds_differ_from_all_others_and_go_alone() -> None:
    path = "/apis/networking.k8s.io/v1/namespaces/mine/networkpolicies"
    fake = FakeApi({"/api/v1/namespaces/mine": {"metadata": {"name": "mine"}}})
    place = RunNamespace(cluster(fake), "mine")
    for policy in policies(7, place.run, place.owners):
        place.start_policy(policy)
    before = set(fake.objects)
    for policy in added_policies(7, place.run, place.owners):
        assert "ipBlock" in policy["spec"]["ingress"][0]["from"][0]
        place.start_policy(policy)
    assert len([each for each in fake.objects if each.startswith(path)]) == 7 + ADDED_POLICIES
    place.delete_policies(ADDED)
    assert set(fake.objects) == before
    place.close()


def test_an_added_endpoint_is_found_by_the_service_of_another_pod_and_is_on_its_node() -> None:
    settings = KubernetesSettings(PodWishes("i", cpus=2), destination="service")
    led = manifests.service("s", "r", [], "tester-right-r", {7: DISCARDED}, AddressFamily.IPV4)["spec"]["selector"]
    there = {"metadata": {"name": "tester-right-r"}, "spec": {"nodeName": "n2"}}
    found = added_endpoint(there, "r", [], settings)
    assert led.items() <= found["metadata"]["labels"].items()
    assert found["metadata"]["name"] != "tester-right-r"
    assert "'n2'" in str(found["spec"]["affinity"])
    (container,) = found["spec"]["containers"]
    assert "cpu" not in container["resources"]["limits"], "the measured pods keep their CPUs"


def test_a_run_deletes_its_services_in_a_given_namespace() -> None:
    fake = FakeApi({"/api/v1/namespaces/mine": {"metadata": {"name": "mine"}}}, addresses=["10.96.0.9"])
    place = RunNamespace(cluster(fake), "mine")
    assert (
        str(
            place.start_service(
                manifests.service("s", place.run, place.owners, "p", {7: DISCARDED}, AddressFamily.IPV4)
            )
        )
        == "10.96.0.9"
    )
    place.close()
    assert set(fake.objects) == {"/api/v1/namespaces/mine"}


def test_check_shows_the_plan_without_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = Path(__file__).parents[1] / "topologies" / "kubernetes.yaml"
    assert call(["check", str(topology), "--plan", "external"]) == 0
    shown = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [each["kind"] for each in shown] == ["Namespace", "ConfigMap", "Pod", "Pod"]
    with pytest.raises(PodperfError, match="only external is measured"):
        call(["check", str(topology), "--plan", "linux-bridge"])
