"""The values of a topology file. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from podperf.model import Direction, FrameSize, VirtualFunctionSettings
from podperf.topology.tester_types import Engine, KindSettings

Place = Literal["machine", "worker", "pods"]


@dataclass(frozen=True)
class PortSettings:
    """One tester port.

    Without `interface`, the run makes a veth pair and gives the other end to the worker. With `interface`, the run uses
    this existing interface, which is inside `namespace` if that is given. If the worker names its ports, the interface
    is cabled to the worker's port of the same side, and otherwise to a black box.
    """

    interface: str | None = None
    namespace: str | None = None
    destination_mac: str | None = None  # of frames that this port sends; None: the other port's MAC
    destination_address: str | None = None  # IPv4 within 198.18.0.0/15; None: each flow has its own


@dataclass(frozen=True)
class SshSettings:
    """How to log in on a machine. A password comes from the environment only."""

    address: str | None = None  # a name or an IP address; None unless the connection is `ssh`
    port: int = 22
    user: str = "root"
    key: str | None = None  # path of a private key; None: an agent, or the usual keys
    known_hosts: str = "~/.ssh/known_hosts"
    login: Literal["key", "password"] = "key"  # password: podperf offers the password, too
    socket: str = ""  # the path of a UNIX socket that leads to the SSH server; empty: the network does


@dataclass(frozen=True)
class TesterSettings:
    """The tester of the testbed. `kind` has the settings of its type."""

    kind: KindSettings
    cpus: tuple[int, ...] | None  # None: chosen by placement
    left: PortSettings
    right: PortSettings
    maximum_load: float | None = None  # frames/s and direction; None: the tester's own maximum
    ssh: SshSettings = SshSettings()

    @property
    def engine(self) -> Engine:
        """The requested engine."""
        return self.kind.engine


@dataclass(frozen=True)
class WorkerPortSettings:
    """One port of the worker: an existing interface. `pci` and `driver` describe the device behind it, if given."""

    interface: str
    pci: str | None = None  # its PCI address
    driver: str | None = None  # the kernel's driver for it

    @property
    def device(self) -> str:
        """The folder of the port's device in the worker's sysfs. A virtual interface has no such folder."""
        return f"/sys/bus/pci/devices/{self.pci}" if self.pci else f"/sys/class/net/{self.interface}/device"


@dataclass(frozen=True)
class KernelSettings:
    """The kernel of a counted machine: a Debian package, or an image with its modules.

    Paths are absolute, or relative to the current folder.
    """

    package: str = "linux-image-cloud-amd64/bookworm-backports"  # with a suite behind the slash
    image: str | None = None  # a bzImage in place of the package
    modules: str | None = None  # the folder lib/modules/RELEASE of the image; None: the image has all that is needed
    words: str = ""  # further words of its command line, behind podperf's own


@dataclass(frozen=True)
class FileSettings:
    """A file or a folder of this machine that the counted machine has, too."""

    source: str
    target: str  # an absolute path


@dataclass(frozen=True)
class CountedSettings:
    """The parts of a counted machine that users change.

    Places of sysctls and nftables are `machine` (the counted machine itself, after its boot), `worker` and `pods` (the
    network namespaces of each chain, when it stands).
    """

    seed: int = 1  # of all random numbers that the machine draws
    kernel: KernelSettings = KernelSettings()
    packages: tuple[str, ...] = ()  # Debian packages, with a suite behind a slash if it is not bookworm
    files: tuple[FileSettings, ...] = ()
    sysctls: Mapping[Place, Mapping[str, str]] = field(default_factory=dict)
    nftables: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)  # paths of files
    hook: str | None = None  # the path of a program that runs in the machine after its boot


@dataclass(frozen=True)
class BpfObjectSettings:
    """The BPF object that the data plane `bpf-object` attaches to each interface of the worker."""

    file: str
    hook: Literal["tc", "xdp"]
    section: str | None = None  # None: the section is named as the hook, unless `program` is given
    program: str | None = None  # the program's name


@dataclass(frozen=True)
class WorkerSettings:
    """A host that runs the system under test, or a part of it. Either both ports are given, or none."""

    connection: Literal["local", "ssh", "virtual", "counted"]
    cpus: tuple[int, ...] | None  # None: chosen by placement
    switch_cpus: tuple[int, ...] | None = None  # the part of `cpus` on which a user-space switch polls; None: the first
    hugepages: bool = True  # whether applications may use them, if the worker has some
    ssh: SshSettings = SshSettings()
    left: WorkerPortSettings | None = None  # None: the run makes a veth pair
    right: WorkerPortSettings | None = None
    sriov: VirtualFunctionSettings = field(default_factory=VirtualFunctionSettings)
    key: str = "workers[0]"  # the key of these settings in the topology file
    counted: CountedSettings = CountedSettings()  # with the connection `counted`

    @property
    def counts_instructions(self) -> bool:
        """True if it is a counted machine."""
        return self.connection == "counted"


@dataclass(frozen=True)
class PodSettings:
    """The pods of all workers."""

    runtime: str = "namespaces"  # a name of podperf.pods.POD_RUNTIMES
    settings: Mapping[str, Any] = field(default_factory=dict)  # that the runtime reads


@dataclass(frozen=True)
class TrafficSettings:
    """Test traffic, unless a test says otherwise."""

    directions: tuple[Direction, ...]
    flows: int


@dataclass(frozen=True)
class MethodSettings:
    """The settings of the methods: the search preset, and the MRR trials."""

    search: str  # a preset of podperf.methods.presets: quick, csit, tst009, rfc2544
    mrr_trials: int
    mrr_trial_duration: float  # seconds
    patience: float = 0.0  # seconds that a test may wait for a quiet machine and repeat disturbed trials


@dataclass(frozen=True)
class Threshold:
    """A bound that a result must keep. It applies to tests that match every selector that is set.

    The bound is `minimum` if more of the metric is better, and otherwise `maximum`. It is in `unit`. A ratio refers to
    the `wire` result of the same run at the same frame size.
    """

    metric: str
    unit: str
    minimum: float | None = None
    maximum: float | None = None
    data_plane: str | None = None
    pods: int | None = None
    frame: FrameSize | None = None


@dataclass(frozen=True)
class Topology:
    """The values of one topology file."""

    path: str
    name: str
    description: str
    tester: TesterSettings
    workers: tuple[WorkerSettings, ...]  # one or more, from left to right
    traffic: TrafficSettings
    method: MethodSettings
    thresholds: tuple[Threshold, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # free text for the record: rack, contact, firmware
    pods: PodSettings = PodSettings()
    bpf_object: BpfObjectSettings | None = None
    not_comparable: str = ""  # why figures of this testbed cannot be compared with others; empty: they can
    results_server: str | None = None  # the URL to which a run posts its records
    outdated: tuple[str, ...] = ()  # one line for each old key of the file: the keys to write instead

    @property
    def existing_ports(self) -> bool:
        """True when the tester's ports exist already."""
        return self.tester.left.interface is not None or self.tester.kind.has_ports_of_its_own

    @property
    def external(self) -> bool:
        """True when the tester's ports exist already and the black box between them is measured."""
        return self.existing_ports and not any(each.left for each in self.workers)

    @property
    def in_a_cluster(self) -> bool:
        """True if tester and system under test are on nodes of a cluster, and not on this machine."""
        return self.tester.kind.type == "kubernetes"

    @property
    def one_machine(self) -> bool:
        """True if tester and worker share a machine, or if there is no worker because a black box is measured."""
        return self.external or not (self.virtual or any(each.ssh != self.tester.ssh for each in self.workers))

    @property
    def virtual(self) -> bool:
        """True if the run boots the worker."""
        return any(each.connection == "virtual" for each in self.workers)

    @property
    def counts_instructions(self) -> bool:
        """True when tester and system under test run inside a counted machine, where only cost can be measured."""
        return any(each.counts_instructions for each in self.workers)

    @property
    def uses_this_machine(self) -> bool:
        """True if podperf runs on the machine of the tester, of a worker, or of a virtual worker."""
        workers = [] if self.one_machine else [each.ssh for each in self.workers]
        return any(each.address is None for each in (self.tester.ssh, *workers))
