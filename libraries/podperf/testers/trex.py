"""The TRex tester: drives a TRex server in stateless mode, through TRex's own client in a process of its own."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, ClassVar, Self

from podperf.errors import PodperfError, Unavailable, understood
from podperf.frames import Headers
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import assumed_mac, link_named
from podperf.hosts.namespaces import NetworkNamespace, add_namespace
from podperf.kernel import pci
from podperf.model import Direction, Trial, TrialResult
from podperf.testers.answers import receive_answer
from podperf.testers.base import UNPACED, PortFacts, Site, TesterFacts
from podperf.testers.trex_results import SIDES, trial_result
from podperf.testers.trex_rpc import HERE, Endpoint, Programs, ServerVersion, programs_on, server_version
from podperf.testers.trex_server import PUBLISHER_PORT, Interfaces, Server, running
from podperf.testers.trex_streams import LEAD, learning_stream, streams_of
from podperf.topology import TrexServerSettings, TrexSettings

CLIENT_BELOW_SERVER = "automation/trex_control_plane/interactive"
START_TIMEOUT = 30.0  # seconds until the client has loaded its libraries and has taken the ports
ANSWER_TIMEOUT = 20.0  # seconds that an answer may take beyond the trial itself
SETTLE = 0.1  # seconds for which no counter may change after a trial
PYTHONS = "a Python that TRex's client was written for (3.7 to 3.12 for TRex 3.08)"


class TrexTester:
    """Two ports of a running TRex server, seen from `host`. podperf holds the ports until `close()`.

    `client` is the folder of the client that came with the server; None: the interpreter's trex-stl-lib. `own` is the
    server if podperf started it.
    """

    shortest_trial: ClassVar[float] = 0.5  # seconds; in shorter ones start and end are too inexact for a rate
    settings_schema: ClassVar[Mapping[str, Any]] = TrexSettings.settings_schema
    read_settings = TrexSettings.read_settings

    def __init__(
        self,
        host: Host,
        settings: TrexSettings,
        endpoint: Endpoint,
        publisher_port: int,
        client: str | None,
        programs: Programs = HERE,
        own: Server | None = None,
    ) -> None:
        self._undo = ExitStack()
        self._groups = 1
        self._refused = False
        self._endpoint, self._client, self._own = endpoint, client, own
        self._version = server_version(host, endpoint, 0 if own else publisher_port, programs=programs)
        options = {
            "client": client,
            "address": endpoint.address,
            "port": endpoint.port,
            "publisher_port": publisher_port,
            "ports": [settings.left, settings.right],
            "user": f"podperf@{platform.node()}",
            "api": list(self._version.api),
        }
        process = host.spawn(settings.interpreter, "-I", programs.client, json.dumps(options))
        self._process: Process | None = process
        try:
            ports = [{"mac": assumed_mac(host, f"TRex port {number}")} for number in (0, 1)]
            answer = self._answer(START_TIMEOUT, {"ready": {"ports": ports}})
        except BaseException:
            self._abandon()
            raise
        if "ready" not in answer:
            self._abandon()
            raise PodperfError(explained(answer, endpoint, self._version, settings.interpreter, client))
        self._ready: Mapping[str, Any] = answer["ready"]

    @classmethod
    def at(cls, site: Site) -> Self:
        """The tester of a topology. Starts the server first if the topology wants this."""
        settings = site.settings.kind
        assert isinstance(settings, TrexSettings)
        require_interpreter(site.host, settings.interpreter)
        if settings.server is None:
            endpoint = Endpoint(settings.address, settings.port)
            return cls(site.host, settings, endpoint, settings.publisher_port, settings.client)
        with ExitStack() as undo:
            host, interfaces = _plugged(site, settings.server, undo)
            client = settings.client or f"{settings.server.directory}/{CLIENT_BELOW_SERVER}"
            elsewhere = site.settings.ssh.address is not None
            programs = programs_on(host, settings.interpreter, client) if elsewhere else HERE
            server = undo.enter_context(running(host, settings.server, interfaces, site.cpus, programs))
            tester = cls(host, settings, server.endpoint, PUBLISHER_PORT, client, programs, server)
            tester._undo = undo.pop_all()
        return tester

    def measure(self, trial: Trial) -> TrialResult:
        """Send one trial and count. See `testers.base.Tester.measure`; a load of UNPACED sends as fast as TRex can.

        Each frame goes by itself: this tester has no trains.
        """
        trial = replace(trial, train=1)
        if self._process is None:
            raise PodperfError("the TRex tester was closed; make a new one")
        groups = {direction: self._groups + number for number, direction in enumerate(Direction)}
        self._groups += len(groups)  # new groups for each trial, so that its figures contain nothing of an earlier one
        request = request_line(trial, (self.facts.left.mac, self.facts.right.mac), groups)
        try:
            with suppress(PodperfError):  # if the client has ended, its error is read next
                self._process.send(request)
            answer = self._answer(trial.duration + ANSWER_TIMEOUT)
        except BaseException:  # also Ctrl-C: the next answer would belong to this trial
            self._abandon()
            raise
        if answer.get("kind") == "gone":
            words = self._epitaph(answer)
            self._abandon()
            raise PodperfError(words)
        if "trial" not in answer:
            self._refused = True
            raise PodperfError(f"the TRex server at {self._endpoint} refused a trial: {answer['error']}")
        with understood("the TRex client"):
            return trial_result(trial, answer["trial"], groups)

    @property
    def broken(self) -> bool:
        """True after a trial that the server refused or did not answer. A restarted server does not know this client.

        See `testers.base.Tester`.
        """
        return self._process is None or self._refused

    @property
    def facts(self) -> TesterFacts:
        left, right = (PortFacts(port["mac"], port.get("link_up")) for port in self._ready["ports"])
        return TesterFacts("TRex", self._version.version, "trex", left, right, copies=True, server=str(self._endpoint))

    def neighbour(self, side: str, address: str, headers: Headers) -> str:
        raise Unavailable("a tester of type trex does not ask for a gateway; name its MAC in `destination_mac`")

    def describe(self) -> Mapping[str, Any]:
        """Name, versions of server and client, ports with number, MAC, driver and speed, as read from the server."""
        ready = dict(self._ready)
        left, right = ready.pop("ports")
        return {
            "name": self.facts.name,
            "engine": self.facts.engine,
            "version": self.facts.version,
            "api": "{}.{}".format(*self._version.api),
            "server": self.facts.server,
            "client": self._client or "trex-stl-lib",
            "settle_seconds": SETTLE,
            **ready,
            "ports": {"left": left, "right": right},
        }

    def _epitaph(self, answer: Mapping[str, Any]) -> str:
        """A sentence: the server is gone, since when, and why, if this is known."""
        when = f"{datetime.fromtimestamp(answer['at']).astimezone():%H:%M:%S}"
        who = f"the TRex server {self._version.version} at {self._endpoint}"
        if self._own is None:
            return f"{who} is gone: since {when} nobody answers at this port ({answer['error']}); start it again"
        why = self._own.complaints() or "it did not say why"
        return f"{who}, which podperf had started as process {self._own.process.pid}, ended at {when}: {why}"

    def close(self) -> None:
        """Stop the traffic, give the ports back, and stop the server if podperf started it. Safe to call twice."""
        if self._process is not None:
            with suppress(PodperfError):  # a server that is gone holds no ports
                self._process.send(json.dumps({"close": True}))
                self._answer(ANSWER_TIMEOUT)
        self._abandon()

    def _abandon(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()
        self._undo.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, timeout: float, assumed: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The next answer: an object with "ready", "trial", "closed" or "error"."""
        assert self._process is not None
        return receive_answer(self._process, timeout, {"ready", "trial", "closed", "error"}, "the TRex client", assumed)


