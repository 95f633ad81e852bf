"""Pods of Jobs run podperf in the cluster."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from api_calls_of_a_pair import PATHS
from cluster.runs import MODEST_LOAD, ONE_ROW, ROW_OF_NODE, SHORT_TRIALS, cluster_tester, topology
from own_cluster import START_TIMEOUT, STARTS_A_CLUSTER, awaited, namespaces, pods_in, program_of
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api
from podperf.kubernetes.running_pods import why_not_running
from podperf.model import Trial
from robot_run import ROOT, Robot, podperf, trials_on_disk
from traffic import TRAFFIC

pytestmark = STARTS_A_CLUSTER
LONG_TRIALS = {"trials": 100, "duration": 4}  # of a run that does not end by itself in the time of a test
JOB_TIMEOUT = 360.0  # seconds for three runs
OF_JOBS = "podperf"  # the namespace of NAMESPACED_FILE


def test_one_file_gives_a_first_result_in_the_log_of_its_job(two_nodes: Api) -> None:
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
        assert "\nnetwork of the pods: " in said
    finally:
        for each in objects:
            if each["kind"] in {"Namespace", "ClusterRole", "ClusterRoleBinding"}:
                two_nodes.delete(f"{paths[each['kind']]}/{each['metadata']['name']}")


def test_pods_of_jobs_measure_nodes_and_pairs_and_wait_for_each_other(
    two_nodes: Api, results: Path, tmp_path: Path
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
    two_nodes: Api, results: Path, tmp_path: Path
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


def test_a_killed_pod_of_a_job_is_replaced_and_what_it_left_is_deleted(two_nodes: Api, results: Path) -> None:
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
