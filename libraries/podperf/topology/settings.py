"""The values of a topology file. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal, Protocol, Self

from podperf.errors import PodperfError
from podperf.frames import PLAIN, AddressFamily, Headers
from podperf.model import Direction, FrameSize, TrafficProfile, VirtualFunctionSettings

Engine = str  # the name of a way to send and receive, which a type of testers gives; `auto`: the tester chooses


class KindSettings(Protocol):
    """The settings of one tester that only its type has. Other parts of podperf ask these questions, and only these."""

    @property
    def type(self) -> str:
        """`tester.type` of the topology: a name in `podperf.testers.TESTERS`."""

    @property
    def engine(self) -> Engine:
        """The requested engine."""

    @property
    def runs_already(self) -> bool:
        """True if podperf does not start it. It is then on none of the CPUs in `TesterSettings.cpus`."""

    @property
    def has_ports_of_its_own(self) -> bool:
        """True if it drives its ports itself, so that they are no interfaces of the kernel."""


class RuntimeType(Protocol):
    """A kind of pods, as a topology file sees it."""

    @property
    def settings_schema(self) -> Mapping[str, Any] | None:
        """As that of a TesterType, of `pods.settings`."""


class DataPlaneType(Protocol):
    """A data plane, as a topology file sees it."""

    @property
    def settings(self) -> type | None:
        """The dataclass of its settings in `data_planes` (podperf.documents.settings). None: it has no settings."""


class TesterType(Protocol):
    """A type of testers: reads its settings."""

    @property
    def settings_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema (draft 2020-12) of `tester.settings`: an object. None: this type has no such settings.

        podperf checks the settings, fills in the schema's defaults, and uses each `title` in error messages.
        """

    def read_settings(self, tester: Mapping[str, Any]) -> KindSettings:
        """The settings from `tester` of a topology, which satisfies the schema and has the defaults.

        Raises WrongSetting for a value that the schema cannot refuse.
        """


class WrongSetting(PodperfError):
    """A setting of a part that the part cannot use. podperf adds the file, the line and the value.

    `key` is the key below the part's settings, with further keys and list positions if the value is nested.
    """

    def __init__(self, *key: str | int, allowed: str) -> None:
        super().__init__(f"{key}: allowed: {allowed}")
        self.key, self.allowed = key, allowed


@dataclass(frozen=True)
class SoftwareSettings:
    """The software tester. It sends and receives on interfaces of the kernel."""

    type: ClassVar[str] = "software"
    settings_schema: ClassVar[Mapping[str, Any]] = {"$ref": "#/$defs/software_settings"}
    runs_already: ClassVar[bool] = False
    has_ports_of_its_own: ClassVar[bool] = False
    engine: Engine = "auto"

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> Self:
        return cls(tester["settings"]["engine"])


