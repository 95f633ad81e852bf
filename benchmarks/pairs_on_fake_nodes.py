"""How the scheduler of a real cluster places the pods of all pairs of 200 nodes, of which none is a machine.

Usage, with a cluster (`sudo ./podperf cluster up`): `sudo .venv/bin/python benchmarks/pairs_on_fake_nodes.py KUBECONFIG
[NODES] [PAIRS] [SECONDS]`, by default 200 nodes, the first 1000 pairs, and 10 s for each.

The script makes the objects of the nodes, and tells the API server that they are ready. In the kubelet's place it tells
that each pod runs as soon as the scheduler has given it a node. NODES / 2 runs are made at the same time, in the order
of a Job. Each run makes podperf's own pods with `alone: true`, as a run does: the left one, and the right one when the
left one runs. Both are deleted after 0.9 to 1.1 times SECONDS. So nothing is measured, and only the scheduler, the API
server and the order of the pairs are real.

Exits with 1 if two runs are ever on one node, or if the API server refuses the Job of all pairs.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, Queue
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

import yaml
from kubernetes import client, config, watch

from api_calls_of_a_pair import JOBS, ROOT, Phase, calls_of
from podperf.errors import PodperfError
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, log_in
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import await_phase
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester_objects import SIDES, named_nodes, tester_pod
from run_command.job import pairs

NAMESPACE = "podperf-fake"
NODES, LEASES = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
RENEWED = 10.0  # seconds; a cluster takes a node for lost after 40 s
START_TIMEOUT = 600.0  # seconds for a pod


def node(name: str) -> dict[str, Any]:
    """The object of a node that nobody has."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Fake", "message": "nobody has this node"}],
        },
    }


def lease(name: str) -> dict[str, Any]:
    """The object by which a kubelet says that its node is alive."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


class FakeNodes:
    """The nodes, and their kubelets. `shared` has what the API server told of nodes with pods of two runs."""

    def __init__(self, kubeconfig: Path, names: Sequence[str]) -> None:
        self._client = config.new_client_from_config(str(kubeconfig))
        self._api, self._names = log_in(str(kubeconfig), None), names
        self._leases = log_in(str(kubeconfig), None)
        self._on: dict[str, dict[str, str]] = {each: {} for each in names}  # the run of each pod, by node
        self._ended = threading.Event()
        self.shared: list[str] = []
        for each in names:
            self._api.ask("POST", NODES, node(each))
            self._leases.ask("POST", LEASES, lease(each))
        threading.Thread(target=self._renew, daemon=True).start()
        while any("taints" in each["spec"] for each in self._api.ask("GET", NODES)["items"]):
            time.sleep(0.5)
        threading.Thread(target=self._run_pods, daemon=True).start()

    def _renew(self) -> None:
        while not self._ended.wait(RENEWED):
            for each in self._names:
                with suppress(PodperfError):  # at the end they are deleted
                    self._leases.ask("PATCH", f"{LEASES}/{each}", lease(each))

    def _run_pods(self) -> None:
        """Look at each change of a pod, in the order of the API server."""
        pods = client.CoreV1Api(self._client)
        for event in watch.Watch().stream(pods.list_namespaced_pod, NAMESPACE, timeout_seconds=3600):
            if self._ended.is_set():
                return
            pod = event["raw_object"]
            name, where = pod["metadata"]["name"], pod["spec"].get("nodeName")
            if where is None:
                continue
            if event["type"] == "DELETED":
                self._on[where].pop(name, None)
            elif pod["status"]["phase"] == "Pending" and name not in self._on[where]:
                self._on[where][name] = pod["metadata"]["labels"][manifests.RUN]
                if len(set(self._on[where].values())) > 1:
                    self.shared.append(f"{where}: {sorted(self._on[where])}")
                with suppress(PodperfError):  # it may be deleted
                    self._api.ask("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running"}})

    def close(self) -> None:
        """Delete the nodes."""
        self._ended.set()
        for each in self._names:
            self._api.delete(f"{NODES}/{each}")
            self._api.delete(f"{LEASES}/{each}")


class Measuring:
    """The runs that have both pods, and the times of all runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = self._most = 0
        self.seconds = 0.0  # in which runs had both pods
        self.errors: list[str] = []

    @contextmanager
    def one(self) -> Iterator[None]:
        """A run that has both pods."""
        began = time.monotonic()
        with self._lock:
            self._now += 1
            self._most = max(self._most, self._now)
        yield
        with self._lock:
            self._now -= 1
            self.seconds += time.monotonic() - began

    @property
    def most(self) -> int:
        """The most runs that had both pods at the same time."""
        return self._most


