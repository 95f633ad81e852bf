"""The kernel's threads receive frames for the pods of the tester, if the topology asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from cluster.runs import cluster_tester
from own_cluster import STARTS_A_CLUSTER
from podperf.hosts.local import LocalHost
from podperf.kernel.threads import threads_named
from podperf.kubernetes.api import Api
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import PodDidNotStart, await_phase
from podperf.kubernetes.settings import IMAGE
from podperf.kubernetes.tester_objects import thread_starter
from podperf.model import Trial
from podperf.testers.base import UNPACED
from traffic import traffic_of

pytestmark = STARTS_A_CLUSTER


def test_receive_threads_do_the_clusters_work_for_frames(api: Api) -> None:
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


def test_a_pod_whose_interface_is_no_veth_gets_no_receive_thread(api: Api) -> None:
    place = RunNamespace(api)
    try:
        pod = thread_starter("left", place.run, place.owners, PodWishes(IMAGE), "node1", ("1", "1"))
        place.start(pod)
        with pytest.raises(PodDidNotStart, match="interface 1 of the node is no veth of this pod"):
            await_phase(place, pod["metadata"]["name"], "Succeeded")
    finally:
        place.close()


def cpu_ticks(threads: Iterable[int]) -> int:
    """The CPU time of these threads, in clock ticks of 10 ms."""
    return sum(
        sum(map(int, Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()[11:13])) for thread in threads
    )
