"""Runs leave each other alone, and `podperf clean` deletes what killed runs left."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster.runs import cluster_tester, topology
from own_cluster import KUBECONFIG, START_TIMEOUT, STARTS_A_CLUSTER, namespaces
from podperf.kubernetes.api import Api
from podperf.model import Trial
from robot_run import ROOT, podperf
from traffic import TRAFFIC

pytestmark = STARTS_A_CLUSTER
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


def test_two_runs_beside_each_other_leave_each_other_alone(api: Api, tmp_path: Path) -> None:
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


def test_clean_deletes_what_runs_left_that_were_killed_at_any_step(api: Api, tmp_path: Path) -> None:
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
