"""Frames from a pod reach a host outside of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_interface
from pathlib import Path

import pytest

from cluster.runs import topology
from own_cluster import KUBECONFIG, STARTS_A_CLUSTER, process_of
from podperf.cluster.layout import BRIDGE
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.ports import Outside
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.testers.base import TesterPort
from robot_run import ROOT, Robot

pytestmark = STARTS_A_CLUSTER
ROW_OUTSIDE = ("--test", "Pod to a host outside, 64 B", str(ROOT / "tests"))
# A network namespace beside the nodes. Those that begin with podperf are of runs, and the next run removes them.
OUTSIDE, ADDRESS_OUTSIDE = "outside-of-cluster", ip_interface("10.199.0.100/24")


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


def test_frames_reach_a_host_outside(api: Api, tmp_path: Path) -> None:
    settings = {"destination": "host", "host": {"interface": "eth1", "namespace": OUTSIDE}}
    with outside():
        run = Robot(tmp_path, *ROW_OUTSIDE, topology=topology(tmp_path, **settings).read_text())
        assert run.wait() == 0, run.messages()
    (record,) = run.records()
    assert record["outcome"] == "passed", record.get("reason")
    assert record["results"]["mrr"]["frames_per_second"] > 10_000
    assert record["tester"]["outside"]["address"] == str(ADDRESS_OUTSIDE.ip)
    assert list(record["tester"]["pods"]) == ["left"]


def test_a_host_outside_that_no_frame_reaches_gets_no_load(api: Api) -> None:
    settings = KubernetesSettings(
        PodWishes(IMAGE), str(KUBECONFIG), destination="host", host=TesterPort("eth1", OUTSIDE)
    )
    with outside(cabled=False), pytest.raises(Unavailable, match=f"came to {ADDRESS_OUTSIDE.ip} on"):
        KubernetesTester(settings, Outside(LocalHost()))
