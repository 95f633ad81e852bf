"""The joins of two workers: the commands that set each one up, and its description in the record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from podperf.cpu_plan import plan_cpus
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.base import Worker, WorkerPort
from podperf.errors import PodperfError, Unavailable
from podperf.frames import AddressFamily, Headers
from podperf.hosts.base import Process
from podperf.model import Chain, FrameSize, Placement, VirtualFunctionSettings
from podperf.preflight.plan import SET_UP, plan
from podperf.testbed.joins import JOINS, describe_join, join_workers
from podperf.topology import SCHEMA_PATH, load_topology
from scripted_host import ScriptedHost

TWO_WORKERS = load_topology(SCHEMA_PATH.parent / "two_workers.yaml", DATA_PLANES)
LINK = json.dumps([{"mtu": 1500, "address": "52:54:00:00:00:09", "linkinfo": {"info_data": {"id": 100}}}])
OFFLOADS = "Features for join-right:\ntx-checksumming: on\nscatter-gather: on [fixed]\nrx-vlan-filter: off"
KERNEL = {"ip -json": LINK, "ethtool -k": OFFLOADS, "wg genkey": "private\n", "wg pubkey": "public\n"}


@cache
def commands(join: str, data_plane: str = "routed") -> list[str]:
    """The commands that set up two pods on two workers of this machine, one a line, in this order."""
    made = plan(TWO_WORKERS, Chain(data_plane, 2, workers=2, join=join), FrameSize.parse(64))
    return [line for step in made.steps if step.phase == SET_UP for line in (step.text, *step.content.splitlines())]


def worker(host: ScriptedHost, number: int, family: AddressFamily = AddressFamily.IPV4) -> Worker:
    left, right = (WorkerPort(f"ens{side}", f"port{number}{side}", "") for side in "ab")
    pods: Any = None
    cpus = plan_cpus(Placement((0,), (1, 2)), 1, with_switch=False)
    sriov, headers = VirtualFunctionSettings(), Headers(family)
    return Worker(host, "", left, right, pods, 1500, cpus, "/run/w", sriov, number, headers=headers)


class Machine(ScriptedHost):
    """A machine with a kernel that can all, whose processes run."""

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        self.commands.append(" ".join(command))
        return Running()


class Running(Process):
    pid = 7

    def alive(self, assumed: bool = True) -> bool:
        return True

    def errors(self, assumed: str = "") -> str:
        return "bird: I started\nbird: KRT: no route\n"

    def stop(self, timeout: float = 5.0) -> None:
        pass


def joined(join: str, *machines: ScriptedHost, family: AddressFamily = AddressFamily.IPV4) -> list[Worker]:
    workers = [worker(machine, number, family) for number, machine in enumerate(machines)]
    with ExitStack() as undo:
        return join_workers(join, workers, machines, undo)


@pytest.mark.parametrize("join", [name for name, join in JOINS.items() if not join.between_routers and join.overhead])
def test_a_data_plane_gets_an_interface_in_place_of_the_port(join: str) -> None:
    one, other = joined(join, Machine(answers=KERNEL, patient=True), Machine(answers=KERNEL, patient=True))
    assert (one.left.interface, one.right.interface, one.right.trunk) == ("ensa", "join-right", "ensb")
    assert (other.left.interface, other.right.interface, other.left.trunk) == ("join-left", "ensb", "ensa")
    assert one.right.mac == other.left.mac == "52:54:00:00:00:09", "its own"
    assert not one.right.carries_packets


@pytest.mark.parametrize("join", ["ipip", "wireguard"])
def test_a_tunnel_of_packets_has_no_neighbours(join: str) -> None:
    one, other = joined(join, Machine(answers=KERNEL, patient=True), Machine(answers=KERNEL, patient=True))
    assert one.right.carries_packets
    assert other.left.carries_packets
    assert not any("neigh" in line and "join-" in line for line in commands(join))
    assert any("neigh" in line and "dev w-right" in line for line in commands(join)), "that of the cable"


def test_both_ends_of_wireguard_know_the_key_and_the_address_of_the_other() -> None:
    machines = [Machine(answers={**KERNEL, "wg pubkey": f"public{number}\n"}, patient=True) for number in (1, 2)]
    joined("wireguard", *machines)
    for machine, peer, address in zip(
        machines, ("public2", "public1"), ("169.254.100.2", "169.254.100.1"), strict=True
    ):
        (line,) = (each for each in machine.commands if each.startswith("wg set") and "endpoint" in each)
        assert f"peer {peer} endpoint {address}:51820 allowed-ips 0.0.0.0/0,::/0" in line
        assert "private" not in line.replace("private-key /dev/stdin", ""), "others can read the arguments of a command"


def test_one_end_of_wireguard_begins_the_handshake_and_both_have_it_before_test_frames_come() -> None:
    one, other = (Machine(answers=KERNEL, patient=True) for _ in range(2))
    joined("wireguard", one, other)
    *_, begins, waits, ends = one.commands
    assert begins.endswith("peer public persistent-keepalive 1") and ends.endswith("persistent-keepalive off")
    assert "latest-handshakes" in waits and waits.endswith("join-right")
    assert "latest-handshakes" in other.commands[-1] and other.commands[-1].endswith("join-left")
    assert not any("keepalive" in line for line in other.commands)
    silent = Machine(answers=KERNEL, patient=True, refused={"timeout 30": ""})
    with pytest.raises(PodperfError, match="scripted host made no handshake by WireGuard in 30 s"):
        joined("wireguard", silent, silent)


@pytest.mark.parametrize(("join", "mtu"), [("cable", 1500), ("vlan", 1504), ("vxlan", 1550), ("ipip", 1520)])
def test_the_cable_has_room_for_the_encapsulation(join: str, mtu: int) -> None:
    """Also for what WireGuard adds to a packet: it never fills one beyond the MTU of its interface."""
    (cable,) = (line for line in commands(join) if "link add name w-right" in line)
    assert f"mtu {mtu} " in cable
    assert any(f"name join-right mtu 1500 up link w-right type {join}" in each for each in commands(join)) == (
        mtu > 1500
    )


def test_routes_by_bgp_are_those_that_bird_received() -> None:
    machines = [Machine(answers=KERNEL, patient=True) for _ in range(2)]
    one, other = joined("bgp", *machines)
    assert (one.right.interface, one.right.table) == ("ensb", 99)
    assert (other.left.interface, other.left.table) == ("ensa", 98)
    first, second = (
        machine.files[f"/run/w/bird-{side}.conf"] for machine, side in zip(machines, ("right", "left"), strict=True)
    )
    assert "local 169.254.100.1 as 64512; neighbor 169.254.100.2 as 64513;" in first
    assert "local 169.254.100.2 as 64513; neighbor 169.254.100.1 as 64512;" in second
    assert "route 198.18.0.0/16 unreachable;" in first, "what lies behind the first worker"
    assert "route 198.19.0.0/16 unreachable;" in second
    rules = [line for line in commands("bgp") if "rule add" in line and "lookup 9" in line]
    assert len(rules) == 2
    assert not any("default" in line and ("table 98" in line or "table 99" in line) for line in commands("bgp"))


def test_without_a_route_by_bgp_packets_are_refused() -> None:
    lines = "\n".join(commands("bgp"))
    assert "route add unreachable 198.19.0.0/16 table 99 metric 4294967295" in lines
    assert "route add unreachable 198.18.0.0/16 table 98 metric 4294967295" in lines


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("bgp-route-withdrawn", ["birdc -s CONTROL disable own_network", "birdc -s CONTROL enable own_network"]),
        ("agent-restarted", ["bird -f -c CONFIG -s CONTROL"]),
    ],
)
def test_a_change_of_bgp_is_made_on_one_worker_and_both_wait_for_their_routes(change: str, expected: list[str]) -> None:
    machines = [Machine(answers=KERNEL, patient=True) for _ in range(2)]
    one, other = joined("bgp", *machines)
    assert not other.left.changes
    for machine in machines:
        machine.commands.clear()
    with ExitStack() as undo:
        one.right.changes[change].make(undo)
        made = [[each for each in machine.commands if each.startswith("bird")] for machine in machines]
    side = "left" if change == "bgp-route-withdrawn" else "right"
    for name, ending in (("CONTROL", "ctl"), ("CONFIG", "conf")):
        expected = [line.replace(name, f"/run/w/bird-{side}.{ending}") for line in expected]
    assert made == ([[], expected] if side == "left" else [expected, []])
    assert all(any("ip route show table" in line for line in machine.commands) for machine in machines)


def test_a_worker_without_the_route_of_the_other_one_is_not_measured() -> None:
    machine = Machine(answers=KERNEL, patient=True, refused={"timeout 60": "no route"})
    with pytest.raises(PodperfError, match=r"got no route to 198\.19\.0\.0/16 by BGP in 60 s: bird: KRT: no route"):
        joined("bgp", machine, machine)


@pytest.mark.parametrize(
    ("join", "refused", "reason"),
    [
        ("geneve", {"ip -n podperf-probe-geneve link add probe": "Unknown device type"}, "has no geneve links"),
        ("wireguard", {"which wg": ""}, "wireguard-tools"),
        ("bgp", {"which bird": ""}, "bird2"),
    ],
)
def test_what_a_machine_lacks_is_the_reason_to_skip(join: str, refused: dict[str, str], reason: str) -> None:
    machine = Machine(answers=KERNEL, patient=True, refused=refused)
    with pytest.raises(Unavailable, match=f"should join the workers, and .*{reason}"):
        joined(join, machine, machine)


@pytest.mark.parametrize("join", ["ipip", "bgp"])
def test_ipv6_does_not_cross_what_carries_ipv4(join: str) -> None:
    machine = Machine(answers=KERNEL, patient=True)
    with pytest.raises(Unavailable, match="for IPv4 only"):
        joined(join, machine, machine, family=AddressFamily.IPV6)


@pytest.mark.parametrize("join", ["ipip", "wireguard", "bgp"])
def test_routers_only_send_packets(join: str) -> None:
    with pytest.raises(Unavailable, match="joins workers that route, and linux-bridge does not"):
        commands(join, "linux-bridge")
    assert commands(join, "ptp")


def test_the_record_tells_bytes_mtu_offloads_and_the_cpus_that_encapsulate() -> None:
    machines = [Machine(answers=KERNEL, patient=True) for _ in range(2)]
    one, other = joined("vxlan", *machines)
    one = replace(one, cpus=replace(one.cpus, receives_left=1, receives_right=2))
    found = describe_join("vxlan", {"first": one, "second": other})
    assert (found["name"], found["overhead_bytes"], found["source"]) == ("vxlan", 50, "RFC 7348")
    assert list(found["interfaces"]) == ["first, above ensb", "second, above ensa"]
    assert found["interfaces"]["first, above ensb"] == {
        "interface": "join-right",
        "mtu": 1500,
        "settings": {"id": 100},
        "offloads": ["scatter-gather", "tx-checksumming"],
        "encapsulated_by": "the kernel",
        "encapsulates_on_cpu": 1,  # which receives from the left
        "decapsulates_on_cpu": 2,
    }


@pytest.mark.parametrize(("state", "by"), [("on", "the port (tx-vlan-offload)"), ("off", "the kernel")])
def test_the_record_tells_whether_the_port_inserts_the_tag_of_a_vlan(state: str, by: str) -> None:
    answers = {"ethtool -k ens": f"Features:\ntx-vlan-offload: {state}", **KERNEL}
    one, other = joined("vlan", *(Machine(answers=answers, patient=True) for _ in range(2)))
    found = describe_join("vlan", {"first": one, "second": other})
    assert [each["encapsulated_by"] for each in found["interfaces"].values()] == [by, by]


def test_one_worker_has_nothing_to_join() -> None:
    machine = ScriptedHost()
    assert joined("cable", machine) == [worker(machine, 0)]
    assert not machine.commands