def require_interpreter(host: Host, interpreter: str) -> None:
    """Raises PodperfError if this interpreter does not exist. A later error would show a whole command line."""
    there = 'test -x "$(command -v -- "$1")" -a ! -d "$1"'
    if host.ask("sh", "-c", there, "sh", interpreter, check=False, assumed="").exit_code:
        raise PodperfError(
            f"on {host.name}, there is no program {interpreter}: tester.settings.interpreter must name {PYTHONS}"
        )


def _plugged(site: Site, server: TrexServerSettings, undo: ExitStack) -> tuple[Host, Interfaces]:
    """The network namespace of the server, and the server's ports there."""
    if server.devices is not None:
        for device in server.devices:
            if (driver := pci.link(site.host, device, "driver", assumed="")) in pci.BIFURCATED:
                raise PodperfError(
                    f"tester.settings.server.devices: TRex drives {device} only together with {driver}, whose "
                    "interface is not in the namespace of a TRex that podperf starts: start TRex yourself, and leave "
                    "`server` out"
                )
        node = int(pci.attribute(site.host, server.devices[0], "numa_node", assumed="0") or 0)
        interfaces = Interfaces(*server.devices, kernel=False, node=max(0, node))
        return add_namespace(site.host, "trex", undo), interfaces
    left, right = site.left, site.right
    if left is None or right is None or left.namespace is None or left.namespace != right.namespace:
        apart = left is not None and right is not None and left.namespace and right.namespace
        raise (Unavailable if apart else PodperfError)(
            "the TRex that podperf starts needs both interfaces in one network namespace, as its RPC is open to "
            "everybody who reaches it: name it by tester.ports.left.namespace and tester.ports.right.namespace"
        )
    host = NetworkNamespace(left.namespace, site.host)
    mtu = max(int(link_named(host, port.interface)["mtu"]) for port in (left, right))
    return host, Interfaces(left.interface, right.interface, kernel=True, mtu=mtu)


