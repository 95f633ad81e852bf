"""VPP's answers as data, and VPP's interfaces at each segment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path

import pytest

from podperf.cpu_plan import plan_cpus
from podperf.dataplanes.base import Worker, WorkerPort
from podperf.dataplanes.vpp import Vpp, drives_cards, missing, parse_runtime
from podperf.dataplanes.vpp_chain import segments
from podperf.errors import PodperfError
from podperf.hosts.base import Completed, Process
from podperf.hosts.local import LocalHost
from podperf.model import Placement, VirtualFunctionSettings
from podperf.preflight.plan import PlannedHost
from scripted_host import ScriptedHost

MAIN_THREAD_ONLY = """\
Time 4.2, 10 sec internal node vector rate 1.93 loops/sec 31275.62
  vector rates in 8.2145e4, out 8.2145e4, drop 0.0000e0, punt 0.0000e0
    Name    State    Calls    Vectors    Suspends    Packet-Clocks    Vectors/Call
af-packet-input    polling    131072    345009    0    1.22e2    2.63
l2-patch    active    65536    345009    0    3.10e1    5.26
dpdk-process    any wait    0    0    4    1.22e4    0.00
memif-input    interrupt wai    4711    123    0    4.00e2    1.50
unix-epoll-input    polling    131072    0    0    9.00e2    0.00
"""
TWO_THREADS = "\n".join(
    ["Thread 0 vpp_main (lcore 2)", MAIN_THREAD_ONLY, "Thread 1 vpp_wk_0 (lcore 3)", MAIN_THREAD_ONLY]
)


def test_runtime_names_the_nodes_that_frames_went_through() -> None:
    (thread,) = parse_runtime(MAIN_THREAD_ONLY.splitlines())
    assert thread["thread"] == "vpp_main"
    assert thread["rates"][1].startswith("vector rates in 8.2145e4")
    assert list(thread["nodes"]) == ["af-packet-input", "l2-patch", "memif-input"]
    assert thread["nodes"]["l2-patch"] == {
        "state": "active",
        "calls": 65536,
        "vectors": 345009,
        "clocks_per_vector": 31.0,
        "vectors_per_call": 5.26,
    }


def test_runtime_keeps_threads_apart() -> None:
    main, worker = parse_runtime(TWO_THREADS.splitlines())
    assert main["thread"] == "Thread 0 vpp_main (lcore 2)"
    assert worker["thread"] == "Thread 1 vpp_wk_0 (lcore 3)"
    assert main["nodes"] == worker["nodes"] != {}


def test_an_answer_without_nodes_is_a_thread_without_nodes() -> None:
    assert parse_runtime([]) == [{"thread": "vpp_main", "rates": [], "nodes": {}}]


class Machine(ScriptedHost):
    """A machine with a VPP that has these plug-ins: the files, and the plug-ins that the running VPP reports."""

    def __init__(self, files: Sequence[str], loaded: str = "") -> None:
        super().__init__(patient=True)
        self._files, self._loaded = files, loaded

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        done = super()._run(*command, stdin=stdin, check=check, timeout=timeout)
        if command[-1].startswith("vpp_plugins/"):
            found = [name for name in self._files if fnmatch(name, command[-1].removeprefix("vpp_plugins/"))]
            return replace(done, stdout="\n".join(found))
        if command[-2:] == ("show", "plugins"):
            return replace(done, stdout=self._loaded)
        return done

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return PlannedHost("x", {}).spawn(*command)


REASON = "memif_plugin.so, by which pods are attached: the package vpp-plugin-core has it"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (["dpdk_plugin.so", "memif_plugin.so"], None),
        (["dpdk_plugin.so"], f"VPP is installed on scripted host without {REASON}"),
        ([], None),  # its plug-ins are in another folder; VPP itself reports the loaded ones
    ],
)
def test_a_vpp_without_memif_is_known_before_it_is_started(files: list[str], reason: str | None) -> None:
    said = missing(Machine(files))
    assert said is None if reason is None else said is not None and said.startswith(reason)


def test_a_vpp_that_has_not_loaded_memif_says_so_instead_of_refusing_a_command() -> None:
    loaded = "     Plugin           Version       Description\n  1. af_packet_plugin.so   26.10-rc0   ...\n"
    with ExitStack() as undo, pytest.raises(PodperfError, match=f"VPP on scripted host has not loaded {REASON}"):
        Vpp(Machine([], loaded), "/run/podperf/vpp", 0, (), undo)
    with ExitStack() as undo:
        Vpp(Machine([], loaded + "  2. memif_plugin.so   26.10-rc0   ...\n"), "/run/podperf/vpp", 0, (), undo)


@pytest.mark.parametrize(("ends", "found"), [("usr/lib/x86_64-linux-gnu", True), ("usr/lib", True), ("opt", False)])
def test_plug_ins_are_looked_for_beside_the_program(
    ends: str, found: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real shell and real files, as FD.io's packages and a build of the sources have them."""
    program, plugins = tmp_path / "usr/bin/vpp", tmp_path / ends / "vpp_plugins"
    for folder in (program.parent, plugins):
        folder.mkdir(parents=True)
    for name in (program, program.with_name("vppctl")):
        name.write_text("#!/bin/sh\n")
        name.chmod(0o755)
    (plugins / "dpdk_plugin.so").touch()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert drives_cards(LocalHost()) is found
    assert (missing(LocalHost()) is not None) is found
    (plugins / "memif_plugin.so").touch()
    assert missing(LocalHost()) is None


@pytest.fixture
def worker() -> Worker:
    left = WorkerPort("w-left", "02:00:00:00:00:01", "02:00:00:00:00:aa")
    right = WorkerPort("w-right", "02:00:00:00:00:02", "02:00:00:00:00:bb")
    cpus, vfs = plan_cpus(Placement((0,), (1,)), 1, with_switch=True), VirtualFunctionSettings()
    return Worker(None, "", left, right, None, 1500, cpus, "/run", vfs)  # type: ignore[arg-type]


@pytest.mark.parametrize("pods", [1, 2, 5])
def test_what_leaves_a_segment_to_the_right_enters_the_next_one_from_the_left(worker: Worker, pods: int) -> None:
    chain = segments(worker, ("host-w-left", "host-w-right"), pods)
    assert [each.number for each in chain] == list(range(pods + 1))
    for one, other in pairwise(chain):
        assert one.right.neighbour == other.left.mac
        assert other.left.neighbour == one.right.mac
    assert (chain[0].left.name, chain[0].left.neighbour) == ("host-w-left", worker.left.peer_mac)
    assert (chain[-1].right.name, chain[-1].right.neighbour) == ("host-w-right", worker.right.peer_mac)
    assert chain[0].right.name == "memif1/0"
    assert chain[1].left.name == "memif1/1"
    macs = [end.mac for each in chain for end in (each.left, each.right)]
    assert len(set(macs)) == 2 * pods + 2
