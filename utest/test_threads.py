"""Threads are found by their names, and a name proves nothing: any user can give any process the name of another."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from podperf.errors import PodperfError
from podperf.hosts.base import Completed
from podperf.hosts.local import LocalHost
from podperf.kernel.threads import dedicate_receive_processing, threads_named
from podperf.model import Placement
from podperf.testbed.machines import Machines, WorkerMachine
from podperf.testbed.worker_ports import received_by_threads
from podperf.topology import Topology, load_topology
from scripted_host import ScriptedHost

NAMED = 'printf %s "$0" >/proc/self/comm; echo named; read -r _'  # comm(5 of proc): at most 15 characters


def named(name: str) -> Iterator[int]:
    with subprocess.Popen(["sh", "-c", NAMED, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == b"named\n"
        yield process.pid
        process.stdin.close()


@pytest.fixture(params=["napi/podperf-x1", "napi/podperf) S", "napi/podperf\nx", "napi/podperf x"])
def impostor(request: pytest.FixtureRequest) -> Iterator[int]:
    """A process with the name of a thread of the kernel; some names disturb who reads /proc/PID/stat."""
    yield from named(request.param)


def test_a_process_with_the_name_of_a_kernel_thread_is_none(impostor: int) -> None:
    assert threads_named(LocalHost(), "napi/podperf") == []
    assert threads_named(LocalHost(), "napi/podperf", of=impostor) == [impostor], "the name was not given"


def test_a_kernel_thread_is_found_by_its_name() -> None:
    try:
        flags = int(LocalHost().get("/proc/2/stat").rpartition(b")")[2].split()[6])
    except FileNotFoundError:
        flags = 0
    if not flags & 0x00200000:
        pytest.skip("the kernel's threads are not to be seen here: this has process numbers of its own")
    assert threads_named(LocalHost(), "kthreadd") == [2]


def test_where_no_thread_of_the_kernel_is_to_be_seen_the_remedy_is_said() -> None:
    with pytest.raises(
        PodperfError, match=r"receive thread of w-left cannot be held to CPU 1: .*docker run --pid=host"
    ):
        dedicate_receive_processing(ScriptedHost(patient=True), "w-left", 1)


class Refusing(ScriptedHost):
    """A host with one receive thread that cannot be pinned."""

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        done = super()._run(*command, stdin=stdin, check=check, timeout=timeout)
        return replace(done, exit_code=1, stderr="taskset: failed\n") if command[0] == "taskset" else done


def test_a_thread_that_cannot_be_held_has_the_reason_beside_it() -> None:
    host = Refusing(answers={"sh -c for t in": "17"}, patient=True)
    with pytest.raises(PodperfError, match=r"receive thread of w-left cannot be held to CPU 1: taskset: failed$"):
        dedicate_receive_processing(host, "w-left", 1)


def topology(text: str, folder: Path) -> Topology:
    file = folder / "t.yaml"
    file.write_text(f"version: 1\nname: t\n{text}")
    return load_topology(file)


EXISTING = (
    "tester: {ports: {left: {interface: a}, right: {interface: b}}}\n"
    "workers: [{connection: ssh, ssh: {address: there}, ports: {left: {interface: c}, right: {interface: d}}}]\n"
)


def test_threads_receive_on_veths_only(tmp_path: Path) -> None:
    def host(kind: str) -> ScriptedHost:
        links = [{"ifname": name, "linkinfo": {"info_kind": kind}} for name in "cd"]
        return ScriptedHost(answers={"ip -json": json.dumps(links)})

    (made,), (existing,) = topology("", tmp_path).workers, topology(EXISTING, tmp_path).workers
    assert received_by_threads(made, host("veth")), "a run makes its ports as veths"
    assert received_by_threads(existing, host("veth"))
    assert not received_by_threads(existing, host(""))


def test_nothing_receives_for_a_black_box(tmp_path: Path) -> None:
    black_box, host = topology(EXISTING.splitlines()[0], tmp_path), ScriptedHost()
    Machines(black_box, [WorkerMachine(black_box.workers[0], host, Placement((0,), (1,)))], host).refuse_unpinnable()
    assert not host.commands
