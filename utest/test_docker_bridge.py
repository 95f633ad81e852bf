"""Networks of Docker and Podman: what the daemon is asked for, and what the worker lacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.docker_bridge import DockerBridge
from podperf.dataplanes.podman_bridge import PodmanBridge
from podperf.model import Chain, FrameSize
from podperf.preflight.plan import SET_UP, plan
from podperf.preflight.recording import Kind
from podperf.topology import SCHEMA_PATH, load_topology
from scripted_host import ScriptedHost

LOCAL = load_topology(SCHEMA_PATH.parent / "local.yaml", DATA_PLANES)


def asked(pods: int, data_plane: str = "docker-bridge") -> list[str]:
    """The command lines of a set-up that mention Docker or Podman."""
    made = plan(LOCAL, Chain(data_plane, pods), FrameSize.parse(64))
    return [
        step.text
        for step in made.steps
        if step.phase == SET_UP and ("docker" in step.text or "podman" in step.text) and step.kind is not Kind.TELL
    ]


def test_what_is_not_installed_is_said() -> None:
    lacking = ScriptedHost(patient=True, refused={"which dockerd": "", "which containerd": ""})
    assert DockerBridge.unavailable(lacking) == (
        "dockerd, containerd is not installed on scripted host, and makes Docker's network (package docker.io)"
    )
    assert DockerBridge.unavailable(ScriptedHost(patient=True)) is None


def test_the_daemon_has_files_and_groups_of_its_own() -> None:
    (daemon,) = (each for each in asked(1) if " dockerd " in each)
    paths = re.findall(r"--(?:host|pidfile|data-root|exec-root) (?:unix://)?(\S+)", daemon)
    assert len(paths) == 4
    assert {str(Path(each).parent) for each in paths} == {"/run/podperf/docker"}
    assert daemon.startswith("unshare --mount ")
    clients = [each for each in asked(2) if each.startswith("docker ")]
    assert all(each.startswith("docker --host unix:///run/podperf/docker/socket ") for each in clients)
    assert all("--cgroup-parent /podperf-docker" in each for each in clients if " run " in each)


def test_podman_has_a_daemon_with_files_and_groups_of_its_own() -> None:
    made = asked(2, "podman-bridge")
    (service,) = (each for each in made if " system service " in each)
    paths = re.findall(r"(?:--(?:root|runroot|tmpdir|network-config-dir)|--time 0) (?:unix://)?(\S+)", service)
    assert len(paths) == 5
    assert {str(Path(each).parent) for each in paths} == {"/run/podperf/podman"}
    clients = [each for each in made if each.startswith("podman ")]
    assert all(each.startswith("podman --remote --url unix:///run/podperf/podman/socket ") for each in clients)
    assert all("--cgroup-parent /podperf-podman" in each for each in clients if " run " in each)


def test_podman_lacks_what_makes_its_network() -> None:
    lacking = ScriptedHost(patient=True, refused={"sh -c which /usr/lib/podman/netavark": ""})
    assert PodmanBridge.unavailable(lacking) == (
        "netavark is not installed on scripted host, and makes Podman's network (package netavark)"
    )
    assert PodmanBridge.unavailable(ScriptedHost(patient=True)) is None


@pytest.mark.parametrize("data_plane", ["docker-bridge", "podman-bridge"])
def test_each_outermost_pod_is_published_in_its_outer_network(data_plane: str) -> None:
    """Docker publishes the ports of a container in its network whose name comes first in the alphabet, and Podman in
    the container's first network."""
    made = asked(3, data_plane)
    networks = [each.split()[-1] for each in made if " network create " in each]
    assert networks == ["a-left", "b-1", "b-2", "a-right"]
    published = [re.findall(r"--publish (\S+)", each) for each in made if " run " in each]
    assert [len(each) for each in published] == [1, 0, 1]
    joined = [re.search(r" --network (\S+) ", each) for each in made if " run " in each]
    assert [each[1] for each in joined if each] == ["a-left", "b-1", "a-right"]
    connected = [each.split()[-2] for each in made if " network connect " in each]
    assert connected == ["b-1", "b-2", "b-2"]


def test_an_only_pod_tells_the_directions_by_the_port() -> None:
    (run,) = (each for each in asked(1) if " run " in each)
    left, right = re.findall(r"--publish (\S+)", run)
    assert (left.split(":")[1:], right.split(":")[1:]) == (["5001", "5001/udp"], ["5002", "5002/udp"])


def test_the_default_bridge_has_all_pods_and_its_own_addresses() -> None:
    made = asked(3, "docker-default")
    (daemon,) = (each for each in made if " dockerd " in each)
    assert "--bip 10.254.0.254/24 --mtu 1500" in daemon
    assert "--bridge" not in daemon
    runs = [each for each in made if " run " in each]
    assert len(runs) == 3
    assert all(" --network bridge " in each and " --ip " not in each for each in runs)
    assert not any(" network create " in each or " network connect " in each for each in made)
    published = [re.findall(r"--publish \S+:(\S+:\S+)", each) for each in runs]
    assert published == [["5001:5001/udp"], [], ["5002:5002/udp"]]


def test_the_second_node_joins_the_swarm_and_has_the_inner_pods() -> None:
    made = asked(4, "docker-overlay")
    first, second = (f"docker --host unix:///run/podperf/{folder}/socket " for folder in ("docker", "node2/docker"))
    swarm = [each for each in made if " swarm " in each]
    assert [each.startswith(first) for each in swarm] == [True, True, False]
    assert swarm[-1].startswith(f"{second}swarm join --token ")
    assert swarm[-1].endswith(" 10.254.255.1")
    runs = [each for each in made if " run " in each]
    assert [each.startswith(first) for each in runs] == [True, False, False, True]
    assert [re.findall(r"--publish \S+:(\S+:\S+)", each) for each in runs] == [
        ["5001:5001/udp"],
        [],
        [],
        ["5002:5002/udp"],
    ]
    (overlay,) = (each for each in made if "--driver overlay" in each)
    assert "com.docker.network.driver.mtu=1550" in overlay


def test_macvlan_has_a_parent_for_each_segment_and_publishes_nothing() -> None:
    made = asked(2, "docker-macvlan")
    networks = [each for each in made if " network create " in each]
    assert [re.findall(r"--driver (\S+).* --opt parent=(\S+)", each) for each in networks] == [
        [("macvlan", "w-left")],
        [("macvlan", "parent1")],
        [("macvlan", "w-right")],
    ]
    assert not any("--publish" in each for each in made)
