"""Each network of podperf's own cluster between two nodes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from attempts import first
from cluster.runs import cluster_tester
from machine import once_as, snapshot
from own_cluster import KUBECONFIG, STARTS_A_CLUSTER, need_programs, process_of, started
from podperf.cluster.hierarchies import processes
from podperf.cluster.layout import CONTROL_ADDRESS, FOLDER, PODS, SERVICES, ClusterNetwork
from podperf.cluster.lifecycle import GROUPS
from podperf.cluster.parts import ALL_NETWORKS
from podperf.errors import Unavailable
from podperf.frames import AddressFamily, Headers
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import log_in
from podperf.kubernetes.pod_network import TOLD
from podperf.kubernetes.recognition import Recognition
from podperf.kubernetes.tester import KubernetesTester
from podperf.methods.reconfiguration import Outage
from podperf.methods.trials import ValidTrials
from podperf.model import AddressedTraffic, FrameSize, TrafficProfile, Trial
from podperf.testbed.frame_watch import FrameWatch
from podperf.testers.base import TesterLimits
from robot_run import podperf
from traffic import traffic_of

pytestmark = STARTS_A_CLUSTER
API_SERVICE = "10.96.0.1"  # the first address of SERVICES
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 443), 10).close()"
NETWORK_READY_IN = 45.0  # seconds for two nodes
UNDERLAY = ("10.245.0.0/24", "fd00:10:245::/64")  # between the nodes: of `ovn`, and of the sessions of `bird:vxlan`
# The networks of nodes, pods and Services, in which agents and overlays talk, too.
NODES = (f"{CONTROL_ADDRESS.removesuffix('1')}0/24", "fd00:10:199::/64")
OF_CLUSTER = (*NODES, *UNDERLAY, *PODS.split(","), *SERVICES.split(","))


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
                times = tester.measure(Trial(traffic_of(84), 2000.0, 0.5, train=32)).cpu_time
                assert times is not None and bool(times.unread) is (network.name == "ovn"), times
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
