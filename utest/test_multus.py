"""Interfaces by Multus: what podperf asks for, what it reads back, and its CNI plug-in."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError, Unavailable
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kubernetes.api import ApiError
from podperf.kubernetes.chain_pods import ChainPod, ClusterRun
from podperf.kubernetes.multus import IN_NETWORK, PLUGIN, annotations_of, attached, interface_of, wanted_network
from podperf.kubernetes.rights import OF_ATTACHMENTS
from podperf.model import Chain
from podperf.pods.base import Attachment
from podperf.preflight.plan import plan
from scripted_host import ScriptedHost
from test_kubernetes_pods import CPUS, SMALL, OneNode, settings_of, topology

BRIDGE = {"type": "bridge", "bridge": "br0", "ipam": {"type": "static", "addresses": [{"address": "198.18.0.2/24"}]}}
PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
MAPPING = {"portMappings": [{"hostPort": 5000, "containerPort": 5000, "protocol": "udp"}]}
WORKER = NetworkNamespace("podperf-worker")
NET1 = wanted_network(Attachment("net1", "docker0", [BRIDGE, PORTMAP], MAPPING), WORKER)


def test_a_list_of_plug_ins_is_called_in_the_network_of_the_worker() -> None:
    assert NET1.configuration["name"] == "docker0" and NET1.addresses == ["198.18.0.2"]
    plugins = NET1.configuration["plugins"]
    assert [(plugin["type"], plugin["podperfPlugin"], plugin["podperfNetwork"]) for plugin in plugins] == [
        (PLUGIN, "bridge", "podperf-worker"),
        (PLUGIN, "portmap", "podperf-worker"),
    ]
    assert plugins[0]["ipam"] == BRIDGE["ipam"] and plugins[1]["capabilities"] == PORTMAP["capabilities"]
    (asked,) = json.loads(annotations_of("pod1-cafe", [NET1])["k8s.v1.cni.cncf.io/networks"])
    assert asked == {"name": "pod1-cafe-net1", "interface": "net1", **MAPPING}
    assert annotations_of("pod1-cafe", []) == {}


def status(*interfaces: dict[str, Any]) -> dict[str, Any]:
    said = json.dumps([{"name": "podperf", "interface": "eth0", "ips": ["10.0.0.1"]}, *interfaces])
    return {"metadata": {"name": "p", "annotations": {"k8s.v1.cni.cncf.io/network-status": said}}, "spec": {}}


def test_what_multus_tells_is_read_by_interface() -> None:
    told = attached(status({"name": "ns/p-net1", "interface": "net1", "ips": ["198.18.0.2"]}, {"name": "x"}))
    assert told == {"eth0": ["10.0.0.1"], "net1": ["198.18.0.2"]}


def test_a_node_without_multus_is_named() -> None:
    with pytest.raises(PodperfError, match="Multus does not attach interfaces on node node7"):
        attached({"metadata": {"name": "p"}, "spec": {"nodeName": "node7"}})


def link(name: str, index: int, other: int, kind: str = "veth") -> dict[str, Any]:
    return {
        "ifname": name,
        "ifindex": index,
        "link_index": other,
        "address": "02:00:00:00:00:01",
        "linkinfo": {"info_kind": kind},
    }


@pytest.mark.parametrize(
    ("kind", "ends", "found"),
    [
        ("veth", [link("veth1", 7, 3), link("w-left", 3, 7)], "veth1"),
        ("veth", [link("w-left", 7, 4)], None),
        ("macvlan", [link("veth1", 7, 3)], None),
    ],
)
def test_an_interface_and_the_workers_end_are_read_back(
    kind: str, ends: list[dict[str, Any]], found: str | None
) -> None:
    of_pod = json.dumps([link("net1", 3, 7, kind)])
    inside = "nsenter --net=/run/netns/podperf-pod1 -- "
    pod = NetworkNamespace("podperf-pod1", ScriptedHost(answers={f"{inside}ip -json": of_pod}, patient=True))
    worker = ScriptedHost(answers={"ip -json": json.dumps(ends)}, patient=True)
    interface = interface_of(NET1, {"net1": ["198.18.0.2"]}, pod, worker)
    assert (interface.mac, interface.address) == ("02:00:00:00:00:01", "198.18.0.2")
    assert interface.host_interface == found


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"eth0": ["10.0.0.1"]}, "no interface net1: it tells eth0"),
        ({"net1": ["198.18.0.3"]}, r"was to have the addresses \['198.18.0.2'\], and Multus tells \['198.18.0.3'\]"),
    ],
)
def test_asked_and_got_differ(told: dict[str, list[str]], said: str) -> None:
    with pytest.raises(PodperfError, match=said):
        interface_of(NET1, told, NetworkNamespace("podperf-pod1"), ScriptedHost())


def test_a_plan_shows_definitions_and_no_plug_in_that_podperf_calls() -> None:
    chain = Chain("linux-bridge", 2)
    steps = plan(topology(attached_by="multus"), chain, SMALL, CPUS).steps
    objects = [
        found for step in steps if step.text.startswith("kubectl create") for found in yaml.safe_load_all(step.content)
    ]
    definitions = [each for each in objects if each["kind"] == "NetworkAttachmentDefinition"]
    pods = [each for each in objects if each["kind"] == "Pod"]
    asked = [each for pod in pods for each in json.loads(pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"])]
    assert [each["name"] for each in asked] == [definition["metadata"]["name"] for definition in definitions]
    configurations = [json.loads(definition["spec"]["config"]) for definition in definitions]
    assert {configuration["plugins"][0]["podperfPlugin"] for configuration in configurations} == {"bridge"}
    assert {configuration["plugins"][0]["podperfNetwork"] for configuration in configurations} == {"podperf-worker"}
    assert not [step for step in steps if "CNI_COMMAND" in step.text]
    usual = plan(topology(), chain, SMALL, CPUS).steps
    ours, theirs = (
        {(each.namespace, each.text) for each in found if each.text[:3] == "ip "} for found in (steps, usual)
    )
    assert ours == theirs


def test_a_cluster_without_multus_is_a_skip_with_the_reason() -> None:
    class Without(OneNode):
        def ask(self, method: str, path: str, body: Any = None, query: Any = ()) -> Any:
            if "k8s.cni.cncf.io" in path and method == "POST":
                raise ApiError(f"{method} {path}", 404, "the server could not find the requested resource")
            return super().ask(method, path, body, query)

    server: Any = Without()
    run = ClusterRun(server, settings_of(attached_by="multus"))
    with pytest.raises(Unavailable, match=r"pods\.settings\.attached_by is `multus`, and the cluster has none"):
        run.create(ChainPod("pod1", networks=[NET1]))
    run.close()


def test_definitions_are_made_before_the_pod_and_need_two_rights() -> None:
    server: Any = OneNode()
    run = ClusterRun(server, settings_of(attached_by="multus"))
    name = run.create(ChainPod("pod1", networks=[NET1]))
    made = [path.rpartition("/")[2] for path in server.there]
    assert made.index(f"{name}-net1") < made.index(name)
    assert settings_of(attached_by="multus").further_rights == OF_ATTACHMENTS
    assert settings_of().further_rights == ()
    run.close()


def called(command: str, configuration: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Call podperf's plug-in. Its folder has a plug-in that would leave a file."""
    plugin = folder / PLUGIN
    if not plugin.exists():
        plugin.write_bytes(IN_NETWORK.read_bytes())
        plugin.chmod(0o755)
    environment = {**os.environ, "CNI_COMMAND": command}
    return subprocess.run(
        [str(plugin)], input=configuration, env=environment, capture_output=True, text=True, check=False
    )


