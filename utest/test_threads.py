"""Threads are found by their names, and a name proves nothing: any user can give any process the name of another."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from podperf.hosts.linux import threads_named
from podperf.hosts.local import LocalHost

NAMED = "printf %s \"$0\" >/proc/self/comm; echo named; read -r _"  # comm(5 of proc): at most 15 characters


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
