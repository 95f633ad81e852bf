"""The first process of the cluster (PID 1 of its processes): starts all parts, and notes what ends.

It runs in namespaces of the cluster's own for processes, mounts and the network. When it ends, the kernel ends all
other processes of the cluster, and the namespaces, mounts and interfaces are gone. It ends if its standard input is
closed before the word `keep` has come: then the command that started it was killed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from podperf.cluster import commands, hierarchies, layout
from podperf.cluster.children import Children
from podperf.cluster.layout import API, API_PORT, CONTROL_ADDRESS, NODE_PATH, ClusterLayout, ClusterNode
from podperf.cluster.relay import relay
from podperf.hosts.run_directory import RUN_DIRECTORY

KEEP = "keep"
ENDED = "ended"  # a file in the cluster's folder: one line of JSON for each part that has ended
LOGS = "logs"  # a folder there
CONTROL = "control"  # the control group of the control plane
_LOOK_AGAIN = 0.1  # seconds
_SOCKET = "/run/containerd/containerd.sock"


class Inside:
    """Starts the parts of a cluster."""

    def __init__(self, wanted: ClusterLayout) -> None:
        self._wanted = wanted
        self._failed = False
        self._logs = wanted.folder / LOGS
        debian = wanted.parts.debian
        own = ":".join(str(debian / each) for each in ("usr/bin", "usr/sbin", "bin", "sbin"))
        self.children = Children(self._note, {"PATH": f"{own}:{NODE_PATH}", "HOME": "/root"})

    def start(self) -> None:
        """Start everything. The log of this process has the error of a part that does not start."""
        try:
            self._start()
        except Exception:
            self._note("inside", 1)
            raise

    def _start(self) -> None:
        """Start everything. Returns when all programs run; nodes become ready some seconds later."""
        wanted = self._wanted
        self._network()
        self._run("etcd", commands.etcd(wanted))
        self._run("kube-apiserver", commands.api_server(wanted))
        machines = {node: self._containerd(node) for node in wanted.nodes}
        threads = [threading.Thread(target=self._give_images, args=each) for each in machines.items()]
        for each in threads:
            each.start()
        self._until(lambda: self._finds("/readyz"))
        self._run("kube-controller-manager", commands.controller_manager(wanted))
        self._run("kube-scheduler", commands.scheduler(wanted))
        for each in threads:
            each.join()
        for node, machine in machines.items():
            self._run_on(node, "kubelet", _within(machine, commands.kubelet(wanted, node)))
            self._run_on(node, "kube-proxy", _within(machine, commands.kube_proxy(wanted, node)))
            if wanted.parts.policies is not None:  # kube-router ends if its node has not registered
                self._until(partial(self._finds, f"/api/v1/nodes/{node.name}"))
                self._run_on(node, "kube-router", _within(machine, commands.kube_router(wanted, node)))

    def _network(self) -> None:
        # Pods of chains have podperf's run directory of the machine as a volume. The rest of /run is the cluster's own.
        self._do("mkdir", "-p", str(self._wanted.run_of_machine))
        self._do("mount", "--bind", "/run", str(self._wanted.run_of_machine))
        self._do("mount", "-t", "tmpfs", "-o", "mode=755", "run", "/run")
        # The CNI plug-in podperf-in-network enters network namespaces of the machine.
        self._do("mkdir", "-p", str(self._wanted.processes_of_machine))
        self._do("mount", "--bind", "/proc", str(self._wanted.processes_of_machine))
        self._do("mount", "-t", "proc", "proc", "/proc")
        root = self._wanted.processes_of_machine / os.environ["KEEPER"] / "root"
        self._wanted.root_of_machine.symlink_to(root)
        for command in layout.network_commands(self._wanted.nodes):
            self._do(*command)

    def _do(self, *command: str) -> None:
        if exit_code := self.children.run(command, self._logs / "network"):
            self._note(" ".join(command), exit_code)

    def _containerd(self, node: ClusterNode) -> int:
        """Start a node with its containerd. Returns the process, whose namespaces are the node's."""
        script = Path(__file__).with_name("node.sh")
        apart = ("nsenter", f"--net=/run/netns/{node.name}", "unshare", "--mount", "--uts", "--ipc", "--cgroup")
        folders = str(self._wanted.folder), str(self._wanted.run_of_machine / RUN_DIRECTORY.name), str(RUN_DIRECTORY)
        command = ["sh", str(script), node.name, *folders, *commands.containerd(self._wanted, node)]
        return self._run(f"containerd of {node.name}", [*apart, *command], self._groups_of(node.name))

    def _give_images(self, node: ClusterNode, machine: int) -> None:
        log = self._logs / f"images of {node.name}"
        version = [self._wanted.parts.of_debian("ctr"), "--address", _SOCKET, "version"]
        self._until(lambda: not self.children.run(_within(machine, version), log))
        for image in self._wanted.images:
            if exit_code := self.children.run(_within(machine, commands.import_image(self._wanted, image)), log):
                self._note(f"import of {image.name} on {node.name}", exit_code)

    def _finds(self, path: str) -> bool:
        """Whether the API server has this path."""
        trusted = ssl.create_default_context(cafile=self._wanted.path("authority.crt"))
        trusted.load_cert_chain(self._wanted.path("kubelets-client.crt"), self._wanted.path("kubelets-client.key"))
        try:
            with urllib.request.urlopen(f"{API}{path}", context=trusted, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _until(self, true: Callable[[], bool]) -> None:
        """Wait. The command that starts the cluster has a time limit, and ends the cluster then."""
        while not self._failed and not true():
            time.sleep(_LOOK_AGAIN)

    def _groups_of(self, part: str) -> list[Path]:
        return [Path(each) / part for each in self._wanted.groups]

    def _run(self, part: str, command: Sequence[str], groups: Sequence[Path] | None = None) -> int:
        """Start a part in these groups, by default in those of the control plane."""
        return self.children.start(part, command, self._logs / part, groups or self._groups_of(CONTROL))

    def _run_on(self, node: ClusterNode, program: str, command: Sequence[str]) -> None:
        self._run(
            f"{program} of {node.name}",
            command,
            [hierarchies.group_of_programs(each) for each in self._groups_of(node.name)],
        )

    def _note(self, part: str, exit_code: int) -> None:
        self._failed = True
        with (self._wanted.folder / ENDED).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "exit_code": exit_code}) + "\n")


def _within(machine: int, command: Sequence[str]) -> list[str]:
    """A command in the namespaces of a node."""
    return ["nsenter", "--target", str(machine), "--mount", "--uts", "--ipc", "--net", "--cgroup", "--", *command]


def _end_without_the_command() -> None:
    """Ends this process if standard input ends without the word."""
    if sys.stdin.readline().strip() != KEEP:
        os._exit(1)


def main(arguments: Sequence[str]) -> None:
    """`python -m podperf.cluster.inside PLAN FILE-NUMBER`: a layout as JSON, and the listening socket of the relay."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: os._exit(0))
    wanted = layout.from_json(arguments[0])
    hierarchies.enter(map(Path, wanted.groups), CONTROL)
    threading.Thread(target=_end_without_the_command, daemon=True).start()
    listening = socket.socket(fileno=int(arguments[1]))
    threading.Thread(target=relay, args=(listening, CONTROL_ADDRESS, API_PORT), daemon=True).start()
    inside = Inside(wanted)
    threading.Thread(target=inside.start, daemon=True).start()
    inside.children.bury()


if __name__ == "__main__":
    main(sys.argv[1:])
