"""A pod as a place for programs: its scripts, in the shell of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podperf.hosts.base import Completed
from podperf.hosts.linux import await_success, path_of
from podperf.kubernetes import pod_place
from podperf.kubernetes.commands_in_pods import CommandInPodFailed
from podperf.kubernetes.pod_place import PodPlace

NO_API: Any = SimpleNamespace()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PodPlace:
    def here(_api: object, _pod: str, _namespace: str, command: Sequence[str], timeout: float) -> Completed:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
        return Completed(tuple(command), done.returncode, done.stdout, done.stderr)

    monkeypatch.setattr(pod_place, "complete", here)
    monkeypatch.setattr(pod_place, "FOLDER", str(tmp_path))
    return PodPlace(NO_API, "n", "p")


def test_a_command_has_its_exit_code_and_a_folder_for_its_files(place: PodPlace, tmp_path: Path) -> None:
    assert place.ask("sh", "-c", 'echo "$TMPDIR"').stdout == f"{tmp_path}\n"
    assert place.do("sh", "-c", "cat; exit 3", stdin="a b\n", check=False).exit_code == 3
    assert place.do("cat", stdin="a 'b'\n").stdout == "a 'b'\n"
    with pytest.raises(CommandInPodFailed, match=r"in pod p, .* ended with exit code 3: no"):
        place.do("sh", "-c", "echo no >&2; exit 3")
    assert path_of(place, "sh") and path_of(place, "no-such-program") is None


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_process_runs_until_it_is_stopped(place: PodPlace, trap: str) -> None:
    process = place.spawn("sh", "-c", f"{trap}echo ready >&2; while :; do sleep 0.05; done")
    try:
        assert await_success(place, process, 20, "grep", "-q", "ready", process.errors_file)
        assert process.alive() and process.errors() == "ready\n"
        process.stop(timeout=0.3)
        assert not process.alive()
    finally:
        process.stop()


def test_a_process_that_ends_by_itself_is_not_awaited(place: PodPlace) -> None:
    process = place.spawn("sh", "-c", "echo cannot bind >&2; exit 1")
    assert not await_success(place, process, 20, "false")
    assert not process.alive() and process.errors() == "cannot bind\n"
    process.stop()


@pytest.mark.parametrize(
    ("files", "nanoseconds"),
    [
        ({"cpu.stat": "usage_usec 1500\nuser_usec 1000\n"}, 1_500_000),
        ({"cpu.stat": "nr_periods 0\n", "cpuacct/cpuacct.usage": "700\n"}, 700),
        ({"cpu,cpuacct/cpuacct.usage": "800\n"}, 800),
        ({}, None),
    ],
)
def test_the_cpu_time_of_a_container_is_that_of_its_control_group(
    place: PodPlace,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    files: Mapping[str, str],
    nanoseconds: float | None,
) -> None:
    group = tmp_path / "control group"
    group.mkdir()
    for name, content in files.items():
        (group / name).parent.mkdir(exist_ok=True)
        (group / name).write_text(content)
    monkeypatch.setattr(pod_place, "_GROUP", str(group))
    assert place.cpu_time() == nanoseconds
    monkeypatch.setattr(pod_place, "_GROUP", str(tmp_path / "none"))
    assert place.cpu_time() is None
