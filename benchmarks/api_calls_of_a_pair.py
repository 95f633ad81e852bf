"""The requests to the API server that one pair of nodes takes, and the arithmetic for all pairs of a large cluster.

Usage, with a cluster of two nodes that have the image of `podperf image build FILE --whole` (`cluster up --nodes 2
--image FILE`): `sudo .venv/bin/python benchmarks/api_calls_of_a_pair.py KUBECONFIG FOLDER [NODES]`. FOLDER is a new
folder that all nodes have; on that cluster, one in /var/lib/podperf-cluster. It gets the results of the pair. NODES are
the nodes of the large cluster, by default 200.

The script makes the Job of topologies/kubernetes/job.yaml with the rows ROWS, and reads the metrics of the API server
three times: of an idle minute, while the Job measures its one pair, and of a minute in which a second Job waits for a
pod of another run. The requests of an idle cluster in the same time are subtracted. A watch is not counted, because it
is one request for hours. Nobody else may use the cluster.
"""

from __future__ import annotations

import copy
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from kubernetes import config

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "libraries"))

from podperf.kubernetes import manifests
from podperf.kubernetes.api import log_in
from podperf.kubernetes.manifests import NodeOf, PodWishes
from podperf.kubernetes.running_pods import why_not_running
from podperf.kubernetes.settings import IMAGE

ROOT = Path(__file__).resolve().parents[1]
MINUTE = 60.0  # seconds of the two other phases
SETTLE = 10.0  # seconds in which a cluster ends what a phase began
SELDOM = 35.0  # seconds after which a waiting run looks at its pod seldom
ROWS = tuple(f"Pod to pod on two nodes, {each}" for each in ("64 B", "1518 B", "IMIX"))
START, ROW, LOOK_AGAIN = 90.0, 60.0, 5.0  # seconds for the Job to start, and at most for each row
PODS = "/api/v1/namespaces/podperf/pods"
JOBS = "/apis/batch/v1/namespaces/podperf/jobs"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "ServiceAccount": "/api/v1/namespaces/podperf/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/podperf/configmaps",
    "PersistentVolumeClaim": "/api/v1/namespaces/podperf/persistentvolumeclaims",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/podperf/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/podperf/rolebindings",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Job": JOBS,
}
_LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Calls:
    """The work of an API server so far: requests by verb and resource, and by flow schema, and seconds of CPU time."""

    at: float
    requests: Counter[str]
    schemas: Counter[str]
    cpu: float

    @classmethod
    def of(cls, text: str, at: float) -> Calls:
        """The counters in the text of /metrics."""
        found, schemas, cpu = Counter[str](), Counter[str](), 0.0
        for name, labels, value in _LINE.findall(text):
            label = dict(_LABEL.findall(labels))
            if name == "apiserver_request_total" and label["resource"] and label["verb"] != "WATCH":
                what = "/".join(filter(None, (label["resource"], label["subresource"])))
                found[f"{label['verb']} {what}"] += int(float(value))
            elif name == "apiserver_flowcontrol_dispatched_requests_total":
                schemas[label["flow_schema"]] += int(float(value))
            elif name == "process_cpu_seconds_total":
                cpu = float(value)
        return cls(at, found, schemas, cpu)