def measure(api: Api, pair: tuple[str, str], seconds: float, measuring: Measuring) -> None:
    """The objects that a run makes in a cluster, without exec."""
    settings = KubernetesSettings(PodWishes(IMAGE, alone=True), nodes=2, node_names=pair)
    with closing(RunNamespace(api, NAMESPACE)) as place:
        for side, wanted in zip(SIDES, named_nodes(settings), strict=True):
            pod = tester_pod(side, place.run, place.owners, settings, wanted)
            place.start(pod)
            await_phase(place, pod["metadata"]["name"], timeout=START_TIMEOUT)
        with measuring.one():
            time.sleep(seconds)


def work(kubeconfig: Path, left: Queue[tuple[tuple[str, str], float]], measuring: Measuring) -> None:
    """Measure one pair after the other, as the pods of a Job do."""
    with closing(log_in(str(kubeconfig), None)) as api:
        while True:
            try:
                pair, seconds = left.get_nowait()
            except Empty:
                return
            try:
                measure(api, pair, seconds, measuring)
            except PodperfError as error:
                measuring.errors.append(str(error))


def job_of(number: int) -> dict[str, Any]:
    """The Job of the project's manifest for so many nodes."""
    job: dict[str, Any] = list(yaml.safe_load_all((ROOT / "topologies/kubernetes/job.yaml").read_text()))[-1]
    job["metadata"]["namespace"] = NAMESPACE
    job["spec"] |= {"completions": number * (number - 1) // 2, "parallelism": number // 2}
    return job


def main(kubeconfig: Path, number: int, most: int, seconds: float) -> int:
    """Print the figures."""
    names = [f"fake{each}" for each in range(1, number + 1)]
    chance = random.Random(23)
    left: Queue[tuple[tuple[str, str], float]] = Queue()
    for pair in pairs(names)[:most]:
        left.put((pair, seconds * chance.uniform(0.9, 1.1)))
    amount, measuring = left.qsize(), Measuring()
    with closing(log_in(str(kubeconfig), None)) as api, config.new_client_from_config(str(kubeconfig)) as counted:
        api.ask("POST", "/api/v1/namespaces", manifests.namespace(NAMESPACE, "fake"))
        while not api.exists(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"):
            time.sleep(0.5)
        api.ask("POST", JOBS.replace("/podperf/", f"/{NAMESPACE}/"), job_of(number), [("dryRun", "All")])
        print(f"the API server takes the Job of {number * (number - 1) // 2} pairs", flush=True)
        with closing(FakeNodes(kubeconfig, names)) as nodes:
            before, began = calls_of(counted), time.monotonic()
            threads = [threading.Thread(target=work, args=(kubeconfig, left, measuring)) for _ in range(number // 2)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            took, phase = time.monotonic() - began, Phase.between(before, calls_of(counted))
        api.delete(f"/api/v1/namespaces/{NAMESPACE}")
        while api.exists(f"/api/v1/namespaces/{NAMESPACE}"):
            time.sleep(0.5)
    print(
        f"{number} nodes, {amount} pairs of {seconds:g} s: {took:.0f} s, at best {amount / len(threads) * seconds:.0f}"
    )
    print(f"    at the same time: {measuring.most} pairs at most, {measuring.seconds / took:.0f} in the mean")
    print(f"    {phase.total / phase.seconds:.0f} requests a second, {phase.cpu / phase.seconds:.2f} CPUs")
    print(f"    two runs on one node: {len(nodes.shared)} times {nodes.shared[:3]}; errors: {measuring.errors[:3]}")
    return 1 if nodes.shared or measuring.errors else 0


if __name__ == "__main__":
    words = dict(enumerate(sys.argv))
    sys.exit(main(Path(sys.argv[1]), int(words.get(2, 200)), int(words.get(3, 1000)), float(words.get(4, 10))))
