"""The first process of the cluster (PID 1 of its processes): starts all parts, and notes what ends.

It runs in namespaces of the cluster's own for processes, mounts and the network. When it ends, the kernel ends all
other processes of the cluster, and the namespaces, mounts and interfaces are gone. It ends if its standard input is
closed before the word `keep` has come: then the command that started it was killed.
"""

from __future__ import annotations

import json
import os
import pickle
import shlex
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path

from podperf.cluster import core, hierarchies
from podperf.cluster.layout import (
    API,
    API_PORT,
    CNI,
    CNI_OF_CONTAINERD,
    CONTROL_ADDRESS,
    FOLDER,
    NODE_PATH,
    ClusterLayout,
    ClusterNode,
)
from podperf.cluster.relay import relay
from podperf.hosts.run_directory import RUN_DIRECTORY
from podperf.kernel.control_groups import joining
from podperf.kubernetes import own_agents

KEEP = "keep"
ENDED = "ended"  # a file in the cluster's folder: one line of JSON for each part or command that has ended
LOGS = "logs"  # a folder there
NETWORK = "network"  # a log in it
LAYOUT = "layout"  # a file there: the ClusterLayout, pickled
CONTROL = "control"  # the control group of the control plane
_LOOK_AGAIN, _PATIENCE = 0.1, 5.0  # seconds between looks, and for a signal or a connection
_SOCKET = "/run/containerd/containerd.sock"


