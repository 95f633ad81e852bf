"""Every data plane that this machine has really forwards, in both directions, and says what it is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from podperf.cleanup import put_back
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.ovs_kernel import OvsKernel
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.kernel.cpus import read_cpus
from podperf.model import BOTH_DIRECTIONS, Chain, FrameSize, Traffic, Trial
from podperf.testbed import system_under_test
from podperf.testbed.placement import place
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed
from podperf.topology import load_topology

ROOT = Path(__file__).parents[1]
KERNEL = ["linux-bridge", "ptp", "macvlan", "routed", "docker"]
PROOF = Trial(Traffic(FrameSize.parse(64), BOTH_DIRECTIONS, 16), load=2000, duration=0.1)


@pytest.fixture
def testbed() -> Iterator[Testbed]:
    topology = load_topology(ROOT / "topologies/local.yaml", DATA_PLANES)
    yield Testbed(topology, place(topology, read_cpus(LocalHost())))
    assert put_back(LocalHost()) == [], "the testbed left something behind"


def forward(testbed: Testbed, chain: Chain, trial: Trial = PROOF) -> dict[str, object]:
    """Set the chain up, send the trial across it, and return the data plane's description."""
    with testbed.build(chain, trial.traffic.frame) as sut:
        traffic = addressed(trial.traffic, sut)
        sut.probe(traffic)
        result = sut.tester.measure(Trial(traffic, trial.load, trial.duration))
        for each in result.directions:
            assert each.received >= 0.9 * each.sent, f"{each.direction}: {each}"
            assert not each.duplicated
            assert not each.corrupted
        return dict(sut.data_plane.describe())


@pytest.mark.parametrize("pods", [1, 2, 4])
@pytest.mark.parametrize("name", KERNEL)
def test_kernel_data_plane_forwards_both_ways(testbed: Testbed, name: str, pods: int) -> None:
    description = forward(testbed, Chain(name, pods))
    assert len(description["pods"]) == pods  # type: ignore[arg-type]
    assert description["kernel"]
    assert description["runtime"]["cni_plugins"]  # type: ignore[index]


@pytest.mark.parametrize("name", KERNEL)
def test_a_throttled_system_loses_frames_and_does_not_slow_the_tester(testbed: Testbed, name: str) -> None:
    """The SUT's work runs on the SUT's CPU: with that CPU taken away, the load stays and the loss shows it."""
    load = 20_000
    with testbed.build(Chain(name, 1), PROOF.traffic.frame) as sut, busy(testbed.placement.sut[0]):
        traffic = addressed(Traffic(PROOF.traffic.frame), sut)
        result = sut.tester.measure(Trial(traffic, load, duration=0.5))
    assert result.invalid is None
    assert result.achieved_load == pytest.approx(load, rel=0.01)
    assert result.loss_ratio > 0.2


@contextmanager
def busy(cpu: int) -> Iterator[None]:
    """A process that leaves the ordinary ones of this CPU next to nothing."""
    hog = LocalHost().spawn("chrt", "--fifo", "1", "sh", "-c", "while :; do :; done", cpus=[cpu])
    try:
        yield
    finally:
        hog.stop()


@pytest.mark.parametrize("size", ["64", "1518", "3000", "IMIX"])
@pytest.mark.parametrize("name", ["wire", *KERNEL])
def test_every_frame_size_crosses(testbed: Testbed, name: str, size: str) -> None:
    trial = Trial(Traffic(FrameSize.parse(size), BOTH_DIRECTIONS), 1000, 0.05)
    forward(testbed, Chain(name, 0 if name == "wire" else 1), trial)


def test_description_is_read_back_from_the_kernel(testbed: Testbed) -> None:
    links = {each["name"]: each for each in forward(testbed, Chain("linux-bridge", 1))["worker"]["links"]}  # type: ignore[index]
    assert links["w-left"]["master"] == "br0"
    assert links["br0"]["kind"] == "bridge"
    macvlan = forward(testbed, Chain("macvlan", 1))["pods"]["pod1"]["links"]  # type: ignore[index]
    assert {"macvlan"} == {each["kind"] for each in macvlan if each["name"].startswith("net")}
    nat = forward(testbed, Chain("docker", 1))["iptables_nat"]
    assert any("MASQUERADE" in line for line in nat)  # type: ignore[attr-defined]
    assert any("--to-destination" in line for line in nat)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["ipvlan", "ovs-kernel"])
def test_what_the_kernel_lacks_is_unavailable_with_the_reason(testbed: Testbed, name: str) -> None:
    reason = DATA_PLANES[name].unavailable(LocalHost())
    if reason is None:
        forward(testbed, Chain(name, 1))
        return
    with pytest.raises(Unavailable) as caught:
        forward(testbed, Chain(name, 1))
    assert str(caught.value) == reason
    assert put_back(LocalHost()) == []


def test_the_open_vswitch_driver_with_the_datapath_that_every_kernel_has(
    testbed: Testbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the kernel has no openvswitch module, everything of `ovs-kernel` but the datapath itself still runs."""
    if shutil.which("ovs-vswitchd") is None:
        pytest.skip("Open vSwitch is not installed (Debian package openvswitch-switch)")

    class OvsUserSpace(OvsKernel):
        datapath: ClassVar[str] = "netdev"

        @classmethod
        def unavailable(cls, host: Host) -> str | None:
            return None

    monkeypatch.setitem(DATA_PLANES, "ovs-kernel", OvsUserSpace)
    description = forward(testbed, Chain("ovs-kernel", 2))
    assert description["datapath_type"] == "netdev"
    assert len(description["flows"]) == 6  # type: ignore[arg-type]


def test_a_chain_that_does_not_forward_is_found_out(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_under_test, "PROBE_PATIENCE", 0.3)
    with testbed.build(Chain("linux-bridge", 1), FrameSize.parse(64)) as sut:
        LocalHost().run("ip", "-n", "podperf-pod1", "link", "set", "net2", "down")
        with pytest.raises(PodperfError, match="no test frame crossed linux-bridge"):
            sut.probe(addressed(PROOF.traffic, sut))


def test_a_failed_set_up_leaves_nothing(testbed: Testbed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podperf.pods.netns.CniPlugins.add", _refuse)
    with pytest.raises(PodperfError, match="on purpose"), testbed.build(Chain("macvlan", 2), FrameSize.parse(64)):
        pass


def _refuse(*_: object) -> None:
    raise PodperfError("on purpose")


def test_unknown_data_plane_names_the_known_ones(testbed: Testbed) -> None:
    with pytest.raises(PodperfError, match=r"no data plane 'brigde'; known: wire, external, linux-bridge"):
        testbed.demand(Chain("brigde", 1))
    with pytest.raises(PodperfError, match="needs 1 or more pods"):
        testbed.demand(Chain("linux-bridge", 0))
    with pytest.raises(Unavailable, match="no existing ports"):
        testbed.demand(Chain("external", 0))
