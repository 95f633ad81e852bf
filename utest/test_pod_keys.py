"""Keys of a pod's specification that users have in theirs: resources, hugepages, volumes, security context, command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.kubernetes import pods as of_pods
from podperf.kubernetes.chain_pods import ChainPod, manifests_of
from podperf.kubernetes.manifests import OF_TESTER, WITHOUT_RIGHTS, PodWishes, secured, with_capabilities
from podperf.kubernetes.multus import WantedNetwork
from podperf.kubernetes.pod_keys import level_of
from podperf.kubernetes.settings import ChainSettings, KubernetesSettings
from podperf.kubernetes.tester_objects import planned
from podperf.pods import POD_RUNTIMES
from podperf.pods.base import PodProgram
from podperf.testers import TESTERS
from podperf.topology import Topology, TopologyError, load_topology

PROGRAM = PodProgram(("NET_RAW",))
VOLUMES: dict[str, Any] = {
    "volumes": [{"name": "pages", "emptyDir": {"medium": "HugePages"}}],
    "volume_mounts": [{"name": "pages", "mountPath": "/dev/hugepages"}],
}
CONTEXT: dict[str, Any] = {
    "capabilities": {"add": ["NET_ADMIN", "CHOWN"], "drop": ["SYSLOG"]},
    "readOnlyRootFilesystem": False,
    "fsGroup": 1234,
    "sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "1024 65535"}],
}


def loaded(folder: Path, **parts: Any) -> Topology:
    """A topology with these parts beside the usual ones."""
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump({"version": 1, "name": "t", **parts}))
    return load_topology(path, DATA_PLANES, POD_RUNTIMES, TESTERS)


def of_tester(folder: Path, **settings: Any) -> KubernetesSettings:
    kind = loaded(folder, tester={"type": "kubernetes", "settings": settings}).tester.kind
    assert isinstance(kind, KubernetesSettings)
    return kind


def of_chains(folder: Path, **settings: Any) -> ChainSettings:
    topology = loaded(folder, pods={"runtime": "kubernetes", "settings": settings})
    return ChainSettings.read(topology.pods.settings)


def pod_of(settings: ChainSettings, program: PodProgram | None = None, **wanted: Any) -> Any:
    return manifests_of(ChainPod("pod1", program, **wanted), "cafe", [], settings)[1]


def test_the_testers_pods_have_what_users_pods_have(tmp_path: Path) -> None:
    wanted = {**VOLUMES, "hugepages": {"2Mi": "64Mi", "1Gi": "1Gi"}, "resources": {"intel.com/vf": 1}}
    pods = [each for each in planned(of_tester(tmp_path, **wanted, security_context=CONTEXT)) if each["kind"] == "Pod"]
    assert len(pods) == 2
    for pod in pods:
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        limits = {"memory": "256Mi", "intel.com/vf": "1", "hugepages-2Mi": "64Mi", "hugepages-1Gi": "1Gi"}
        assert container["resources"] == {"requests": {**limits, "cpu": "100m"}, "limits": limits}
        assert VOLUMES["volumes"][0] in spec["volumes"]
        assert VOLUMES["volume_mounts"][0] in container["volumeMounts"]
        assert {"fsGroup": 1234, "sysctls": CONTEXT["sysctls"]}.items() <= spec["securityContext"].items()
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        security = container["securityContext"]
        assert security["capabilities"]["add"] == ["NET_ADMIN", "CHOWN"]
        assert {"SYSLOG", "SETUID"} <= {*security["capabilities"]["drop"]}
        assert "CHOWN" not in security["capabilities"]["drop"] and "fsGroup" not in security
        assert not security["readOnlyRootFilesystem"]


def test_pods_of_userspace_networks_and_of_virtual_functions_can_be_said(tmp_path: Path) -> None:
    """The pods of published experiments with the draft are such: they are privileged, and have hugepages, devices, what
    the cluster tells about them, and the folder of a switch of the node."""
    told = [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]
    paths = {"told": "/etc/podinfo", "switch": "/var/run/openvswitch/", "pages": "/dev/hugepages"}
    volumes = [
        {"name": "told", "downwardAPI": {"items": told}},
        {"name": "switch", "hostPath": {"path": "/usr/local/var/run/openvswitch"}},
        {"name": "pages", "emptyDir": {"medium": "HugePages"}},
    ]
    wanted = {
        "annotations": {"k8s.v1.cni.cncf.io/networks": "one, other"},
        "resources": {"intel.com/left": 1, "intel.com/right": 1},
        "hugepages": {"1Gi": "1Gi"},
        "security_context": {"privileged": True},
        "volumes": volumes,
        "volume_mounts": [{"name": name, "mountPath": path} for name, path in paths.items()],
    }
    tester, chains = of_tester(tmp_path, **wanted), of_chains(tmp_path, **wanted)
    pods = [each for each in planned(tester) if each["kind"] == "Pod"]
    for pod in (*pods, pod_of(chains), pod_of(chains, PROGRAM)):
        spec, (container,) = pod["spec"], pod["spec"]["containers"]
        assert pod["metadata"]["annotations"] == wanted["annotations"]
        assert all(each in spec["volumes"] for each in volumes)
        assert paths.items() <= {each["name"]: each["mountPath"] for each in container["volumeMounts"]}.items()
        assert {"intel.com/left": "1", "intel.com/right": "1"}.items() <= container["resources"]["limits"].items()
        assert container["securityContext"]["privileged"]
    assert tester.security_level == chains.security_level == "privileged"


def test_a_pod_beside_the_measured_ones_has_nothing_of_what_they_need(tmp_path: Path) -> None:
    """A device or a volume can be there only once for each measured pod."""
    wanted = {**VOLUMES, "hugepages": {"2Mi": "64Mi"}, "resources": {"intel.com/vf": 1}, "receive_threads": True}
    settings = of_tester(tmp_path, **wanted, security_context=CONTEXT)
    *_, starter = (each for each in planned(settings) if each["kind"] == "Pod")
    (container,) = starter["spec"]["containers"]
    assert starter["metadata"]["name"].startswith("thread-")
    assert {*container["resources"]["limits"]} == {"memory"}
    assert len(starter["spec"]["volumes"]) == len(container["volumeMounts"]) == 1
    assert container["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True}
    assert settings.devices == ["intel.com/vf"], "no device plug-in offers hugepages"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"hugepages": {"2Mi": "128"}}, "hugepages"),
    ({"hugepages": {"4Mi": "128Mi"}}, "hugepages"),
    ({"hugepages": {"1Gi": "1025Mi"}}, "hugepages.1Gi: .*allowed: a multiple of 1Gi"),
    ({"volumes": [{"name": "a", "emptydir": {}}]}, r"volumes\[0\].emptydir: unknown key; .* did you mean 'emptyDir'"),
    ({"volumes": [{"name": "run", "emptyDir": {}}]}, r"volumes\[0\].name: .*another name, as podperf has a volume run"),
    ({"volumes": [{"name": "a"}]}, r"volumes\[0\]: .*allowed: a name, and one of the sources of volumes"),
    ({"volumes": [{"name": "a", "emptyDir": {}, "secret": {}}]}, r"volumes\[0\]: .*one of the sources of volumes"),
    ({"volume_mounts": [{"name": "a"}]}, r"volume_mounts\[0\].mountPath: found nothing; allowed: an absolute path"),
    ({"volume_mounts": [{"name": "a", "mountPath": "a"}]}, r"mountPath: found 'a'; allowed: an absolute path"),
    ({"volume_mounts": [{"name": "a", "mountPath": "/a"}]}, r"\[0\].name: .*one of `volumes`, which has none"),
    ({"security_context": {"procMount": "Unmasked"}}, "security_context.procMount: unknown key"),
    ({"security_context": {"privileged": "yes"}}, "security_context.privileged: found 'yes'; allowed: true, false"),
    (
        {"security_context": {"capabilities": {"add": ["a"]}}},
        r"capabilities.add\[0\]: .* a capability without CAP_",
    ),
]


@pytest.mark.parametrize(("wanted", "line"), REFUSED)
def test_a_wrong_value_has_one_line_in_either_settings(tmp_path: Path, wanted: dict[str, Any], line: str) -> None:
    for read, key in ((of_tester, "tester.settings."), (of_chains, "pods.settings.")):
        with pytest.raises(PodperfError, match=line) as caught:
            read(tmp_path, **wanted)
        assert key in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        *(("/", False), ("/run", False), ("/run/podperf", False), ("/run/podperf/a", False), ("/usr", False)),
        *(("/var/run/podperf", False), ("/var/run/openvswitch/", True)),
        *(("/usr/bin/", False), ("/sys", False), ("/sys/class/net", False), ("/a/../proc", False), ("//dev", False)),
        *(
            ("/dev/hugepages", True),
            ("/dev/vfio", True),
            ("/sys/bus/pci", True),
            ("/usr/share/a", True),
            ("/tmp", True),
        ),
    ],
)
def test_a_volume_hides_nothing_that_podperf_needs(tmp_path: Path, path: str, allowed: bool) -> None:
    wanted = {"volumes": [{"name": "a", "emptyDir": {}}], "volume_mounts": [{"name": "a", "mountPath": path}]}
    if allowed:
        assert of_tester(tmp_path, **wanted).wishes.mounts == wanted["volume_mounts"]
        return
    with pytest.raises(TopologyError, match=r"volume_mounts\[0\].mountPath: .*a path that hides no folder"):
        of_tester(tmp_path, **wanted)


@pytest.mark.parametrize(
    ("context", "line"),
    [
        ({"runAsUser": 1000}, "runAsUser: found 1000; allowed: 0, as the program in the pod needs root"),
        ({"runAsNonRoot": True}, "runAsNonRoot: found true; allowed: false"),
        (
            {"capabilities": {"drop": ["NET_RAW"]}},
            "capabilities.drop: .*no NET_RAW, which the program in",
        ),
        ({"capabilities": {"drop": ["ALL"]}}, "capabilities.drop: .*no NET_RAW"),
        ({"runAsUser": 0, "runAsNonRoot": False}, None),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}, None),
    ],
)
def test_the_tester_keeps_root_and_raw_sockets(tmp_path: Path, context: dict[str, Any], line: str | None) -> None:
    if line is None:
        assert of_tester(tmp_path, security_context=context).wishes.security == context
        return
    with pytest.raises(TopologyError, match=rf"tester.settings.security_context.{line}"):
        of_tester(tmp_path, security_context=context)


def test_a_program_in_a_pod_keeps_what_it_needs_and_a_pod_without_one_needs_nothing(tmp_path: Path) -> None:
    for context in ({"runAsUser": 7}, {"runAsNonRoot": True}, {"capabilities": {"drop": ["NET_RAW"]}}):
        settings = of_chains(tmp_path, security_context=context)
        with pytest.raises(Unavailable, match=r"pods\.settings\.security_context\.\w+.*: allowed: "):
            pod_of(settings, PROGRAM)
        assert (
            pod_of(settings)["spec"]["containers"][0]["securityContext"].items()
            >= {
                **WITHOUT_RIGHTS,
                **{key: value for key, value in context.items() if key != "capabilities"},
                "capabilities": {"drop": ["ALL", *context.get("capabilities", {}).get("drop", ())]},
            }.items()
        )
    settings = of_chains(tmp_path, security_context={"capabilities": {"drop": ["ALL"], "add": ["SYS_NICE"]}})
    (container,) = pod_of(settings, PROGRAM)["spec"]["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_RAW", "SYS_NICE"]}


def test_keys_that_contradict_each_other_for_the_api_server_do_not_meet() -> None:
    assert "allowPrivilegeEscalation" not in secured(OF_TESTER, {"privileged": True})
    assert secured(OF_TESTER, {}) == OF_TESTER
    root = secured(WITHOUT_RIGHTS, {"runAsUser": 0})
    assert root["runAsUser"] == 0 and "runAsNonRoot" not in root
    assert secured(with_capabilities(()), {"fsGroup": 1}) == with_capabilities(())


@pytest.mark.parametrize(
    ("wishes", "of_tester", "of_chains"),
    [
        ({}, "baseline", "restricted"),
        ({"security": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}, "baseline", "restricted"),
        ({"security": {"capabilities": {"add": ["CHOWN"]}}}, "baseline", "baseline"),
        ({"security": {"runAsUser": 0}}, "baseline", "baseline"),
        ({"security": {"capabilities": {"add": ["NET_ADMIN"]}}}, "privileged", "privileged"),
        ({"security": {"privileged": True}}, "privileged", "privileged"),
        ({"volumes": [{"name": "a", "configMap": {}}]}, "baseline", "restricted"),
        ({"volumes": [{"name": "a", "nfs": {}}]}, "baseline", "baseline"),
        ({"volumes": [{"name": "a", "hostPath": {}}]}, "privileged", "privileged"),
    ],
)
def test_the_pod_security_level_is_that_of_these_keys(wishes: dict[str, Any], of_tester: str, of_chains: str) -> None:
    pods = PodWishes("image", **wishes)
    assert (level_of(pods, "baseline"), level_of(pods, "restricted")) == (of_tester, of_chains)
    assert level_of(pods, "privileged") == "privileged"


@pytest.mark.parametrize(
    ("wanted", "asked", "pages"),
    [
        ("2Mi", {"hugepages-2Mi": "128Mi"}, 2),
        ({"2Mi": "256Mi"}, {"hugepages-2Mi": "256Mi"}, 2),
        ({"1Gi": "2Gi"}, {"hugepages-1Gi": "2Gi"}, 1024),
    ],
)
def test_hugepages_of_a_program_are_a_size_or_an_amount(tmp_path: Path, wanted: Any, asked: Any, pages: int) -> None:
    settings = of_chains(tmp_path, hugepages=wanted)
    (container,) = pod_of(settings, PROGRAM)["spec"]["containers"]
    assert {key: each for key, each in container["resources"]["limits"].items() if "huge" in key} == asked
    assert container["securityContext"]["capabilities"]["add"] == ["NET_RAW", "SYS_NICE"]
    assert settings.pages == pages
    assert "hugepages" not in str(pod_of(settings)), "the kernel forwards, and nothing in the pod would use them"


@pytest.mark.parametrize("wanted", ["4Mi", {}, {"2Mi": "128Mi", "1Gi": "1Gi"}, {"2Mi": "64Mi"}])
def test_hugepages_that_a_program_cannot_use_are_refused(tmp_path: Path, wanted: Any) -> None:
    with pytest.raises(
        PodperfError, match=r"pods\.settings\.hugepages(\.2Mi)?: .*allowed: (128Mi or more|the hugepages)"
    ):
        of_chains(tmp_path, hugepages=wanted)


def test_an_entrypoint_has_podperfs_command_as_its_arguments(tmp_path: Path) -> None:
    for program, words in ((None, ["sleep", "2147483647"]), (PROGRAM, ["sh", "/run/podperf/containers/pod1/program"])):
        (usual,) = pod_of(of_chains(tmp_path), program)["spec"]["containers"]
        assert usual["command"] == words and "args" not in usual
        (container,) = pod_of(of_chains(tmp_path, command=["/entrypoint.sh", "up"]), program)["spec"]["containers"]
        assert (container["command"], container["args"]) == (["/entrypoint.sh", "up"], words)
    with pytest.raises(TopologyError, match=r"tester\.settings\.command: unknown key"):
        of_tester(tmp_path, command=["/entrypoint.sh"])


@pytest.mark.parametrize(("entrypoint", "becomes"), [('sleep 0.1; exec "$@"', True), ('"$@"; exit 1', False)])
def test_an_entrypoint_must_become_podperfs_command(entrypoint: str, becomes: bool) -> None:
    host, command = LocalHost(), ("sleep", "30")
    process = host.spawn("sh", "-c", entrypoint, "sh", *command)
    try:
        words = ("timeout", "10" if becomes else "0.5", "sh", "-c", of_pods._HAS_BECOME, "sh", str(process.pid))
        assert (host.ask(*words, " ".join(command), check=False).exit_code == 0) == becomes
    finally:
        process.stop()


def test_annotations_of_the_topology_stand_beside_those_of_multus(tmp_path: Path) -> None:
    settings = of_chains(tmp_path, annotations={"a.example/b": "c"})
    assert pod_of(settings)["metadata"]["annotations"] == {"a.example/b": "c"}
    network = WantedNetwork("net1", {"plugins": [{"type": "macvlan"}]})
    annotations = pod_of(settings, networks=[network])["metadata"]["annotations"]
    assert {*annotations} == {"a.example/b", "k8s.v1.cni.cncf.io/networks"}
