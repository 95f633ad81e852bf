"""Types of testers as a topology file sees them: the settings of a type, and the answers that depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from podperf.errors import PodperfError

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
    """A setting of a tester that its type cannot use. podperf adds the file, the line and the value.

    `key` is the key below `tester.settings`, with further keys and list positions if the value is nested.
    """

    def __init__(self, *key: str | int, allowed: str) -> None:
        super().__init__(f"{key}: allowed: {allowed}")
        self.key, self.allowed = key, allowed


@dataclass(frozen=True)
class SoftwareSettings:
    """The software tester. It sends and receives on interfaces of the kernel."""

    type: ClassVar[str] = "software"
    settings_schema: ClassVar[None] = None
    runs_already: ClassVar[bool] = False
    has_ports_of_its_own: ClassVar[bool] = False
    engine: Engine = "auto"

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> Self:
        """See TesterType."""
        return cls(tester["engine"])


@dataclass(frozen=True)
class TrexServerSettings:
    """A TRex server that podperf starts on its own machine and stops again."""

    directory: str  # holds t-rex-64
    devices: tuple[str, str] | None = None  # PCI addresses of left and right; None: interfaces of the kernel
    low_end: bool | None = None  # all threads on one CPU; None: only if there are fewer than three CPUs
    options: tuple[str, ...] = ()  # of t-rex-64

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """The settings from `tester.trex.server` of a topology."""
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
    settings_schema: ClassVar[None] = None  # they are in `tester.trex`
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
        """See KindSettings."""
        return self.server is None

    @property
    def has_ports_of_its_own(self) -> bool:
        """See KindSettings."""
        return self.server is None or self.server.devices is not None

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> Self:
        """See TesterType."""
        settings = dict(tester["trex"])
        server, ports = settings.pop("server", None), settings.pop("ports")
        return cls(**settings, **ports, server=None if server is None else TrexServerSettings.read(server))


OWN_TESTERS: Mapping[str, TesterType] = {each.type: each for each in (SoftwareSettings, TrexSettings)}
