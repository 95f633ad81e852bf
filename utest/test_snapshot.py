"""Snapshots of counted machines: what decides them, how QEMU writes them, what is kept beside them."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podperf.caches import used
from podperf.counted_machine.snapshot import MOST, PREFIX, Snapshot, await_restored, snapshot_in, take
from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost


class Monitor:
    """QEMU's monitor: it answers each command with the next of its answers, or with nothing but success."""

    def __init__(self, answers: dict[str, list[dict[str, Any]]]) -> None:
        self.answers, self.asked = answers, list[str]()

    def serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, connection.makefile("rw") as lines:
                self._say(lines, {"QMP": {}})
                for line in lines:
                    asked = json.loads(line)
                    self.asked.append(asked["execute"])
                    self._say(lines, {"event": "STOP"})
                    waiting = self.answers.get(asked["execute"]) or [{"return": {}}]
                    self._say(lines, waiting.pop(0) if len(waiting) > 1 else waiting[0])
                    if asked["execute"] == "migrate" and "return" in waiting[0]:
                        Path(asked["arguments"]["uri"].removeprefix("file:")).write_text("state")

    def _say(self, lines: Any, answer: dict[str, Any]) -> None:
        lines.write(json.dumps(answer) + "\n")
        lines.flush()


@contextmanager
def qemu(path: Path, **answers: list[dict[str, Any]]) -> Iterator[Monitor]:
    """A monitor at this socket. Underscores in names of commands stand for hyphens."""
    monitor = Monitor({name.replace("_", "-"): each for name, each in answers.items()})
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        server = threading.Thread(target=monitor.serve, args=(listening,), daemon=True)
        server.start()
        yield monitor
        listening.shutdown(socket.SHUT_RDWR)
        server.join(10)


def migration(status: str, **further: str) -> dict[str, Any]:
    return {"return": {"status": status, **further}}


def test_a_snapshot_is_another_one_for_other_words(tmp_path: Path) -> None:
    one = snapshot_in(tmp_path, ["qemu", "-seed", "1"])
    assert one == snapshot_in(tmp_path, ["qemu", "-seed", "1"])
    assert one != snapshot_in(tmp_path, ["qemu", "-seed", "2"])
    assert one != snapshot_in(tmp_path, ["qemu", "-seed1"])


def test_the_machine_goes_on_when_its_state_is_written(tmp_path: Path) -> None:
    snapshot = snapshot_in(tmp_path / "cache", ["one"])
    with qemu(tmp_path / "control", query_migrate=[migration("active"), migration("completed")]) as monitor:
        take(LocalHost(), tmp_path / "control", snapshot)
    assert snapshot.state.read_text() == "state"
    assert snapshot.folder.stat().st_mode & 0o777 == 0o700, "the memory has a private key in it"
    assert monitor.asked[-1] == "cont"


def test_a_state_that_cannot_be_written_leaves_nothing_and_lets_the_machine_go_on(tmp_path: Path) -> None:
    snapshot = snapshot_in(tmp_path / "cache", ["one"])
    failed = migration("failed", **{"error-desc": "No space left on device"})
    with (
        qemu(tmp_path / "control", query_migrate=[failed]) as monitor,
        pytest.raises(PodperfError, match="cannot write the machine's state: No space left on device"),
    ):
        take(LocalHost(), tmp_path / "control", snapshot)
    assert list((tmp_path / "cache").iterdir()) == [] and not snapshot.exists
    assert monitor.asked[-1] == "cont"


def test_an_older_qemu_that_writes_no_files_is_told(tmp_path: Path) -> None:
    refusal = {"error": {"desc": "unknown migration protocol: file:"}}
    with (
        qemu(tmp_path / "control", migrate=[refusal]),
        pytest.raises(PodperfError, match="QEMU refuses migrate: unknown migration protocol"),
    ):
        take(LocalHost(), tmp_path / "control", snapshot_in(tmp_path / "cache", ["one"]))


def test_the_snapshots_that_nobody_has_used_for_longest_go(tmp_path: Path) -> None:
    for number in range(MOST):
        old = tmp_path / f"{PREFIX}{number}"
        old.mkdir()
        os.utime(old, (number, number))
    used(tmp_path / f"{PREFIX}0")
    with qemu(tmp_path / "control", query_migrate=[migration("completed")]):
        take(LocalHost(), tmp_path / "control", Snapshot(tmp_path / f"{PREFIX}new"))
    assert sorted(each.name.removeprefix(PREFIX) for each in tmp_path.glob(f"{PREFIX}*")) == ["0", "2", "3", "new"]


def test_a_second_run_that_takes_the_same_snapshot_is_no_fault(tmp_path: Path) -> None:
    snapshot = snapshot_in(tmp_path, ["one"])
    for _ in range(2):
        with qemu(tmp_path / "control", query_migrate=[migration("completed")]):
            take(LocalHost(), tmp_path / "control", snapshot)
        (tmp_path / "control").unlink()
    assert [each.name for each in tmp_path.iterdir()] == [snapshot.folder.name]


def test_a_machine_goes_on_once_qemu_says_that_it_runs(tmp_path: Path) -> None:
    process = LocalHost().spawn("sleep", "60")
    with qemu(tmp_path / "control", query_status=[migration("inmigrate"), migration("running")]) as monitor:
        await_restored(tmp_path / "control", process)
    process.stop()
    assert monitor.asked.count("query-status") == 2


def test_a_state_that_qemu_does_not_take_is_told_by_its_last_words(tmp_path: Path) -> None:
    process = LocalHost().spawn("sh", "-c", "echo 'qemu: load of migration failed: Invalid argument' >&2; exit 1")
    with pytest.raises(PodperfError, match="load of migration failed: Invalid argument"):
        await_restored(tmp_path / "control", process)
    process.stop()


def test_what_all_machines_of_a_snapshot_give_alike_is_read_once(tmp_path: Path) -> None:
    snapshot, read = Snapshot(tmp_path), list[str]()

    def once(what: str) -> str:
        return snapshot.once(what, lambda: read.append(what) or f"{what}!")  # type: ignore[func-returns-value]

    assert not snapshot.has("symbols")
    assert [once("symbols"), once("symbols"), once("facts")] == ["symbols!", "symbols!", "facts!"]
    assert read == ["symbols", "facts"] and snapshot.has("symbols")


def test_without_its_folder_it_is_read_each_time(tmp_path: Path) -> None:
    gone = Snapshot(tmp_path / "gone")
    assert [gone.once("facts", lambda: "facts") for _ in range(2)] == ["facts"] * 2