class Children:
    """The child processes of this process. It also buries processes whose parents have ended.

    `ended` is called with the part and the exit code of each long-running one that ends.
    """

    def __init__(self, ended: Callable[[str, int], None], environment: Mapping[str, str]) -> None:
        self._ended, self._environment = ended, dict(environment)
        self._parts: dict[int, str] = {}
        self._exit_codes: dict[int, int] = {}
        self._changed = threading.Condition()

    def start(self, part: str, command: Sequence[str], log: Path, groups: Sequence[Path] = ()) -> int:
        """Start a part that runs as long as the cluster. Returns its process number."""
        return self._start(command, log, groups, part)

    def end(self, number: int) -> None:
        """End a part with all processes of its session, which it leads, and note nothing."""
        with self._changed:
            self._parts.pop(number, None)
            for each in (signal.SIGTERM, signal.SIGKILL):
                with suppress(ProcessLookupError):
                    os.killpg(number, each)
                self._changed.wait_for(lambda: number in self._exit_codes, _PATIENCE)

    def run(self, command: Sequence[str], log: Path) -> int:
        """Run a command to its end. Returns its exit code."""
        number = self._start(command, log, (), None)
        with self._changed:
            self._changed.wait_for(lambda: number in self._exit_codes)
            return self._exit_codes.pop(number)

    def _start(self, command: Sequence[str], log: Path, groups: Sequence[Path], part: str | None) -> int:
        with self._changed, log.open("ab") as output:
            child = subprocess.Popen(
                joining(list(map(str, groups)), command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
            self._exit_codes.pop(child.pid, None)  # of a process that had this number before
            if part is not None:
                self._parts[child.pid] = part
            child.returncode = 0  # `bury` waits for it
            return child.pid

    def bury(self) -> None:
        """Wait for children for ever."""
        while True:
            try:
                number, status = os.wait()
            except ChildProcessError:  # there is none at the moment
                time.sleep(_LOOK_AGAIN)
                continue
            exit_code = os.waitstatus_to_exitcode(status)
            with self._changed:
                self._exit_codes[number] = exit_code
                part = self._parts.pop(number, None)
                self._changed.notify_all()
            if part is not None:
                self._ended(part, exit_code)


class Inside:
    def __init__(self, wanted: ClusterLayout) -> None:
        self._wanted = wanted
        self._failed = False
        self._agents: dict[str, tuple[int, Callable[[], int], Sequence[str]]] = {}  # of the network, by their node
        self._logs = wanted.folder / LOGS
        debian = wanted.programs.debian
        own = ":".join(str(debian / each) for each in ("usr/bin", "usr/sbin", "bin", "sbin"))
        self.children = Children(self._note, {"PATH": f"{own}:{NODE_PATH}", "HOME": "/root"})

    def start(self) -> None:
        try:
            self._start()
        except Exception:
            self._note("inside", 1)
            raise

    def _start(self) -> None:
        """Start everything. Returns when all programs run; nodes become ready some seconds later."""
        wanted = self._wanted
        self._network()
        self._run("etcd", core.etcd(wanted))
        self._run("kube-apiserver", core.api_server(wanted))
        machines = {node: self._containerd(node) for node in wanted.nodes}
        threads = [threading.Thread(target=self._give_images, args=item) for item in machines.items()]
        for thread in threads:
            thread.start()
        self._until(lambda: self._asked("GET", "/readyz"))
        self._run("kube-controller-manager", core.controller_manager(wanted))
        self._run("kube-scheduler", core.scheduler(wanted))
        for thread in threads:
            thread.join()
        for node, machine in machines.items():
            self._run_on(node, "kubelet", _within(machine, core.kubelet(wanted, node)))
            self._run_parts(node, machine, needs_node=False)
        for node in wanted.nodes:
            self._until(partial(self._asked, "PATCH", f"/api/v1/nodes/{node.name}", core.of_registered(wanted, node)))
        for node, machine in machines.items():
            self._run_parts(node, machine, needs_node=True)
        for node, machine in machines.items():
            if ready := wanted.programs.network.ready(wanted, node):
                self._until(partial(self._succeeds, _within(machine, ready)))
            # As soon as these files are there, containerd makes pods, and the kubelet says that its node is ready.
            # containerd 1.6 sees a file that is written there, and not one that is moved there.
            for each in sorted((wanted.of_node(node) / CNI).iterdir()):
                (wanted.of_node(node) / CNI_OF_CONTAINERD / each.name).write_bytes(each.read_bytes())

    def _run_parts(self, node: ClusterNode, machine: int, needs_node: bool) -> None:
        for part in self._wanted.programs.parts:
            if part.needs_node == needs_node and (command := part.command(self._wanted, node)):
                start = partial(self._run_on, node, part.name, _within(machine, command))
                number = start()
                if part is (network := self._wanted.programs.network) and network.restarts:
                    ready = network.ready(self._wanted, node) or ["true"]
                    self._agents[node.name] = number, start, _within(machine, ready)

    def restart_agents(self, listening: socket.socket) -> None:
        """Restart the agent of the network on each node that comes with the word of this cluster."""
        while True:
            asked, _ = listening.accept()
            with asked, suppress(OSError):
                asked.settimeout(_PATIENCE)
                word, _, name = asked.makefile(encoding="utf-8").readline().strip().partition(" ")
                if word != self._wanted.word or name not in self._agents:
                    asked.sendall(b"another cluster runs on this machine, or its network has no agent\n")
                    continue
                number, start, ready = self._agents[name]
                self.children.end(number)
                self._agents[name] = start(), start, ready
                self._until(partial(self._succeeds, ready))
                if not self._failed:
                    asked.sendall(f"{own_agents.READY}\n".encode())

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
        nodes = self._wanted.nodes
        of_parts = (part.network_commands(nodes) for part in self._wanted.programs.parts)
        for command in chain(core.network_commands(nodes), *of_parts):
            self._do(*command)

    def _do(self, *command: str) -> None:
        if not self._failed and (exit_code := self.children.run(command, self._logs / NETWORK)):
            self._note(shlex.join(command), exit_code, NETWORK)

    def _containerd(self, node: ClusterNode) -> int:
        """Start a node with its containerd. Returns the process, whose namespaces are the node's."""
        script = Path(__file__).with_name("node.sh")
        apart = ("nsenter", f"--net=/run/netns/{node.name}", "unshare", "--mount", "--uts", "--ipc", "--cgroup")
        folders = str(self._wanted.folder), str(self._wanted.run_of_machine / RUN_DIRECTORY.name), str(RUN_DIRECTORY)
        command = ["sh", str(script), node.name, *folders, *core.containerd(self._wanted, node)]
        return self._run(f"containerd of {node.name}", [*apart, *command], self._groups_of(node.name))

    def _give_images(self, node: ClusterNode, machine: int) -> None:
        log = self._logs / (images := f"images of {node.name}")
        version = [self._wanted.programs.of_debian("ctr"), "--address", _SOCKET, "version"]
        self._until(lambda: not self.children.run(_within(machine, version), log))
        for image in self._wanted.images:
            if exit_code := self.children.run(_within(machine, core.import_image(self._wanted, image)), log):
                self._note(f"import of {image.name} on {node.name}", exit_code, images)
                return

    def _succeeds(self, command: Sequence[str]) -> bool:
        return self.children.run(command, self._logs / NETWORK) == 0

    def _asked(self, method: str, path: str, body: object = None) -> bool:
        """Whether the API server has done this."""
        trusted = ssl.create_default_context(cafile=self._wanted.path("authority.crt"))
        trusted.load_cert_chain(self._wanted.path("kubelets-client.crt"), self._wanted.path("kubelets-client.key"))
        content = None if body is None else json.dumps(body).encode()
        of_patch = {"Content-Type": "application/merge-patch+json"}
        question = urllib.request.Request(f"{API}{path}", content, of_patch, method=method)
        try:
            with urllib.request.urlopen(question, context=trusted, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _until(self, true: Callable[[], bool]) -> None:
        """Wait. The command that starts the cluster has a time limit, and ends the cluster then."""
        while not self._failed and not true():
            time.sleep(_LOOK_AGAIN)

    def _groups_of(self, part: str) -> list[Path]:
        return [Path(group) / part for group in self._wanted.groups]

    def _run(self, part: str, command: Sequence[str], groups: Sequence[Path] | None = None) -> int:
        """Start a part in these groups, by default in those of the control plane."""
        return self.children.start(part, command, self._logs / part, groups or self._groups_of(CONTROL))

    def _run_on(self, node: ClusterNode, program: str, command: Sequence[str]) -> int:
        return self._run(
            f"{program} of {node.name}",
            command,
            [hierarchies.group_of_programs(each) for each in self._groups_of(node.name)],
        )

    def _note(self, part: str, exit_code: int, log: str = "") -> None:
        """Note that a part, or a command, has ended. Its log has its name, unless `log` is another one."""
        self._failed = True
        with (self._wanted.folder / ENDED).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "exit_code": exit_code, "log": log or part}) + "\n")


