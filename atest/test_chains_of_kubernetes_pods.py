"""Chains whose pods are pods of a cluster on this machine, for real.

Without the programs of the cluster these tests are skipped, as those of the folder cluster.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from chains import need, send
from machine import once_as, snapshot
from own_cluster import (
    KUBECONFIG,
    STARTS_A_CLUSTER,
    awaited,
    frames_of,
    group_of,
    namespaces,
    need_programs,
    process_of,
    program_of,
    use_up_memory,
)
from podperf.cluster.hierarchies import processes
from podperf.cluster.layout import FOLDER
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.hosts.run_directory import RUN_DIRECTORY, SOCKETS
from podperf.kernel.cpus import Cpus
from podperf.kubernetes import multus
from podperf.kubernetes import pods as of_pods
from podperf.kubernetes.api import Api, log_in
from podperf.kubernetes.chain_pods import ChainPod, ClusterRun
from podperf.kubernetes.commands_in_pods import execute
from podperf.kubernetes.container_program import make_pipes, start_program
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.settings import IMAGE, ChainSettings, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import Chain, FrameSize, PageSize, Trial
from podperf.pods import POD_RUNTIMES
from podperf.pods.base import PodProgram
from podperf.pods.forwarders.base import POD_MEMORY
from podperf.preflight.plan import plan
from podperf.run.session import _watch
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
from podperf.topology import Topology, load_topology
from robot_run import ROOT, Robot, mrr_suite, podperf
from traffic import TRAFFIC

SMALL = FrameSize.parse(64)
START_TIMEOUT = 60.0  # seconds
KILL_NOTICED_IN = 30.0  # seconds after the trial, the end of the run among them
HUGEPAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
PAGES_OF_TWO_PODS = 2 * POD_MEMORY // PageSize.TWO_MIB
# Keys that pods of users have, and that a program of podperf works with.
OF_USERS = {
    "hugepages": {"2Mi": f"{POD_MEMORY}Mi"},
    "command": ["sh", "-c", 'sleep 0.1; exec "$@"', "sh"],
    "volumes": [{"name": "pages", "emptyDir": {"medium": "HugePages"}}],
    "volume_mounts": [{"name": "pages", "mountPath": "/dev/hugepages"}],
    "security_context": {"capabilities": {"add": ["IPC_LOCK"]}, "supplementalGroups": [1234]},
}
# A run that builds chains until it is killed.
BUILDING = """
import sys
sys.path.insert(0, sys.argv[1])
from podperf.hosts.local import LocalHost
from podperf.model import Chain, FrameSize
from podperf.testbed.access import read_topology
from podperf.run.session import _watch
from podperf.testbed.run_lock import RunLock
from podperf.testbed.testbed import Testbed
host = LocalHost()
with RunLock():
    testbed = Testbed.on(read_topology(sys.argv[2]), host, [host])
    while True:
        with testbed.build(Chain("linux-bridge", 2), FrameSize.parse(64)):
            pass
"""
ATTACKS = """
cd /run/podperf && ls && ls containers
for each in "/bin/busybox rm containers/pod1/program" "/bin/busybox ln -sf /etc/passwd containers/pod1/input" \\
    "/bin/busybox mv containers/pod1 containers/pod2" "/bin/busybox chmod 666 containers/pod1/program" "cat ovs/secret"
