"""The cluster of `podperf cluster up`, for the tests that need it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from api_calls_of_a_pair import PATHS
from machine import program_in
from podperf.cluster.hierarchies import of_this_machine, processes
from podperf.cluster.layout import FOLDER, ClusterNetwork
from podperf.cluster.lifecycle import GROUPS
from podperf.cluster.parts import DEFAULT, ready_programs
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from podperf.kubernetes import manifests
from podperf.kubernetes.api import Api, log_in
from robot_run import ROOT, podperf

T = TypeVar("T")
KUBECONFIG = FOLDER / "kubeconfig"
# Enters a control group, and takes all of its memory. The memory is a file's, so this process itself stays small.
HUNGRY = """
import os, sys
with open(sys.argv[1], "w") as group:
    group.write("0")
file = os.memfd_create("memory")
while True:
    os.write(file, bytes(1 << 20))
"""
READY_IN = 30.0  # seconds for one node
START_TIMEOUT = 120.0  # seconds
STARTS_A_CLUSTER = [  # the marks of a test that does so
    pytest.mark.slow,
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes namespaces"),
]
KILLED_IN = 30.0  # seconds for the kernel to kill a program for memory


def need_programs(*options: str, network: ClusterNetwork = DEFAULT) -> None:
    """Make the programs of a cluster with this network and these options.

    The test is skipped if no cluster can run here, or if the programs are not built and nobody asks for a build.
    """

    def say(of_program: str) -> None:
        """It is told of each program that is about to be made."""
        if os.environ.get("PODPERF_CLUSTER") != "1":
            how = " --".join((f"cluster up --own --network {network.title}", *options))
            pytest.skip(f"the programs of the cluster are not built: sudo ./podperf {how}, or PODPERF_CLUSTER=1")
        print(of_program)

    try:
        of_this_machine()
        ready_programs(LocalHost(), say, options, network)
    except Unavailable as reason:
        pytest.skip(str(reason))


def started(*arguments: str, seconds: float = READY_IN) -> subprocess.CompletedProcess[str]:
    """`podperf cluster up --own`, which must succeed in this time, or with two nodes in twice of it. No other cluster
    of the machine is used."""
    done = podperf("cluster", "up", "--own", *arguments, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (ready_after,) = re.findall(r"ready after ([\d.]+) s", done.stdout)
    assert float(ready_after) < seconds * (2 if "2" in arguments else 1)
    return done


@contextmanager
def cluster(*arguments: str) -> Iterator[Api]:
    """The API of a cluster that runs meanwhile."""
    started(*arguments)
    try:
        with closing(log_in(str(KUBECONFIG), None)) as found:
            yield found
    finally:
        podperf("cluster", "down")


def process_of(program: str, node: str = "") -> int:
    """The first process of the cluster, or of one of its nodes, that has this program's name."""
    groups = [Path(line, node) for line in (FOLDER / GROUPS).read_text().splitlines()]
    return min(process for process in processes(groups) if program_in(process) == program)


def namespaces(api: Api) -> set[str]:
    """The namespaces that runs have made in the cluster, and that are not about to be gone."""
    found = api.ask("GET", "/api/v1/namespaces")["items"]
    names = {each["metadata"]["name"] for each in found if each["status"]["phase"] == "Active"}
    return {name for name in names if name.startswith(manifests.PREFIX)}


def pods_in(api: Api, namespace: str) -> list[dict[str, Any]]:
    """The pods of a namespace that belong to runs, in the order of their names: `left-...`, `right-...`."""
    found = api.ask("GET", f"/api/v1/namespaces/{namespace}/pods", query=[("labelSelector", manifests.RUN)])["items"]
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def apply(api: Api, file: str) -> None:
    """Make the objects of a file of the project."""
    for each in yaml.safe_load_all((ROOT / file).read_text()):
        api.ask("POST", PATHS[each["kind"]], each)


def awaited(look: Callable[[], T], what: Callable[[], object], timeout: float) -> T:
    """The first true value of `look`. The test fails after so many seconds, and then tells `what` there is."""
    deadline = time.monotonic() + timeout
    while not (found := look()):
        assert time.monotonic() < deadline, what()
        time.sleep(0.2)
    return found


def group_of(pod: Mapping[str, Any]) -> Path:
    """The control group that limits the memory of the one container of a pod that runs."""
    (container,) = pod["status"]["containerStatuses"]
    (memory,) = [each for each in of_this_machine() if "memory" in each.controllers.split(",")]
    (found,) = memory.folder.rglob(container["containerID"].rpartition("://")[2])
    return found


def program_of(pod: Mapping[str, Any]) -> int:
    """The process that is the first one of a pod's container, as this machine counts processes."""
    (found,) = [process for process in processes([group_of(pod)]) if _number_inside(process) == "1"]
    return found


def _number_inside(process: int) -> str:
    """The number that a process has in its own namespace of processes."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (numbers,) = [line for line in lines if line.startswith("NSpid:")]
    return numbers.split()[-1]


def frames_of(process: int, interface: str = "eth0") -> int:
    """The frames that an interface of the network of this process received and sent (proc_pid_net(5))."""
    lines = Path(f"/proc/{process}/net/dev").read_text().splitlines()
    (counters,) = [line.partition(":")[2].split() for line in lines if line.strip().startswith(f"{interface}:")]
    return int(counters[1]) + int(counters[9])


def score_of(process: int) -> str:
    """The score by which the kernel chooses a process to kill for memory (proc_pid_oom_score(5))."""
    return Path(f"/proc/{process}/oom_score").read_text().strip()


def use_up_memory(pod: Mapping[str, Any]) -> None:
    """Let the kernel kill the program of a pod, because a process beside it takes all memory of the container.

    The process is of this machine. The kernel prefers the container's own program, which a kubelet marks for it.
    """
    group, program = group_of(pod), program_of(pod)
    hungry = subprocess.Popen([sys.executable, "-c", HUNGRY, str(group / "cgroup.procs")])
    try:
        # The kernel may kill the other process next, while the program ends.
        awaited(
            lambda: program not in processes([group]),
            lambda: f"{pod['metadata']['name']} runs: {hungry.poll()} {score_of(program)}",
            KILLED_IN,
        )
    finally:
        hungry.kill()
        hungry.wait()
