"""Pods of chains that are pods of a cluster: their objects, their placement, their plan, their settings."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.user_space_ports import AF_XDP_CAPABILITIES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.cpus import Cpus
from podperf.kubernetes import pods as of_pods
from podperf.kubernetes.api import ApiError
from podperf.kubernetes.chain_pods import ChainPod, ClusterRun, StartedPod, manifests_of
from podperf.kubernetes.pods import KubernetesPods, KubernetesRuntime
from podperf.kubernetes.running_pods import PodPlacement
from podperf.kubernetes.settings import ChainSettings
from podperf.model import Chain, FrameSize, PageSize
from podperf.pods import POD_RUNTIMES, runtime_of
from podperf.pods.base import PodProgram
from podperf.preflight.plan import SET_UP, TEAR_DOWN, plan
from podperf.preflight.recording import Kind
from podperf.run.session import _watch
from podperf.topology import SCHEMA_PATH, Topology, TopologyError, load_topology
from scripted_host import ScriptedHost

TOPOLOGY = SCHEMA_PATH.parent / "kubernetes_chains.yaml"
SMALL, CPUS = FrameSize.parse(64), Cpus((0, 1), (0, 1))
NOT_READ = PodPlacement(None, (), (), None)
NUMBER = "cafe" * 16  # of a container


def topology(**settings: Any) -> Topology:
    """The project's topology with these settings of the pods."""
    found = load_topology(TOPOLOGY, DATA_PLANES, POD_RUNTIMES)
    return replace(found, pods=replace(found.pods, settings={**found.pods.settings, **settings}))


def settings_of(**settings: Any) -> ChainSettings:
    return ChainSettings.read(topology(**settings).pods.settings)


def manifest_of(program: PodProgram | None = None, **settings: Any) -> Any:
    """The object of a pod."""
    return manifests_of(ChainPod("pod1", program), "cafe", [{"uid": "1"}], settings_of(**settings))[1]


@pytest.mark.parametrize(
    ("isolation", "requests", "limits"),
    [
        ("none", None, None),
        ("shared", {"cpu": "100m", "memory": "256Mi"}, {"memory": "256Mi"}),
        ("exclusive", {"cpu": "2", "memory": "256Mi"}, {"cpu": "2", "memory": "256Mi"}),
    ],
)
def test_an_isolation_level_becomes_requests_and_limits(isolation: str, requests: object, limits: object) -> None:
    pod = manifest_of(isolation=isolation, cpus=2)
    (container,) = pod["spec"]["containers"]
    assert container["resources"].get("requests") == requests
    assert container["resources"].get("limits") == limits


