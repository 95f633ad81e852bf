"""Virtual functions: their descriptions, their settings, and which pod gets which."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podperf.dataplanes.sriov_ends import frames_by_hop
from podperf.dataplanes.virtual_functions import LEFT, RIGHT, on_to, ports_along
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Completed
from podperf.kernel import pci
from podperf.kernel.sriov import PhysicalFunction, VfState, changes, describe_port, how_many, parse_vfs, vf_mac
from podperf.model import VirtualFunctionSettings
from podperf.pods.forwarders.dpdk import in_port_order
from podperf.pods.forwarders.testpmd import parse_statistics
from scripted_host import ScriptedHost

# `ip -json link show` of iproute2 6.1, for an igb with two VFs: a new VF, and a VF with settings.
LINK = json.loads("""
{"ifname": "eth1", "vfinfo_list": [
 {"vf": 0, "link_type": "ether", "address": "00:00:00:00:00:00", "broadcast": "ff:ff:ff:ff:ff:ff",
  "vlan_list": [{"vlan": 0}], "rate": {"max_tx": 0, "min_tx": 0}, "spoofchk": true, "link_state": "auto",
  "trust": false, "query_rss_en": false},
 {"vf": 1, "link_type": "ether", "address": "02:70:6f:64:00:01", "broadcast": "ff:ff:ff:ff:ff:ff",
  "vlan_list": [{"vlan": 100, "qos": 0}], "rate": {"max_tx": 0, "min_tx": 0}, "spoofchk": false,
  "link_state": "auto", "trust": true, "query_rss_en": false}]}
