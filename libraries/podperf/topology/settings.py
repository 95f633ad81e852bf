"""The values of a topology file. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from podperf.model import Direction, FrameSize, VirtualFunctionSettings

Engine = Literal["auto", "xdp", "packet-ring", "trex"]  # how a tester sends and receives


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
class TrexServerSettings:
    """A TRex server that podperf starts on its own machine and stops again."""

    directory: str  # holds t-rex-64
    devices: tuple[str, str] | None = None  # PCI addresses of left and right; None: interfaces of the kernel
    low_end: bool | None = None  # all threads on one CPU; None: only if there are fewer than three CPUs
    options: tuple[str, ...] = ()  # of t-rex-64


@dataclass(frozen=True)
class SoftwareSettings:
    """The software tester. It sends and receives on interfaces of the kernel."""

    type: ClassVar[str] = "software"
    runs_already: ClassVar[bool] = False
    has_ports_of_its_own: ClassVar[bool] = False


@dataclass(frozen=True)
class TrexSettings:
    """The address of a TRex server, and its client. Without `server`, podperf uses a running server as it is."""

    type: ClassVar[str] = "trex"
    address: str = "127.0.0.1"
    port: int = 4501
    publisher_port: int = 4500
    client: str | None = None  # the client's folder on this machine; None: the server's client, or trex-stl-lib
    interpreter: str = "/usr/bin/python3"
    left: int = 0  # numbers of the server's ports
    right: int = 1
    server: TrexServerSettings | None = None

    @property
    def runs_already(self) -> bool:
        """True if podperf does not start the TRex server. The server then uses none of `TesterSettings.cpus`."""
        return self.server is None

    @property
    def has_ports_of_its_own(self) -> bool:
        """True if TRex drives its ports itself. The ports are then no interfaces of the kernel."""
        return self.server is None or self.server.devices is not None


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

    kind: SoftwareSettings | TrexSettings
    engine: Engine
    cpus: tuple[int, ...] | None  # None: chosen by placement
    left: PortSettings
    right: PortSettings
    maximum_load: float | None = None  # frames/s and direction; None: the tester's own maximum
    ssh: SshSettings = SshSettings()


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

    @property
    def counts_instructions(self) -> bool:
        """True if it is a counted machine."""
        return self.connection == "counted"


@dataclass(frozen=True)
class PodSettings:
    """The pods of all workers."""

    runtime: str = "namespaces"  # a name of podperf.pods.POD_RUNTIMES


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
    not_comparable: str = ""  # why figures of this testbed cannot be compared with others; empty: they can
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
