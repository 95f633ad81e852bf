"""Routes by BGP between two workers. BIRD on each of them tells the other one which test network lies behind it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from podperf.dataplanes.base import WorkerPort
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.hosts.linux import await_success, configure, ip_json, unix_socket
from podperf.testbed.joins.base import Join, JoinEnd, on_the_cable

START_TIMEOUT = 60.0  # seconds until both workers have the route of the other one; usually 4
_FIRST_AS = 64512  # of the first worker; private ones, RFC 6996
_TABLES = {"left": 98, "right": 99}  # routing tables of the routes towards this side

_SETTINGS = """
log stderr all;
router id {own};
protocol device {{}}
protocol kernel {{ kernel table {table}; ipv4 {{ import none; export where source = RTS_BGP; }}; }}
protocol static {{ ipv4; route {network} unreachable; }}
protocol bgp next_worker {{
  local {own} as {number}; neighbor {other} as {other_number}; strict bind;
  connect delay time 1; connect retry time 1; error wait time 1, 5;
  ipv4 {{ import all; export where source = RTS_STATIC; }};
}}
"""
# `sh -c` gets a routing table and a network. The table does not exist before its first route.
_HAS_ROUTE = 'ip route show table "$1" "$2" 2>/dev/null | grep -Eq "proto (bird|12)"'


@dataclass(frozen=True)
class Bgp(Join):
    """The routes that lead to the next worker come from BIRD, and no other route does. Frames have no encapsulation."""

    def unavailable(self, host: Host, undo: ExitStack) -> str | None:
        if host.ask("which", "bird", check=False, assumed="").exit_code:
            return f"{host.name} has no BIRD (Debian package bird2)"
        return None

    def connect(self, left: JoinEnd, right: JoinEnd, undo: ExitStack) -> tuple[WorkerPort, WorkerPort]:
        """Start both, and wait until each worker has the route of the other one."""
        for end, other in ((left, right), (right, left)):
            configure(end.worker.host, *on_the_cable(end, other))
        started = [(end, _start(end, other, undo)) for end, other in ((left, right), (right, left))]
        for end, process in started:
            route = (str(_TABLES[end.side]), _beyond(end))
            if not await_success(end.worker.host, process, START_TIMEOUT, "sh", "-c", _HAS_ROUTE, "sh", *route):
                said = process.errors().strip().splitlines()
                raise PodperfError(
                    f"{end.worker.host.name} got no route to {route[1]} by BGP in {START_TIMEOUT:.0f} s"
                    f"{''.join(f': {line}' for line in said[-1:])}"
                )
        return replace(left.port, table=_TABLES[left.side]), replace(right.port, table=_TABLES[right.side])

    def describe(self, end: JoinEnd) -> Mapping[str, Any]:
        host, command = end.worker.host, ("birdc", "-s", _socket(end), "show")
        table = ("route", "show", "table", str(_TABLES[end.side]))
        return {
            **super().describe(end),
            "bird": host.ask("bird", "--version", check=False, assumed="").stderr.strip(),
            "sessions": host.ask(*command, "protocols", "next_worker", assumed="").stdout.splitlines()[1:],
            "routes": ip_json(host, *table, assumed=[]),
        }


def _start(end: JoinEnd, other: JoinEnd, undo: ExitStack) -> Process:
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
    process = host.spawn("bird", "-f", "-c", settings, "-s", _socket(end))
    undo.callback(process.stop)
    return process


def _socket(end: JoinEnd) -> str:
    return unix_socket(end.worker.directory, f"bird-{end.side}.ctl")


def _beyond(end: JoinEnd) -> str:
    """The test network behind the other end."""
    return end.worker.addresses.right if end.side == "right" else end.worker.addresses.left
