"""Pods that are containers of Docker and of Podman: what the engine is asked for, and the message if it has nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any
from unittest.mock import Mock

import pytest

from podperf.allocation import PodLimits
from podperf.errors import PodperfError
from podperf.hosts.base import Process
from podperf.pods.engines import DockerPods, EnginePods, PodmanPods
from scripted_host import ScriptedHost

CONTAINER = {"HostConfig": {"NanoCpus": 250_000_000, "Memory": 192 << 20}}
DOCKER: Mapping[str, Any] = {
    "ServerVersion": "20.10.24+dfsg1",
    "Driver": "overlay2",
    "CgroupDriver": "systemd",
    "CgroupVersion": "2",
    "DefaultRuntime": "runc",
    "RuncCommit": {"ID": "1.1.5"},
    "ContainerdCommit": {"ID": "1.6.20"},
    "SecurityOptions": ["name=seccomp,profile=default"],
}
PODMAN: Mapping[str, Any] = {
    "host": {
        "cgroupManager": "systemd",
        "cgroupVersion": "v2",
        "conmon": {"version": "conmon version 2.1.6"},
        "networkBackend": "netavark",
        "ociRuntime": {"name": "crun", "version": "crun version 1.8.1\ncommit: f8a0"},
    },
    "store": {"graphDriverName": "overlay"},
    "version": {"Version": "4.3.1"},
}


class Engine(ScriptedHost):
    """A host with an engine, which starts a container for each client."""

    def __init__(self, answers: Mapping[str, str], refused: Mapping[str, str] | None = None) -> None:
        super().__init__({"/proc/mounts": ""}, answers, refused=refused, patient=True)
        self.started: list[Sequence[str]] = []

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        self.started.append(command)
        return Mock(pid=7)


def having(**info: Mapping[str, Any]) -> Engine:
    return Engine(
        {f"{name} info": json.dumps(answer) for name, answer in info.items()}
        | {f"{name} inspect": json.dumps([CONTAINER]) for name in info}
        | {"ls -d /dev": "/dev/shm\n", "ls -d /bin": "/bin\n/usr\n", "sh -c grep -lz": "/proc/17/environ\n"}
    )


def options(command: Sequence[str]) -> dict[str, list[str]]:
    """The options of a command line that have values, with these values."""
    found: dict[str, list[str]] = {}
    for option, value in pairwise(command):
        if option.startswith("--") and not value.startswith("--"):
            found.setdefault(option, []).append(value)
    return found


@pytest.mark.parametrize(("kind", "name"), [(DockerPods, "docker"), (PodmanPods, "podman")])
def test_a_container_has_the_programs_of_its_worker_for_reading_only(kind: type[EnginePods], name: str) -> None:
    host = having(docker=DOCKER, podman=PODMAN)
    with ExitStack() as undo:
        pods = kind(host, host)
        for pod in ("pod1", "pod2"):
            pods.start(pod, [], undo)
    (first, second) = host.started
    assert (first[:2], first[-1]) == ((name, "run"), "cat")
    assert options(first)["--volume"] == [
        *("/dev/shm:/dev/shm", "/run/podperf:/run/podperf"),
        *("/bin:/bin:ro", "/usr:/usr:ro"),
    ]
    assert options(first)["--network"] == ["none"]
    assert options(second)["--name"] == ["podperf-pod2"]
    assert not {"--cpus", "--memory"} & options(first).keys()
    asked = [each for each in host.commands if each.startswith((name, "sh -c head", "timeout 60 sh"))]
    assert [each.split()[1] for each in asked if each.startswith(f"{name} kill")] == ["kill", "kill"]
    assert len([each for each in asked if "import" in each]) == 1, "one image for all pods"
    assert "rmi --force localhost/podperf:empty" in asked[-1]


def test_the_engine_keeps_the_limits() -> None:
    limits = PodLimits(cpu=0.25, memory=192)
    host = having(docker=DOCKER)
    host.files["/proc/mounts"] = "".join(f"cgroup /cg/{each} cgroup rw,{each} 0 0\n" for each in ("cpu", "memory"))
    host.files["/proc/17/cgroup"] = "2:cpu:/docker/1\n1:memory:/docker/1\n"
    with ExitStack() as undo:
        pod = DockerPods(host, host).start("pod1", [], undo, limits)
        found = options(host.started[0])
        assert (found["--cpus"], found["--memory"], found["--memory-swap"]) == (["0.25"], ["192m"], ["192m"])
        assert pod.read_limits()["inspected"] == {"cpu": 0.25, "memory_mib": 192}
    assert DockerPods.cannot_limit(host, limits) is None
    assert DockerPods.cannot_limit(host, PodLimits(memory=5)) == "a container needs 6 MiB of memory or more, not 5"


def test_a_container_of_another_machine_is_refused() -> None:
    """Otherwise the end of the chain would end the processes in the network of some other process."""
    host = Engine({"docker inspect": json.dumps([CONTAINER]), "sh -c grep -lz": ""})
    with pytest.raises(PodperfError, match="has its containers not on scripted host"), ExitStack() as undo:
        DockerPods(host, host).start("pod1", [], undo)
    assert not [each for each in host.commands if "netns" in each]


@pytest.mark.parametrize(
    ("kind", "refused", "reason"),
    [
        (
            DockerPods,
            {"which docker": ""},
            "docker, which makes the pods, is not installed on scripted host (Debian package docker.io)",
        ),
        (
            DockerPods,
            {"docker version": "Client: x\nCannot connect to the Docker daemon"},
            "docker does not answer on scripted host (Cannot connect to the Docker daemon): start its daemon "
            "(systemctl start docker), or name the daemon in DOCKER_HOST",
        ),
        (
            PodmanPods,
            {"podman info": ""},
            "podman does not answer on scripted host (it says nothing): see `podman info`",
        ),
        (
            PodmanPods,
            {"sh -c nsenter": ""},
            "podperf runs in a chroot on scripted host, and podman makes containers outside of it",
        ),
    ],
)
def test_what_is_missing_is_said_with_the_remedy(
    kind: type[EnginePods], refused: Mapping[str, str], reason: str
) -> None:
    assert kind.unavailable(Engine({}, refused)) == reason
    assert kind.unavailable(Engine({})) is None


def test_the_record_has_the_engine() -> None:
    host = having(docker=DOCKER, podman=PODMAN)
    docker, podman = (kind(host, host).describe() for kind in (DockerPods, PodmanPods))
    shown = ("kind", "docker", "oci_runtime", "oci_runtime_version", "storage_driver", "cgroup_manager")
    assert [docker[each] for each in shown] == [
        *("containers of docker", "20.10.24+dfsg1", "runc", "1.1.5", "overlay2", "systemd"),
    ]
    assert (podman["podman"], podman["oci_runtime_version"]) == ("4.3.1", "crun version 1.8.1")
    assert (podman["storage_driver"], podman["cgroup_version"]) == ("overlay", "v2")


def test_an_answer_of_another_program_is_told() -> None:
    """The package podman-docker has a command `docker` that is Podman."""
    with pytest.raises(PodperfError, match="`docker info` gave no valid answer"):
        DockerPods(host := having(docker=PODMAN), host).describe()
