"""Networks of Docker and Podman: real frames cross them, the record shows them, and nothing of a daemon stays."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chains import forward, local_testbed, need, send
from container_engines import docker_programs, podman_programs
from machine import once_as
from podperf.addressing import ADDRESSES, IPV6_ADDRESSES
from podperf.dataplanes import DATA_PLANES
from podperf.errors import PodperfError
from podperf.frames import AddressFamily, Headers
from podperf.hosts.linux import ip_json
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.model import Chain, FrameSize
from robot_run import Robot, mrr_suite, podperf

NAME = "docker-bridge"


@pytest.fixture(scope="module", autouse=True)
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The programs of both engines, which Debian's packages bring. The tests install none."""
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in podman_programs(tmp_path_factory.mktemp("podman")).items():
            patch.setenv(variable, value)
        for variable, value in docker_programs().items():
            patch.setenv(variable, value)
        yield


pytestmark = pytest.mark.usefixtures("programs", "machine_as_before", "no_frame_leaves")


def daemons() -> list[str]:
    """The processes of Docker and Podman with files in the run directory."""
    found = subprocess.run(
        ["pgrep", "--full", "--list-full", "/run/podperf/(docker|podman)"], capture_output=True, text=True, check=False
    )
    return found.stdout.splitlines()


def crossed(data_plane: str, pods: int, family: AddressFamily = AddressFamily.IPV4) -> dict[str, Any]:
    """The chain forwards small and large frames and leaves no daemon. Returns the data plane's description of it."""
    need(data_plane)
    headers = Headers(family)
    told = forward(Chain(data_plane, pods), (str(headers.smallest_frame), "1518"), headers=headers)
    assert once_as(list[str](), daemons) == []
    return told


def sent_to_second_node() -> tuple[int, int]:
    """The frames and bytes that the first node of a swarm has sent to the second one."""
    (link,) = ip_json(NetworkNamespace("podperf-worker"), "-statistics", "link", "show", "dev", "node")
    return link["stats64"]["tx"]["packets"], link["stats64"]["tx"]["bytes"]


@pytest.mark.parametrize("pods", [1, 2])
def test_frames_cross_docker_in_both_directions(pods: int) -> None:
    assert DATA_PLANES[NAME].unavailable(LocalHost()) is None
    told = crossed(NAME, pods)
    networks = told["docker"]["networks"]
    assert [each["Driver"] for each in networks] == ["bridge"] * (pods + 1)
    assert networks[0]["IPAM"]["Config"] == [{"Subnet": "10.254.0.0/24", "Gateway": "10.254.0.254"}]
    assert networks[0]["Options"]["com.docker.network.driver.mtu"] == "1500"
    assert told["docker"]["userland_proxies"] == 2
    assert told["docker"]["firewall"].startswith("iptables v")
    assert told["runtime"]["kind"] == "containers of docker"
    assert any("-A DOCKER " in rule and "--to-destination 10.254.0.2:5001" in rule for rule in told["iptables_nat"])
    assert "look_alike" not in told


@pytest.mark.parametrize("data_plane", ["docker-bridge", "docker-default", "docker-macvlan", "podman-bridge"])
def test_hooks_find_the_pods_of_an_engine(data_plane: str) -> None:
    need(data_plane)
    with local_testbed().build(Chain(data_plane, 2), FrameSize.parse(64)) as sut:
        (part,) = sut.parts
        assert part.site is not None
        assert [pod.name for pod in part.site.pods] == ["pod1", "pod2"]


@pytest.mark.parametrize("family", AddressFamily)
@pytest.mark.parametrize("pods", [1, 2])
def test_frames_cross_its_default_bridge_in_both_directions(pods: int, family: AddressFamily) -> None:
    """What `inspect` says of the bridge and of its containers is what their kernels have."""
    told = crossed("docker-default", pods, family)
    (network,) = told["docker"]["networks"]
    assert network["Options"]["com.docker.network.bridge.default_bridge"] == "true"
    assert network["EnableIPv6"] == (family is AddressFamily.IPV6)
    (bridge,) = (each for each in told["worker"]["links"] if each["kind"] == "bridge")
    assert bridge["name"] == network["Options"]["com.docker.network.bridge.name"] == "docker0"
    assert f"{network['IPAM']['Config'][0]['Gateway']}/24" in bridge["addresses"]
    assert len(network["Containers"]) == pods
    address = "IPv4Address" if family is AddressFamily.IPV4 else "IPv6Address"
    for name, pod in told["pods"].items():
        (link,) = (each for each in pod["links"] if each["kind"] == "veth")
        container = network["Containers"][f"podperf-{name}"]
        assert link["name"] == "net1"
        assert link["mac"] == container["MacAddress"]
        assert container[address] in link["addresses"]


@pytest.mark.parametrize("family", AddressFamily)
@pytest.mark.parametrize("pods", [1, 2])
def test_frames_cross_its_macvlan_in_both_directions(pods: int, family: AddressFamily) -> None:
    told = crossed("docker-macvlan", pods, family)
    networks = told["docker"]["networks"]
    assert [each["Driver"] for each in networks] == ["macvlan"] * (pods + 1)
    assert [networks[0]["Options"]["parent"], networks[-1]["Options"]["parent"]] == ["w-left", "w-right"]
    for pod in told["pods"].values():
        assert [each["kind"] for each in pod["links"] if each["name"].startswith("net")] == ["macvlan"] * 2
    assert told["runtime"]["kind"] == "containers of docker"


