"""Routes by BGP between two workers. BIRD on each of them tells the other one which test network lies behind it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from podperf.dataplanes.base import WorkerPort
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import await_success, configure, ip_json, unix_socket
from podperf.model import ChangeUnderLoad
from podperf.testbed.joins.base import Join, JoinEnd, on_the_cable

START_TIMEOUT = 60.0  # seconds until both workers have the route of the other one; usually 4
_FIRST_AS = 64512  # of the first worker; private ones, RFC 6996
_TABLES = {"left": 98, "right": 99}  # routing tables of the routes towards this side

_SETTINGS = """
log stderr all;
router id {own};
protocol device {{}}
protocol kernel {{ kernel table {table}; ipv4 {{ import none; export where source = RTS_BGP; }}; }}
protocol static own_network {{ ipv4; route {network} unreachable; }}
protocol bgp next_worker {{
  local {own} as {number}; neighbor {other} as {other_number}; strict bind;
  connect delay time 1; connect retry time 1; error wait time 1, 5;
  ipv4 {{ import all; export where source = RTS_STATIC; }};
}}
"""
_LAST_METRIC = "4294967295"  # of a route that gives way to every other one
_WITHDRAWN = 0.2  # seconds
_RESTART = 5.0  # seconds until the route of a restarted agent is back
# `sh -c` gets a routing table and a network. The table does not exist before its first route.
_HAS_ROUTE = 'ip route show table "$1" "$2" 2>/dev/null | grep -Eq "proto (bird|12)"'


@dataclass
class _Agent:
    """BIRD on a worker, which runs until `stop` and can be started again."""

    end: JoinEnd
    command: tuple[str, ...]
    process: Process

    @classmethod
    def started(cls, end: JoinEnd, *command: str) -> _Agent:
        return cls(end, command, end.worker.host.spawn(*command))

    def restart(self) -> None:
        """End it, which takes its routes away, and start it again."""
        self.process.stop()
        self.process = self.end.worker.host.spawn(*self.command)

    def stop(self) -> None:
        self.process.stop()

    def await_route(self) -> None:
        """Wait until it has the route of the other worker."""
        host, route = self.end.worker.host, (str(_TABLES[self.end.side]), _beyond(self.end))
        if not await_success(host, self.process, START_TIMEOUT, "sh", "-c", _HAS_ROUTE, "sh", *route):
            said = self.process.errors().strip().splitlines()
            raise PodperfError(
                f"{host.name} got no route to {route[1]} by BGP in {START_TIMEOUT:.0f} s"
                f"{''.join(f': {line}' for line in said[-1:])}"
            )


@dataclass(frozen=True)
class Bgp(Join):
    """The routes that lead to the next worker come from BIRD, and no other route does. Frames have no encapsulation."""

    def unavailable(self, host: Host, undo: ExitStack) -> str | None:
        if host.ask("which", "bird", check=False, assumed="").exit_code:
            return f"{host.name} has no BIRD (Debian package bird2)"
        return None

    def connect(self, left: JoinEnd, right: JoinEnd, undo: ExitStack) -> tuple[WorkerPort, WorkerPort]:
        """Start both, and wait until each worker has the route of the other one."""
        both = ((left, right), (right, left))
        for end, other in both:
            # Without a route by BGP, frames would follow another one to the next worker.
            no_other = ("route", "add", "unreachable", _beyond(end), "table", str(_TABLES[end.side]))
            configure(end.worker.host, *on_the_cable(end, other), (*no_other, "metric", _LAST_METRIC))
        agents = [_start(end, other, undo) for end, other in both]
        for agent in agents:
            agent.await_route()
        changes = {
            "bgp-route-withdrawn": ChangeUnderLoad(
                f"BGP withdraws a route for {_WITHDRAWN * 1e3:.0f} ms", partial(_withdraw, agents)
            ),
            "agent-restarted": ChangeUnderLoad(
                "the BGP agent of a worker is restarted", partial(_restart, agents), _RESTART
            ),
        }
        near = replace(left.port, table=_TABLES[left.side], changes=changes)
        return near, replace(right.port, table=_TABLES[right.side])

    def describe(self, end: JoinEnd) -> Mapping[str, Any]:
        host, command = end.worker.host, ("birdc", "-s", _socket(end), "show")
        table = ("route", "show", "table", str(_TABLES[end.side]))
        return {
            **super().describe(end),
            "bird": host.ask("bird", "--version", check=False, assumed="").stderr.strip(),
            "sessions": host.ask(*command, "protocols", "next_worker", assumed="").stdout.splitlines()[1:],
            "routes": ip_json(host, *table, assumed=[]),
        }


def _start(end: JoinEnd, other: JoinEnd, undo: ExitStack) -> _Agent:
    host, addresses = end.worker.host, end.worker.addresses
    settings = f"{end.worker.directory}/bird-{end.side}.conf"
    text = _SETTINGS.format(
        own=end.address,
        other=other.address,
        number=_FIRST_AS + end.worker.number,
        other_number=_FIRST_AS + other.worker.number,
        table=_TABLES[end.side],
        network=addresses.left if end.side == "right" else addresses.right,
    )
    host.put(text.encode(), settings)
    agent = _Agent.started(end, "bird", "-f", "-c", settings, "-s", _socket(end))
    undo.callback(agent.stop)
    return agent


def _restart(agents: Sequence[_Agent], undo: ExitStack) -> None:
    """Restart the agent of the left worker. Afterwards both have their routes again before anything goes on."""
    for agent in agents:
        undo.callback(agent.await_route)
    agents[0].restart()


def _withdraw(agents: Sequence[_Agent], undo: ExitStack) -> None:
    """The agent of the right worker takes its route back, and gives it again _WITHDRAWN seconds later."""
    _, right = agents
    for agent in agents:
        undo.callback(agent.await_route)
    host, command = right.end.worker.host, ("birdc", "-s", _socket(right.end))
    host.do(*command, "disable", "own_network")
    try:
        time.sleep(_WITHDRAWN)
    finally:
        host.do(*command, "enable", "own_network")


def _socket(end: JoinEnd) -> str:
    return unix_socket(end.worker.directory, f"bird-{end.side}.ctl")


def _beyond(end: JoinEnd) -> str:
    """The test network behind the other end."""
    return end.worker.addresses.right if end.side == "right" else end.worker.addresses.left