do $each 2>/dev/null && echo "could $each"; done
:
"""
pytestmark = [*STARTS_A_CLUSTER, pytest.mark.usefixtures("nothing_left")]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """The API of a cluster of one node with Multus. The machine is as before when it has ended."""
    need_programs("multus")
    podperf("cluster", "down")
    before = snapshot()
    reserved = HUGEPAGES.read_text()
    HUGEPAGES.write_text(str(PAGES_OF_TWO_PODS))  # a kubelet counts them when it starts
    podperf("cluster", "up", "--own", "--multus")
    try:
        with closing(log_in(str(KUBECONFIG), None)) as found:
            yield found
    finally:
        podperf("cluster", "down")
        HUGEPAGES.write_text(reserved)
    assert once_as(before, snapshot) == before


@pytest.fixture
def nothing_left(api: Api) -> Iterator[None]:
    """The machine, and the namespaces of the cluster, are as before the test."""
    before = resting(api)
    yield
    assert once_as(before, lambda: resting(api)) == before


def resting(api: Api) -> dict[str, object]:
    """The state of the machine and of the cluster. A chain could leave parts of both."""
    found: dict[str, Any] = snapshot()
    del found["cgroups"]  # those of the cluster come and go, and so do its files
    files = [file for file in found["files"] if not Path(file).is_relative_to(FOLDER)]
    return {**found, "files": files, "in the cluster": namespaces(api)}


def pods(api: Api) -> list[Any]:
    """All pods of podperf in the cluster."""
    query = [("labelSelector", "app.kubernetes.io/managed-by=podperf")]
    return list(api.ask("GET", "/api/v1/pods", query=query)["items"])


def written(seconds: float = 0.3, **settings: Any) -> str:
    """The topology of the project, for this cluster: trials of so many seconds, and further settings of the pods."""
    content = yaml.safe_load((ROOT / "topologies/kubernetes_chains.yaml").read_text())
    content["pods"]["settings"] |= {"kubeconfig": str(KUBECONFIG), **settings}
    content["method"] |= {"mrr": {"trials": 2, "duration": seconds}, "patience": 0}
    return yaml.safe_dump(content)


def topology(folder: Path, **settings: Any) -> Topology:
    """The values of that file."""
    path = folder / "chains.yaml"
    path.write_text(written(**settings))
    return load_topology(path, DATA_PLANES, POD_RUNTIMES)


@contextmanager
def on_cluster(folder: Path, **settings: Any) -> Iterator[Testbed]:
    """This machine as a testbed whose pods are in this cluster."""
    host = LocalHost()
    with RunLock(), closing(Testbed.on(topology(folder, **settings), host, [host])) as testbed:
        yield testbed


@pytest.mark.parametrize(
    ("name", "number", "attached_by"),
    [
        *(("linux-bridge", 2, "podperf"), ("macvlan", 1, "podperf"), ("ptp", 1, "podperf")),
        *(("routed", 1, "podperf"), ("tc-redirect", 1, "podperf"), ("af-xdp", 1, "podperf")),
        *(("memif", 2, "podperf"), ("ovs-dpdk", 1, "podperf")),
        *(("linux-bridge", 2, "multus"), ("macvlan", 2, "multus"), ("ipvlan", 1, "multus"), ("ptp", 1, "multus")),
        *(("docker", 1, "multus"), ("af-xdp", 1, "multus"), ("memif", 2, "multus")),
    ],
)
def test_frames_cross_a_chain_of_pods(api: Api, tmp_path: Path, name: str, number: int, attached_by: str) -> None:
    need(name)
    with (
        on_cluster(tmp_path, attached_by=attached_by) as testbed,
        testbed.build(Chain(name, number), SMALL) as sut,
    ):
        send(sut)
        there = pods(api)
        assert len(there) == number
        for each in there:
            assert each["status"]["phase"] == "Running" and each["status"]["qosClass"] == "BestEffort"
            assert each["spec"]["activeDeadlineSeconds"] and each["metadata"]["ownerReferences"]
        runtime = sut.describe()["runtime"]
        assert runtime["kubernetes"] == api.ask("GET", "/version")["gitVersion"]
        assert set(runtime["pods"]) == {f"pod{each + 1}" for each in range(number)}
        assert {pod["node"] for pod in runtime["pods"].values()} == {"node1"}


def test_a_pod_has_a_whole_cpu_alone_if_the_topology_says_so(tmp_path: Path) -> None:
    with on_cluster(tmp_path, isolation="exclusive") as testbed:
        for _ in range(2):  # the second chain needs the CPU of the first one
            with testbed.build(Chain("macvlan", 1), SMALL) as sut:
                (told,) = sut.describe()["runtime"]["pods"].values()
                assert told["quality_of_service"] == "Guaranteed"
                assert told["cpus"].isdigit() and told["cpus_of_threads"] == [told["cpus"]]


def test_a_program_polls_on_the_cpu_that_its_pod_has_alone(tmp_path: Path) -> None:
    need("af-xdp")
    with (
        on_cluster(tmp_path, isolation="exclusive") as testbed,
        testbed.build(Chain("af-xdp", 1), SMALL) as sut,
    ):
        send(sut)
        (told,) = sut.describe()["runtime"]["pods"].values()
        (application,) = sut.applications
        for poller in application.pollers():
            assert f"Cpus_allowed_list:\t{told['cpus']}\n" in Path(f"/proc/{poller}/status").read_text()
        assert [cpu_plan.pods for cpu_plan in sut.cpu_plans] == [(int(told["cpus"]),)]


@pytest.mark.parametrize("wanted", [{"hugepages": "2Mi"}, OF_USERS])
def test_a_program_has_the_hugepages_that_its_pod_asked_for(tmp_path: Path, wanted: dict[str, Any]) -> None:
    need("memif")
    with (
        on_cluster(tmp_path, **wanted) as testbed,
        testbed.build(Chain("memif", 2), SMALL) as sut,
    ):
        send(sut)
        assert [sum(application.hugepages_mib().values()) for application in sut.applications] == [POD_MEMORY] * 2


def test_a_program_that_an_exec_starts_in_a_pod_is_no_foreign_work(api: Api, tmp_path: Path) -> None:
    """The node's container runtime is its parent, as that of the container's first process."""
    with on_cluster(tmp_path) as testbed, testbed.build(Chain("linux-bridge", 1), SMALL), ExitStack() as undo:
        (pod,) = pods(api)
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        undo.callback(api.open_stream(name, namespace, ["sh", "-c", "while :; do :; done"]).close)
        group, first = group_of(pod), program_of(pod)
        awaited(lambda: len([*processes([group])]) > 1, lambda: f"{name} has its first process only", START_TIMEOUT)
        (busy,) = {*processes([group])} - {first}
        clock = ~busy << 3 | 2  # CLOCK_PROCESS_CPUTIME_ID of another process, clock_getcpuclockid(3)
        quietness = _watch(testbed, [range(os.cpu_count() or 1)], undo)
        assert quietness is not None
        quietness.start()
        began = time.clock_gettime(clock)
        awaited(lambda: time.clock_gettime(clock) > began + 0.3, lambda: f"{busy} has no CPU", START_TIMEOUT)
        assert f"({busy})" not in str(quietness.stop().foreign)


def test_a_program_that_the_kernel_kills_for_memory_in_a_trial_has_the_reason_of_the_cluster(
    api: Api, tmp_path: Path
) -> None:
    need("af-xdp")
    seconds = 4.0
    suite = mrr_suite(tmp_path, Hungry="af-xdp    1    64")
    run = Robot(tmp_path, suite, topology=written(seconds, isolation="shared"))  # so its pod has a limit of memory
    run.wait_for_trials(1)
    (pod,) = pods(api)
    program = program_of(pod)
    before_trial = frames_of(program, "net1")
    run.wait_until(lambda: frames_of(program, "net1") > before_trial + 10_000, "frames of a trial")
    began = time.monotonic()
    use_up_memory(pod)
    assert run.wait() == 1
    assert time.monotonic() - began < seconds + KILL_NOTICED_IN
    (record,) = run.records()
    assert record["outcome"] == "failed"
    assert "as the cluster says: its program ended with exit code 137 (OOMKilled)" in record["reason"]


def test_a_pod_with_a_program_sees_the_sockets_and_its_own_pipes_and_replaces_no_pipe(api: Api, tmp_path: Path) -> None:
    """Root on the node writes to the pipes. A link in their place would be a way to any file of the node."""
    here, settings = LocalHost(), ChainSettings.read(topology(tmp_path).pods.settings)
    with RunLock(), closing(ClusterRun(api, settings)) as run, ExitStack() as undo:
        undo.callback(here.do, "rm", "-rf", str(RUN_DIRECTORY))
        here.do("mkdir", "-p", "-m", "700", *(str(RUN_DIRECTORY / each) for each in ("", SOCKETS, "ovs")))
        here.put(b"of the switch", str(RUN_DIRECTORY / "ovs" / "secret"))
        for each in ("pod1", "pod2"):
            make_pipes(here, each)
        pod = run.create(ChainPod("pod1", PodProgram()))
        started = run.await_running(pod)
        said = execute(api, pod, run._place.name, ("sh", "-c", ATTACKS))
        assert said.split() == ["containers", "sockets", "pod1"]
        first = here.ask("sh", "-c", of_pods._FIRST_PROCESS, "sh", started.container, started.pod).stdout.strip()
        other = here.ask("sh", "-c", of_pods._FIRST_PROCESS, "sh", started.container, "of-another", check=False)
        assert other.exit_code == 1
        program = start_program(here, "pod1", int(first), lambda: None, ("sh", "-c", "echo up; exec cat"), undo)
        assert program.receive(10) == "up"
        program.send("heard")
        assert program.receive(10) == "heard"


def test_an_entrypoint_that_does_not_become_podperfs_command_is_named(tmp_path: Path) -> None:
    with (
        on_cluster(tmp_path, command=["sh", "-c", '"$@"; exit 1', "sh"]) as testbed,
        pytest.raises(PodperfError, match=r"pods\.settings\.command: the entrypoint of pod1 did not become"),
        testbed.build(Chain("linux-bridge", 1), SMALL),
    ):
        pytest.fail("the chain was built")


def test_a_chain_that_the_cluster_cannot_place_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    image = {"image": "localhost/none:1", "pull_policy": "Never"}
    with (
        on_cluster(tmp_path, **image) as testbed,
        pytest.raises(PodperfError, match="ErrImageNeverPull"),
        testbed.build(Chain("macvlan", 1), SMALL),
    ):
        pass


@contextmanager
def device_plugin(resource: str, device: str) -> Iterator[None]:
    """The node has one device of this resource."""
    inside = ("nsenter", "--target", str(process_of("kubelet")), "--mount")
    command = (*inside, sys.executable, str(Path(__file__).with_name("device_plugin.py")), resource, device)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "registered\n"
        yield
        process.communicate()


@pytest.mark.parametrize("attached_by", ["podperf", "multus"])
def test_a_pod_has_the_device_that_the_topology_asks_for(api: Api, tmp_path: Path, attached_by: str) -> None:
    with device_plugin("intel.com/vf", "0000:01:10.0"):
        awaited(lambda: offered(api, "intel.com/vf") != "0", lambda: "the kubelet tells no devices", START_TIMEOUT)
        with (
            on_cluster(tmp_path, attached_by=attached_by, resources={"intel.com/vf": 1}) as testbed,
            testbed.build(Chain("linux-bridge", 1), SMALL) as sut,
        ):
            described = sut.describe()["runtime"]["pods"]["pod1"]
            assert described["devices"] == {"INTEL_COM_VF": "0000:01:10.0"}
            (pod,) = pods(api)
            assert pod["spec"]["containers"][0]["resources"]["limits"]["intel.com/vf"] == "1"


def test_the_rows_of_a_cluster_measure_a_network_that_multus_attaches(api: Api, tmp_path: Path) -> None:
    network = {"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.77.0.0/24", "dataDir": str(tmp_path)}}
    configuration = {"cniVersion": "1.0.0", "name": "second", "plugins": [network]}
    path = f"{multus.API_PATH}/namespaces/default/{multus.PLURAL}"
    kind = {"apiVersion": f"{multus.GROUP}/{multus.VERSION}", "kind": "NetworkAttachmentDefinition"}
    api.ask("POST", path, {**kind, "metadata": {"name": "second"}, "spec": {"config": json.dumps(configuration)}})
    settings: dict[str, Any] = {"networks": ("default/second",), "interface": "net1"}
    try:
        with closing(KubernetesTester(KubernetesSettings(PodWishes(IMAGE), str(KUBECONFIG), **settings))) as tester:
            result = tester.measure(Trial(TRAFFIC, 1000.0, 0.2))
            described = tester.describe()["pods"]
        assert result.received == 200
        assert all(each["address"].startswith("10.77.0.") for each in described.values())
        settings["interface"] = "net2"
        with pytest.raises(Unavailable, match=r"no net2 with an address: it tells .*net1 10"):
            KubernetesTester(KubernetesSettings(PodWishes(IMAGE), str(KUBECONFIG), **settings))
    finally:
        api.delete(f"{path}/second")


def offered(api: Api, resource: str) -> str:
    """The amount of a resource that the node says it has."""
    return str(api.ask("GET", "/api/v1/nodes/node1")["status"]["allocatable"].get(resource, "0"))


def test_a_row_of_a_suite_runs_on_the_cluster(tmp_path: Path) -> None:
    suite = "tests/4.1_networking_models/4.1.1_kernel_space.robot"
    row = ("--test", "Linux bridge, 64 B", "--parseinclude", suite, "tests")
    run = Robot(tmp_path, *row, topology=written(), short_search=True)
    assert run.wait(240) == 0, run.messages()
    (record,) = run.records()
    assert record["outcome"] == "passed"
    assert record["results"]["mrr"]["frames_per_second"] > 10_000
    assert record["parameters"]["orchestration"].startswith("Kubernetes v")
    assert record["data_plane"]["runtime"]["pods"]["pod1"]["node"] == "node1"


@pytest.mark.parametrize(
    ("seconds", "attached_by"),
    [(0.0, "podperf"), (0.3, "multus"), (0.8, "podperf"), (1.5, "multus"), (2.5, "podperf"), (3.0, "multus")],
)
def test_clean_deletes_what_a_run_left_that_was_killed_at_any_step(
    api: Api, tmp_path: Path, seconds: float, attached_by: str
) -> None:
    """`seconds` after the run has made its namespace."""
    path = tmp_path / "chains.yaml"
    path.write_text(written(attached_by=attached_by))
    run = subprocess.Popen([sys.executable, "-c", BUILDING, str(ROOT / "libraries"), str(path)])
    deadline = time.monotonic() + START_TIMEOUT
    while not namespaces(api) and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(seconds)
    assert run.poll() is None
    run.kill()
    run.wait()
    (left,) = namespaces(api)
    assert f"namespace {left}" in podperf("clean", str(path)).stdout


PATHS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "NetworkAttachmentDefinition": f"{multus.API_PATH}/namespaces/{{}}/{multus.PLURAL}",
    "Pod": "/api/v1/namespaces/{}/pods",
}


def test_the_objects_of_a_plan_pass_the_dry_run_of_the_api_server(api: Api, tmp_path: Path) -> None:
    strictly = [("dryRun", "All"), ("fieldValidation", "Strict")]
    for name, settings in (
        ("linux-bridge", {"isolation": "exclusive", "attached_by": "multus", "resources": {"intel.com/vf": 1}}),
        ("memif", {"hugepages": "2Mi"}),
        ("memif", OF_USERS),
    ):
        wanted = topology(tmp_path, namespace="default", **settings)
        steps = plan(wanted, Chain(name, 2), SMALL, Cpus((0, 1), (0, 1))).steps
        created = [step.content for step in steps if step.text.startswith("kubectl create")]
        objects = [found for text in created for found in yaml.safe_load_all(text)]
        assert len(objects) == (7 if "attached_by" in settings else 3)
        for each in objects:
            api.ask("POST", PATHS[each["kind"]].format("default"), each, strictly)


def test_check_sees_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "chains.yaml"
    path.write_text(written())
    said = podperf("check", str(path), check=False).stdout
    assert "all that a run needs, with a namespace for each run" in said
    assert "pods: kubernetes" in said