def request_line(trial: Trial, macs: tuple[str, str], groups: Mapping[Direction, int]) -> str:
    """The request for a trial, for trex_client.py."""
    streams: list[list[dict[str, Any]]] = [[], []]
    for direction, (sender, receiver) in SIDES.items():
        ends = macs[sender], macs[receiver]
        if direction in trial.traffic.directions:
            wanted = streams_of(trial, direction, ends, groups[direction])
        else:
            wanted = [learning_stream(trial, direction, ends)]
        streams[sender] = [each.as_request() for each in wanted]
    unpaced = trial.load == UNPACED
    lead = 0.0 if unpaced else LEAD
    return json.dumps(
        {"streams": streams, "lead": lead, "duration": trial.duration, "unpaced": unpaced, "settle": SETTLE}
    )


def explained(
    answer: Mapping[str, Any], endpoint: Endpoint, server: ServerVersion, interpreter: str, client: str | None
) -> str:
    """One line: the reason why the client did not start, and what to do."""
    who = f"the TRex server {server.version} at {endpoint}"
    whose = f"the client in {client}" if client else f"trex-stl-lib of {interpreter}"
    error = answer["error"]
    match answer.get("kind"):
        case "version":
            api = "{}.{}".format(*server.api)
            return (
                f"{who} speaks API {api}, and {whose} speaks {error}: set tester.settings.client to the folder "
                f"trex_control_plane/interactive that came with TRex {server.version}"
            )
        case "client":
            return (
                f"{interpreter} cannot load {whose}: {error}; tester.settings.client names the folder that came with "
                f"the server, and tester.settings.interpreter {PYTHONS}"
            )
        case "owner":
            return f"{who}: {error}: wait until they release it, or take it from them in trex-console"
        case "ports":
            return f"{who}: {error}: correct tester.settings.ports"
    return f"{who}: {error}"
