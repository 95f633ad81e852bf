"""A cluster on this machine, for real: it starts, leaves nothing, and two of its pods measure its network.

Without its programs these tests are skipped, because building them takes ten minutes of CPU time: `sudo ./podperf
cluster up` once, or PODPERF_CLUSTER=1.
"""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from ipaddress import ip_address, ip_interface, ip_network
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from api_calls_of_a_pair import PATHS
from attempts import first
from machine import once_as, snapshot
from own_cluster import KUBECONFIG, awaited, frames_of, namespaces, need_programs, process_of, program_of
from podperf.cluster.core import LIFE, Authority
from podperf.cluster.hierarchies import processes
from podperf.cluster.layout import BRIDGE, CONTROL_ADDRESS, FOLDER, PODS, SERVICES, ClusterNetwork
from podperf.cluster.lifecycle import GROUPS
from podperf.cluster.oci_archive import read_archive
from podperf.cluster.parts import ALL_NETWORKS, network_named
from podperf.cluster.pod_image import POD, WHOLE, WITH_NETPERF, ready_image
from podperf.cpu_lists import parse_cpu_list
from podperf.errors import ExitCode, PodperfError, Unavailable
from podperf.experiments.before_after import fewest_rounds
from podperf.experiments.host_share import CPU_TIME, OF_RECEIVER, OF_SENDER, ROUND_TRIP
from podperf.experiments.host_share import NAME as SHARE
from podperf.frames import AddressFamily, Headers
from podperf.hosts.local import LocalHost
from podperf.kernel.threads import threads_named
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, ApiError, log_in
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.pod_network import TOLD
from podperf.kubernetes.ports import DISCARDED, Outside
from podperf.kubernetes.recognition import Recognition
from podperf.kubernetes.rights import (
    GRANTED_BY,
    NAMESPACED_FILE,
    OF_A_RUN,
    OF_ATTACHMENTS,
    OF_NAMESPACES,
    OF_POLICIES,
    OF_SERVICES,
    allowed,
)
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import PodDidNotStart, await_phase, why_ended, why_not_running
from podperf.kubernetes.settings import IMAGE, NETPERF_IMAGE, Destination, KubernetesSettings, pods_of_tester
from podperf.kubernetes.tester import KubernetesTester
from podperf.kubernetes.tester_objects import thread_starter
from podperf.methods.reconfiguration import Outage
from podperf.methods.trials import ValidTrials
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
from podperf.records import read_records
from podperf.report.clusters import HEAD_OF_SHARES
from podperf.testbed.frame_watch import FrameWatch
from podperf.testers import TESTERS
from podperf.testers.base import UNPACED, TesterLimits, TesterPort
from podperf.topology import load_topology
from robot_run import ROOT, Robot, podperf, trials_on_disk
from run_command import cni_table
from traffic import TRAFFIC, traffic_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
]
READY_IN, MEMORY = 30.0, 1.5e9  # seconds and bytes
API_SERVICE = "10.96.0.1"  # the first address of SERVICES
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 443), 10).close()"
NETWORK_READY_IN = 45.0  # seconds for two nodes
SHORT_TRIALS = {"trials": 2, "duration": 0.3}
LONG_TRIALS = {"trials": 100, "duration": 4}  # of a run that does not end by itself in the time of a test
MODEST_LOAD = 1000  # frames/s, the least maximum of a topology; two runs beside each other deliver it on a busy machine
START_TIMEOUT = 120.0  # seconds
CAP_NET_ADMIN = 12  # linux/capability.h
HANG_TIMEOUT = 40.0  # seconds for a trial and two questions of 10 s
EVICTION_TIMEOUT = 60.0  # seconds; a kubelet looks at volumes each ten seconds
SLOW_TIMEOUT = 180.0  # seconds for two pods and a trial with an API server that takes a second for each answer
JOB_TIMEOUT = 360.0  # seconds for three runs
# The networks of nodes, pods and Services, in which agents and overlays talk, too.
OF_CLUSTER = (f"{CONTROL_ADDRESS.removesuffix('1')}0/24", "fd00:10:199::/64", *PODS.split(","), *SERVICES.split(","))
OF_JOBS = "podperf"  # the namespace of NAMESPACED_FILE
LIMIT = 20_000  # frames/s through a limiter
# A run that measures until it is killed: the first one while it sends frames, and the last one when it has just made
# its namespace. The pods of five runs fill the node.
KILLED_AFTER = (5.0, 4.0, 3.0, 2.0, 1.5, 1.0, 0.6, 0.3, 0.1, 0.0)  # seconds after the namespace is there
MEASURING = """
import sys
sys.path.insert(0, sys.argv[1])
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
tester = KubernetesTester(KubernetesSettings(PodWishes(IMAGE), sys.argv[2], destination="service"))
while True:
    tester.measure(Trial(AddressedTraffic(TrafficProfile(FrameSize.parse(64))), 1000.0, 1.0))
"""
# A user who is not root. The right to read all files is for those of the tests alone.
AS_USER = (
    *("setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
ONE_ROW = ("--test", "Pod to pod on one node, 64 B", str(ROOT / "tests"))
ROW_OF_NODE = ONE_ROW[1]
MANY_PAIRS = f"""*** Settings ***
Resource          {ROOT / "resources" / "methods.resource"}
Suite Setup       Open Testbed    ${{TOPOLOGY}}
Suite Teardown    Close Testbed
Test Template     Cluster Network Should Carry Many Pairs

*** Test Cases ***
Sixteen pairs on one node
    1    16    first=16
Sixteen pairs on two nodes
    2    16    first=16
"""
ROW_OUTSIDE = ("--test", "Pod to a host outside, 64 B", str(ROOT / "tests"))
# A network namespace beside the nodes. Those that begin with podperf are of runs, and the next run removes them.
OUTSIDE, ADDRESS_OUTSIDE = "outside-of-cluster", ip_interface("10.199.0.100/24")
ROW_OF_POLICIES = ("--test", "Pod to pod on one node, 10 NetworkPolicies, 64 B", str(ROOT / "tests"))


def started(*arguments: str, seconds: float = READY_IN) -> subprocess.CompletedProcess[str]:
    """`podperf cluster up --own`, which must succeed in this time, or with two nodes in twice of it. No other cluster
    of the machine is used."""
    done = podperf("cluster", "up", "--own", *arguments, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (ready_after,) = re.findall(r"ready after ([\d.]+) s", done.stdout)
    assert float(ready_after) < seconds * (2 if "2" in arguments else 1)
    return done


@pytest.fixture(scope="module", autouse=True)
def machine_as_before() -> Iterator[None]:
    """The machine is as before all of these tests."""
    need_programs()
    try:
        ready_image(LocalHost(), print, POD)
    except Unavailable as reason:
        pytest.skip(str(reason))
    podperf("cluster", "down")
    before = snapshot()
    yield
    podperf("cluster", "down")
    assert once_as(before, snapshot) == before
    assert not FOLDER.exists()


class TestUpAndDown:
    def test_two_nodes_are_ready_in_time_and_memory(self) -> None:
        before = snapshot()
        said = started("--nodes", "2").stdout
        try:
            assert "node1: ready; node2: ready" in said
            (megabytes,) = re.findall(r"(\d+) MB of memory", podperf("cluster", "status").stdout)
            assert float(megabytes) * 1e6 < MEMORY
            while_up = snapshot()
            for part in ("namespaces", "links", "settings", "packet filter", "mounts", "bpf programs"):
                assert while_up[part] == before[part], part
            settings = KubernetesSettings(PodWishes(IMAGE, cpus=1), str(KUBECONFIG), nodes=2)
            with closing(KubernetesTester(settings)) as tester:
                trial = Trial(traffic_of(64, flows=10), 2000.0, 0.5)
                first(lambda result: result.sent == 1000 and result.lost < 100, partial(tester.measure, trial))
                pods = tester.describe()["pods"]
                assert {pod["node"] for pod in pods.values()} == {"node1", "node2"}
                for pod in pods.values():  # CPU 0 is the node's
                    assert pod["cpus"] not in {None, "0"} and pod["cpus_of_threads"] == [pod["cpus"]]
                    assert len(parse_cpu_list(pod["cpus"])) == 1
            again = podperf("cluster", "up", check=False)
            assert again.returncode == 254
            assert "a cluster runs already" in again.stderr
        finally:
            podperf("cluster", "down")
        assert once_as(before, snapshot) == before
        assert podperf("cluster", "status", check=False).returncode == 254

    @pytest.mark.parametrize(
        ("network", "seconds"),
        [
            *(("plain", 1.0), ("flannel:vxlan", 3.0), ("kube-router", 6.0), ("ovn", 7.5), ("bird:vxlan", 9.0)),
            ("cilium:tunnel", 12.0),
        ],
    )
    def test_a_killed_start_leaves_no_process_and_down_removes_the_rest(self, network: str, seconds: float) -> None:
        need_programs(network=network_named(network))
        before = snapshot()
        command = [sys.executable, "-m", "podperf", "cluster", "up", "--own", "--nodes", "2", "--network", network]
        starting = subprocess.Popen(command, cwd=ROOT / "libraries")
        deadline = time.monotonic() + START_TIMEOUT
        while not FOLDER.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(seconds)
        starting.send_signal(signal.SIGKILL)
        starting.wait()
        podperf("cluster", "down")
        assert once_as(before, snapshot) == before
        assert not FOLDER.exists()


class TestNetworks:
    """Each network of podperf's own cluster. CI has a stage for these tests."""

    @pytest.fixture(autouse=True)
    def no_frame_leaves(self) -> Iterator[None]:
        """Check that no frame of the cluster, encapsulated or not, is on a link of this machine's own network."""
        with ExitStack() as undo:
            watch = FrameWatch(LocalHost(), undo, networks=OF_CLUSTER)
            yield
            assert watch.stop() == []

    @pytest.mark.parametrize("network", ALL_NETWORKS, ids=[each.title for each in ALL_NETWORKS])
    def test_pods_on_two_nodes_reach_each_other_and_nothing_is_left(self, network: ClusterNetwork) -> None:
        need_programs(network=network)
        before = snapshot()
        started("--nodes", "2", "--network", network.title, seconds=NETWORK_READY_IN / 2)
        try:
            while_up = snapshot()
            for part in ("namespaces", "links", "settings", "packet filter", "mounts", "bpf programs"):
                assert while_up[part] == before[part], part
            assert f"network {network.title}, " in podperf("cluster", "status").stdout
            with cluster_tester(nodes=2) as tester:
                families = [each for each in AddressFamily if each in tester.ports["left"].addresses]
                assert AddressFamily.IPV4 in families
                for family in families:
                    profile = TrafficProfile(FrameSize.parse(84), flows=10, headers=Headers(family))
                    trial = Trial(AddressedTraffic(profile), 2000.0, 0.5)
                    first(lambda result: (result.sent, result.received) == (1000, 1000), partial(tester.measure, trial))
                for node in ("node1", "node2"):
                    within = ("nsenter", f"--target={process_of('podperf-tester', node)}", "--net")
                    LocalHost().do(*within, sys.executable, "-c", CONNECT, API_SERVICE)
                with pytest.raises(Unavailable, match=r"frames of 9018 B need an MTU of 9000, .* that fits has \d+ B"):
                    tester.measure(Trial(traffic_of(9018), 2000.0, 0.5))
                restarts_its_agent(network, tester)
                recognises(network, tester.describe())
        finally:
            podperf("cluster", "down")
        assert once_as(before, snapshot) == before
        assert not FOLDER.exists()


def restarts_its_agent(network: ClusterNetwork, pods: KubernetesTester) -> None:
    """The agent of one node is another process afterwards, and frames cross again."""
    tester: Any = pods
    change = tester.facts.changes["agent-restarted"]
    if network.name in {"plain", "ovn"}:
        assert change.refused.startswith("podperf restarts agents only on its own cluster")
        return
    before = agents(network)
    source = ValidTrials(tester, traffic_of(84), TesterLimits(1e6, 0.0, "not asked"))
    changed = source.during(change.make, 1000.0, 3 * change.seconds)
    after = agents(network)
    kept = {node: before[node] == after[node] for node in before}
    assert before["node1"] and sorted(kept.values()) == [False, True] and not before.keys() ^ after.keys()
    assert changed.seconds > 0 and Outage.of(changed).ended, changed
    assert network.title in podperf("cluster", "status").stdout, "the cluster runs on"


def agents(network: ClusterNetwork) -> dict[str, set[int]]:
    """The first process of the network's agent on each node: the one that leads its session and writes its log."""
    found: dict[str, set[int]] = {"node1": set(), "node2": set()}
    for number in processes([Path(line) for line in (FOLDER / GROUPS).read_text().splitlines()]):
        with suppress(OSError):  # the process has ended
            if os.getsid(number) != number:
                continue
            name, _, node = Path(f"/proc/{number}/fd/1").readlink().name.rpartition(" of ")
            if name == network.name:
                found[node].add(number)
    return found


def recognises(network: ClusterNetwork, told: Mapping[str, Any]) -> None:
    """The tester tells the network by the annotation of the nodes. Agents show theirs without the annotation, too."""
    found, pods = told["cluster"]["network"], told["pods"].values()
    assert f"{found['name']}:{found['mode']}".rstrip(":") == network.title and not found["unread"]
    mtus = {min(filter(None, (pod["mtu"], pod["route_mtu"]))) for pod in pods}
    assert mtus == {1500 - found["encapsulation_bytes"]}
    if network.name not in {"flannel", "cilium"}:
        return
    with closing(log_in(str(KUBECONFIG), None)) as api:
        nodes = [pod["node"] for pod in pods]
        for each in nodes:
            api.ask("PATCH", f"/api/v1/nodes/{each}", {"metadata": {"annotations": {TOLD: None}}})
        seen = Recognition(api).network(nodes)
    assert seen.name.lower() == network.name and seen.mode.partition(",")[0] in network.mode
    assert seen.encapsulation == found["encapsulation"]


class TestTable:
    """`podperf cni-table`, which starts its own clusters."""

    def test_a_network_stands_beside_that_of_its_nodes_and_nothing_is_left(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        need_programs(network=network_named("bird:plain"))
        monkeypatch.setattr("run_command.cni_table.WAYS", cni_table.WAYS[:1])
        monkeypatch.setattr("run_command.cni_table.PLACES", {})
        monkeypatch.setattr("signal.signal", lambda *_: None)  # pytest's own ones stay
        before = snapshot()
        assert cni_table.main(Namespace(networks=["bird:plain"], output=tmp_path / "table")) == 0
        assert once_as(before, snapshot) == before
        (row,) = rows_of_table(tmp_path / "table")
        (share,) = row["shares"].values()
        assert share["rounds"] >= 6 and 0.05 < share["share"] < 2, "two nodes are one machine here"
        assert (row["title"], row["mtu"]) == ("bird:plain", 1500) and row["network"].startswith("bird")
        assert row["reason"] == ""
        assert 2e6 < row["agent"]["idle"]["memory"] < 100e6, "two processes of BIRD"
        assert 0 <= row["agent"]["idle"]["cpus"] < 1

    def test_an_interrupted_table_has_what_was_measured_and_leaves_nothing(self, tmp_path: Path) -> None:
        need_programs()
        before = snapshot()
        command = [sys.executable, "-m", "podperf", "cni-table", "plain", "bird", "--output", str(tmp_path / "table")]
        table = subprocess.Popen(command, cwd=ROOT / "libraries", stdout=subprocess.PIPE, text=True)
        records = tmp_path / "table" / "plain" / "records"
        try:
            awaited(lambda: table.poll() is not None or len(list(records.glob("*.json"))) > 1, table.poll, 300)
            table.send_signal(signal.SIGINT)
            out, _ = table.communicate(timeout=120)
        finally:
            table.kill()  # does nothing after it has ended
        assert table.returncode == ExitCode.INTERRUPTED
        assert once_as(before, snapshot) == before and not FOLDER.exists()
        (row,) = rows_of_table(tmp_path / "table")
        assert row["reason"] == "interrupted" and "plain: interrupted" in out
        assert row["ready"] > 0 and "host network" in row["figures"], "also if a busy machine made it fail"


def rows_of_table(folder: Path) -> list[dict[str, Any]]:
    """The networks of a table that is on the disk."""
    rows: list[dict[str, Any]] = json.loads((folder / "cni-table.json").read_text())["networks"]
    return rows


def cluster_tester(kubeconfig: Path = KUBECONFIG, **settings: Any) -> closing[KubernetesTester]:
    """A tester in pods of the cluster, with these settings."""
    return closing(KubernetesTester(KubernetesSettings(PodWishes(IMAGE), str(kubeconfig), **settings)))


@contextmanager
def cluster(*arguments: str) -> Iterator[Api]:
    """The API of a cluster that runs meanwhile."""
    started(*arguments)
    try:
        with closing(log_in(str(KUBECONFIG), None)) as found:
            yield found
    finally:
        podperf("cluster", "down")


@pytest.fixture(scope="class")
def api() -> Iterator[Api]:
    """The API of a cluster of one node."""
    with cluster() as found:
        yield found


def topology(folder: Path, mrr: Mapping[str, float] | None = None, /, **settings: Any) -> Path:
    """The topology of the project, with further settings of the tester.

    A run with these trials of MRR sends few frames, so that it also measures well beside other runs.
    """
    content = yaml.safe_load((ROOT / "topologies/kubernetes.yaml").read_text())
    content["tester"]["settings"] |= {"kubeconfig": str(KUBECONFIG), **settings}
    content["method"]["mrr"] = dict(mrr or SHORT_TRIALS)
    if mrr is not None:
        content["tester"]["maximum_load"] = MODEST_LOAD
    path = folder / "cluster.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def pods_in(api: Api, namespace: str) -> list[dict[str, Any]]:
    """The pods of a namespace that belong to runs, in the order of their names: `left-...`, `right-...`."""
    found = api.ask("GET", f"/api/v1/namespaces/{namespace}/pods", query=[("labelSelector", manifests.RUN)])["items"]
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def apply(api: Api, file: str) -> None:
    """Make the objects of a file of the project."""
    for each in yaml.safe_load_all((ROOT / file).read_text()):
        api.ask("POST", PATHS[each["kind"]], each)


@contextmanager
def delaying_proxy(port: int, seconds: float) -> Iterator[int]:
    """A proxy of TCP on this machine that gives each part of an answer on after so many seconds. Yields its port."""

    def carry(source: socket.socket, sink: socket.socket, wait: float) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                time.sleep(wait)
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for way in ((near, far, 0.0), (far, near, seconds)):
                    threading.Thread(target=carry, args=way, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield listening.getsockname()[1]


def cpu_ticks(threads: Iterable[int]) -> int:
    """The CPU time of these threads, in clock ticks of 10 ms."""
    return sum(
        sum(map(int, Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()[11:13])) for thread in threads
    )


@contextmanager
def outside(*, cabled: bool = True) -> Iterator[None]:
    """A host outside of the cluster: a network namespace on this machine, cabled to the bridge of the nodes."""
    here, control = LocalHost(), process_of("kube-apiserver")
    here.do("ip", "netns", "add", OUTSIDE)
    try:
        here.do(*f"ip link add eth1 netns {OUTSIDE} type veth peer name outside netns {control}".split())
        bridge = f"master {BRIDGE}" if cabled else ""
        here.do(*f"nsenter --target {control} --net ip link set outside {bridge} up".split())
        here.do("ip", "-n", OUTSIDE, "address", "add", str(ADDRESS_OUTSIDE), "dev", "eth1")
        here.do("ip", "-n", OUTSIDE, "link", "set", "eth1", "up")
        yield
    finally:
        here.do("ip", "netns", "delete", OUTSIDE)


class TestMeasuring:
    """One cluster for all of these tests. None of them leaves a namespace of a run."""

    @pytest.fixture(autouse=True)
    def no_namespace_left(self, api: Api) -> Iterator[None]:
        yield
        assert not namespaces(api)

    def test_two_pods_measure_the_network_between_them(self, api: Api, tmp_path: Path) -> None:
        (record,) = Robot(tmp_path, *ONE_ROW, topology=topology(tmp_path).read_text()).measured()
        assert record["outcome"] == "passed"
        assert record["results"]["mrr"]["frames_per_second"] > 10_000
        cpu_time = record["methods"]["cpu_time"]
        assert sorted(cpu_time["parts"]) == ["the port that counts", "the port that sends"], cpu_time
        of_a_frame = record["results"]["cpu_time"]["nanoseconds_per_frame"]
        assert 0 < cpu_time["parts"]["the port that counts"] < of_a_frame < 1e6
        assert list(cpu_time["rest_of_nodes"]) == ["the rest of the node"], "both pods are on one machine"
        assert cpu_time["rest_of_nodes"]["the rest of the node"]["resolution"] > 0
        pods = record["tester"]["pods"]
        assert pods["left"]["node"] == pods["right"]["node"] == "node1"
        assert pods["left"]["image"].startswith(("sha256:", "localhost/podperf/pod"))

    def test_each_row_has_the_pods_that_it_needs(self, api: Api, tmp_path: Path) -> None:
        names = (ROW_OF_NODE, "Pod to Service among 100, 64 B", "Pod to pod on two nodes, 64 B")
        rows = [word for name in names for word in ("--test", name)]
        run = Robot(tmp_path, *rows, str(ROOT / "tests"), topology=topology(tmp_path).read_text())
        found = {each["test"]["name"]: each for each in run.measured()}
        alone, among, far = (found[name] for name in names)
        assert (far["outcome"], far["reason"]) == ("skipped", "the pods must be on two nodes, and the cluster has one")
        assert alone["outcome"] == among["outcome"] == "passed"
        assert (alone["tester"]["other_services"], among["tester"]["other_services"]) == (0, 99)
        assert not alone["tester"]["services"] and sorted(among["tester"]["services"]) == ["left", "right"]
        assert {each["name"] for each in alone["tester"]["pods"].values()}.isdisjoint(
            each["name"] for each in among["tester"]["pods"].values()
        )

    @pytest.mark.parametrize("destination", ["pod", "service"])
    def test_each_frame_of_new_flows_is_a_connection_that_the_node_did_not_track(
        self, api: Api, destination: Destination
    ) -> None:
        """The node forgets an unanswered flow after 30 s: those of an earlier test must not go meanwhile."""
        node = process_of("kubelet", "node1")

        def read(name: str) -> int:
            setting = f"net.netfilter.nf_conntrack_{name}"
            return int(LocalHost().do("nsenter", "--target", str(node), "--net", "sysctl", "-n", setting).stdout)

        def growth(tester: KubernetesTester, flows: int) -> float:
            """The growth of the node's table in a trial, as a share of the frames sent."""
            before = read("count")
            result = tester.measure(Trial(traffic_of(64, flows=flows), 2000.0, 1.0))
            assert 1000 < result.sent <= 2000 and result.received > 0.9 * result.sent
            return (read("count") - before) / result.sent

        awaited(lambda: read("count") < 200, lambda: read("count"), timeout=90)
        with cluster_tester(destination=destination) as tester:
            assert [growth(tester, 1) for _ in range(2)] == pytest.approx([0.0, 0.0], abs=0.1)
        with cluster_tester(destination=destination, new_flows=True) as tester:
            assert [growth(tester, 1_000_000) for _ in range(2)] == pytest.approx([1.0, 1.0], abs=0.1)
            described = tester.describe()
            assert (described["new_flows"], described["connections_limit"]) == (True, read("max"))

    def test_who_is_not_root_makes_an_image_checks_measures_and_cleans(self, api: Api, tmp_path: Path) -> None:
        mine = tmp_path / "mine"
        mine.mkdir()
        (mine / "kubeconfig").write_text(KUBECONFIG.read_text())
        path = str(topology(mine, kubeconfig=str(mine / "kubeconfig")))
        for each in (mine, *mine.iterdir()):
            os.chown(each, 12345, 12345)
        results, image = mine / "results", ["image", "build", str(mine / "pod.tar")]
        run = ["run", path, *ONE_ROW[:2], "--outputdir", str(results)]
        for words in (image, ["check", path], run, ["clean", path]):
            done = subprocess.run(
                [*AS_USER, sys.executable, "-m", "podperf", *words],
                capture_output=True,
                text=True,
                check=False,
                cwd="/",
                env={"PATH": os.environ["PATH"], "HOME": str(mine), "PYTHONPATH": str(ROOT / "libraries")},
            )
            assert done.returncode == 0, done.stdout + done.stderr
        assert read_archive(mine / "pod.tar").digest == ready_image(LocalHost(), print, POD).digest, "as root's"
        (record,), _ = read_records(results / "records")
        assert record.outcome == "passed" and record.quietness is None, "nobody watches the CPUs of the nodes"

    def test_the_api_server_would_take_the_plan(self, api: Api, tmp_path: Path) -> None:
        of_users = {
            "hugepages": {"2Mi": "64Mi", "1Gi": "1Gi"},
            "resources": {"intel.com/vf": 1},
            "security_context": {"privileged": True},
            "volumes": [{"name": "switch", "hostPath": {"path": "/srv"}}],
            "volume_mounts": [{"name": "switch", "mountPath": "/var/run/openvswitch/"}],
        }
        path = topology(tmp_path, namespace="default", network_policies=2, **of_users)
        plan = podperf("check", str(path), "--plan", "external").stdout
        paths = {"ConfigMap": "/api/v1/namespaces/default/configmaps", "Pod": "/api/v1/namespaces/default/pods"}
        paths["NetworkPolicy"] = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
        objects = list(yaml.safe_load_all(plan))
        assert [each["kind"] for each in objects] == ["ConfigMap", "Pod", "Pod", "NetworkPolicy", "NetworkPolicy"]
        strictly = [("dryRun", "All"), ("fieldValidation", "Strict")]
        for each in objects:
            api.ask("POST", paths[each["kind"]], each, query=strictly)
        assert not api.ask("GET", paths["Pod"])["items"]

    def test_the_rights_of_the_files_are_enough(self, api: Api, tmp_path: Path) -> None:
        for file in GRANTED_BY:
            apply(api, file)
        path = "/api/v1/namespaces/podperf/serviceaccounts/podperf/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = api.ask("POST", path, request)["status"]["token"]
        content = yaml.safe_load(KUBECONFIG.read_text())
        content["users"][0]["user"] = {"token": token}
        limited = tmp_path / "kubeconfig"
        limited.write_text(yaml.safe_dump(content))
        with closing(log_in(str(limited), None)) as login:
            of_runs = (*OF_A_RUN, *OF_SERVICES, *OF_POLICIES, *OF_ATTACHMENTS)
            assert all(allowed(login, run, "podperf") for run in of_runs)
            assert not any(allowed(login, each, None) for each in (*of_runs, *OF_NAMESPACES))
            with pytest.raises(ApiError, match="forbidden"):
                login.ask("GET", "/api/v1/namespaces/kube-system/pods")
        policies = "/apis/networking.k8s.io/v1/namespaces/podperf/networkpolicies"
        with pytest.raises(Unavailable, match="the cluster does not enforce NetworkPolicies"):
            cluster_tester(limited, namespace="podperf", network_policies=3)
        assert not api.ask("GET", policies)["items"]
        settings = {"kubeconfig": str(limited), "namespace": "podperf"}
        said = podperf("check", str(topology(tmp_path, **settings)), check=False)
        assert "all that a run needs, with namespace podperf" in said.stdout, said.stdout + said.stderr
        assert "podperf software tester in two pods" in said.stdout
        assert not api.ask("GET", "/api/v1/namespaces/podperf/pods")["items"]

    def test_pods_have_what_users_pods_have_and_measure(self, api: Api, tmp_path: Path) -> None:
        """The kernel confirms it where the API server only tells what was asked for."""
        volumes = [{"name": "authority", "configMap": {"name": "kube-root-ca.crt"}}, {"name": "free", "emptyDir": {}}]
        mounts = [{"name": "authority", "mountPath": "/srv/authority"}, {"name": "free", "mountPath": "/srv/free"}]
        settings = [{"name": "net.ipv4.ip_local_port_range", "value": "20000 30000"}]
        capabilities = {"add": ["NET_ADMIN"], "drop": ["SYSLOG"]}
        context = {"capabilities": capabilities, "supplementalGroups": [1234], "sysctls": settings}
        names = {"labels": {"team": "net"}, "annotations": {"a.example/b": "c"}}
        path = topology(tmp_path, volumes=volumes, volume_mounts=mounts, security_context=context, **names)
        kind = pods_of_tester(load_topology(path, testers=TESTERS))
        assert kind is not None
        with closing(KubernetesTester(kind)) as tester:
            assert tester.measure(Trial(TRAFFIC, 500.0, 0.2)).received
            (namespace,) = namespaces(api)
            for pod in pods_in(api, namespace):
                metadata, spec, (container,) = pod["metadata"], pod["spec"], pod["spec"]["containers"]
                assert metadata["labels"].items() >= names["labels"].items()
                assert metadata["annotations"].items() >= names["annotations"].items()
                assert {each["name"] for each in volumes} <= {each["name"] for each in spec["volumes"]}
                assert all(each in container["volumeMounts"] for each in mounts)
                assert (spec["securityContext"]["sysctls"], spec["securityContext"]["supplementalGroups"]) == (
                    settings,
                    [1234],
                )
                program = Path("/proc") / str(program_of(pod))
                assert (program / "root/srv/authority/ca.crt").read_text().startswith("-----BEGIN CERTIFICATE")
                status = dict(line.split(":\t") for line in (program / "status").read_text().splitlines())
                assert "1234" in status["Groups"].split()
                assert int(status["CapEff"], 16) & (1 << CAP_NET_ADMIN)

    def test_frames_reach_a_pod_through_a_service(self, api: Api) -> None:
        with cluster_tester(destination="service") as tester:
            trial = Trial(traffic_of(64, flows=100), 2000.0, 0.5)
            result = first(lambda each: each.sent == 1000 and each.lost < 100, partial(tester.measure, trial))
            address = ip_address(tester.describe()["services"]["right"])
            assert any(address in ip_network(network) for network in SERVICES.split(","))
        assert result.directions[0].latency is not None

    def test_receive_threads_do_the_clusters_work_for_frames(self, api: Api) -> None:
        host = LocalHost()
        if not threads_named(host, "kthreadd"):
            pytest.skip("the kernel's threads are not to be seen among the process numbers here")
        with cluster_tester(receive_threads=True) as tester:
            threads = threads_named(host, "napi/veth")
            assert len(threads) >= len(tester.ports)
            before = cpu_ticks(threads)
            result = tester.measure(Trial(traffic_of(64, flows=100), UNPACED, 1.0))
            assert result.received > 1000
            assert cpu_ticks(threads) - before > 10, "the threads were busy for more than 0.1 s"
            assert tester.facts.engine_remark is None and tester.describe()["receive_threads"]

    def test_a_pod_whose_interface_is_no_veth_gets_no_receive_thread(self, api: Api) -> None:
        place = RunNamespace(api)
        try:
            pod = thread_starter("left", place.run, place.owners, PodWishes(IMAGE), "node1", ("1", "1"))
            place.start(pod)
            with pytest.raises(PodDidNotStart, match="interface 1 of the node is no veth of this pod"):
                await_phase(place, pod["metadata"]["name"], "Succeeded")
        finally:
            place.close()

    def test_a_cluster_that_enforces_no_policies_skips_the_rows(self, api: Api, tmp_path: Path) -> None:
        run = Robot(tmp_path, *ROW_OF_POLICIES, topology=topology(tmp_path, network_policies=10).read_text())
        (record,) = run.measured()
        assert record["outcome"] == "skipped"
        assert record["reason"] == "the cluster does not enforce NetworkPolicies"

    def test_frames_reach_a_host_outside(self, api: Api, tmp_path: Path) -> None:
        settings = {"destination": "host", "host": {"interface": "eth1", "namespace": OUTSIDE}}
        with outside():
            run = Robot(tmp_path, *ROW_OUTSIDE, topology=topology(tmp_path, **settings).read_text())
            assert run.wait() == 0, run.messages()
        (record,) = run.records()
        assert record["outcome"] == "passed", record.get("reason")
        assert record["results"]["mrr"]["frames_per_second"] > 10_000
        assert record["tester"]["outside"]["address"] == str(ADDRESS_OUTSIDE.ip)
        assert list(record["tester"]["pods"]) == ["left"]

    def test_a_host_outside_that_no_frame_reaches_gets_no_load(self, api: Api) -> None:
        settings = KubernetesSettings(
            PodWishes(IMAGE), str(KUBECONFIG), destination="host", host=TesterPort("eth1", OUTSIDE)
        )
        with outside(cabled=False), pytest.raises(Unavailable, match=f"came to {ADDRESS_OUTSIDE.ip} on"):
            KubernetesTester(settings, Outside(LocalHost()))

    def test_two_runs_beside_each_other_leave_each_other_alone(self, api: Api, tmp_path: Path) -> None:
        trial = Trial(TRAFFIC, 500.0, 1.0)
        with cluster_tester() as other:
            with cluster_tester() as one, ThreadPoolExecutor() as pool:
                results = list(pool.map(lambda tester: tester.measure(trial), (one, other)))
                # The senders share CPUs, so each may be late. ARP is stray, too, but hundreds of frames are not ARP.
                assert all(result.sent > 100 and result.received > 0.9 * result.sent for result in results)
                assert all(result.stray < 50 for result in results)
                assert not podperf("clean", str(topology(tmp_path))).stdout.count("namespace podperf-")
            assert len(namespaces(api)) == 1
            assert other.measure(trial).received > 100

    def test_clean_deletes_what_runs_left_that_were_killed_at_any_step(self, api: Api, tmp_path: Path) -> None:
        for seconds in KILLED_AFTER:
            known = namespaces(api)
            run = subprocess.Popen([sys.executable, "-c", MEASURING, str(ROOT / "libraries"), str(KUBECONFIG)])
            deadline = time.monotonic() + START_TIMEOUT
            while namespaces(api) == known and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(seconds)
            run.kill()
            run.wait()
        left = namespaces(api)
        assert len(left) == len(KILLED_AFTER)
        said = podperf("clean", str(topology(tmp_path))).stdout
        assert all(f"namespace {each}" in said for each in left) and not namespaces(api)

    @pytest.mark.parametrize(
        ("labels", "quota", "cause"),
        [
            ({"pod-security.kubernetes.io/enforce": "restricted"}, None, 'violates PodSecurity "restricted'),
            ({}, {"pods": "0"}, "exceeded quota: none"),
        ],
    )
    def test_a_refused_pod_has_the_cause_and_leaves_nothing(
        self, api: Api, labels: dict[str, str], quota: dict[str, str] | None, cause: str
    ) -> None:
        name = f"refusing-{len(labels)}"
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        if quota is not None:
            body = {"metadata": {"name": "none"}, "spec": {"hard": quota}}
            path = f"/api/v1/namespaces/{name}/resourcequotas"
            api.ask("POST", path, body)
            assert once_as(True, lambda: "hard" in api.ask("GET", f"{path}/none").get("status", {}))
        began = time.monotonic()
        with pytest.raises(ApiError, match=cause):
            cluster_tester(namespace=name)
        assert time.monotonic() - began < 30
        for kind in ("pods", "configmaps"):
            found = api.ask("GET", f"/api/v1/namespaces/{name}/{kind}")["items"]
            assert not [each for each in found if each["metadata"]["name"] != "kube-root-ca.crt"], kind

    @pytest.mark.parametrize(
        ("wishes", "command", "cause"),
        [
            ({"cpus": 64}, ["sleep", "60"], "Insufficient cpu"),
            ({"memory": "16Mi"}, ["tail", "/dev/zero"], "its program ended with exit code 137 (OOMKilled)"),
            ({}, ["nothing-of-this-name"], '"nothing-of-this-name": executable file not found'),
        ],
    )
    def test_a_pod_that_does_not_run_has_the_clusters_cause(
        self, api: Api, wishes: dict[str, Any], command: list[str], cause: str
    ) -> None:
        place = RunNamespace(api)
        try:
            place.start(manifests.pod("p", place.run, place.owners, command, PodWishes(IMAGE, **wishes)))

            def found() -> bool:
                return cause in why_not_running(place.pod("p"))[0]

            assert once_as(True, found), place.pod("p")["status"]
        finally:
            place.close()

    def test_an_api_server_that_hangs_in_a_trial_is_named_after_it(self, api: Api) -> None:
        server = process_of("kube-apiserver")
        with cluster_tester() as tester:
            (namespace,) = namespaces(api)
            program = program_of(pods_in(api, namespace)[0])
            before_trial = frames_of(program)
            with ThreadPoolExecutor() as pool:
                measuring = pool.submit(tester.measure, Trial(TRAFFIC, 500.0, 2.0))
                awaited(lambda: frames_of(program) > before_trial + 100, measuring.result, START_TIMEOUT)
                began = time.monotonic()
                os.kill(server, signal.SIGSTOP)
                try:
                    with pytest.raises(ApiError, match=f"does not answer .*{api.where}: .*timed out"):
                        measuring.result(HANG_TIMEOUT)
                    assert time.monotonic() - began < HANG_TIMEOUT
                finally:
                    os.kill(server, signal.SIGCONT)

    @pytest.mark.parametrize("evict", [True, False])
    def test_a_tester_that_somebody_evicts_or_deletes_in_a_trial_has_the_clusters_cause(
        self, api: Api, evict: bool
    ) -> None:
        with cluster_tester() as tester, ThreadPoolExecutor() as pool:
            (namespace,) = namespaces(api)
            pod = pods_in(api, namespace)[1]
            right, program = pod["metadata"]["name"], program_of(pod)
            before_trial = frames_of(program)
            began = time.monotonic()
            measuring = pool.submit(tester.measure, Trial(TRAFFIC, 500.0, 4.0))
            awaited(lambda: frames_of(program) > before_trial + 100, measuring.result, START_TIMEOUT)
            path = f"/api/v1/namespaces/{namespace}/pods/{right}"
            if evict:
                body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": right}}
                api.ask("POST", f"{path}/eviction", body)
            else:
                api.delete(path)
            cause = rf"pod {right} on node1 ended while it measured: somebody (deletes|deleted) or evict"
            with pytest.raises(PodperfError, match=cause):
                measuring.result()
            assert time.monotonic() - began < 60

    def test_a_pod_that_a_node_evicts_has_the_nodes_cause(self, api: Api) -> None:
        place = RunNamespace(api)
        try:
            fills = ["sh", "-c", "head -c 9000000 /dev/zero >/run/podperf/file; sleep 600"]
            pod = manifests.pod("p", place.run, place.owners, fills, PodWishes(IMAGE))
            pod["spec"]["volumes"] = [{"name": "run", "emptyDir": {"sizeLimit": "1Mi"}}]
            place.start(pod)
            await_phase(place, "p")
            cause = 'Evicted: Usage of EmptyDir volume "run" exceeds the limit "1Mi"'
            deadline = time.monotonic() + EVICTION_TIMEOUT
            while cause not in str(why := why_ended(place, "p")):
                assert time.monotonic() < deadline, why
                time.sleep(0.5)
        finally:
            place.close()

    def test_a_run_works_with_an_api_server_that_takes_a_second_for_each_answer(self, api: Api, tmp_path: Path) -> None:
        content = yaml.safe_load(KUBECONFIG.read_text())
        (port,) = re.findall(r":(\d+)$", content["clusters"][0]["cluster"]["server"])
        with delaying_proxy(int(port), seconds=1.0) as slow:
            content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{slow}"
            path = tmp_path / "kubeconfig"
            path.write_text(yaml.safe_dump(content))
            began = time.monotonic()
            with closing(log_in(str(path), None)) as login:
                login.ask("GET", "/version")
            assert time.monotonic() - began > 1
            with cluster_tester(path) as tester:
                assert tester.measure(Trial(TRAFFIC, 500.0, 1.0)).received > 400
            assert time.monotonic() - began < SLOW_TIMEOUT

    def test_a_client_certificate_that_has_expired_is_named(self, api: Api, tmp_path: Path) -> None:
        then = datetime.now(UTC) - LIFE - timedelta(days=1)
        made = Authority(then).certify("podperf", "system:masters")
        content = yaml.safe_load(KUBECONFIG.read_text())
        user = {
            "client-certificate-data": base64.b64encode(made.certificate).decode(),
            "client-key-data": base64.b64encode(made.key).decode(),
        }
        content["users"][0]["user"] = user
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(content))
        said = f"Unauthorized; the client certificate of the login expired on {then + LIFE:%Y-%m-%d %H:%M} UTC"
        with pytest.raises(ApiError, match=said):
            cluster_tester(path)
        # The suites say so before they start a pod.
        run = Robot(tmp_path, *ONE_ROW, topology=topology(tmp_path, kubeconfig=str(path)).read_text())
        assert run.wait() == 1
        assert f"the API server answers 401 Unauthorized to {api.where}/readyz" in run.messages()
        assert said.removeprefix("Unauthorized; ") in run.messages()

    def test_a_pod_that_no_node_takes_is_given_up_after_the_time_of_the_topology(self, api: Api) -> None:
        wishes = PodWishes(IMAGE, node_selector={"zone": "moon"})
        began = time.monotonic()
        with pytest.raises(PodDidNotStart, match=r"no node takes it \(0/1 nodes are available"):
            KubernetesTester(KubernetesSettings(wishes, str(KUBECONFIG), start_timeout=3.0))
        assert 3 < time.monotonic() - began < 60


@pytest.fixture(scope="class")
def enforcing() -> Iterator[Api]:
    """The API of a cluster of one node that enforces NetworkPolicies."""
    need_programs("network-policies")
    with cluster("--network-policies") as found:
        yield found


@pytest.fixture(scope="class")
def two_nodes() -> Iterator[Api]:
    """The API of a cluster of two nodes that have the image with podperf."""
    try:
        image = ready_image(LocalHost(), print, WHOLE)
    except PodperfError as reason:  # it is made from packages of the distribution's mirror
        pytest.skip(str(reason))
    further = []
    with suppress(PodperfError):  # the component non-free of the mirror
        further = ["--image", str(ready_image(LocalHost(), print, WITH_NETPERF).path)]
    with cluster("--nodes", "2", "--image", str(image.path), *further) as found:
        yield found


@pytest.fixture(scope="class")
def results(two_nodes: Api) -> Path:
    """The folder of the results of all Jobs, which the nodes have, too."""
    folder = FOLDER / "results"
    folder.mkdir()
    apply(two_nodes, NAMESPACED_FILE)
    volume = {
        "kind": "PersistentVolume",
        "metadata": {"name": "results"},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": str(folder)}},
    }
    two_nodes.ask("POST", PATHS["PersistentVolume"], volume)
    return folder


def start_job(
    api: Api,
    name: str,
    row: str,
    nodes: int,
    completions: int,
    *,
    testbed: str = "cluster",
    mrr: Mapping[str, float] = SHORT_TRIALS,
    alone: bool = True,
) -> None:
    """The Job of the project's manifest, all of its pods at once, with these trials of MRR and one row of the suite."""
    settings, claim, job = yaml.safe_load_all((ROOT / "topologies/kubernetes/job.yaml").read_text())
    content = yaml.safe_load(settings["data"]["topology.yaml"])
    content["name"] = testbed
    content["tester"]["settings"] |= {"nodes": nodes, "alone": alone}
    content["method"]["mrr"] = dict(mrr)
    content["tester"]["maximum_load"] = MODEST_LOAD
    settings["metadata"]["name"] = job["metadata"]["name"] = name
    settings["data"]["topology.yaml"] = yaml.safe_dump(content)
    job["spec"] |= {"completions": completions, "parallelism": completions}
    spec = job["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    container["command"] = [*container["command"][:3], "--test", row]
    container["env"][0]["valueFrom"]["configMapKeyRef"]["name"] = name
    next(volume for volume in spec["volumes"] if volume["name"] == "topology")["configMap"]["name"] = name
    if not api.exists(f"{PATHS['PersistentVolumeClaim']}/{claim['metadata']['name']}"):
        api.ask("POST", PATHS["PersistentVolumeClaim"], claim)
    for each in (settings, job):
        api.ask("POST", PATHS[each["kind"]], each)


def pods_of_job(api: Api, name: str) -> list[dict[str, Any]]:
    """The pods of a Job, in the order of their indices."""
    query = [("labelSelector", f"batch.kubernetes.io/job-name={name}")]
    found = api.ask("GET", f"/api/v1/namespaces/{OF_JOBS}/pods", query=query)["items"]
    return sorted(found, key=lambda each: str(each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]))


def await_job(api: Api, name: str, succeeded: int) -> None:
    """Wait until so many indices of a Job have succeeded. An index that fails for good fails the test."""

    def status() -> Mapping[str, Any]:
        found: Mapping[str, Any] = api.ask("GET", f"{PATHS['Job']}/{name}")["status"]
        assert not found.get("failedIndexes"), "\n".join(log_of(api, pod["metadata"]["name"]) for pod in pods())
        return found

    def pods() -> list[dict[str, Any]]:
        return pods_of_job(api, name)

    awaited(lambda: status().get("succeeded") == succeeded, lambda: (status(), pods()), JOB_TIMEOUT)


def anchors(api: Api) -> set[str]:
    """The objects in the namespace of the Jobs by which runs tell that they are alive."""
    found = api.ask("GET", f"/api/v1/namespaces/{OF_JOBS}/configmaps")["items"]
    return {each["metadata"]["name"] for each in found if each["metadata"]["name"].startswith(f"{manifests.ANCHOR}-")}


def record_in(folder: Path) -> dict[str, Any]:
    """The one record of the last run in this folder."""
    (path,) = folder.glob("records/*.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def limited_link(node: str, rate: int, undo: ExitStack) -> None:
    """Let test frames of this rate pass from the link of a node to its pods, and 10 ms of them at once: a busy machine
    stands still for some milliseconds."""
    here, within = LocalHost(), ("nsenter", "--target", str(process_of("kubelet", node)), "--net", "nft")
    too_many = f"limit rate over {rate}/second burst {rate // 100} packets"
    undo.callback(here.do, *within, "delete table ip limiter")
    here.do(
        *within,
        "add table ip limiter; "
        "add chain ip limiter forward { type filter hook forward priority 0; }; "
        f"add rule ip limiter forward iifname eth0 udp dport {DISCARDED} {too_many} drop",
    )


def near_limit_or_doubted(found: Mapping[str, Any]) -> bool:
    """Whether a rate is that of the limiter, or the record says that the tester's own bursts may be the loss."""
    return found["frames_per_second"] > 0.85 * LIMIT or "caught up in haste" in found.get("doubt", "")


def log_of(api: Api, pod: str, namespace: str = OF_JOBS) -> str:
    """The output of a pod."""
    answer = api._client.call_api(
        f"/api/v1/namespaces/{namespace}/pods/{pod}/log",
        "GET",
        auth_settings=["BearerToken"],
        _preload_content=False,
        _return_http_data_only=True,
    )
    return str(answer.data.decode())


class TestJob:
    """Pods of a Job measure all nodes, and all pairs of nodes."""

    def test_pods_stand_beside_the_networks_of_their_nodes(self, two_nodes: Api, tmp_path: Path) -> None:
        names = ("Host network on two nodes, 64 B", "Pod to pod on two nodes, 64 B")
        rows = [word for name in names for word in ("--test", name)]
        run = Robot(tmp_path, *rows, str(ROOT / "tests"), topology=topology(tmp_path, SHORT_TRIALS).read_text())
        found = {each["test"]["name"]: each for each in run.measured()}
        host, pods = (found[name] for name in names)
        assert host["outcome"] == pods["outcome"] == "passed", (host["reason"], pods["reason"])
        assert (host["tester"]["host_network"], pods["tester"]["host_network"]) == (True, False)
        assert {each["node"] for each in host["tester"]["pods"].values()} == {"node1", "node2"}
        assert all(0 < each["results"]["round_trip_p50"]["nanoseconds"] < 1e8 for each in (host, pods))

    def test_a_share_is_measured_by_turns_on_the_same_nodes_and_leads_the_report(
        self, two_nodes: Api, tmp_path: Path
    ) -> None:
        row = "Pod to pod beside host network, one node, 64 B"
        run = Robot(tmp_path, "--test", row, str(ROOT / "tests"), topology=topology(tmp_path).read_text())
        (record,) = run.measured()
        assert record["outcome"] == "passed", record["reason"]
        share = record["results"]["host_share"]
        assert 0 < share["low_ratio"] <= share["ratio"] <= share["high_ratio"] < 20, "two nodes are one machine here"
        pods, host = (record["tester"]["variants"][name]["pods"].values() for name in ("pods", "host network"))
        assert [each["node"] for each in pods] == [next(iter(host))["node"]] * 2
        assert {each["node"] for each in host} == {"node1", "node2"}
        said = run.output.read_text()
        assert re.search(r"pod network [\d.]+ of the host's \([\d.]+ to [\d.]+\): [\d.]+ beside", said), said
        page = (run.results / "conformance.html").read_text()
        assert page.index("The network of a cluster") < page.index(HEAD_OF_SHARES) < page.index("Measured sections")

    def test_cpu_time_and_round_trips_have_shares_by_turns(self, two_nodes: Api, tmp_path: Path) -> None:
        row = ("--test", "Pod to pod beside host network, two nodes, 64 B", str(ROOT / "tests"))
        run = Robot(tmp_path, *row, topology=topology(tmp_path, SHORT_TRIALS).read_text())
        assert run.wait() == 0, run.messages()
        (record,) = run.records()
        assert record["outcome"] == "passed", record["reason"]
        further = record["methods"][SHARE]["further"]
        names = (CPU_TIME, OF_SENDER, OF_RECEIVER, ROUND_TRIP)
        assert sorted(further["shares"]) == sorted(names), record["methods"][SHARE]["missing"]
        for name in names:
            figures, share = further["shares"][name], record["results"][name]
            assert len(figures["host"]) == len(figures["pods"]) >= fewest_rounds()
            assert 0 < share["low_ratio"] <= share["ratio"] <= share["high_ratio"] < 100
        loads = {trial["load"] for trial in record["trials"] if trial["phase"].endswith("CPU time")}
        assert loads == {further["load"]}, "the same in both places and in all rounds"
        assert "CPU time of the sender" in (run.results / "conformance.html").read_text()

    def test_a_limiter_on_a_link_of_the_nodes_is_found_as_ndr_and_pdr(self, two_nodes: Api, tmp_path: Path) -> None:
        """A tester whose own bursts are the loss says so, and a machine that is busy for a whole search does not pass
        every time."""
        with ExitStack() as undo:
            for node in ("node1", "node2"):
                limited_link(node, LIMIT, undo)
            row, folders = ("--test", "Pod to pod on two nodes, 64 B", str(ROOT / "tests")), count()

            def measure() -> dict[str, Any]:
                run = Robot(tmp_path / str(next(folders)), *row, topology=topology(tmp_path).read_text())
                assert run.wait() == 0, run.messages()
                (record,) = run.records()
                rates = {name: record["results"][name] for name in ("mrr", "ndr", "pdr") if name in record["results"]}
                assert all(each["frames_per_second"] < 1.1 * LIMIT for each in rates.values()), rates
                return rates

            first(lambda rates: len(rates) == 3 and all(map(near_limit_or_doubted, rates.values())), measure)

    def test_a_cluster_that_forbids_the_networks_of_nodes_has_no_share(self, two_nodes: Api, tmp_path: Path) -> None:
        labels = {"pod-security.kubernetes.io/enforce": "baseline"}
        two_nodes.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "no-host-network", "labels": labels}})
        try:
            path = topology(tmp_path, namespace="no-host-network")
            wanted = ("--include", "cluster-shareAND64B", str(ROOT / "tests"))
            run = Robot(tmp_path, *wanted, topology=path.read_text())
            assert run.wait() == 0, run.messages()
            assert len(run.records()) == 4
            for record in run.records():
                assert record["outcome"] == "skipped"
                assert "the cluster allows no pod in the network of a node" in record["reason"]
                assert "violates PodSecurity" in record["reason"] and not record["trials"]
        finally:
            two_nodes.delete("/api/v1/namespaces/no-host-network")

    def test_tcp_crosses_the_pod_network_and_that_of_the_nodes(self, two_nodes: Api, tmp_path: Path) -> None:
        rows = ("--include", "cluster-applications", str(ROOT / "tests"))
        records = Robot(tmp_path, *rows, topology=topology(tmp_path).read_text()).measured()
        assert [each["outcome"] for each in records] == ["passed"] * 3, [each["reason"] for each in records]
        for each in records:
            found = each["methods"]["application_traffic"]
            assert [kind["tool"] for kind in found["kinds"]] == ["iperf3", "iperf3"]
            assert all(rate > 0 for kind in found["kinds"] for rate in kind["rates"])
            assert all(kind["cpu_nanoseconds"] > 0 for kind in found["kinds"]), found["missing"]
            assert "netperf is not installed on pod tester-left-" in found["missing"]["TCP_RR"]
            assert found["congestion_control"]
        assert sorted(each["tester"]["host_network"] for each in records) == [False, False, True]

    def test_sixteen_pairs_send_at_once_and_each_of_them_is_counted(self, two_nodes: Api, tmp_path: Path) -> None:
        settings = yaml.safe_load(topology(tmp_path).read_text())
        settings["tester"]["maximum_load"] = 16 * MODEST_LOAD
        suite = tmp_path / "pairs.robot"
        suite.write_text(MANY_PAIRS)
        run = Robot(tmp_path, str(suite), topology=yaml.safe_dump(settings))
        on_one, on_two = sorted(run.measured(), key=lambda each: str(each["test"]["name"]))
        for each in (on_one, on_two):
            assert each["outcome"] == "passed", each["reason"]
            (step,) = each["methods"]["many_pairs"]["steps"]
            pairs = step["of_pairs"]
            assert step["pairs"] == len(pairs) == 16
            assert all(0 < pair["received"] <= pair["sent"] for pair in pairs), "each frame counts at most once"
            assert step["sum"] == pytest.approx(sum(pair["rate"] for pair in pairs))
            assert each["results"]["pairs_rate"]["frames_per_second"] == pytest.approx(step["sum"])
            assert step["smallest"] == min(pair["rate"] for pair in pairs)
            assert 1 / 16 <= step["fairness"] <= 1
        nodes = [{pod["node"] for pod in each["tester"]["pods"].values()} for each in (on_one, on_two)]
        assert len(nodes[0]) == 1 and len(nodes[1]) == 2
        assert "Many pairs at once" in (run.results / "conformance.html").read_text()
        assert not namespaces(two_nodes)

    def test_requests_of_netperf_cross_the_pod_network(self, two_nodes: Api, tmp_path: Path) -> None:
        try:
            ready_image(LocalHost(), print, WITH_NETPERF)
        except PodperfError as reason:
            pytest.skip(str(reason))
        row = ("--test", "Application traffic, pod to pod on two nodes", str(ROOT / "tests"))
        (record,) = Robot(tmp_path, *row, topology=topology(tmp_path, image=NETPERF_IMAGE).read_text()).measured()
        found = record["methods"]["application_traffic"]
        assert [kind["tool"] for kind in found["kinds"]] == ["iperf3"] * 2 + ["netperf"] * 3
        assert all(rate > 0 for kind in found["kinds"] for rate in kind["rates"])
        assert all(kind["cpu_nanoseconds"] > 0 for kind in found["kinds"]), found["missing"]
        assert not found["missing"]

    def test_one_file_gives_a_first_result_in_the_log_of_its_job(self, two_nodes: Api) -> None:
        *objects, settings, job = yaml.safe_load_all((ROOT / "topologies/kubernetes/first_result.yaml").read_text())
        content = yaml.safe_load(settings["data"]["topology.yaml"])
        content["method"]["mrr"], content["tester"]["maximum_load"] = SHORT_TRIALS, MODEST_LOAD
        settings["data"]["topology.yaml"] = yaml.safe_dump(content)
        paths = {kind: path.replace("/podperf/", "/podperf-first/") for kind, path in PATHS.items()}
        for each in (*objects, settings, job):
            two_nodes.ask("POST", paths[each["kind"]], each)
        try:
            of_job = f"{paths['Job']}/podperf"
            pods = partial(two_nodes.ask, "GET", "/api/v1/namespaces/podperf-first/pods")

            def ended() -> bool:
                status = two_nodes.ask("GET", of_job)["status"]
                return bool(status.get("succeeded") or status.get("failed"))

            awaited(ended, pods, JOB_TIMEOUT)
            (pod,) = pods()["items"]  # those of the tester are gone
            said = log_of(two_nodes, pod["metadata"]["name"], "podperf-first")
            assert two_nodes.ask("GET", of_job)["status"].get("succeeded"), said
            assert re.search(r"^4 tests: (\d (passed|measured)(, )?)+$", said, re.MULTILINE), said
        finally:
            two_nodes.delete("/api/v1/namespaces/podperf-first")

    def test_pods_of_jobs_measure_nodes_and_pairs_and_wait_for_each_other(
        self, two_nodes: Api, results: Path, tmp_path: Path
    ) -> None:
        api = two_nodes
        wanted = {"each-node": 2, "each-pair": 1}
        start_job(api, "each-node", ROW_OF_NODE, 1, 2)
        start_job(api, "each-pair", "Pod to pod on two nodes, 64 B", 2, 1)
        deadline = time.monotonic() + JOB_TIMEOUT
        waited = False
        while True:
            pods = api.ask("GET", "/api/v1/namespaces/podperf/pods")["items"]
            runs: dict[str, set[str]] = {}
            for pod in pods:
                if run := pod["metadata"]["labels"].get(manifests.RUN):
                    waited |= "anti-affinity" in why_not_running(pod)[0]
                    if pod["status"]["phase"] == "Running":
                        runs.setdefault(pod["spec"]["nodeName"], set()).add(run)
            assert all(len(each) == 1 for each in runs.values()), runs
            jobs = {name: api.ask("GET", f"{PATHS['Job']}/{name}")["status"] for name in wanted}
            if all(jobs[name].get("succeeded") == number for name, number in wanted.items()):
                break
            failed = [pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] == "Failed"]
            assert not failed, "\n".join(log_of(api, each) for each in failed)
            assert time.monotonic() < deadline, (jobs, [(pod["metadata"]["name"], pod["status"]) for pod in pods])
            time.sleep(0.5)
        assert waited, "three runs on two nodes never waited for each other"
        folders = sorted(results.glob("cluster.*"))
        assert [folder.name for folder in folders] == ["cluster.node1", "cluster.node1.node2", "cluster.node2"]
        said = podperf("report", *map(str, folders), "--output", str(tmp_path / "all")).stdout
        slowest = re.search(r"slowest of 2 nodes: (.*)", said)
        ratios = re.findall(r"node[12] \(([\d.]+) of the median", slowest[1] if slowest else said)
        assert len(ratios) == 2 and float(ratios[0]) <= 1 <= float(ratios[1]), said
        left = api.ask("GET", "/api/v1/namespaces/podperf/pods")["items"]
        assert {each["metadata"]["labels"].get("batch.kubernetes.io/job-name") for each in left} == set(wanted)
        assert not namespaces(api)

    def test_clean_deletes_a_killed_run_and_nothing_of_a_run_in_a_pod(
        self, two_nodes: Api, results: Path, tmp_path: Path
    ) -> None:
        """The run in a pod is alive, and measures while `podperf clean` runs on this machine."""
        api, folder = two_nodes, results / "alive.node1"
        start_job(api, "alive", ROW_OF_NODE, 1, 1, testbed="alive", mrr={"trials": 12, "duration": 3}, alone=False)
        awaited(lambda: anchors(api), lambda: pods_of_job(api, "alive"), START_TIMEOUT)
        (alive,) = anchors(api)
        path = topology(tmp_path, LONG_TRIALS, namespace=OF_JOBS)
        killed = Robot(tmp_path, *ONE_ROW, topology=path.read_text())
        killed.wait_for_trials(1)
        (left,) = anchors(api) - {alive}
        awaited(lambda: trials_on_disk(folder), lambda: pods_of_job(api, "alive"), START_TIMEOUT)
        assert len(pods_in(api, OF_JOBS)) == 4
        killed.kill()
        said = podperf("clean", str(path)).stdout
        assert not [*folder.glob("records/*.json")], "the run in the pod ended before `podperf clean` did"
        assert f"pods of {left} in namespace {OF_JOBS}" in said and alive not in said
        assert anchors(api) == {alive}
        ours = pods_in(api, OF_JOBS)
        assert [f"{manifests.ANCHOR}-{our['metadata']['labels'][manifests.RUN]}" for our in ours] == [alive] * 2
        await_job(api, "alive", succeeded=1)
        (pod,) = pods_of_job(api, "alive")
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        record = record_in(folder)
        assert record["outcome"] == "passed" and record["results"]["mrr"]["frames_per_second"] > 0
        assert not anchors(api) and not pods_in(api, OF_JOBS)
        api.delete(f"{PATHS['Job']}/alive")

    def test_a_killed_pod_of_a_job_is_replaced_and_what_it_left_is_deleted(self, two_nodes: Api, results: Path) -> None:
        """The new pod deletes nothing of a run of this machine, which is alive meanwhile."""
        api, folder = two_nodes, results / "killed.node1"
        start_job(api, "killed", ROW_OF_NODE, 1, 1, testbed="killed", mrr={"trials": 15, "duration": 1}, alone=False)
        awaited(lambda: trials_on_disk(folder), lambda: pods_of_job(api, "killed"), START_TIMEOUT)
        (left,) = anchors(api)
        with cluster_tester(namespace=OF_JOBS) as alive:
            (own,) = anchors(api) - {left}
            (first,) = pods_of_job(api, "killed")
            os.kill(program_of(first), signal.SIGKILL)
            assert not [*folder.glob("records/*.json")], "the pod had measured everything before it was killed"
            awaited(lambda: left not in anchors(api), lambda: pods_of_job(api, "killed"), JOB_TIMEOUT)
            assert own in anchors(api)
            await_job(api, "killed", succeeded=1)
            assert alive.measure(Trial(TRAFFIC, 500.0, 1.0)).received > 100
        (second,) = [each for each in pods_of_job(api, "killed") if each["metadata"]["uid"] != first["metadata"]["uid"]]
        said = log_of(api, second["metadata"]["name"])
        assert f"removed what an earlier run left: pods of {left} in namespace {OF_JOBS}" in said and own not in said
        record = record_in(folder)
        assert record["outcome"] == "passed" and record["results"]["mrr"]["frames_per_second"] > 0
        assert not anchors(api) and not pods_in(api, OF_JOBS)
        api.delete(f"{PATHS['Job']}/killed")


class TestPolicies:
    """One cluster that enforces NetworkPolicies for all of these tests."""

    def test_a_row_measures_ten_policies(self, enforcing: Api, tmp_path: Path) -> None:
        run = Robot(tmp_path, *ROW_OF_POLICIES, topology=topology(tmp_path, network_policies=10).read_text())
        (record,) = run.measured()
        assert record["outcome"] == "passed", record.get("reason")
        assert record["tester"]["network_policies"] == 10
        assert record["results"]["mrr"]["frames_per_second"] > 1000
        assert not namespaces(enforcing)
        assert not enforcing.ask("GET", "/apis/networking.k8s.io/v1/networkpolicies")["items"]

    def test_policies_are_in_the_way_of_the_frames(self, enforcing: Api) -> None:
        """Each frame passes all policies, so a hundred of them make the path slower."""
        rates = []
        for number in (0, 100):
            with cluster_tester(network_policies=number) as tester:
                trials = [tester.measure(Trial(TRAFFIC, 0, 0.3)) for _ in range(3)]
                rates.append(max(trial.receive_rate for trial in trials))
        assert rates[1] < 0.5 * rates[0]

    @pytest.mark.parametrize(
        ("change", "settings"),
        [("policies-added", {"network_policies": 1}), ("endpoint-added", {"destination": "service"})],
    )
    def test_frames_go_on_crossing_while_the_cluster_changes_and_the_change_is_undone(
        self, enforcing: Api, change: str, settings: dict[str, Any]
    ) -> None:
        with cluster_tester(**settings) as pods:
            tester: Any = pods
            assert [name for name, each in tester.facts.changes.items() if not each.refused] == [change]
            before = made_by_runs(enforcing)
            source = ValidTrials(tester, TRAFFIC, TesterLimits(1e6, 0.0, "not asked"))
            changed = source.during(tester.facts.changes[change].make, 2000.0, 8.0)
            assert made_by_runs(enforcing) == before
        found = Outage.of(changed)
        assert found.restored is not None and found.ended, found
        assert changed.result.received > 0.5 * changed.result.sent, changed


def made_by_runs(api: Api) -> list[str]:
    """The names of the NetworkPolicies and pods that runs have made."""
    paths = ("/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/pods")
    query = [("labelSelector", f"{manifests.MANAGER}=podperf")]
    return sorted(each["metadata"]["name"] for path in paths for each in api.ask("GET", path, query=query)["items"])
