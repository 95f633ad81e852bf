"""The pod seam: a runtime makes a pod, gives it its interfaces, and runs applications in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from podperf.allocation import UNLIMITED, PodLimits
from podperf.errors import Unavailable
from podperf.hosts.base import Host, Process
from podperf.hosts.namespaces import NetworkNamespace
from podperf.kernel.sriov import PhysicalFunction
from podperf.model import PageSize


@dataclass(frozen=True)
class PodInterface:
    """An interface of a pod, as the CNI plug-in reported it. Addresses are plain, without a prefix length."""

    name: str
    mac: str
    address: str | None = None
    host_interface: str | None = None  # the worker's end, if there is one


@dataclass(frozen=True)
class Attachment:
    """A network for a pod: the plug-ins of its CNI configuration list, in their order.

    `capabilities` go to the plug-ins that declare them, as `runtimeConfig` (CNI specification, section 2).
    """

    interface: str
    network: str
    plugins: Sequence[Mapping[str, Any]]
    capabilities: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PodProgram:
    """A program that a pod will run. The runtime knows this before it starts the pod.

    In a container the program needs these `capabilities` (names of capabilities(7) without CAP_).
    """

    capabilities: tuple[str, ...] = ()


class Pod(Protocol):
    """A running pod. Only its runtime knows what holds the pod together."""

    @property
    def name(self) -> str:
        """The name that the data plane gave it."""

    @property
    def host(self) -> NetworkNamespace:
        """Runs the worker's programs in the pod's network, as a CNI plug-in does."""

    @property
    def interfaces(self) -> Mapping[str, PodInterface]:
        """Its interfaces by their names, as far as the runtime has put them into the pod."""

    @property
    def own_cpus(self) -> Sequence[int]:
        """The CPUs that the runtime has given to this pod alone. Empty: the roles of the worker's CPUs hold."""
        return ()

    def add_veth(self, interface: str, host: Host, host_interface: str, mtu: int, address: str | None = None) -> None:
        """Give the pod one end of a veth pair, with an address such as `198.18.0.1/24`. The other end is
        `host_interface` on `host`, which may be the host of another pod. Both ends are up."""

    def add_device(self, name: str, mac: str) -> None:
        """Give the pod's application a device that a user-space driver drives. It counts as interface `name`."""

    def start_application(self, command: Sequence[str], undo: ExitStack) -> Process:
        """Start a program in the pod until `undo`. Its `pid` is the number that the worker's kernel gives it."""

    def read_limits(self) -> Mapping[str, Any]:
        """The limits of its applications and what they took so far, read back from what enforces the limits.

        Empty without limits. `processes` is the number of processes for which the limits hold.
        """
        return {}


class PodStarter(Protocol):
    """A maker of pods, as a data plane sees it."""

    def start(self, name: str, attachments: Sequence[Attachment], undo: ExitStack) -> Pod:
        """Start a pod with these interfaces. `undo` removes the pod and the interfaces."""

    def start_beside(self, pod: Pod, name: str, undo: ExitStack) -> Pod:
        """Start another container of a pod. Both have the network of the pod in common, and each its own programs."""
        raise Unavailable(
            "pods of this runtime have one container: `pods: {runtime: namespaces}` or `pods: {runtime: runc}` in the "
            "topology"
        )

    def give_functions(
        self, ports: Mapping[str, Sequence[PhysicalFunction]], undo: ExitStack
    ) -> Mapping[str, Sequence[str]] | None:
        """Give virtual functions of these ports to the pods of these names, until `undo`. Returns the PCI addresses of
        each pod's functions, in the order of its ports.

        None: this runtime has none to give, and pods can use those that podperf makes. A cluster gives devices to a pod
        at its start. So its runtime starts the pods now, and `start` returns them later.
        """
        return None

    def describe(self) -> Mapping[str, Any]:
        """Kind and versions of the runtime and of its CNI plug-ins."""


class PodRuntime(PodStarter, Protocol):
    """A maker of pods on one worker. Nothing outside this package knows which one a worker has."""

    settings_schema: ClassVar[Mapping[str, Any] | None] = None
    """The JSON Schema (draft 2020-12) of `pods.settings` of a topology: an object. None: there are no such settings."""

    @classmethod
    def of_testbed(cls, settings: Mapping[str, Any]) -> RuntimeOfTestbed:
        """This runtime with the settings of a topology. A runtime without settings needs no code for this."""
        return RuntimeOfTestbed(cls)

    def start(
        self, name: str, attachments: Sequence[Attachment], undo: ExitStack, limits: PodLimits = UNLIMITED
    ) -> Pod:
        """Start a pod as PodStarter does. Its applications have `limits`."""

    def __init__(self, machine: Host, worker: Host) -> None:
        """`machine` is the machine of the worker. `worker` runs commands in the network of the worker's ports."""

    @staticmethod
    def unavailable(host: Host) -> str | None:
        """The reason why this host cannot run pods of this kind, with a remedy if there is one. None if it can."""

    @staticmethod
    def cannot_limit(host: Host, limits: PodLimits) -> str | None:
        """The reason why pods on this host cannot have these limits, with a remedy if there is one. None if they can.

        A runtime without limits needs no code for them.
        """
        return f"the pod runtime of {host.name} sets no limits"

    @staticmethod
    def within(command: Sequence[str]) -> tuple[str, Sequence[str]] | None:
        """The pod in which a command of this runtime runs another one, by its name on the worker, and the other one.

        None if the command runs none in a pod. So a plan shows where a command runs.
        """
        return None


class RuntimeOfTestbed:
    """A pod runtime with the settings of a topology. It lasts as long as the testbed."""

    def __init__(self, kind: type[PodRuntime]) -> None:
        self._kind = kind

    def unavailable(self, host: Host) -> str | None:
        return self._kind.unavailable(host)

    def cannot_limit(self, host: Host, limits: PodLimits) -> str | None:
        return self._kind.cannot_limit(host, limits)

    def lacks_program(self, missing: Callable[[Host], str | None], host: Host, *, drives_cards: bool) -> str | None:
        """The reason why the pods cannot run a program, or None. `missing` has the reason why a host cannot run it.

        `drives_cards`: whether the program drives PCI devices.
        """
        return missing(host)

    def pages(self, offered: PageSize) -> PageSize:
        """The pages for the memory of a chain on a worker that offers these. PageSize.NONE: ordinary pages."""
        return offered

    def on(self, machine: Host, worker: NetworkNamespace, program: PodProgram | None = None) -> PodRuntime:
        """The runtime of one worker, for a chain whose pods have such a program. None: they have none."""
        return self._kind(machine, worker)

    def processes(self, machine: Host) -> Collection[int]:
        """The processes of the pods that now run on a machine, if they descend from no process of podperf's."""
        return ()

    def planned(self) -> RuntimeOfTestbed:
        """This runtime in a plan, which asks nobody. A runtime that asks only its hosts needs no code for this."""
        return self

    def close(self) -> None:
        """End everything that pods of several chains have in common. Safe to repeat."""
