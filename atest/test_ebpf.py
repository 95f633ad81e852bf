"""The eBPF data planes forward both ways, name the mode in use, and leave no program, map or pinned file behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import ClassVar

import pytest

from attempts import first
from chains import end, forward, local_testbed, need, send
from machine import once_as
from namespaces import add_namespace
from podperf.dataplanes import DATA_PLANES
from podperf.dataplanes.bpf_programs import bpftool_json, describe_program, redirect_at_xdp
from podperf.dataplanes.xdp_redirect import XdpRedirect
from podperf.errors import PodperfError, Unavailable
from podperf.hosts.linux import add_veth
from podperf.hosts.local import LocalHost
from podperf.model import Chain, Direction, FrameSize, TrafficProfile, Trial
from podperf.testbed.system_under_test import addressed
from podperf.testbed.testbed import Testbed

pytestmark = [pytest.mark.distribution, pytest.mark.usefixtures("nothing_left", "no_frame_leaves")]
HOOKS = ["tc-redirect", "tc-redirect-peer", "xdp-redirect"]


@pytest.fixture(autouse=True)
def testbed() -> Iterator[Testbed]:
    before = loaded()
    yield local_testbed()
    assert once_as(before, loaded) == before, "a BPF program or map was left behind"


def loaded() -> dict[str, int]:
    """The number of programs and maps with podperf's names in the kernel, and the files in the BPF file system."""
    names = {"tc_redirect", "tc_peer", "xdp_redirect", "target"}
    found = [each.get("name") for kind in ("prog", "map") for each in bpftool_json(LocalHost(), kind, "show")]
    pinned = {path.name for path in Path("/sys/fs/bpf").iterdir()} - {"xdp"}  # libxdp's, from its first use on
    return {name: found.count(name) for name in names} | {"pinned": len(pinned)}