@pytest.mark.parametrize("family", AddressFamily)
@pytest.mark.parametrize("pods", [1, 2])
def test_frames_cross_podman_in_both_directions(pods: int, family: AddressFamily) -> None:
    """The bridges that Podman's `inspect` names are there, with the gateways of its networks."""
    told = crossed("podman-bridge", pods, family)
    networks, links = told["podman"]["networks"], told["worker"]["links"]
    bridges = {each["name"]: each for each in links if each["kind"] == "bridge"}
    assert [each["driver"] for each in networks] == ["bridge"] * (pods + 1)
    assert {each["network_interface"] for each in networks} == set(bridges)
    assert networks[0]["ipv6_enabled"] == (family is AddressFamily.IPV6)
    for network in networks:
        bridge = bridges[network["network_interface"]]
        assert str(bridge["mtu"]) == network["options"]["mtu"] == "1500"
        gateways = {f"{each['gateway']}/{each['subnet'].partition('/')[2]}" for each in network["subnets"]}
        assert gateways <= set(bridge["addresses"])
    addresses = ADDRESSES[family]
    to_pod = f"--to-destination {addresses.with_port(addresses.right_of(0), 5001)}"
    assert any("-A NETAVARK-DN-" in rule and to_pod in rule for rule in told["iptables_nat"])
    assert told["runtime"]["kind"] == "containers of podman"
    assert told["runtime"]["network_backend"] == "netavark"


@pytest.mark.parametrize("pods", [3, 4])
def test_frames_cross_the_overlay_network_of_a_swarm_in_both_directions(pods: int) -> None:
    """Each node's Docker names the other node as a peer, and VXLAN makes the frames between the nodes larger."""
    told = crossed("docker-overlay", pods)
    docker = [told[of]["networks"][0] for of in ("docker", "docker_of_second_node")]
    assert [each["Driver"] for each in docker] == ["overlay"] * 2
    assert all({peer["IP"] for peer in each["Peers"]} == {"10.254.255.1", "10.254.255.2"} for each in docker)
    outermost = {"podperf-pod1", f"podperf-pod{pods}"}
    assert outermost <= set(docker[0]["Containers"])
    assert not outermost & set(docker[1]["Containers"])
    assert "podperf-pod2" in docker[1]["Containers"]
    for name, pod in told["pods"].items():
        where = docker[0] if f"podperf-{name}" in outermost else docker[1]
        container = where["Containers"][f"podperf-{name}"]
        (link,) = (each for each in pod["links"] if container["IPv4Address"] in each["addresses"])
        assert (link["mac"], link["mtu"]) == (container["MacAddress"], 1500)
    (underlay,) = (each for each in told["second_node"]["links"] if each["name"] == "node")
    assert underlay["mtu"] == 1550


def test_frames_for_the_other_node_of_a_swarm_are_in_vxlan() -> None:
    """Each frame of both directions leaves the first node once, larger by the headers of the tunnel."""
    need("docker-overlay")
    with local_testbed().build(Chain("docker-overlay", 3), FrameSize.parse("64")) as sut:
        before = sent_to_second_node()
        send(sut)
        frames, octets = (after - first for after, first in zip(sent_to_second_node(), before, strict=True))
    assert frames >= 2 * 0.9 * 200
    assert octets / frames >= 100  # the probes have 60 bytes without the FCS, and VXLAN adds 50


def test_the_look_alike_says_that_it_is_one() -> None:
    assert "without a Docker daemon" in forward(Chain("docker", 1))["look_alike"]


def test_published_ports_have_ipv6() -> None:
    told = crossed(NAME, 1, AddressFamily.IPV6)
    assert told["docker"]["networks"][0]["EnableIPv6"]
    to_pod = f"--to-destination [{IPV6_ADDRESSES.right_of(0)}]:5001"
    assert any("-A DOCKER " in rule and to_pod in rule for rule in told["iptables_nat"])


@pytest.mark.parametrize(("data_plane", "daemon"), [(NAME, "dockerd "), ("podman-bridge", "podman .* service ")])
def test_a_daemon_that_ends_is_noticed(data_plane: str, daemon: str) -> None:
    need(data_plane)
    with local_testbed().build(Chain(data_plane, 1), FrameSize.parse("64")) as sut:
        send(sut)
        (process,) = subprocess.run(
            ["pgrep", "--full", f"^{daemon}"], capture_output=True, text=True, check=True
        ).stdout.split()
        subprocess.run(["kill", "-KILL", process], check=True)
        with pytest.raises(PodperfError, match="has ended"):
            for _ in range(100):
                sut.check()
                time.sleep(0.1)


@pytest.mark.parametrize(
    ("data_plane", "pods", "engine"),
    [(NAME, 1, "docker"), ("docker-overlay", 3, "docker"), ("podman-bridge", 1, "podman")],
)
def test_a_killed_run_leaves_no_daemon_and_no_group(tmp_path: Path, data_plane: str, pods: int, engine: str) -> None:
    need(data_plane)
    robot = Robot(tmp_path, mrr_suite(tmp_path, Long=f"{data_plane}    {pods}    64"), trials=500)
    robot.wait_for_trials(1)
    assert daemons()
    robot.kill()
    assert once_as(list[str](), daemons) == []
    assert f"the control groups of {engine}'s containers" in podperf("clean").stdout
    assert not list(Path("/sys/fs/cgroup").rglob(f"podperf-{engine}"))
    assert "nothing" in podperf("clean").stdout