def _within(machine: int, command: Sequence[str]) -> list[str]:
    return ["nsenter", "--target", str(machine), "--mount", "--uts", "--ipc", "--net", "--cgroup", "--", *command]


def _end_without_the_command() -> None:
    """Ends this process if standard input ends without the word."""
    if sys.stdin.readline().strip() != KEEP:
        os._exit(1)


def _listen_for_agents() -> socket.socket:
    """The socket of podperf.kubernetes.own_agents. Only root can open it."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(own_agents.SOCKET))
    own_agents.SOCKET.chmod(0o600)
    listening.listen()
    return listening


def main(arguments: Sequence[str]) -> None:
    """`python -m podperf.cluster.inside NUMBER`: the file number of the listening socket of the relay."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: os._exit(0))
    wanted: ClusterLayout = pickle.loads((FOLDER / LAYOUT).read_bytes())
    hierarchies.enter(map(Path, wanted.groups), CONTROL)
    threading.Thread(target=_end_without_the_command, daemon=True).start()
    listening = socket.socket(fileno=int(arguments[0]))
    threading.Thread(target=relay, args=(listening, CONTROL_ADDRESS, API_PORT), daemon=True).start()
    inside = Inside(wanted)
    threading.Thread(target=inside.start, daemon=True).start()
    threading.Thread(target=inside.restart_agents, args=(_listen_for_agents(),), daemon=True).start()
    inside.children.bury()


if __name__ == "__main__":
    main(sys.argv[1:])
