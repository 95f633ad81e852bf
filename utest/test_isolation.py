"""The interfaces that podperf refuses as tester ports, and the words of the refusal."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.testbed.isolation import (
    Network,
    SshSession,
    objections,
    read_network,
    refuse_shared_ports,
    ssh_session,
)
from podperf.topology import SCHEMA_PATH, PortSettings, Topology, load_topology
from scripted_host import ScriptedHost

SSH = SshSession("192.0.2.9", "192.0.2.1")


def link(name: str, *addresses: str, index: int = 7, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """One link of the output of `ip -json -details address show`."""
    return {
        "ifindex": index,
        "ifname": name,
        "link_type": "ether",
        "linkinfo": {"info_kind": kind} if kind else {},
        "addr_info": [
            {"local": address.split("/")[0], "prefixlen": int(address.split("/")[1]), "scope": "global"}
            for address in addresses
        ],
        **more,
    }


def default_by(device: str, **more: Any) -> dict[str, Any]:
    return {"dst": "default", "gateway": "192.0.2.254", "dev": device, "flags": [], **more}


def only(interface: str, network: Network, ssh: SshSession | None = None) -> str:
    """The one objection there is, without the advice."""
    (objection,) = objections(interface, network, ssh)
    return objection.removesuffix("; choose an interface that only the testbed uses")


def test_an_interface_that_nothing_uses_is_accepted() -> None:
    link_local = {"local": "fe80::1", "prefixlen": 64, "scope": "link"}
    unused = link("eth1", addr_info=[link_local], altnames=["enp3s0"])
    network = Network(
        [link("eth0", "192.0.2.1/24"), unused], [default_by("eth0"), {"dst": "fe80::/64", "dev": "eth1"}], {"eth0"}
    )
    assert objections("eth1", network, SSH) == []
    assert objections("enp3s0", network, SSH) == []


@pytest.mark.parametrize(
    "route",
    [
        default_by("eth1"),
        default_by("eth1", table="100"),
        {"dst": "default", "nexthops": [{"dev": "eth0"}, {"dev": "eth1"}]},
        {"dst": "0.0.0.0/1", "dev": "eth1"},
        {"dst": "8000::/1", "dev": "eth1"},
    ],
)
def test_a_default_route_is_refused(route: dict[str, Any]) -> None:
    assert only("eth1", Network([link("eth1")], [route])) == "eth1 carries a default route"


def test_an_unreachable_default_route_leads_nowhere() -> None:
    assert objections("eth1", Network([link("eth1")], [default_by("eth1", type="unreachable")])) == []


def test_an_address_in_use_is_refused() -> None:
    network = Network([link("eth1", "10.0.0.1/24", "2001:db8::1/64")], [])
    assert only("eth1", network) == "eth1 carries the address 10.0.0.1/24, 2001:db8::1/64"


def test_the_ssh_session_is_refused_by_its_address_and_by_its_route() -> None:
    by_address = Network([link("eth1", "192.0.2.1/24")], [])
    assert only("eth1", by_address, SSH) == "eth1 carries the SSH session from 192.0.2.9 and the address 192.0.2.1/24"
    by_route = Network([link("eth1")], [], towards_peer={"eth1"})
    assert only("eth1", by_route, SSH) == "eth1 carries the SSH session from 192.0.2.9"


@pytest.mark.parametrize(
    "around",
    [
        pytest.param([link("eth1", master="x0"), link("x0", "10.0.0.1/8", kind="bridge")], id="bridge port"),
        pytest.param([link("eth1", master="x0"), link("x0", "10.0.0.1/8", kind="bond")], id="bond member"),
        pytest.param([link("eth1"), link("x0", "10.0.0.1/8", kind="vlan", link="eth1")], id="below a VLAN"),
        pytest.param([link("eth1", kind="vlan", link="x0"), link("x0", "10.0.0.1/8")], id="a VLAN"),
        pytest.param(
            [
                link("eth1", master="bond0"),
                link("bond0", kind="bond", master="br0"),
                link("br0", kind="bridge"),
                link("x0", "10.0.0.1/8", kind="vlan", link="br0"),
            ],
            id="far up",
        ),
    ],
)
def test_what_shares_the_wire_counts(around: list[dict[str, Any]]) -> None:
    assert only("eth1", Network(around, [])) == "eth1 shares its wire with x0, which carries the address 10.0.0.1/8"


def test_a_port_of_a_switch_is_refused_whatever_that_carries() -> None:
    """The address of an Open vSwitch is on the switch's own port. No link shows that this port and the card belong
    together."""
    around = [link("eth1", master="ovs-system"), link("ovs-system"), link("br-ex", "10.0.0.1/8")]
    said = only("eth1", Network(around, [default_by("br-ex")]))
    assert said == "eth1 is a port of ovs-system, which brings it the frames of others"


def test_the_peer_of_a_veth_is_the_other_end_and_may_be_in_use() -> None:
    pair = [link("t0", kind="veth", link="s0"), link("s0", "198.18.0.1/24", kind="veth", link="t0", master="br0")]
    bridge = link("br0", "198.18.0.2/24", kind="bridge")
    assert objections("t0", Network([*pair, bridge], [])) == []
    assert objections("s0", Network([*pair, bridge], [])) != []


def test_a_link_below_in_another_namespace_cannot_be_judged_and_is_refused() -> None:
    assert "below m0 is in another namespace" in only(
        "m0", Network([link("m0", kind="macvlan", link_index=2, link_netnsid=0)], [])
    )
    assert objections("v0", Network([link("v0", kind="veth", link_index=2, link_netnsid=0)], [])) == []


def test_what_is_no_port_at_all() -> None:
    loopback = link("lo", link_type="loopback")
    network = Network([loopback, link("eth1"), link("eth0")], [])
    assert only("lo", network) == "lo is the loopback"
    assert only("eht1", network) == "there is no interface 'eht1'; found: eth0, eth1"


names = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    st.lists(st.tuples(names, st.none() | names, st.none() | names), unique_by=lambda each: each[0], min_size=1),
    names,
)
def test_links_in_a_circle_end_and_the_own_address_is_always_seen(
    shape: list[tuple[str, str | None, str | None]], chosen: str
) -> None:
    links = [link(name, "10.0.0.1/8", master=master, link=below) for name, master, below in shape]
    said = objections(chosen, Network(links, []))
    assert said
    assert len(said) <= len(links)


def recorded(answers: dict[str, str]) -> ScriptedHost:
    return ScriptedHost(answers=answers, refused={"": "no answer"})


def external(left: PortSettings, right: PortSettings) -> Topology:
    local = load_topology(SCHEMA_PATH.parent / "local.yaml")
    return replace(local, path="lab.yaml", tester=replace(local.tester, left=left, right=right))


SHOW = "ip -json -details address show"
ROUTES = "ip -json route show table all"


def refused(topology: Topology, host: ScriptedHost, inner: ScriptedHost | None = None) -> Sequence[str]:
    try:
        refuse_shared_ports(topology, host, lambda _: inner or host, SSH)
    except PodperfError as error:
        return str(error).splitlines()
    return ()


def test_each_port_is_judged_in_its_own_namespace() -> None:
    host = recorded(
        {
            SHOW: '[{"ifindex": 2, "ifname": "eth1", "altnames": ["enp3"], "link_type": "ether", "addr_info": []}]',
            ROUTES: '[{"dst": "default", "dev": "eth0"}]',
            "ip -json route get 192.0.2.9": '[{"dst": "192.0.2.9", "dev": "eth1"}]',
            "ip -json netns list": '[{"name": "gen", "id": 0}]',
        }
    )
    gen = recorded(
        {
            SHOW: '[{"ifindex": 2, "ifname": "eth1", "link_type": "ether", "addr_info": []}]',
            ROUTES: '[{"dst": "default", "dev": "eth1"}]',
        }
    )
    assert refused(external(PortSettings("eth1"), PortSettings("eth1", "gen")), host, gen) == [
        "lab.yaml: tester.ports.left: eth1 carries the SSH session from 192.0.2.9; "
        "choose an interface that only the testbed uses",
        "lab.yaml: tester.ports.right in namespace gen: eth1 carries a default route; "
        "choose an interface that only the testbed uses",
    ]
    assert refused(external(PortSettings("eth9", "gem"), PortSettings("eth1", "gen")), host, gen)[0] == (
        "lab.yaml: tester.ports.left in namespace gem: there is no such namespace; found: gen"
    )


def test_one_interface_by_two_names_is_refused() -> None:
    host = recorded(
        {SHOW: '[{"ifindex": 2, "ifname": "eth1", "altnames": ["enp3"], "link_type": "ether"}]', ROUTES: "[]"}
    )
    assert refused(external(PortSettings("eth1"), PortSettings("enp3")), host) == [
        "lab.yaml: tester.ports: left and right are two names of one interface; choose two"
    ]


def test_ports_that_the_run_makes_are_not_looked_at() -> None:
    assert refused(external(PortSettings(), PortSettings()), recorded({})) == ()


def test_this_machine_can_be_read_and_its_own_default_route_is_refused() -> None:
    network = read_network(LocalHost(), SshSession("127.0.0.1", "127.0.0.1"))
    assert network.towards_peer == {"lo"}
    carriers = [route["dev"] for route in network.routes if route.get("dst") == "default" and "dev" in route]
    for device in carriers:
        assert "a default route" in " ".join(objections(device, network))


@pytest.mark.parametrize(
    ("text", "session"),
    [
        ("192.0.2.9 50000 192.0.2.1 22", SSH),
        ("fe80::9%eth0 50000 fe80::1%eth0 22", SshSession("fe80::9", "fe80::1", "eth0")),
        ("", None),
        ("192.0.2.9 50000", None),
    ],
)
def test_the_session_is_read_from_ssh_connection(text: str, session: SshSession | None) -> None:
    assert SshSession.parse(text) == session


def test_the_session_is_found_though_sudo_dropped_it_from_the_environment() -> None:
    libraries = Path(sys.modules["podperf"].__path__[0]).parent
    program = "from podperf.testbed.isolation import ssh_session; print(ssh_session())"
    command = f"env -u SSH_CONNECTION PYTHONPATH='{libraries}' '{sys.executable}' -c '{program}'; true"
    done = subprocess.run(
        ["sh", "-c", command],
        env={"SSH_CONNECTION": "192.0.2.9 50000 192.0.2.1 22", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(SSH)


def test_a_process_that_is_gone_has_no_session() -> None:
    assert ssh_session("999999999") is None
