"""The forwarders of pods: each application forwards and describes itself, and a message names a missing one."""

from __future__ import annotations

import pytest

from chains import forward, local_testbed, need
from podperf.dataplanes import DATA_PLANES, ovs_dpdk
from podperf.errors import Unavailable
from podperf.hosts.local import LocalHost
from podperf.model import Chain, FrameSize
from podperf.pods.forwarders import FORWARDERS

pytestmark = [pytest.mark.distribution, pytest.mark.usefixtures("machine_as_before", "nothing_left")]
PODS = {"ovs-dpdk": 1, "memif": 2, "af-xdp": 2}


# How an application forwards does not depend on its ports. So one data plane has each of them in every test run.
EACH_APPLICATION, USUAL = "af-xdp", "testpmd"


@pytest.mark.parametrize(
    ("name", "forwarder"),
    [
        pytest.param(
            name,
            forwarder,
            marks=[] if name == EACH_APPLICATION or forwarder == USUAL else pytest.mark.slow,
        )
        for name in PODS
        for forwarder in FORWARDERS
    ],
)
def test_each_application_forwards_both_ways(name: str, forwarder: str) -> None:
    need(name)
    if reason := FORWARDERS[forwarder].missing(LocalHost()):
        pytest.skip(reason)
    description = forward(Chain(name, PODS[name], forwarder))
    applications = description["applications"]
    assert len(applications) == PODS[name]
    for application in applications.values():
        program, _, mode = forwarder.partition("-")
        assert application["command"][0] == f"dpdk-{program}"
        if program == "testpmd":
            assert any(f"{mode or 'io'} packet forwarding" in line for line in application["forwarding"]), application[
                "forwarding"
            ]


def test_an_application_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need("af-xdp")
    monkeypatch.setattr("podperf.pods.forwarders.l2fwd.PROGRAM", "dpdk-l2fwd-of-nobody")
    with pytest.raises(Unavailable, match=r"l2fwd is not installed.*put dpdk-l2fwd-of-nobody on the PATH"):
        forward(Chain("af-xdp", 1, "l2fwd"))


def test_ports_without_af_xdp_fall_back_to_af_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    need("ovs-dpdk")
    monkeypatch.setattr(ovs_dpdk, "DEVICE_DRIVERS", ("net_of_nobody", "net_af_packet"))
    assert DATA_PLANES["ovs-dpdk"].unavailable(LocalHost()) is None
    assert forward(Chain("ovs-dpdk", 1))["device_driver"] == "net_af_packet"
    with local_testbed().build(Chain("ovs-dpdk", 2), FrameSize.parse(1518)):
        pass
