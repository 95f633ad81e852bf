"""A cluster on this machine starts, and leaves nothing, also if its start is killed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from functools import partial

import pytest

from attempts import first
from machine import once_as, snapshot
from own_cluster import KUBECONFIG, START_TIMEOUT, STARTS_A_CLUSTER, need_programs, started
from podperf.cluster.layout import FOLDER
from podperf.cluster.parts import network_named
from podperf.cpu_lists import parse_cpu_list
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import Trial
from robot_run import ROOT, podperf
from traffic import traffic_of

pytestmark = STARTS_A_CLUSTER
MEMORY = 1.5e9  # bytes


def test_two_nodes_are_ready_in_time_and_memory() -> None:
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
def test_a_killed_start_leaves_no_process_and_down_removes_the_rest(network: str, seconds: float) -> None:
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
