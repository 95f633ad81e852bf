"""WireGuard between two workers. The kernel encrypts, with keys that are made for this set-up."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from podperf.dataplanes.base import WorkerPort
from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.testbed.joins.base import JoinEnd, Link

_PORT = 51820  # of WireGuard's UDP packets
_EVERYTHING = "0.0.0.0/0,::/0"
HANDSHAKE_TIMEOUT = 30.0  # seconds until both workers have the keys of a session; after a loss the kernel waits for 5
# `sh -c` runs this with an interface as $1.
_UNTIL_HANDSHAKE = 'until wg show "$1" latest-handshakes | grep -q "[[:space:]][1-9]"; do sleep 0.05; done'


@dataclass(frozen=True)
class WireGuard(Link):
    """An interface of WireGuard on each worker, with the other worker as its only peer."""

    def unavailable(self, host: Host, undo: ExitStack) -> str | None:
        if host.ask("which", "wg", check=False, assumed="").exit_code:
            return f"{host.name} has no wg, which sets the keys (Debian package wireguard-tools)"
        return super().unavailable(host, undo)

    def connect(self, left: JoinEnd, right: JoinEnd, undo: ExitStack) -> tuple[WorkerPort, WorkerPort]:
        ports = super().connect(left, right, undo)
        left_key, left_public = _key(left.worker.host)
        right_key, right_public = _key(right.worker.host)
        for end, port, key, other, public in (
            (left, ports[0], left_key, right, right_public),
            (right, ports[1], right_key, left, left_public),
        ):
            peer = ("peer", public, "endpoint", f"{other.address}:{_PORT}", "allowed-ips", _EVERYTHING)
            own = ("listen-port", str(_PORT), "private-key", "/dev/stdin")
            end.worker.host.do("wg", "set", port.interface, *own, *peer, stdin=key)
        # The first packet begins a handshake. If test frames of both sides did, handshakes could cross and be lost.
        keepalive = ("wg", "set", ports[0].interface, "peer", right_public, "persistent-keepalive")
        left.worker.host.do(*keepalive, "1")
        for end, port in ((left, ports[0]), (right, ports[1])):
            _await_handshake(end.worker.host, port.interface)
        left.worker.host.do(*keepalive, "off")
        return ports

    def describe(self, end: JoinEnd) -> Mapping[str, Any]:
        found = dict(super().describe(end))
        for name in end.handlers:
            del found[name]
        # /proc shows these workers of the kernel as kworker/…-wg-crypt-….
        return {**found, "encapsulated_by": "work queues of the kernel, on all CPUs; their CPU time is not the chain's"}


def _await_handshake(host: Host, interface: str) -> None:
    wait = ("timeout", f"{HANDSHAKE_TIMEOUT:g}", "sh", "-c", _UNTIL_HANDSHAKE, "sh", interface)
    if host.ask(*wait, check=False, timeout=HANDSHAKE_TIMEOUT + 5, assumed="").exit_code:
        raise PodperfError(f"{host.name} made no handshake by WireGuard in {HANDSHAKE_TIMEOUT:.0f} s")


def _key(host: Host) -> tuple[str, str]:
    """A new private key, and its public key."""
    private = host.do("wg", "genkey", assumed="private").stdout
    return private, host.do("wg", "pubkey", stdin=private, assumed="public").stdout.strip()
