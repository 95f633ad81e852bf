"""The test network is isolated (draft section 5): podperf refuses tester ports that others use.

podperf refuses an interface that carries a default route, an address, or the SSH session of the person who runs the
suite. It also refuses an interface if a link on the same wire (a lower link, a VLAN, a macvlan) carries one of these,
and every port of a bridge, a bond or an Open vSwitch. Each interface is judged in its own network namespace.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import assumed_link, ip_json, is_veth
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace
from podperf.topology import PortSettings, Topology, WorkerSettings

Link = Mapping[str, Any]  # one element of `ip -json -details address show`
Route = Mapping[str, Any]  # one element of `ip -json route show table all`

_ADVICE = "choose an interface that only the testbed uses"


@dataclass(frozen=True)
class SshSession:
    """The addresses of the two ends of an SSH session. `zone` is the interface of a link-local session."""

    peer: str
    local: str
    zone: str | None = None

    @staticmethod
    def parse(connection: str) -> SshSession | None:
        """The session in the text of SSH_CONNECTION (peer, its port, local address, its port). None for other texts."""
        words = connection.split()
        if len(words) != 4:
            return None
        peer, _, zone = words[0].partition("%")
        return SshSession(peer, words[2].partition("%")[0], zone or None)


@dataclass(frozen=True)
class Network:
    """The state of one network namespace. `towards_peer` are the interfaces that lead to the SSH peer."""

    links: Sequence[Link]
    routes: Sequence[Route]
    towards_peer: Collection[str] = ()


def objections(interface: str, network: Network, ssh: SshSession | None = None) -> list[str]:
    """The reasons why this interface must not be a tester port, one sentence each. Empty if it may be one."""
    port = _find(interface, network.links)
    if port is None:
        names = ", ".join(sorted(link["ifname"] for link in network.links if not _is_loopback(link)))
        return [f"there is no interface {interface!r}; found: {names or 'none'}"]
    name = port["ifname"]
    if _is_loopback(port):
        return [f"{name} is the loopback; {_ADVICE}"]
    reasons = []
    for link, relation in _sharing_the_wire(port, network.links):
        carried = list(_carried(link, network, ssh))
        if carried:
            reasons.append(f"{relation} {' and '.join(carried)}; {_ADVICE}")
        if "link_netnsid" in link and not is_veth(link):
            reasons.append(
                f"the link below {link['ifname']} is in another namespace, where it may be in use; "
                "choose the link below itself"
            )
    if not reasons and (master := port.get("master")):  # only this shows that an Open vSwitch uses the port
        reasons.append(f"{name} is a port of {master}, which brings it the frames of others; {_ADVICE}")
    return reasons


def _find(interface: str, links: Sequence[Link]) -> Link | None:
    return next((link for link in links if interface in {link["ifname"], *link.get("altnames", ())}), None)


def _is_loopback(link: Link) -> bool:
    return link.get("link_type") == "loopback"


def _sharing_the_wire(port: Link, links: Sequence[Link]) -> Iterator[tuple[Link, str]]:
    """The port and every link that uses the same wire, each with words for a message.

    The peer of a veth is the other end of the wire. It belongs to the system under test and may be in use.
    """
    by_name = {link["ifname"]: link for link in links}
    found = {port["ifname"]: f"{port['ifname']} carries"}
    waiting = [port]
    while waiting:
        link = waiting.pop(0)
        yield link, found[link["ifname"]]
        below = None if is_veth(link) else link.get("link")
        above = [each["ifname"] for each in links if each.get("link") == link["ifname"] and not is_veth(each)]
        for name in (link.get("master"), below, *above):
            if name in by_name and name not in found:
                found[name] = f"{port['ifname']} shares its wire with {name}, which carries"
                waiting.append(by_name[name])


def _carried(link: Link, network: Network, ssh: SshSession | None) -> Iterator[str]:
    """The uses of this link that a test network must not have: a default route, an SSH session, an address."""
    name = link["ifname"]
    addresses = [each for each in link.get("addr_info", ()) if "local" in each]
    if any(_is_default(route) and name in _devices(route) for route in network.routes):
        yield "a default route"
    if ssh is not None and (
        name in network.towards_peer or any(address["local"] == ssh.local for address in addresses)
    ):
        yield f"the SSH session from {ssh.peer}"
    in_use = [f"{address['local']}/{address['prefixlen']}" for address in addresses if address.get("scope") == "global"]
    if in_use:
        yield f"the address {', '.join(in_use)}"


def _is_default(route: Route) -> bool:
    """True for a default route and for one half of it (0.0.0.0/1 and 128.0.0.0/1, as VPNs set it)."""
    if route.get("type", "unicast") != "unicast":
        return False
    destination = str(route.get("dst", ""))
    return destination == "default" or destination.endswith(("/0", "/1"))


def _devices(route: Route) -> set[str]:
    hops = [route, *route.get("nexthops", ())]
    return {hop["dev"] for hop in hops if "dev" in hop}


def refuse_shared_ports(
    topology: Topology,
    host: Host | None = None,
    inside: Callable[[str], Host] | None = None,
    ssh: SshSession | None = None,
) -> None:
    """Raises PodperfError, one line for each reason, unless only the testbed uses the topology's interfaces.

    `host` is the tester's machine, by default this machine. `inside` gives one of its network namespaces. Ports that
    the run makes itself are never refused.
    """
    if topology.tester.left.interface is None:  # the run's own ports, or those of a TRex
        return
    host = host or LocalHost()
    inside = inside or partial(NetworkNamespace, host=host)
    ssh = ssh or ssh_session()
    refused = []
    ports: list[tuple[str | None, int]] = []
    for side, port in (("left", topology.tester.left), ("right", topology.tester.right)):
        where = f"{topology.path}: tester.ports.{side}" + (f" in namespace {port.namespace}" if port.namespace else "")
        assert port.interface is not None  # a topology names both or none
        try:
            network = read_network(_host_of(port, host, inside), ssh, [port.interface])
        except PodperfError as error:
            refused.append(f"{where}: {error}")
            continue
        refused += [f"{where}: {objection}" for objection in objections(port.interface, network, ssh)]
        link = _find(port.interface, network.links)
        if link is not None:
            ports.append((port.namespace, link["ifindex"]))
    if len(ports) == 2 and ports[0] == ports[1]:
        refused.append(f"{topology.path}: tester.ports: left and right are two names of one interface; choose two")
    if refused:
        raise PodperfError("\n".join(refused))


def refuse_shared_worker_ports(file: str, worker: WorkerSettings, host: Host, ssh: SshSession | None) -> None:
    """`refuse_shared_ports` for the ports of a worker. `host` is its machine, `ssh` podperf's session to it."""
    named = {side: port.interface for side, port in (("left", worker.left), ("right", worker.right)) if port}
    network = read_network(host, ssh, [*named.values()]) if named else Network((), ())
    refused = [
        f"{file}: {worker.key}.ports.{side} on {host.name}: {objection}"
        for side, interface in named.items()
        for objection in objections(interface, network, ssh)
    ]
    if refused:
        raise PodperfError("\n".join(refused))


