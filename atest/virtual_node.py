"""Makes the virtual worker a node of podperf's own cluster: a kubelet and a containerd run there, beside its cards.

The control plane stays on this machine. The virtual worker has no network but its SSH server, so SSH leads the kubelet
to the API server, the API server to the kubelet, and the kubelet to device plug-ins of this machine.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from ipaddress import ip_interface
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from own_cluster import KUBECONFIG, awaited, process_of
from podperf.cluster import core
from podperf.cluster.layout import API, API_PORT, CONTROL_ADDRESS, NODE_PATH, ClusterLayout, nodes
from podperf.cluster.parts import ready_programs
from podperf.hosts.local import LocalHost
from podperf.kubernetes.api import Api, log_in
from virtual_lab import Lab

NODES = nodes(2)
NODE = NODES[1]
KUBELET_PORT = 10250
SOCKET = "/run/containerd/containerd.sock"
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
START_TIMEOUT = 240.0  # seconds for a program on emulated CPUs
# Connects to a port of this machine, and passes the connection to ssh (ProxyUseFdpass in ssh_config(5)).
CONNECT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection, socket.socket(fileno=1) as ssh:
    socket.send_fds(ssh, [b"0"], [connection.fileno()])
"""


@dataclass(frozen=True)
class VirtualNode:
    """A virtual worker that is a node of the cluster."""

    lab: Lab
    kubeconfig: Path = KUBECONFIG
    name: str = NODE.name

    @property
    def ssh(self) -> list[str]:
        """The command with which a program logs in on the node."""
        login = self.lab.topology.workers[0].ssh
        # From any network, ssh connects in the network of this process.
        connect = f"nsenter --net=/proc/{os.getpid()}/ns/net {sys.executable} -c {shlex.quote(CONNECT)} %p"
        options = (
            *(f"UserKnownHostsFile={login.known_hosts}", "IdentitiesOnly=yes", "BatchMode=yes"),
            *(f"ProxyCommand={connect}", "ProxyUseFdpass=yes"),
            "Ciphers=aes128-ctr",  # which an emulated CPU decrypts twice as fast as the usual one
        )
        words = (word for option in options for word in ("-o", option))
        return ["ssh", *words, "-p", str(login.port), "-i", str(login.key), f"{login.user}@{login.address}"]

    @contextmanager
    def forwarding(self, *ways: str, within: Sequence[str] = ()) -> Iterator[None]:
        """SSH forwards these ways (-L or -R, ssh(1)), from the network that the command `within` enters."""
        with TemporaryDirectory() as folder:
            own = [*self.ssh, "-S", f"{folder}/control"]
            # ssh goes into the background as soon as it forwards all ways.
            start = ("-M", "-N", "-f", "-o", "ExitOnForwardFailure=yes")
            subprocess.run([*within, *own, *start, *ways], check=True, stdin=subprocess.DEVNULL)
            try:
                yield
            finally:
                subprocess.run([*own, "-O", "exit"], check=True, stderr=subprocess.DEVNULL)

    @contextmanager
    def offering(self, resource: str, devices: Mapping[str, Sequence[str]]) -> Iterator[None]:
        """The node offers these devices, each with its device files. The device plug-in runs on this machine."""
        name = f"{resource.replace('/', '-')}.sock"
        script = [sys.executable, str(Path(__file__).with_name("device_plugin.py"))]
        arguments = (f"{device}={','.join(files)}" for device, files in devices.items())
        with TemporaryDirectory() as folder, ExitStack() as undo:
            undo.callback(self.lab.worker.do, "rm", "-f", f"{DEVICE_PLUGINS}/{name}")
            to_plugin = ("-R", f"{DEVICE_PLUGINS}/{name}:{folder}/{name}")
            to_kubelet = ("-L", f"{folder}/kubelet.sock:{DEVICE_PLUGINS}/kubelet.sock")
            undo.enter_context(self.forwarding(*to_plugin, *to_kubelet))
            command = [*script, "--folder", folder, "--socket", name, resource, *arguments]
            plugin = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            undo.enter_context(plugin)  # closes its standard input, and waits
            assert plugin.stdout is not None
            assert plugin.stdout.readline() == "registered\n"
            yield

    def status(self, api: Api) -> dict[str, Any]:
        """The state of the node in the cluster. Empty if the kubelet has not registered."""
        found = [item for item in api.ask("GET", "/api/v1/nodes")["items"] if item["metadata"]["name"] == self.name]
        return dict(found[0]["status"]) if found else {}

    def ready(self, api: Api) -> bool:
        """Whether the node takes pods."""
        conditions = self.status(api).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