""")
states = st.builds(
    VfState,
    st.sampled_from(["00:00:00:00:00:00", vf_mac(0, 0)]),
    st.integers(0, 4094),
    st.booleans(),
    st.booleans(),
)


def test_the_state_of_each_vf_is_read() -> None:
    assert parse_vfs(LINK) == {
        0: VfState("00:00:00:00:00:00", vlan=0, trust=False, spoof_check=True),
        1: VfState(vf_mac(0, 1), vlan=100, trust=True, spoof_check=False),
    }
    assert parse_vfs({"ifname": "eth0"}) == {}


def test_a_vlan_without_a_list_is_read_as_well() -> None:
    (state,) = parse_vfs({"vfinfo_list": [{"vf": 0, "address": "x", "vlan": 7}]}).values()
    assert state.vlan == 7


def test_vlans_are_read_from_old_and_new_versions_of_ip() -> None:
    old = [{"vf": 0, "address": "x", "vlan": 100}, {"vf": 1, "address": "y"}]
    new = [{"vf": 0, "address": "x", "vlan_list": [{"vlan": 100}]}, {"vf": 1, "address": "y", "vlan_list": [{}]}]
    assert parse_vfs({"vfinfo_list": old}) == parse_vfs({"vfinfo_list": new})
    assert [parse_vf.vlan for parse_vf in parse_vfs({"vfinfo_list": new}).values()] == [100, 0]


def test_only_what_differs_is_asked_of_the_driver() -> None:
    before, after = parse_vfs(LINK).values()
    assert changes(before, before) == []
    assert changes(before, after) == ["mac", vf_mac(0, 1), "vlan", "100", "spoofchk", "off", "trust", "on"]


@given(states, states)
def test_changes_lead_there_and_back(one: VfState, other: VfState) -> None:
    def applied(state: VfState, words: list[str]) -> VfState:
        values = dict(zip(words[::2], words[1::2], strict=True))
        return VfState(
            values.get("mac", state.mac),
            int(values.get("vlan", state.vlan)),
            values.get("trust", "on" if state.trust else "off") == "on",
            values.get("spoofchk", "on" if state.spoof_check else "off") == "on",
        )

    assert applied(one, changes(one, other)) == other
    assert applied(other, changes(other, one)) == one


def test_as_many_as_the_chain_needs_or_the_topology_says() -> None:
    assert how_many(3, VirtualFunctionSettings(), "eth1", 7) == 3
    assert how_many(1, VirtualFunctionSettings(number=4), "eth1", 7) == 4
    with pytest.raises(Unavailable, match=r"needs 3 virtual functions of eth1, and sriov.vfs .* allows 2"):
        how_many(3, VirtualFunctionSettings(number=2), "eth1", 7)
    with pytest.raises(Unavailable, match="8 virtual functions of eth1 are wanted, and it offers 7"):
        how_many(8, VirtualFunctionSettings(), "eth1", 7)


@given(st.integers(1, 20))
def test_every_segment_is_on_one_port_and_the_ends_are_on_theirs(pods: int) -> None:
    ports = ports_along(pods)
    assert len(ports) == 2 * pods
    assert (ports[0], ports[-1]) == (LEFT, RIGHT)
    inner = list(zip(ports[1:-1:2], ports[2:-1:2], strict=True))
    assert all(one == other for one, other in inner)
    assert all(before != after for before, after in pairwise(inner)), "both ports carry inner segments"


def test_macs_are_unicast_and_locally_administered_and_all_differ() -> None:
    macs = [vf_mac(side, number) for side in (LEFT, RIGHT) for number in range(256)]
    assert len(set(macs)) == len(macs)
    assert all(int(mac[:2], 16) & 3 == 2 for mac in macs)


def test_dpdk_numbers_pci_devices_by_address_and_before_the_others() -> None:
    devices = ["net_virtio_user0,path=x", "0000:41:10.0", "net_memif0", "0000:21:10.0", "0000:21:0F.2"]
    assert in_port_order(devices) == [
        "0000:21:0f.2",
        "0000:21:10.0",
        "0000:41:10.0",
        "net_virtio_user0,path=x",
        "net_memif0",
    ]


def test_each_device_sends_to_its_own_neighbour_whatever_its_number() -> None:
    left, right = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
    assert on_to({"0000:21:10.0": left, "0000:41:10.0": right}, 2).arguments == (
        f"--eth-peer=0,{left}",
        f"--eth-peer=1,{right}",
        "--rxq=2",
        "--txq=2",
    )
    assert on_to({"0000:41:10.0": left, "0000:21:10.0": right}).arguments[:2] == (
        f"--eth-peer=0,{right}",
        f"--eth-peer=1,{left}",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hw-tc-offload: on", "on"),
        ("hw-tc-offload: off", "off"),
        ("ntuple-filters: off\nhw-tc-offload: off [fixed]", "not offered"),
        ("", "not offered"),
    ],
)
def test_what_a_port_offers(text: str, expected: str) -> None:
    answers = {"ethtool -k eth1": f"Features for eth1:\n{text}\n", "ip -json": "[{}]", "cat": "0"}
    found = describe_port(
        ScriptedHost(answers=answers, patient=True), PhysicalFunction("podperf-worker", "eth1", "0000:01:00.0", 0)
    )
    assert found["hw_tc_offload"] == expected


def test_a_device_that_stays_with_another_driver_is_named() -> None:
    class Stubborn(ScriptedHost):
        def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
            return Completed(command, 1, "", "0000:41:10.0 has the driver 'igbvf'\n")

    with pytest.raises(
        PodperfError, match=r"0000:41:10.0 of scripted host cannot be bound to vfio-pci: .* driver 'igbvf'"
    ):
        pci.give_to_user_space(Stubborn(), "0000:41:10.0")


# testpmd 22.11 in the first pod of a chain: a VF before the pod, and a socket of the switch behind it.
DEVICES = """\
Number of available ports: 2
Port MAC Address       Name         Driver         Status   Link
0    02:70:6F:64:00:00 0000:21:10.0 net_e1000_igb_vf up       1 Gbps
1    56:48:4F:53:54:01 net_virtio_user1 net_virtio_user up       Unknown
"""
STATISTICS = """\
  ---------------------- Forward statistics for port 0  ----------------------
  RX-packets: 120            RX-dropped: 3             RX-total: 123
  TX-packets: 7              TX-dropped: 0             TX-total: 7
  ----------------------------------------------------------------------------

  ---------------------- Forward statistics for port 1  ----------------------
  RX-packets: 7              RX-dropped: 0             RX-total: 7
  TX-packets: 100            TX-dropped: 20            TX-total: 120
  ----------------------------------------------------------------------------

  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 127            RX-dropped: 3             RX-total: 130
  TX-packets: 107            TX-dropped: 20            TX-total: 127
"""


def test_testpmd_counts_the_frames_of_each_device() -> None:
    found = parse_statistics(DEVICES.splitlines(), STATISTICS.splitlines())
    assert found == {
        "0000:21:10.0": {"received": 120, "not_received": 3, "sent": 7, "not_sent": 0},
        "net_virtio_user1": {"received": 7, "not_received": 0, "sent": 100, "not_sent": 20},
    }
    assert set(parse_statistics([], STATISTICS.splitlines())) == {"port 0", "port 1"}, "nothing names them"


def test_frames_between_pods_are_counted_apart_from_those_to_the_network() -> None:
    first = parse_statistics(DEVICES.splitlines(), STATISTICS.splitlines())
    last = {
        "0000:41:10.0": {"received": 7, "not_received": 0, "sent": 90, "not_sent": 0},
        "net_virtio_user0": {"received": 90, "not_received": 0, "sent": 7, "not_sent": 0},
    }
    assert frames_by_hop([first, last], {"0000:21:10.0", "0000:41:10.0"}) == {
        "north_south": {"received": 127, "not_received": 3, "sent": 97, "not_sent": 0},
        "east_west": {"received": 97, "not_received": 0, "sent": 107, "not_sent": 20},
    }
