"""A testbed as its topology file describes it. Values; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from podperf.model import Direction, FrameSize, VirtualFunctionSettings

Engine = Literal["auto", "xdp", "packet-ring", "trex"]  # how a tester sends and receives


@dataclass(frozen=True)
class PortSettings:
    """One tester port.

    Without an `interface` the run makes a veth pair and gives the other end to the worker. With one, the existing
    interface is used as it is, inside `namespace` where given: cabled to the worker's port of the same side where the
    worker names its ports, else to a black box.
    """

    interface: str | None = None
    namespace: str | None = None
    destination_mac: str | None = None  # where frames sent from this port go; None: the other port's MAC
    destination_address: str | None = None  # IPv4 within 198.18.0.0/15, or None for the flow's own


@dataclass(frozen=True)
class TrexServerSettings:
    """A TRex server that podperf starts on its own machine and stops again."""

    directory: str  # holds t-rex-64
    devices: tuple[str, str] | None = None  # PCI addresses of left and right; None: interfaces of the kernel
    low_end: bool | None = None  # all threads on one CPU; None: with fewer than three CPUs
    options: tuple[str, ...] = ()  # of t-rex-64


@dataclass(frozen=True)
class TrexSettings:
    """Where a TRex server is, and the client that speaks to it. Without `server` it runs already, and is left alone."""

    address: str = "127.0.0.1"
    port: int = 4501
    publisher_port: int = 4500
    client: str | None = None  # its folder on this machine; None: of the server's folder, or trex-stl-lib
    interpreter: str = "/usr/bin/python3"
    left: int = 0  # numbers of the server's ports
    right: int = 1
    server: TrexServerSettings | None = None


@dataclass(frozen=True)
class SshSettings:
    """How to log in on a machine. There is no password here: that comes from the environment only."""

    address: str | None = None  # a name or an IP address; None unless the connection is `ssh`
    port: int = 22
    user: str = "root"
    key: str | None = None  # path of a private key; None: an agent, or the usual keys
    known_hosts: str = "~/.ssh/known_hosts"
    login: Literal["key", "password"] = "key"  # password: that one is offered, too
    socket: str | None = None  # the path of a UNIX socket that leads to the SSH server, in place of the network


@dataclass(frozen=True)
class TesterSettings:
    """The tester of the testbed. `trex` says where a TRex is, if it is one."""

    type: Literal["software", "trex"]
    engine: Engine
    cpus: tuple[int, ...] | None  # None: chosen by placement
    left: PortSettings
    right: PortSettings
    trex: TrexSettings = TrexSettings()
    maximum_load: float | None = None  # frames/s and direction; None: what the tester can do
    ssh: SshSettings = SshSettings()

    @property
    def runs_already(self) -> bool:
        """True for a TRex that podperf does not start: wherever that runs, it is not on `cpus`."""
        return self.type == "trex" and self.trex.server is None

    @property
    def has_ports_of_its_own(self) -> bool:
        """True when the ports are those of a TRex and not the kernel's."""
        return self.type == "trex" and (self.trex.server is None or self.trex.server.devices is not None)


@dataclass(frozen=True)
class WorkerPortSettings:
    """One port of the worker: an existing interface, and of the device behind it what is given."""

    interface: str
    pci: str | None = None  # its PCI address
    driver: str | None = None  # the kernel's driver for it

    @property
    def device(self) -> str:
        """The folder of its device in the worker's sysfs; none is there behind a virtual interface."""
        return f"/sys/bus/pci/devices/{self.pci}" if self.pci else f"/sys/class/net/{self.interface}/device"


@dataclass(frozen=True)
class WorkerSettings:
    """A host that runs the system under test, or a part of it. Its ports are both given, or neither."""

    connection: Literal["local", "ssh", "virtual", "counted"]
    cpus: tuple[int, ...] | None  # None: chosen by placement
    switch_cpus: tuple[int, ...] | None = None  # of `cpus`, those on which a user-space switch polls; None: the first
    hugepages: bool = True  # for what can use them, where the worker has some
    ssh: SshSettings = SshSettings()
    left: WorkerPortSettings | None = None  # None: the run makes a veth pair
    right: WorkerPortSettings | None = None
    sriov: VirtualFunctionSettings = field(default_factory=VirtualFunctionSettings)
    key: str = "worker"  # where in the topology file this stands


@dataclass(frozen=True)
class TrafficSettings:
    """Test traffic, unless a test says otherwise."""

    directions: tuple[Direction, ...]
    flows: int


@dataclass(frozen=True)
class MethodSettings:
    """How results are measured: the search preset, and the MRR trials."""

    search: str  # a preset of podperf.methods.presets: quick, csit, tst009, rfc2544
    mrr_trials: int
    mrr_trial_duration: float  # seconds
    patience: float = 0.0  # seconds that a test may wait for a quiet machine, and repeat trials that were disturbed


@dataclass(frozen=True)
class Threshold:
    """A bound that a result must keep to. It applies where every selector that is set matches.

    `minimum` where more of the metric is better, `maximum` where less is, in `unit`. A ratio is of the same run's
    `wire` result at the same frame size.
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
    """Everything that one topology file says."""

    path: str
    name: str
    description: str
    tester: TesterSettings
    worker: WorkerSettings
    traffic: TrafficSettings
    method: MethodSettings
    thresholds: tuple[Threshold, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)  # free text for the record: rack, contact, firmware
    further_workers: tuple[WorkerSettings, ...] = ()  # for chains on several, from left to right behind `worker`
    not_comparable: str = ""  # why figures of this testbed say nothing about others; empty: they may be compared

    @property
    def existing_ports(self) -> bool:
        """True when the tester's ports exist already."""
        return self.tester.left.interface is not None or self.tester.has_ports_of_its_own

    @property
    def external(self) -> bool:
        """True when the tester's ports exist already and the black box between them is measured."""
        return self.existing_ports and self.worker.left is None

    @property
    def one_machine(self) -> bool:
        """True when the tester's machine is the worker's, or nobody's: a black box has none."""
        return self.external or (self.worker.connection != "virtual" and self.tester.ssh == self.worker.ssh)

    @property
    def counts_instructions(self) -> bool:
        """True when tester and system under test run inside a counted machine, where only cost can be measured."""
        return self.worker.connection == "counted"

    @property
    def uses_this_machine(self) -> bool:
        """True when podperf runs on the machine of the tester, of a worker, or of a virtual one."""
        workers = [] if self.one_machine else [self.worker.ssh, *(each.ssh for each in self.further_workers)]
        return any(each.address is None for each in (self.tester.ssh, *workers))