@pytest.mark.parametrize("pods", [0, 2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOOKS)
def test_hook_forwards_both_ways(name: str, pods: int) -> None:
    description = forward(Chain(name, pods))
    assert len(description["pods"]) == pods
    assert len(description["programs"]) == 2 + 2 * pods


@pytest.mark.parametrize("name", HOOKS)
def test_every_frame_size_crosses_a_hook(name: str) -> None:
    forward(Chain(name, 1), ("64", "1518", "3000", "IMIX"))


def test_tc_programs_are_read_back() -> None:
    programs = forward(Chain("tc-redirect-peer", 2))["programs"]
    path = {name: (each["program"], each["target"]) for name, each in programs.items()}
    assert path["w-left"] == ("tc_peer", "pod1a")
    assert path["pod1b"] == ("tc_peer", "pod2a")
    assert path["pod2b"] == ("tc_redirect", "w-right")
    assert {program["hook"] for program in programs.values()} == {"tc ingress"}
    plain = forward(Chain("tc-redirect", 1))["programs"]
    assert {each["program"] for each in plain.values()} == {"tc_redirect"}


def test_xdp_is_native_on_veth() -> None:
    programs = forward(Chain("xdp-redirect", 1))["programs"]
    assert {program["mode"] for program in programs.values()} == {"native"}
    assert programs["w-right"]["target"] == "pod1b"


def test_xdp_is_generic_where_the_driver_has_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    class Generic(XdpRedirect):
        modes: ClassVar[Sequence[str]] = ("generic",)

    monkeypatch.setitem(DATA_PLANES, "xdp-redirect", Generic)
    description = forward(Chain("xdp-redirect", 1))
    assert {program["mode"] for program in description["programs"].values()} == {"generic"}


def test_where_the_driver_refuses_a_program_the_kernel_runs_it() -> None:
    """A veth refuses a native program if frames of its peer can be larger than a page."""
    with ExitStack() as undo:
        host = add_namespace("box", undo)
        for near, far in (("a", "b"), ("c", "d")):
            ends = {"near_namespace": host.namespace, "far_namespace": host.namespace}
            add_veth(LocalHost(), near=near, far=far, mtu=9000, **ends)
        with pytest.raises(PodperfError, match=r"native: .*MTU"):
            redirect_at_xdp(host, "a", "c", ["native"])
        redirect_at_xdp(host, "a", "c")
        described = describe_program(host, "a")
        assert (described["hook"], described["mode"], described["target"]) == ("XDP", "generic", "c")


def test_a_port_that_runs_no_program_itself_is_skipped_with_the_reason() -> None:
    with pytest.raises(Unavailable, match=r"w-left of namespace podperf-worker runs no eBPF program on the NIC: .+"):
        forward(Chain("xdp-offload", 1))


@pytest.fixture
def af_xdp() -> None:
    need("af-xdp")


@pytest.mark.usefixtures("af_xdp")
@pytest.mark.parametrize("pods", [1, 2])
def test_af_xdp_forwards_both_ways(pods: int) -> None:
    description = forward(Chain("af-xdp", pods), ("64", "1518", "IMIX"))
    assert len(description["applications"]) == pods
    for application in description["applications"].values():
        assert [socket["mode"] for socket in application["sockets"]] == ["copy", "copy"], "veth has no zero-copy"
        assert not any(socket["prefers_busy_polling"] for socket in application["sockets"])
    assert description["pollers"]


@pytest.mark.usefixtures("af_xdp")
def test_af_xdp_busy_polls_or_is_skipped_with_the_reason() -> None:
    try:
        description = forward(Chain("af-xdp-busy-poll", 1))
    except Unavailable as reason:
        assert "no NAPI context" in str(reason)
        return
    assert all(socket["prefers_busy_polling"] for socket in description["applications"]["pod1"]["sockets"])


@pytest.mark.usefixtures("af_xdp")
def test_frames_that_fit_no_af_xdp_buffer_are_skipped() -> None:
    with pytest.raises(Unavailable, match="does not fit one buffer of an AF_XDP socket"):
        forward(Chain("af-xdp", 1), ["3000"])


@pytest.mark.parametrize("name", [*HOOKS, "af-xdp"])
def test_the_offered_load_does_not_follow_a_slow_data_plane(testbed: Testbed, name: str) -> None:
    """The SUT's CPU does the work for each frame. So the tester sends its whole load, and the SUT loses frames."""
    need(name)
    frame = FrameSize.parse(64)
    with testbed.build(Chain(name, 2), frame) as sut:
        traffic = addressed(TrafficProfile(frame, (Direction.LEFT_TO_RIGHT,)), sut)
        sut.probe(traffic)
        trial = Trial(traffic, 1_000_000, 0.1)
        delivered = [first(lambda each: each.invalid is None, lambda: sut.tester.measure(trial)) for _ in range(2)]
    assert all(each.loss_ratio > 0.1 for each in delivered)


@pytest.mark.usefixtures("af_xdp")
def test_a_testpmd_that_ended_is_named(testbed: Testbed) -> None:
    with testbed.build(Chain("af-xdp", 1), FrameSize.parse(64)) as sut:
        send(sut)
        end("pod1", "dpdk-testpmd")
        with pytest.raises(PodperfError, match="testpmd has ended"):
            send(sut)


@pytest.mark.parametrize("name", HOOKS)
def test_a_failed_set_up_leaves_nothing(testbed: Testbed, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podperf.dataplanes.bpf_programs._set_target", _refuse)
    with pytest.raises(PodperfError, match="on purpose"), testbed.build(Chain(name, 1), FrameSize.parse(64)):
        pass


def _refuse(*_: object) -> None:
    raise PodperfError("on purpose")


@pytest.mark.parametrize("name", HOOKS)
def test_what_is_missing_is_said_with_the_remedy(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("podperf.dataplanes.bpf_programs.OBJECTS", tmp_path)
    reason = DATA_PLANES[name].unavailable(LocalHost())
    assert reason == "the BPF programs are not built; once: sudo ./podperf set-up"