@contextmanager
def node_in_virtual_machine(lab: Lab) -> Iterator[VirtualNode]:
    """The virtual worker as the second node of the cluster that `podperf cluster up --own --nodes 2` started.

    The start of a cluster needs the machine's lock, so the cluster starts before the virtual worker boots. End both
    afterwards: the node is no longer ready, and the virtual worker keeps files, mounts and the network of the pods.
    """
    node, programs = VirtualNode(lab), ready_programs(LocalHost(), print)
    layout = ClusterLayout(programs, 0, NODES)  # this machine's port to the API server has no meaning here
    with ExitStack() as undo:
        api = undo.enter_context(closing(log_in(str(KUBECONFIG), None)))
        for program in ("kubelet", "kube-proxy"):
            _kill(process_of(program, NODE.name))
        api.ask("DELETE", f"/api/v1/nodes/{NODE.name}")
        _copy(node, _files(layout))
        addresses = [str(ip_interface(each)) for each in NODE.addresses]  # with the length of a host's prefix
        prepare = (
            f"{''.join(f'ip address add {each} dev lo; ' for each in addresses)}mount --make-rshared /; "
            f"ln -sfn /usr/lib/cni {layout.plugins}; "
            f"sed -i s,{API},https://127.0.0.1:{API_PORT}, {layout.of_node(NODE)}/*.kubeconfig"
        )
        lab.worker.do("sh", "-ec", prepare)
        for each in addresses:
            undo.callback(lab.worker.do, "ip", "address", "delete", each, "dev", "lo")
        to_api = ("-R", f"127.0.0.1:{API_PORT}:{CONTROL_ADDRESS}:{API_PORT}")
        to_kubelet = ("-L", f"{NODE.addresses[0]}:{KUBELET_PORT}:{NODE.addresses[0]}:{KUBELET_PORT}")
        # The containerd that stays on this machine has the network namespace of the node.
        within = ("nsenter", f"--net=/proc/{process_of('containerd', NODE.name)}/ns/net")
        undo.enter_context(node.forwarding(*to_api, *to_kubelet, within=within))
        _start(node, core.containerd(layout, NODE), programs.debian, undo)
        # A kubelet ends if no containerd answers.
        _await(node, lambda: not lab.worker.ask("test", "-S", SOCKET, check=False).exit_code, "containerd")
        _start(node, core.kubelet(layout, NODE), programs.debian, undo)
        _await(node, lambda: node.ready(api), "kubelet")
        yield node


def _kill(process: int) -> None:
    """End a process of the cluster on this machine."""
    os.kill(process, signal.SIGKILL)
    awaited(lambda: not Path(f"/proc/{process}").exists(), lambda: f"process {process} runs", START_TIMEOUT)


def _files(layout: ClusterLayout) -> Iterator[Path]:
    """The programs of a node, and the settings, keys and unpacked images of this one.

    An emulated CPU would need minutes to unpack the images. The virtual worker has the CNI plug-ins of Debian already.
    """
    programs, folder = layout.programs, layout.of_node(NODE)
    for program in map(Path, map(programs.of_debian, ("containerd", "containerd-shim-runc-v2", "runc"))):
        yield from {program, program.resolve()}  # one of them is a link
    yield Path(programs.of_kubernetes("kubelet"))
    yield from (*folder.glob("*.*"), folder / "net.d", folder / "containerd")


def _copy(node: VirtualNode, paths: Iterable[Path]) -> None:
    """Copy files and folders to the same paths on the node."""
    pack = ("tar", "--create", "--gzip", "--directory=/", *(str(path).lstrip("/") for path in paths))
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as packing:
        subprocess.run([*node.ssh, "tar --extract --gzip --directory=/"], stdin=packing.stdout, check=True)
    assert packing.returncode == 0


def _start(node: VirtualNode, command: Sequence[str], debian: Path, undo: ExitStack) -> None:
    """Start a program on the node, until `undo`. Its log has its name."""
    name = Path(command[0]).name
    path = f"PATH={debian}/usr/bin:{debian}/usr/sbin:{NODE_PATH}"
    undo.callback(node.lab.worker.spawn("env", path, "sh", "-c", f'exec "$@" >{_log(name)} 2>&1', name, *command).stop)


def _await(node: VirtualNode, true: Callable[[], bool], program: str) -> None:
    """Wait for a program on the node. The test fails with the end of its log if it does not become ready."""
    awaited(true, lambda: node.lab.worker.ask("tail", "-n", "20", _log(program)).stdout, START_TIMEOUT)


def _log(program: str) -> str:
    return f"/var/log/{program}.log"