def _host_of(port: PortSettings, host: Host, inside: Callable[[str], Host]) -> Host:
    if port.namespace is None:
        return host
    names = [each["name"] for each in ip_json(host, "netns", "list", assumed=[{"name": port.namespace}])]
    if port.namespace not in names:
        raise PodperfError(f"there is no such namespace; found: {', '.join(sorted(names)) or 'none'}")
    return inside(port.namespace)


def read_network(host: Host, ssh: SshSession | None = None, assumed: Sequence[str] = ()) -> Network:
    """The links, addresses and routes of a host, and how it reaches the SSH peer. A plan assumes these interfaces."""
    towards_peer: set[str] = set()
    if ssh is not None and ssh.zone is not None:
        towards_peer = {ssh.zone}
    elif ssh is not None:
        towards_peer = {
            device
            for route in ip_json(host, "route", "get", ssh.peer, check=False, assumed=[])
            for device in _devices(route)
        }
    links = ip_json(host, "-details", "address", "show", assumed=[assumed_link(host, each) for each in assumed])
    return Network(links, ip_json(host, "route", "show", "table", "all", assumed=[]), towards_peer)


def ssh_session(pid: str = "self") -> SshSession | None:
    """The SSH session that this process was started from, or None.

    sudo drops SSH_CONNECTION from the environment, so the environments of the parent processes are read, too.
    """
    while pid != "0":
        process = Path("/proc") / pid
        try:
            environment = (process / "environ").read_bytes().split(b"\0")
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:  # the process has ended, or belongs to another user
            return None
        for entry in environment:
            name, _, value = entry.partition(b"=")
            session = SshSession.parse(value.decode(errors="replace")) if name == b"SSH_CONNECTION" else None
            if session is not None and _is_address(session.peer):
                return session
        pid = parent
    return None


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(text))
    return False