@dataclass(frozen=True)
class TrexServerSettings:
    """A TRex server that podperf starts on its own machine and stops again."""

    directory: str  # holds t-rex-64
    devices: tuple[str, str] | None = None  # PCI addresses of left and right; None: interfaces of the kernel
    low_end: bool | None = None  # all threads on one CPU; None: only if there are fewer than three CPUs
    options: tuple[str, ...] = ()  # of t-rex-64

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from `tester.settings.server` of a topology."""
        devices, low_end = settings.get("devices"), settings["low_end"]
        return cls(
            settings["directory"],
            (devices[0].lower(), devices[1].lower()) if devices is not None else None,
            None if low_end == "auto" else low_end == "yes",
            tuple(settings["options"]),
        )


@dataclass(frozen=True)
class TrexSettings:
    """The address of a TRex server, and its client. Without `server`, podperf uses a running server as it is."""

    type: ClassVar[str] = "trex"
    settings_schema: ClassVar[Mapping[str, Any]] = {"$ref": "#/$defs/trex_settings"}
    engine: ClassVar[Engine] = "trex"
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
        return self.server is None

    @property
    def has_ports_of_its_own(self) -> bool:
        return self.server is None or self.server.devices is not None

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> Self:
        settings = dict(tester["settings"])
        server, ports = settings.pop("server", None), settings.pop("ports")
        if ports["left"] == ports["right"]:
            raise WrongSetting("ports", allowed="two ports")
        if server is not None and ports != {"left": 0, "right": 1}:
            allowed = "left 0 and right 1, as podperf starts the server with its ports in this order"
            raise WrongSetting("ports", allowed=allowed)
        return cls(**settings, **ports, server=None if server is None else TrexServerSettings.read(server))


OWN_TESTERS: Mapping[str, TesterType] = {each.type: each for each in (SoftwareSettings, TrexSettings)}


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
    gateway: str | None = None  # the address of a router whose MAC is the destination; the tester asks for it
    own_address: str | None = None  # for which it answers, and from which it asks; None: those of its flows


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
    image: str | None = None  # a bzImage or vmlinux in place of the package
    modules: str | None = None  # the folder of `make modules_install`; None: the image has all that is needed
    words: str = ""  # further words of its command line, behind podperf's own


@dataclass(frozen=True)
class FileSettings:
    """A file or a folder of this machine that the counted machine has, too."""

    source: str
    target: str  # an absolute path


class Moment(StrEnum):
    """When a hook runs."""

    BEFORE = "before set-up"
    AFTER = "after set-up"


@dataclass(frozen=True)
class Hook:
    """A shell command around the set-up of a chain. `place` is `worker`, `pods`, or one pod such as `pod 1`.

    A hook of a counted machine may have a `program` in place of the command: the path of a file of this machine. Its
    place may be `machine`, where it runs once, after the boot.
    """

    run: str = ""
    undo: str | None = None
    moment: Moment = Moment.AFTER
    place: str = "worker"
    program: str | None = None

    @property
    def pod(self) -> int | None:
        """The number of the only pod in which the hook runs, counted from 1 on the left."""
        found = re.fullmatch(r"pod (\d+)", self.place)
        return int(found[1]) if found else None

    def as_record(self) -> dict[str, Any]:
        """The hook as the file has it."""
        return {"when": self.moment.value, "in": self.place, "run": self.run, "undo": self.undo}


@dataclass(frozen=True)
class CountedSettings:
    """The parts of a counted machine that users change.

    Places of sysctls and nftables are `machine` (the counted machine itself, after its boot), `worker` and `pods` (the
    network namespaces of each chain, when it stands). Hooks run in the same places, behind both.
    """

    seed: int = 1  # of all random numbers that the machine draws
    kernel: KernelSettings = KernelSettings()
    packages: tuple[str, ...] = ()  # Debian packages, with a suite behind a slash if it is not bookworm
    files: tuple[FileSettings, ...] = ()
    sysctls: Mapping[Place, Mapping[str, str]] = field(default_factory=dict)
    nftables: Mapping[Place, tuple[str, ...]] = field(default_factory=dict)  # paths of files
    hooks: tuple[Hook, ...] = ()
    detail: bool = False  # records also have stacks of calls, and the instructions of each function

    @property
    def changes_machine(self) -> bool:
        """Whether the machine itself, and not a chain alone, is another one after its boot."""
        hooked = any(hook.place == "machine" for hook in self.hooks)
        return bool(self.sysctls.get("machine") or self.nftables.get("machine") or hooked)

    @property
    def changes_chains(self) -> bool:
        """Whether worker or pods of a chain are others than without these settings."""
        hooked = any(hook.place != "machine" for hook in self.hooks)
        return hooked or any({*places} - {"machine"} for places in (self.sysctls, self.nftables))


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
    counted: CountedSettings = CountedSettings()  # of the first worker, with the connection `counted`

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
    headers: Headers = PLAIN

    def profile(
        self,
        frame: FrameSize,
        directions: tuple[Direction, ...] | None = None,
        flows: int | None = None,
        family: AddressFamily | None = None,
        vlan: int | None = None,
    ) -> TrafficProfile:
        """This traffic with frames of this size. The smallest size of these headers stands in for a smaller one.

        ValueError for a number of flows that no tester sends, and for an ID that no VLAN has.
        """
        headers = self.headers.changed(family, vlan)
        fitting = frame.at_least(headers.smallest_frame)
        return TrafficProfile(fitting, directions or self.directions, self.flows if flows is None else flows, headers)


@dataclass(frozen=True)
class MethodSettings:
    """The settings of the methods: the search preset, and the MRR trials."""

    search: str  # a preset of podperf.methods.presets: quick, csit, tst009, rfc2544
    mrr_trials: int
    mrr_trial_duration: float  # seconds
    patience: float = 0.0  # seconds that a test may wait for a quiet machine and repeat disturbed trials
    loss_ratio: float | None = None  # of a search goal beside those of the preset


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
    data_planes: Mapping[str, Any] = field(default_factory=dict)  # the settings of those that have some, by their names
    black_box: tuple[str, ...] = ()  # the names of the black box's processes on the machines of the testbed
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
        return self.existing_ports and not any(worker.left for worker in self.workers)

    @property
    def one_machine(self) -> bool:
        """True if tester and worker share a machine, or if there is no worker because a black box is measured."""
        return self.external or not (self.virtual or any(worker.ssh != self.tester.ssh for worker in self.workers))

    @property
    def virtual(self) -> bool:
        """True if the run boots the worker."""
        return any(worker.connection == "virtual" for worker in self.workers)

    @property
    def counts_instructions(self) -> bool:
        """True when tester and system under test run inside a counted machine, where only cost can be measured."""
        return any(worker.counts_instructions for worker in self.workers)

    @property
    def uses_this_machine(self) -> bool:
        """True if podperf runs on the machine of the tester, of a worker, or of a virtual worker."""
        workers = [] if self.one_machine else [worker.ssh for worker in self.workers]
        return any(each.address is None for each in (self.tester.ssh, *workers))