@dataclass(frozen=True)
class Phase:
    """The requests of a phase of so many seconds, and the CPU seconds of the API server."""

    seconds: float
    requests: dict[str, float]
    schemas: Mapping[str, float]
    cpu: float

    @classmethod
    def between(cls, before: Calls, after: Calls) -> Phase:
        """The phase between two readings."""
        requests, schemas = (
            {what: float(number - earlier[what]) for what, number in later.items()}
            for later, earlier in ((after.requests, before.requests), (after.schemas, before.schemas))
        )
        return cls(after.at - before.at, requests, schemas, after.cpu - before.cpu)

    def beyond(self, idle: Phase) -> Phase:
        """This phase without the requests of an idle cluster in the same time. A rare request can be below zero."""

        def less(mine: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, float]:
            return {each: mine.get(each, 0) - theirs.get(each, 0) * share for each in {*mine, *theirs}}

        share = self.seconds / idle.seconds
        cpu = self.cpu - idle.cpu * share
        return Phase(self.seconds, less(self.requests, idle.requests), less(self.schemas, idle.schemas), cpu)

    @property
    def total(self) -> float:
        """The number of requests."""
        return sum(self.requests.values())

    @property
    def of_podperf(self) -> float:
        """The number of podperf's own requests: those of its service account, and exec, which no schema counts."""
        return self.schemas.get("service-accounts", 0) + self.requests.get("CONNECT pods/exec", 0)

    def words(self, name: str) -> str:
        """The phase in lines."""
        head = f"{name}: {self.seconds:.0f} s, {self.total:.0f} requests, {self.total / self.seconds:.2f} a second"
        lines = [f"{head}; podperf's own: {self.of_podperf:.0f}; CPU time of the API server: {self.cpu:.1f} s"]
        many = sorted(self.requests.items(), key=lambda each: -each[1])
        return "\n".join(lines + [f"    {number:6.0f}  {what}" for what, number in many if number >= 0.5])


def calls_of(client: Any) -> Calls:
    """The counters of an API server now. `client` is an ApiClient of the package kubernetes."""
    answer = client.call_api(
        "/metrics", "GET", auth_settings=["BearerToken"], _preload_content=False, _return_http_data_only=True
    )
    return Calls.of(answer.data.decode(), time.monotonic())


class Cluster:
    """The cluster, with the namespace and the Job of the project's manifests."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._api = log_in(str(kubeconfig), None)
        self._client = config.new_client_from_config(str(kubeconfig))
        self._results = folder
        settings, claim, self._job = yaml.safe_load_all((ROOT / "topologies/kubernetes/job.yaml").read_text())
        (container,) = self._job["spec"]["template"]["spec"]["containers"]
        container["command"] = [*container["command"][:3], *(f"--test={row}" for row in ROWS)]
        self._nodes = settings["data"]["nodes"].split()
        names = {each["metadata"]["name"] for each in self._api.ask("GET", "/api/v1/nodes")["items"]}
        if not names.issuperset(self._nodes):
            sys.exit(f"this cluster has no nodes {' and '.join(self._nodes)}")
        for each in yaml.safe_load_all((ROOT / "topologies/kubernetes/namespaced.yaml").read_text()):
            self._make(each)
        for each in (volume(folder), claim, settings):
            self._make(each)

    def _make(self, manifest: Mapping[str, Any]) -> None:
        self._api.ask("POST", PATHS[manifest["kind"]], manifest)

    def minute(self) -> Phase:
        """The requests of one minute."""
        before = calls_of(self._client)
        time.sleep(MINUTE)
        return Phase.between(before, calls_of(self._client))

    def pair(self) -> tuple[Phase, float]:
        """The requests of the Job for its pair, until all its pods are gone; and the seconds of the Job."""
        before, asked = calls_of(self._client), 0
        self._make(self._job)
        while True:
            time.sleep(LOOK_AGAIN)
            asked += 1
            status = self._api.ask("GET", f"{JOBS}/podperf")["status"]
            if status.get("succeeded"):
                break
            if status.get("failed"):
                sys.exit(f"the Job failed: {status}")
            if asked > (START + ROW * len(ROWS)) / LOOK_AGAIN:
                sys.exit(f"the Job did not end in {asked * LOOK_AGAIN:.0f} s: {status}")
        time.sleep(SETTLE)
        phase = Phase.between(before, calls_of(self._client))
        phase.requests["GET jobs"] -= asked  # of this script
        began, ended = (datetime.fromisoformat(status[each]) for each in ("startTime", "completionTime"))
        return phase, (ended - began).total_seconds()

    def wait(self) -> Phase:
        """The requests of one minute in which a pair waits for a pod of another run."""
        other = manifests.pod("other", "other", (), ["sleep", "600"], PodWishes(IMAGE), NodeOf(self._nodes[0]))
        self._api.ask("POST", PODS, other)
        waiting = copy.deepcopy(self._job)
        waiting["metadata"]["name"] = "waiting"
        spec = waiting["spec"]["template"]["spec"]
        results = {"name": "results", "emptyDir": {}}  # the folder keeps the results of the pair
        spec["volumes"] = [results if each["name"] == "results" else each for each in spec["volumes"]]
        self._make(waiting)
        deadline = time.monotonic() + SELDOM
        while not self._waits():
            if time.monotonic() > deadline:
                sys.exit("the second Job does not wait")
            time.sleep(LOOK_AGAIN)
        time.sleep(SELDOM)
        phase = self.minute()
        if not self._waits():
            sys.exit("the second Job did not wait for a minute")
        return phase

    def _waits(self) -> bool:
        """Whether a pod waits for another run."""
        return any("anti-affinity" in why_not_running(each)[0] for each in self._api.ask("GET", PODS)["items"])

    def results(self) -> Path:
        """The results of the pair."""
        (found,) = self._results.iterdir()
        return found

    def close(self) -> None:
        """Delete the namespace and the volume."""
        self._api.delete("/api/v1/namespaces/podperf")
        self._api.delete("/api/v1/persistentvolumes/results")
        self._api.close()
        self._client.close()


def volume(folder: Path) -> dict[str, Any]:
    """A volume in a folder that all nodes have."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteMany"],
        "persistentVolumeReclaimPolicy": "Retain",
        "hostPath": {"path": str(folder)},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "results"}, "spec": spec}


