"""A run tells the cause of a cluster's fault, and leaves nothing."""

from __future__ import annotations

import base64
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.runs import ONE_ROW, cluster_tester, topology
from machine import once_as
from own_cluster import (
    KUBECONFIG,
    START_TIMEOUT,
    STARTS_A_CLUSTER,
    awaited,
    frames_of,
    namespaces,
    pods_in,
    process_of,
    program_of,
)
from podperf.cluster.core import LIFE, Authority
from podperf.errors import PodperfError
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, ApiError, log_in
from podperf.kubernetes.manifests import PodWishes
from podperf.kubernetes.run_namespace import RunNamespace
from podperf.kubernetes.running_pods import PodDidNotStart, await_phase, why_ended, why_not_running
from podperf.kubernetes.settings import IMAGE, KubernetesSettings
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import Trial
from robot_run import Robot
from traffic import TRAFFIC

pytestmark = STARTS_A_CLUSTER
HANG_TIMEOUT = 40.0  # seconds for a trial and two questions of 10 s
EVICTION_TIMEOUT = 60.0  # seconds; a kubelet looks at volumes each ten seconds
SLOW_TIMEOUT = 180.0  # seconds for two pods and a trial with an API server that takes a second for each answer


@pytest.mark.parametrize(
    ("labels", "quota", "cause"),
    [
        ({"pod-security.kubernetes.io/enforce": "restricted"}, None, 'violates PodSecurity "restricted'),
        ({}, {"pods": "0"}, "exceeded quota: none"),
    ],
)
def test_a_refused_pod_has_the_cause_and_leaves_nothing(
    api: Api, labels: dict[str, str], quota: dict[str, str] | None, cause: str
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
    api: Api, wishes: dict[str, Any], command: list[str], cause: str
) -> None:
    place = RunNamespace(api)
    try:
        place.start(manifests.pod("p", place.run, place.owners, command, PodWishes(IMAGE, **wishes)))

        def found() -> bool:
            return cause in why_not_running(place.pod("p"))[0]

        assert once_as(True, found), place.pod("p")["status"]
    finally:
        place.close()


def test_an_api_server_that_hangs_in_a_trial_is_named_after_it(api: Api) -> None:
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
def test_a_tester_that_somebody_evicts_or_deletes_in_a_trial_has_the_clusters_cause(api: Api, evict: bool) -> None:
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


def test_a_pod_that_a_node_evicts_has_the_nodes_cause(api: Api) -> None:
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


def test_a_run_works_with_an_api_server_that_takes_a_second_for_each_answer(api: Api, tmp_path: Path) -> None:
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


def test_a_client_certificate_that_has_expired_is_named(api: Api, tmp_path: Path) -> None:
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


def test_a_pod_that_no_node_takes_is_given_up_after_the_time_of_the_topology(api: Api) -> None:
    wishes = PodWishes(IMAGE, node_selector={"zone": "moon"})
    began = time.monotonic()
    with pytest.raises(PodDidNotStart, match=r"no node takes it \(0/1 nodes are available"):
        KubernetesTester(KubernetesSettings(wishes, str(KUBECONFIG), start_timeout=3.0))
    assert 3 < time.monotonic() - began < 60


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
