"""Cilium as the network of podperf's own cluster: settings by mode, resources, and what the machine must have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podperf.cluster import layout
from podperf.cluster.layout import ClusterLayout, ClusterPrograms
from podperf.cluster.parts import chosen
from podperf.cluster.parts.cilium import Cilium
from podperf.errors import Unavailable
from podperf.kubernetes.known_networks import CILIUM
from podperf.kubernetes.unreached_service import why_unreached
from scripted_host import ScriptedHost
from test_kubernetes import FakeApi, cluster


@pytest.fixture
def extensions(tmp_path: Path) -> Path:
    """The root of unpacked packages with iptables."""
    (tmp_path / "usr/lib/x86_64-linux-gnu/xtables").mkdir(parents=True)
    return tmp_path


def built(folder: Path, mode: str) -> Cilium:
    """The network with its programs, and one resource of Kubernetes."""
    for name in ("daemon", "cilium-cni", "bpf/bpf_lxc.c"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    (folder / "crds/v2").mkdir(parents=True, exist_ok=True)
    kind = {"kind": "CustomResourceDefinition", "metadata": {"name": "ciliumnodes.cilium.io"}}
    (folder / "crds/v2/ciliumnodes.yaml").write_text(yaml.safe_dump(kind))
    return Cilium(folder, (folder,), mode)


def flags(network: Cilium) -> dict[str, str]:
    """The flags of the agent on the first of two nodes."""
    programs = ClusterPrograms(Path("/debian"), Path("/kubernetes"), network)
    wanted = ClusterLayout(programs, 4321, layout.nodes(2))
    command = network.command(wanted, wanted.nodes[0])
    return dict(each[2:].split("=", 1) for each in command if each.startswith("--"))


def test_the_tunnel_is_the_default_and_routes_have_none(extensions: Path) -> None:
    tunnel, native, alone = (flags(built(extensions, mode)) for mode in Cilium.modes)
    assert (tunnel["routing-mode"], tunnel["tunnel-protocol"]) == ("tunnel", "vxlan")
    for each in (native, alone):
        assert each["routing-mode"] == "native" and "tunnel-protocol" not in each
        assert each["auto-direct-node-routes"] == "true" and each["ipv4-native-routing-cidr"] in layout.PODS
    assert "kube-proxy-replacement" not in {*tunnel, *native}
    assert (alone["kube-proxy-replacement"], alone["enable-host-legacy-routing"]) == ("true", "false")


def test_kube_proxy_runs_unless_cilium_replaces_it() -> None:
    running = {mode: [part.name for part in chosen(Cilium(mode=mode), ())] for mode in Cilium.modes}
    assert running == {"tunnel": ["kube-proxy"], "native": ["kube-proxy"], "native-without-kube-proxy": []}


@pytest.mark.parametrize("mode", Cilium.modes)
def test_the_config_map_tells_what_the_agents_do(extensions: Path, mode: str) -> None:
    network = built(extensions, mode)
    fake = FakeApi({"/api/v1/namespaces/kube-system": {}})
    network.prepare(cluster(fake))
    assert "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/ciliumnodes.cilium.io" in fake.objects
    settings: dict[str, Any] = fake.objects[CILIUM]["data"]
    assert settings.items() <= flags(network).items()
    assert "Cilium" not in why_unreached(cluster(fake)), "a row to a Service is measured here"


@pytest.mark.parametrize(
    ("clang", "file_systems", "reason"),
    [
        ("Debian clang version 14.0.6", "cgroup2", None),
        ("Ubuntu clang version 18.1.3 (1ubuntu1)", "cgroup2", None),
        ("clang version 11.0.1-2", "cgroup2", "clang 14 or later, and here is clang version 11: apt-get install clang"),
        ("", "cgroup2", "clang 14 or later, and here is none: apt-get install clang"),
        ("Debian clang version 14.0.6", "cgroup", "need control groups of version 2: mkdir -p .* && mount -t cgroup2"),
    ],
)
def test_what_the_machine_lacks_is_said_with_the_remedy(clang: str, file_systems: str, reason: str | None) -> None:
    mounts = f"groups /sys/fs/cgroup/unified {file_systems} rw 0 0\n"
    host = ScriptedHost({"/proc/self/mounts": mounts}, {"sh -c clang --version": clang})
    network = Cilium(mode="native")
    if reason is None:
        network.demand(host)
        return
    with pytest.raises(Unavailable, match=reason):
        network.demand(host)


def test_a_kernel_without_vxlan_may_have_routes() -> None:
    host = ScriptedHost(
        {"/proc/self/mounts": "groups /groups cgroup2 rw 0 0\n"},
        {"sh -c clang --version": "clang version 14.0.6"},
        refused={"ip -n podperf-probe-vxlan link add probe": "Error: Unknown device type."},
        patient=True,
    )
    Cilium(mode="native").demand(host)
    with pytest.raises(Unavailable, match=r"vxlan.*; modprobe vxlan, or choose cilium:native"):
        Cilium(mode="tunnel").demand(host)
