"""The program of a container: its container here is a shell, which waits as the one of a cluster does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.errors import PodperfError
from podperf.hosts.base import Process
from podperf.hosts.local import LocalHost
from podperf.kubernetes import container_program
from podperf.kubernetes.container_program import make_pipes, start_program, waiting, within
from podperf.kubernetes.run_namespace import until

HOST = LocalHost()
Start = Callable[..., Process]
PATIENCE = 10.0  # seconds


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a program in a container that waits."""
    monkeypatch.setattr(container_program, "_FOLDERS", tmp_path / "a folder")
    make_pipes(HOST, "pod1")
    container = subprocess.Popen(waiting("pod1"))

    def found(*command: str, why: str | None = None) -> Process:
        return start_program(HOST, "pod1", container.pid, lambda: why, command, undo)

    with ExitStack() as undo:
        yield found
    container.kill()
    container.wait()


@pytest.mark.parametrize("word", ["plain", "two words", 'it\'s "quoted"', "$HOME;`id`", r"a\nb\\c"])
def test_a_program_has_its_words_its_input_and_its_output(start: Start, word: str) -> None:
    program = start("sh", "-c", 'printf "%s\\n" "$0"; echo wrong >&2; exec cat', word)
    assert program.receive(10) == word
    for line in ("one", "two"):
        program.send(line)
        assert program.receive(10) == line
    assert until(lambda: program.errors() == "wrong\n", PATIENCE)
    assert program.alive()


def test_the_container_itself_becomes_the_program(start: Start) -> None:
    program = start("sh", "-c", "echo $$; exec cat")
    assert program.receive(10) == str(program.pid)


@pytest.mark.parametrize("script", ["exec cat", "trap '' TERM; echo; while :; do sleep 0.01; done"])
def test_the_end_of_a_program_is_awaited(start: Start, script: str) -> None:
    program = start("sh", "-c", f"echo up; {script}")
    program.receive(10)
    program.stop(timeout=0.3)
    assert not program.alive()
    state = Path(f"/proc/{program.pid}/stat")  # its output is closed a moment before its end
    assert until(lambda: state.read_text().split()[2] == "Z", PATIENCE), "its parent, this test, has not looked yet"
    program.stop()


def test_a_program_that_is_killed_has_the_reason_of_the_cluster(start: Start) -> None:
    program = start("sh", "-c", "echo up; exec cat", why="OOMKilled")
    program.receive(10)
    os.kill(program.pid, signal.SIGKILL)
    assert until(lambda: not program.alive(), PATIENCE)
    assert "error, as the cluster says: OOMKilled" in program.errors()
    with pytest.raises(PodperfError, match=r"exec cat` in container pod1 has ended: (?s:.)*OOMKilled"):
        program.receive(10)


def test_the_input_of_a_program_ends_with_the_process_that_passes_it_on(start: Start, tmp_path: Path) -> None:
    program = start("sh", "-c", f"echo up; cat; echo ended >'{tmp_path}/log'")
    program.receive(10)
    assert isinstance(program, container_program.ProgramOfContainer)
    os.killpg(program._relay.pid, signal.SIGKILL)
    assert until((tmp_path / "log").exists, PATIENCE)


def test_another_process_with_the_number_of_a_container_is_not_killed(start: Start) -> None:
    """The container has ended, and a process of another one holds its output. So it seems to be alive."""
    program = start("sh", "-c", "echo up; sleep 30 & exec cat")
    program.receive(10)
    assert isinstance(program, container_program.ProgramOfContainer)
    with subprocess.Popen(["sleep", "30"]) as victim:
        program.pid = victim.pid
        program.stop(timeout=0.2)
        assert victim.poll() is None
        victim.kill()


@pytest.mark.parametrize("command", [["sh", "-c", "x", "sh", "/a/pod1", "y"], ["ip", "link"]])
def test_other_commands_are_not_in_a_container(command: Sequence[str]) -> None:
    assert within(command) is None