def test_the_plug_in_tells_its_versions(tmp_path: Path) -> None:
    assert "1.0.0" in json.loads(called("VERSION", "{}", tmp_path).stdout)["supportedVersions"]


@pytest.mark.parametrize("namespace", ["podperf-none-such", "podperf-"])
def test_interfaces_are_gone_with_their_namespace(tmp_path: Path, namespace: str) -> None:
    configuration = json.dumps({"podperfPlugin": "bridge", "podperfNetwork": namespace}, indent=1)
    assert called("DEL", configuration, tmp_path).returncode == 0
    refused = called("ADD", configuration, tmp_path)
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["msg"].endswith(f"no network namespace {namespace}")


@given(
    plugin=st.sampled_from(["bridge", "../bridge", "", "a;b", "$(touch x)", "`x`"]),
    namespace=st.text(st.characters(codec="ascii"), max_size=12).map("podperf-".__add__)
    | st.sampled_from(["cni-1", "podperf-../1", "../x", "podperf-a/b", "$(id)"]),
)
def test_a_hostile_configuration_enters_nothing(
    tmp_path_factory: pytest.TempPathFactory, plugin: str, namespace: str
) -> None:
    """A tenant who may make definitions writes the configuration."""
    folder = tmp_path_factory.mktemp("cni")
    refused = called("ADD", json.dumps({"podperfPlugin": plugin, "podperfNetwork": namespace}), folder)
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["msg"].startswith(f"{PLUGIN}: ")
    assert [each.name for each in folder.iterdir()] == [PLUGIN]
