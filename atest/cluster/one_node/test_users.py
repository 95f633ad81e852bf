"""Users who are not root, who have few rights, and who say what their pods have."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from cluster.runs import ONE_ROW, cluster_tester, topology
from own_cluster import KUBECONFIG, STARTS_A_CLUSTER, apply, namespaces, pods_in, program_of
from podperf.cluster.oci_archive import read_archive
from podperf.cluster.pod_image import POD, ready_image
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api, ApiError, log_in
from podperf.kubernetes.rights import (
    GRANTED_BY,
    OF_A_RUN,
    OF_ATTACHMENTS,
    OF_NAMESPACES,
    OF_POLICIES,
    OF_SERVICES,
    allowed,
)
from podperf.kubernetes.settings import pods_of_tester
from podperf.kubernetes.tester import KubernetesTester
from podperf.model import Trial
from podperf.records import read_records
from podperf.testers import TESTERS
from podperf.topology import load_topology
from robot_run import ROOT, podperf
from traffic import TRAFFIC

pytestmark = STARTS_A_CLUSTER
CAP_NET_ADMIN = 12  # linux/capability.h
# A user who is not root. The right to read all files is for those of the tests alone.
AS_USER = (
    *("setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)


def test_who_is_not_root_makes_an_image_checks_measures_and_cleans(api: Api, tmp_path: Path) -> None:
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


def test_the_api_server_would_take_the_plan(api: Api, tmp_path: Path) -> None:
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


def test_the_rights_of_the_files_are_enough(api: Api, tmp_path: Path) -> None:
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


def test_pods_have_what_users_pods_have_and_measure(api: Api, tmp_path: Path) -> None:
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