def test_a_pod_whose_kernel_forwards_has_no_rights_and_an_end() -> None:
    pod = manifest_of()
    (container,) = pod["spec"]["containers"]
    security = container["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["runAsNonRoot"] and not security["allowPrivilegeEscalation"]
    assert pod["spec"]["activeDeadlineSeconds"] > 0 and not pod["spec"]["automountServiceAccountToken"]
    assert pod["metadata"]["labels"]["podperf/run"] == "cafe"
    assert pod["metadata"]["ownerReferences"] == [{"uid": "1"}]


def test_a_pod_with_a_program_waits_for_it_with_the_rights_that_it_needs() -> None:
    program = PodProgram(("NET_RAW", "BPF"))
    pod = manifest_of(program, program_image="mine:1")
    (container,) = pod["spec"]["containers"]
    assert container["image"] == "mine:1"
    assert container["command"] == ["sh", "/run/podperf/containers/pod1/program"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_RAW", "BPF"]}
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    mounts = {each["name"]: each for each in container["volumeMounts"]}
    folders = {"sockets": "/run/podperf/sockets", "pipes": "/run/podperf/containers/pod1"}
    for name, folder in folders.items():
        assert volumes[name]["hostPath"] == {"path": folder, "type": "Directory"}
        assert mounts[name]["mountPath"] == folder
    assert mounts["pipes"]["readOnly"], "the pod could put a link there, and root would write through it"
    assert set(volumes) - set(folders) == {"run"} and "hostPath" not in volumes["run"]


@pytest.mark.parametrize(
    ("size", "asked", "pages"),
    [(None, {}, 0), ("2Mi", {"hugepages-2Mi": "128Mi"}, 2), ("1Gi", {"hugepages-1Gi": "1024Mi"}, 1024)],
)
@pytest.mark.parametrize("isolation", ["none", "shared", "exclusive"])
def test_a_program_has_the_hugepages_that_its_pod_asks_for(
    isolation: str, size: str | None, asked: dict[str, str], pages: int
) -> None:
    given = {"hugepages": size} if size else {}
    pod = manifest_of(PodProgram(), isolation=isolation, **given)
    (container,) = pod["spec"]["containers"]
    resources = container["resources"]
    for resource in resources.values():
        assert {key: value for key, value in resource.items() if key.startswith("hugepages")} == asked
        assert "memory" in resource, "Kubernetes refuses hugepages without CPUs or memory"
    assert runtime_of(topology(**given).pods).pages(PageSize.TWO_MIB) == pages


class Pods:
    """Pods of a cluster in which each pod gets this placement."""

    def __init__(self, placement: PodPlacement = NOT_READ) -> None:
        self.given, self.there, self.waited = placement, list[str](), list[list[str]]()

    def create(self, pod: ChainPod) -> str:
        self.there.append(pod.name)
        return pod.name

    def await_running(self, pod: str) -> StartedPod:
        return StartedPod(pod, "node7", "image", "BestEffort", f"number of {pod}", "1")

    def attached(self, pod: str) -> dict[str, list[str]]:
        return {}

    def placement(self, pod: str) -> PodPlacement:
        return self.given

    def why_ended(self, pod: str) -> str | None:
        return None

    def delete(self, pod: str) -> None:
        self.there.remove(pod)

    def await_gone(self, pods: Collection[str]) -> None:
        assert not self.there
        self.waited.append(list(pods))

    def close(self) -> None:
        """Nothing is there."""


def runtime(pods: Pods, host: ScriptedHost, **settings: Any) -> KubernetesPods:
    return KubernetesPods(
        host, NetworkNamespace("podperf-worker"), settings_of(**settings), lambda _: pods, lambda: "v1.34.4"
    )


def test_pods_end_together_and_are_awaited_once() -> None:
    pods, host = Pods(), ScriptedHost(answers={"sh -c": "4711\n"}, patient=True)
    with ExitStack() as undo:
        made = runtime(pods, host)
        for name in ("pod1", "pod2"):
            made.start(name, [], undo)
        told = made.describe()
        assert set(told["pods"]) == {"pod1", "pod2"} and told["pods"]["pod2"]["node"] == "node7"
        assert told["kubernetes"] == "v1.34.4" and told["memory_limit"] is None
    assert pods.waited == [["pod2", "pod1"]]
    assert "ip netns attach podperf-pod1 4711" in host.commands


def test_the_processes_in_the_containers_of_running_pods_are_known_for_the_watch_over_other_work() -> None:
    """Also those that an exec started: they descend from the node's container runtime, as the first process does."""
    script = ["sh", "-c", of_pods._PROCESSES, "sh", "number of pod1"]
    of_group = "/proc/4711/cgroup\n/proc/4712/cgroup\n"
    host = ScriptedHost(answers={" ".join(script): of_group, "sh -c": "4711\n"}, patient=True)
    of_testbed = KubernetesRuntime(settings_of())
    of_testbed._pods, of_testbed._login = Pods(), (cast("Any", None), "v1.34.4")
    assert set(of_testbed.processes(host)) == set()
    with ExitStack() as undo:
        of_testbed.on(host, NetworkNamespace("podperf-worker")).start("pod1", [], undo)
        assert set(of_testbed.processes(host)) == {4711, 4712}
    assert set(of_testbed.processes(host)) == set()


def test_a_process_is_found_by_the_control_group_of_its_container() -> None:
    """A process of this machine is in the control groups of the test, as one of a container is in the container's."""
    host, of_testbed = LocalHost(), KubernetesRuntime(settings_of())
    of_testbed._containers[host.name] = {NUMBER}
    assert not of_testbed.processes(host)
    of_testbed._containers[host.name] |= {Path("/proc/self/cgroup").read_text().splitlines()[0]}
    assert os.getpid() in of_testbed.processes(host)


def test_the_watch_over_other_work_asks_for_the_pods_of_each_machine() -> None:
    host, further = LocalHost(), LocalHost()
    further.name = "another machine"
    processes = {host.name: {77}, further.name: {88}}
    testbed = SimpleNamespace(
        topology=topology(),
        tester_host=host,
        tester_cpus=(0,),
        workers=[SimpleNamespace(host=host), SimpleNamespace(host=further)],
        runtime=SimpleNamespace(processes=lambda machine: processes[machine.name]),
    )
    with ExitStack() as undo:
        found = _watch(cast("Any", testbed), [{0}, {0}], undo)
    assert found is not None
    assert [each._pods() for each in (found, *found._workers)] == [{77}, {88}]


def test_a_pod_on_another_machine_names_both_and_is_deleted() -> None:
    pods, host = Pods(), ScriptedHost(patient=True)
    said = r"pod1 runs on node7.*not scripted host.*pods\.settings\.node_selector"
    with pytest.raises(PodperfError, match=said), ExitStack() as undo:
        runtime(pods, host).start("pod1", [], undo)
    assert not pods.there


@pytest.mark.parametrize(
    ("placement", "said"),
    [
        (
            PodPlacement((1, 2, 3), ((1, 2, 3),), (0,), 0),
            "asked for 1 CPU alone, and its control group has the CPUs 1-3",
        ),
        (PodPlacement((1,), ((0, 1),), (0,), 0), "asked for 1 CPU alone, and a thread of its program has the CPUs 0-1"),
    ],
)
def test_a_pod_that_is_not_placed_as_asked_names_both(placement: PodPlacement, said: str) -> None:
    pods, host = Pods(placement), ScriptedHost(answers={"sh -c": "4711\n"}, patient=True)
    with pytest.raises(PodperfError, match=said), ExitStack() as undo:
        runtime(pods, host, isolation="exclusive").start("pod1", [], undo)
    assert not pods.there
    with ExitStack() as undo:
        runtime(Pods(placement), host, isolation="shared").start("pod1", [], undo)


@dataclass
class OneNode:
    """An API server of a cluster that runs each pod at once, and needs two looks to end one."""

    there: dict[str, Any] = field(default_factory=dict)
    ending: list[str] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)

    def ask(self, method: str, path: str, body: Any = None, query: Sequence[tuple[str, str]] = ()) -> Any:
        if method != "POST":
            return self.there.get(path, {"items": []})
        status = {
            "phase": "Running",
            "qosClass": "BestEffort",
            "containerStatuses": [{"containerID": f"containerd://{NUMBER}", "imageID": "sha256:1"}],
        }
        made = {**body, "metadata": {**body["metadata"], "uid": "u", "namespace": "podperf-cafe"}, "status": status}
        made["spec"] = {**body.get("spec", {}), "nodeName": "node7"}
        self.there[f"{path}/{body['metadata']['name']}"] = made
        return made

    def exists(self, path: str) -> bool:
        if path in self.ending:
            self.ending.remove(path)
            return True
        return path in self.there and not any(path.startswith(each) for each, _ in self.asked)

    def delete(self, path: str, seconds: int = 0) -> None:
        self.asked.append((path, seconds))
        self.ending.append(path)


@pytest.mark.parametrize("number", ["", ".", ".*", "[0-9]", NUMBER[1:], f"{NUMBER}\n", f"-{NUMBER[1:]}", "$(id)"])
def test_a_node_that_tells_a_wrong_number_of_a_container_is_not_believed(number: str) -> None:
    """As a pattern, the number would find the first process of the machine. podperf would wire and kill that one."""
    status = {"qosClass": "", "containerStatuses": [{"containerID": f"x://{number}", "imageID": ""}]}
    pod = {"metadata": {"name": "p", "uid": "u", "namespace": "n"}, "spec": {"nodeName": "n"}, "status": status}
    with pytest.raises(ValueError, match="is no number of a container"):
        StartedPod.of(pod)


@pytest.mark.parametrize("number", ["", ".", "[0-9]"])
@pytest.mark.parametrize("pod", ["", "1"])
def test_no_process_of_the_machine_is_the_first_one_of_a_container(number: str, pod: str) -> None:
    found = LocalHost().ask("sh", "-c", of_pods._FIRST_PROCESS, "sh", number, pod, check=False)
    assert "1" not in found.stdout.split()


def test_a_pod_of_a_run_tells_its_container_and_is_gone_when_its_node_says_so() -> None:
    server: Any = OneNode()
    run = ClusterRun(server, settings_of())
    name = run.create(ChainPod("pod1"))
    assert run.await_running(name) == StartedPod(name, "node7", "sha256:1", "BestEffort", NUMBER, "u")
    run.delete(name)
    run.await_gone([name])
    ((path, seconds),) = server.asked
    assert path.endswith(f"/pods/{name}") and seconds > 0, "0 would not wait for the node"
    assert not server.ending
    run.close()
    assert server.asked[-1][0] == path.rpartition("/pods/")[0]


def test_a_plan_shows_the_objects_of_a_run_and_what_it_deletes() -> None:
    steps = plan(topology(), Chain("linux-bridge", 2), SMALL, CPUS).steps
    made = [step for step in steps if step.text.startswith("kubectl create")]
    assert {each.phase for each in made} == {SET_UP}
    objects = [found for each in made for found in yaml.safe_load_all(each.content)]
    assert [each["kind"] for each in objects] == ["Namespace", "ConfigMap", "Pod", "Pod"]
    assert [each["metadata"]["name"] for each in objects[2:]] == ["pod1-plan", "pod2-plan"]
    gone = [step.text for step in steps if step.text.startswith("kubectl delete")]
    assert gone[-1] == "kubectl delete namespace podperf-plan" and len(gone) == 3
    assert {step.phase for step in steps if step.text.startswith("kubectl delete")} == {TEAR_DOWN}


def test_a_plan_in_a_given_namespace_makes_none() -> None:
    steps = plan(topology(namespace="mine"), Chain("macvlan", 1), SMALL, CPUS).steps
    objects = [found for step in steps if "create" in step.text for found in yaml.safe_load_all(step.content)]
    assert [(each["kind"], each["metadata"]["namespace"]) for each in objects] == [
        ("ConfigMap", "mine"),
        ("Pod", "mine"),
    ]
    assert steps[-1].text == "kubectl delete --namespace=mine configmap podperf-run-plan"


def test_the_commands_of_a_plan_name_the_login_of_the_topology() -> None:
    steps = plan(topology(kubeconfig="/k", context="c"), Chain("macvlan", 1), SMALL, CPUS).steps
    commands = [step.text for step in steps if step.text.startswith("kubectl")]
    assert commands and all(each.endswith(" --kubeconfig=/k --context=c") for each in commands)


@pytest.mark.parametrize(
    ("answer", "raised"),
    [('pods "pod1" is forbidden: violates PodSecurity "baseline:latest"', Unavailable), ("no", ApiError)],
)
def test_a_namespace_that_forbids_a_pod_by_its_security_level_is_a_skip(answer: str, raised: type[Exception]) -> None:
    class Forbids(OneNode):
        def ask(self, method: str, path: str, body: Any = None, query: Sequence[tuple[str, str]] = ()) -> Any:
            if method == "POST" and path.endswith("/pods"):
                raise ApiError(f"{method} {path}", 403, answer)
            return super().ask(method, path, body, query)

    server: Any = Forbids()
    with pytest.raises(raised, match=answer):
        ClusterRun(server, settings_of()).create(ChainPod("pod1", PodProgram()))


def test_a_plan_shows_the_program_of_a_pod_and_its_object() -> None:
    steps = plan(topology(), Chain("memif", 2), SMALL, CPUS).steps
    started = [step for step in steps if step.text.startswith("env") and "dpdk-testpmd" in step.text]
    assert [(each.namespace, each.kind) for each in started] == [("pod1", Kind.START), ("pod2", Kind.START)]
    ended = [step.text for step in steps if " TERM " in step.text or " KILL " in step.text]
    assert len(ended) == 2 and all(" TERM " in each for each in ended), "a program of a plan ends at the first signal"
    pods = [
        found
        for step in steps
        if "kubectl create" in step.text
        for found in yaml.safe_load_all(step.content)
        if found["kind"] == "Pod"
    ]
    assert len(pods) == 2
    given = [pod["spec"]["containers"][0]["securityContext"]["capabilities"].get("add") for pod in pods]
    assert given == [list(AF_XDP_CAPABILITIES)] * 2


def test_a_pod_polls_on_the_cpus_that_it_has_alone() -> None:
    host = ScriptedHost(answers={"sh -c": "4711\n"}, patient=True)
    for isolation, own in (("exclusive", (3, 5)), ("none", ())):
        pods = Pods(PodPlacement((3, 5), ((3, 5),), (0,), 0))
        with ExitStack() as undo:
            assert runtime(pods, host, isolation=isolation, cpus=2).start("pod1", [], undo).own_cpus == own


def test_a_cluster_that_does_not_answer_is_a_reason(tmp_path: Path) -> None:
    found = runtime_of(topology(kubeconfig=str(tmp_path / "none")).pods)
    assert isinstance(found, KubernetesRuntime)
    assert str(found.unavailable(ScriptedHost())).startswith("no cluster: ")
    assert found.settings.kubeconfig == str(tmp_path / "none")
    found.close()


@pytest.mark.parametrize(
    ("pods", "problem"),
    [
        ("{runtime: kubernetes, settings: {isolation: some}}", "pods.settings.isolation: found 'some'; allowed: none"),
        ("{runtime: kubernetes, settings: {kubeconfg: a}}", "unknown key; allowed: kubeconfig, context, namespace"),
        ("{runtime: kubernetes, settings: {cpus: 0}}", "pods.settings.cpus: found 0"),
        ("{runtime: kubernetes, settings: {virtual_functions: {left: intel.com/a}}}", "right"),
        (
            "{runtime: kubernetes, settings: {virtual_functions: {left: intel.com/a, right: b}}}",
            "pods.settings.virtual_functions.right: found 'b'; allowed: a resource",
        ),
        (
            "{runtime: kubernetes, settings: {virtual_functions: {left: a/b, right: a/c, middle: a/d}}}",
            "pods.settings.virtual_functions.middle: unknown key",
        ),
        ("{runtime: runc, settings: {cpus: 1}}", "allowed: nothing, as pods of the runtime runc have no `settings`"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, pods: str, problem: str) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(f"version: 1\nname: t\npods: {pods}\n")
    with pytest.raises(TopologyError) as caught:
        load_topology(file, DATA_PLANES, POD_RUNTIMES)
    assert problem in str(caught.value)
