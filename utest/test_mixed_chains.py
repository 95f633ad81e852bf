"""Chains whose first pods run an application and whose other pods forward in the kernel, as their plan shows them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_up import TOPOLOGY
from podperf.dataplanes.ovs_dpdk import pods_in_kernel
from podperf.errors import PodperfError, Unavailable
from podperf.model import Chain, FrameSize
from podperf.pods.forwarders import FORWARDERS, MIXED, USUAL, application_named, forwarder_of
from podperf.preflight.plan import plan

SMALL = FrameSize.parse(64)


@given(st.integers(2, 16))
def test_half_of_the_pods_forward_in_the_kernel(pods: int) -> None:
    assert pods_in_kernel(Chain("ovs-dpdk", pods, MIXED)) == pods // 2
    assert pods_in_kernel(Chain("ovs-dpdk", pods)) == 0


@pytest.mark.parametrize("chain", [Chain("ovs-dpdk", 1, MIXED), Chain("ovs-dpdk", 2, MIXED, chains=2)])
def test_a_mixed_chain_has_two_pods_and_stands_alone(chain: Chain) -> None:
    with pytest.raises(Unavailable, match="a mixed chain has two pods or more, and stands alone"):
        plan(TOPOLOGY, chain, SMALL)


def test_the_pods_of_a_mixed_chain_that_poll_run_the_usual_application() -> None:
    assert forwarder_of(Chain("ovs-dpdk", 2, MIXED)) is application_named(MIXED) is FORWARDERS[USUAL]
    assert application_named("kernel") is None


def test_only_some_data_planes_mix_pods() -> None:
    with pytest.raises(PodperfError, match=re.escape("pods of memif cannot forward by 'testpmd+kernel'")):
        plan(TOPOLOGY, Chain("memif", 2, MIXED), SMALL)


@pytest.mark.parametrize("pods", [2, 3, 4])
def test_the_switch_joins_both_kinds_of_pods_from_left_to_right(pods: int) -> None:
    shown = "\n".join(str(step) for step in plan(TOPOLOGY, Chain("ovs-dpdk", pods, MIXED), SMALL).steps)
    polled = pods - pods // 2
    ports = re.findall(r"add-port ovs-br0 (\S+)", shown)
    wanted = ["left", *(f"pod{number}{end}" for number in range(1, pods + 1) for end in "ab"), "right"]
    assert ports == wanted
    assert len(re.findall(r"type=dpdkvhostuserclient", shown)) == 2 * polled
    assert re.findall(r"iface=(pod\d[ab])", shown) == wanted[1 + 2 * polled : -1]
    routes = re.findall(r"route replace 198\.1[89]\.0\.0/16 via \S+ dev (net\d)", shown)
    assert routes == ["net1", "net2"] * (pods // 2)
