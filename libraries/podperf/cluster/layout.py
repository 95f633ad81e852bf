"""Describes the cluster as data: its nodes, addresses, folders, programs and parts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, ClassVar

from podperf.cluster.programs import GoModule
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.linux import missing_link_type
from podperf.kubernetes.api import Api

FOLDER = Path("/var/lib/podperf-cluster")  # everything of the cluster that runs; the cache has its programs
GROUP = "podperf-cluster"  # the name of its control groups
BRIDGE = "cluster0"
CONTROL_ADDRESS = "10.199.0.1"
API_PORT = 6443
API = f"https://{CONTROL_ADDRESS}:{API_PORT}"
CONTROL_ADDRESS_6 = "fd00:10:199::1"
SERVICES = "10.96.0.0/16,fd00:10:96::/112"  # of both families, as Kubernetes wants them
PODS = "10.244.0.0/16,fd00:10:244::/48"
ETCD = "http://127.0.0.1:2379"
PAUSE_IMAGE = "localhost/podperf/pause:1"
ADMINISTRATORS = "system:masters"
CNI, CNI_OF_CONTAINERD = "cni", "net.d"  # folders of a node: with its CNI configuration, and where it counts
NODE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FOLDERS = ("usr/bin", "usr/sbin", "bin", "sbin")


@dataclass(frozen=True)
class ClusterNode:
    """One node. Its network is a namespace, with one veth to the bridge of the cluster."""

    number: int  # from 1

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def addresses(self) -> tuple[str, str]:
        """The addresses by which other nodes and the API server reach it, IPv4 and IPv6."""
        return f"10.199.0.{10 + self.number}", f"fd00:10:199::{10 + self.number}"

    @property
    def pods(self) -> tuple[str, str]:
        """The networks of its pods, IPv4 and IPv6."""
        return f"10.244.{self.number}.0/24", f"fd00:10:244:{self.number}::/64"


@dataclass(frozen=True)
class ClusterPart:
    """A part of each node beside containerd and kubelet. A further one is a file in parts/, and a line in PARTS.

    Everything that a part makes is in the node's namespaces, control groups or folder. So it ends with the cluster, and
    nothing is to be taken back.
    """

    debian: Path | None = None  # the root of its unpacked packages
    programs: tuple[Path, ...] = ()  # the folders with the programs that Go built, one for each module

    name: ClassVar[str]  # of its process, its log, and its kubeconfig
    option: ClassVar[tuple[str, str] | None] = None  # of `cluster up`, with its help; None: each cluster has this part
    packages: ClassVar[tuple[str, ...]] = ()  # of Debian
    links: ClassVar[Mapping[str, str]] = {}  # that an installation of the packages would make, with their targets
    modules: ClassVar[tuple[GoModule, ...]] = ()  # that Go builds
    login: ClassVar[tuple[str, str | None] | None] = None  # the user and the group of its kubeconfig on each node
    needs_node: ClassVar[bool] = False  # whether its program ends if the node has not registered
    filters: ClassVar[str] = ""  # frames of pods; a word of the data plane that the record has

    def demand(self, host: Host) -> None:
        """Raises Unavailable, with the remedy, if this machine lacks something that no package brings."""

    def program(self, name: str) -> Path:
        """The file of a program that Go built."""
        found = next((path for folder in self.programs if (path := folder / name).exists()), None)
        if found is None:
            folders = ", ".join(map(str, self.programs))
            raise PodperfError(f"{folders or self.name} has no {name}; remove that folder, and run this command again")
        return found

    def plugins(self) -> Mapping[str, Path]:
        """The files of its CNI plug-ins, by their names."""
        return {}

    def files(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, bytes]:
        """Its files in the folder of a node, by their paths there. A CNI configuration is in the folder CNI: the first
        one there counts, as soon as the network of the node is ready."""
        return {}

    def network_commands(self, nodes: Sequence[ClusterNode]) -> Iterator[tuple[str, ...]]:
        """Commands for the network of the cluster, when it has all of its nodes."""
        return iter(())

    def command(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        """The command that runs on a node as long as the cluster. Empty: none."""
        return []

    def tells(self) -> Mapping[str, str]:
        """What the annotation of the nodes tells about this part (`told_by` in podperf.kubernetes.pod_network)."""
        return {}

    def prepare(self, api: Api) -> None:
        """Makes the objects of this part, and waits until they serve. The API server answers, and nodes start
        meanwhile."""

    def kubeconfig(self, layout: ClusterLayout, node: ClusterNode) -> Path:
        """The file with its login on a node."""
        return layout.of_node(node) / f"{self.name}.kubeconfig"


@dataclass(frozen=True)
class ClusterNetwork(ClusterPart):
    """The part that connects the pods. Each cluster has exactly one: a file in parts/, and a line in NETWORKS.

    Its `name` is the one for `cluster up --network`. Unless `needs_node` is false, all nodes have registered with their
    networks of pods (`spec.podCIDRs`) before its program starts.
    """

    mode: str = ""

    needs_node: ClassVar[bool] = True
    modes: ClassVar[tuple[str, ...]] = ("",)  # the first one is the default
    encapsulations: ClassVar[Mapping[str, str]] = {}  # of frames between nodes, by the mode; other modes have none
    data_plane: ClassVar[str] = "Linux bridge"
    process: ClassVar[str] = ""  # that forwards frames, if it is not the kernel
    restarts: ClassVar[bool] = True  # whether it has an agent that can restart while pods are on the node
    takes: ClassVar[Collection[str]] = ()  # the options of `cluster up` that were seen to work beside this network

    @property
    def title(self) -> str:
        """The name, with the mode: a value of `cluster up --network`."""
        return ":".join(filter(None, (self.name, self.mode)))

    def demand(self, host: Host) -> None:
        if self.encapsulations.get(self.mode) != "VXLAN":
            return
        if why := missing_link_type(host, "vxlan", "id", "1", "dstport", "8472"):
            without = next(mode for mode in self.modes if mode not in self.encapsulations)
            raise Unavailable(f"{why}; modprobe vxlan, or choose {self.name}:{without}")

    def tells(self) -> Mapping[str, str]:
        return {
            "name": self.name,
            "mode": self.mode,
            "version": f"v{self.modules[0].version}" if self.modules else "",
            "encapsulation": self.encapsulations.get(self.mode, "none"),
            "data_plane": self.data_plane,
            "process": self.process,
        }

    def replaces(self) -> Collection[str]:
        """The names of the parts that do not start, because this network does their work."""
        return ()

    def plugin(self, layout: ClusterLayout, node: ClusterNode) -> Mapping[str, Any]:
        """The CNI plug-in, with its settings, that gives pods of a node their first interface."""
        raise NotImplementedError

    def ready(self, layout: ClusterLayout, node: ClusterNode) -> list[str]:
        """A command that succeeds on a node when a pod there would reach pods of all nodes. Empty: it always would."""
        return []


@dataclass(frozen=True)
class ClusterPrograms:
    """Folders with programs, and the parts of the cluster with theirs."""

    debian: Path  # the root of the unpacked packages
    kubernetes: Path
    network: ClusterNetwork
    others: tuple[ClusterPart, ...] = ()

    @property
    def parts(self) -> tuple[ClusterPart, ...]:
        """All parts, in the order of their start."""
        return (self.network, *self.others)

    def of_debian(self, program: str) -> str:
        found = next((path for folder in _FOLDERS if (path := self.debian / folder / program).exists()), None)
        if found is None:
            raise PodperfError(f"{self.debian} has no {program}; remove that folder, and run this command again")
        return str(found)

    def of_kubernetes(self, program: str) -> str:
        return str(self.kubernetes / program)

    @property
    def plugins(self) -> Path:
        return self.debian / "usr/lib/cni"


@dataclass(frozen=True)
class ClusterLayout:
    """A cluster that is to run in a folder. `port` of this machine's loopback leads to its API server."""

    programs: ClusterPrograms
    port: int
    nodes: tuple[ClusterNode, ...]
    images: tuple[Path, ...] = ()  # archives that each node gets
    folder: Path = FOLDER
    groups: tuple[str, ...] = ()  # folders of control groups, one for each hierarchy
    word: str = field(default_factory=partial(token_hex, 16))  # that no other cluster knows

    @property
    def kubeconfig(self) -> Path:
        """The file with which administrators reach the cluster from this machine."""
        return self.folder / "kubeconfig"

    def of_node(self, node: ClusterNode) -> Path:
        return self.folder / node.name

    @property
    def plugins(self) -> Path:
        return self.folder / "plugins"

    @property
    def processes_of_machine(self) -> Path:
        """The place where the cluster sees the machine's /proc."""
        return self.folder / "proc"

    @property
    def root_of_machine(self) -> Path:
        """A link by which the cluster sees the machine's network namespaces, also those that come later."""
        return self.folder / "machine"

    @property
    def run_of_machine(self) -> Path:
        """The place where the cluster sees the machine's /run. The folder is empty for everybody else."""
        return self.folder / "run"

    def others(self, node: ClusterNode) -> tuple[ClusterNode, ...]:
        return tuple(each for each in self.nodes if each != node)

    def path(self, name: str) -> str:
        """A file or folder of the control plane."""
        return str(self.folder / "control" / name)


def nodes(number: int) -> tuple[ClusterNode, ...]:
    return tuple(map(ClusterNode, range(1, number + 1)))