def bytes_of(paths: Iterable[Path]) -> int:
    """The size of these files."""
    return sum(each.stat().st_size for each in paths if each.is_file())


def on_paper(nodes: int, pair: Phase, seconds: float, waiting: Phase, results: Path) -> str:
    """The figures of all pairs, of which half as many as there are nodes are measured at the same time."""
    pairs, at_once = nodes * (nodes - 1) // 2, nodes // 2
    records = sorted((results / "records").glob("*.json"))
    whole = bytes_of(results.rglob("*"))
    return "\n".join(
        [
            f"{nodes} nodes: {pairs} pairs, {at_once} at the same time",
            f"    the Job of {len(ROWS)} rows takes {pairs / at_once * seconds / 3600:.1f} h, if no pair waits",
            f"    {at_once * pair.total / seconds:.0f} requests a second, "
            f"of which podperf's own are {at_once * pair.of_podperf / seconds:.0f}",
            f"    {at_once * pair.cpu / seconds:.2f} CPUs of the API server",
            f"    {at_once * waiting.total / waiting.seconds:.0f} requests a second, if {at_once} pairs wait",
            f"    {pairs * len(records)} records ({len(records)} of each pair), "
            f"{pairs * bytes_of(records) / 1e9:.2f} GB; all files of the results: {pairs * whole / 1e9:.1f} GB",
        ]
    )


def main(kubeconfig: Path, folder: Path, nodes: int) -> int:
    """Print the figures."""
    folder.mkdir()
    with closing(Cluster(kubeconfig, folder)) as cluster:
        time.sleep(SETTLE)
        idle = cluster.minute()
        print(idle.words("idle"), flush=True)
        pair, seconds = cluster.pair()
        pair = pair.beyond(idle)
        print(pair.words(f"one pair, {len(ROWS)} rows, of which the Job says {seconds:.0f} s"), flush=True)
        print(f"    exec a row: {pair.requests.get('CONNECT pods/exec', 0) / len(ROWS):.1f}", flush=True)
        waiting = cluster.wait().beyond(idle)
        print(waiting.words("one pair that waits"), flush=True)
        print(on_paper(nodes, pair, seconds, waiting, cluster.results()))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 200))
