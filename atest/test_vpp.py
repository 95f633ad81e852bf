"""VPP forwards in its three ways and describes itself, and each failure has a message. Skipped without a VPP."""

from __future__ import annotations

import pytest

from chains import end, forward, local_testbed, need, send
from podperf.dataplanes import vpp
from podperf.dataplanes.vpp_chain import VppL2Patch
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.local import LocalHost
from podperf.model import Chain, FrameSize

WAYS = ["vpp-l2patch", "vpp-bridge-domain", "vpp-vrf"]
WITH_VPP = pytest.mark.usefixtures("needed", "machine_as_before", "nothing_left", "no_frame_leaves")


@pytest.fixture
def needed() -> None:
    need("vpp-l2patch")


@WITH_VPP
@pytest.mark.parametrize("pods", [1, 2, 4])
@pytest.mark.parametrize("name", WAYS)
def test_forwards_both_ways(name: str, pods: int) -> None:
    description = forward(Chain(name, pods), ("64", "1518", "IMIX"))
    assert len(description["applications"]) == pods
    ports = 2  # with a receive thread of the kernel each
    assert sum(poller["pollers"] for poller in description["pollers"]) == pods + 1 + ports


@WITH_VPP
@pytest.mark.parametrize(("name", "node"), list(zip(WAYS, ["l2-patch", "l2-fwd", "ip4-rewrite"], strict=True)))
def test_description_is_read_back_from_vpp(name: str, node: str) -> None:
    description = forward(Chain(name, 1))["vpp"]
    assert description["version"].startswith("vpp v")
    assert any("memif1/1" in line for line in description["interfaces"])
    (thread,) = description["runtime"]
    assert thread["nodes"]["memif-input"]["vectors"] > 0
    assert node in thread["nodes"], "frames took another way"
    assert thread["nodes"][node]["vectors_per_call"] >= 1
    assert any(line.startswith("vector rates in") for line in thread["rates"])


@WITH_VPP
def test_a_vpp_that_ends_is_named() -> None:
    with local_testbed().build(Chain("vpp-l2patch", 1), FrameSize.parse(64)) as sut:
        send(sut)
        end("worker", "vpp_main")
        with pytest.raises(PodperfError, match="VPP has ended on namespace podperf-worker"):
            send(sut)


@WITH_VPP
def test_a_start_up_keyword_that_this_vpp_does_not_know_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vpp, "_START_UP", vpp._START_UP.replace("nosyslog", "nosuchword"))
    with pytest.raises(PodperfError, match=r"VPP has ended on namespace podperf-worker: .*nosuchword"):
        forward(Chain("vpp-l2patch", 1))


@WITH_VPP
def test_what_vpp_refuses_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VppL2Patch, "connect", lambda _, vpp, *__: vpp.configure("set interface state none up"))
    with pytest.raises(PodperfError, match=r"VPP refused `set interface state none up`: .*unknown"):
        forward(Chain("vpp-l2patch", 1))


@pytest.mark.parametrize("name", WAYS)
def test_without_vpp_the_reason_says_how_to_install_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
    if not LocalHost().ask("which", "vpp", check=False).exit_code:
        pytest.skip("VPP is installed here as a package")
    with pytest.raises(Unavailable, match=r"VPP is not installed \(packages vpp and vpp-plugin-core"):
        forward(Chain(name, 1))
