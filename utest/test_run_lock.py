"""The lock of a machine: only root can take it, messages name its holder, and a run waits for a check to end."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from podperf.testbed import run_lock
from podperf.testbed.run_lock import CHECK, CLEAN, RUN, Holder, RunLock, Taken, once_no_check_has_it

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root takes the lock")
HOLD = """
import sys
from podperf.testbed.run_lock import RunLock
with RunLock(sys.argv[1], folder=sys.argv[2]):
    print("locked", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by(what: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock, until its input ends."""
    libraries = Path(run_lock.__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, what, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(libraries)},
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.stdin.close()


@root
@pytest.mark.parametrize(
    ("what", "message"),
    [
        (RUN, r"another podperf run is measuring on this machine \(process {}\); wait until it has ended, or stop it"),
        (CLEAN, r"`podperf clean` is putting this machine back \(process {}\); wait until it has ended"),
    ],
)
def test_who_has_the_lock_is_named(what: str, message: str, tmp_path: Path) -> None:
    said: list[str] = []
    with (
        held_by(what, tmp_path / "lock") as process,
        pytest.raises(Taken, match=message.format(process.pid)),
        RunLock(RUN, said.append, str(tmp_path / "lock")),
    ):
        pass
    assert said == []
    with RunLock(RUN, said.append, str(tmp_path / "lock")):
        pass


@root
def test_a_check_is_waited_for_and_that_is_said(tmp_path: Path) -> None:
    said: list[str] = []
    with held_by(CHECK, tmp_path / "lock") as process:

        def say(text: str) -> None:
            said.append(text)
            assert process.stdin is not None
            process.stdin.close()

        with RunLock(RUN, say, str(tmp_path / "lock")):
            pass
    expected = (
        f"`podperf check` is looking at this machine (process {process.pid}); waiting for it to end, 30 s at most"
    )
    assert said == [expected]


def test_a_check_that_is_just_ending_is_waited_for_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds after the first look, the check has removed its line from the file. At a later look, it has no lock."""
    now = [100.0]
    monkeypatch.setattr(run_lock, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None))
    holders = [Holder(7, CHECK), Holder(7, CHECK), Holder(7), Holder(None)]

    def take() -> str:
        now[0] += 3.0 if len(holders) > 2 else 0.1
        if holders:
            raise Taken(holders.pop(0), "this machine", "wait")
        return "the lock"

    assert once_no_check_has_it(take, lambda _: None) == "the lock"


@root
def test_a_check_that_takes_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lock, "CHECK_PATIENCE", 0.2)
    message = "`podperf check` is looking at this machine"
    with held_by(CHECK, tmp_path / "lock"), pytest.raises(Taken, match=message):
        RunLock(RUN, folder=str(tmp_path / "lock")).__enter__()


@root
def test_what_a_process_has_written_that_was_killed_names_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel knows the process with the lock: here this process. The file names another one."""
    monkeypatch.setattr(run_lock, "_START_PATIENCE", 0.0)
    folder = tmp_path / "lock"
    with RunLock(folder=str(folder)):
        (folder / "lock").write_text("1 clean\n")
        with pytest.raises(Taken, match=rf"another podperf run .* \(process {os.getpid()}\)"):
            RunLock(folder=str(folder)).__enter__()


@root
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_nobody_else_can_open_it(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "lock"
    folder.mkdir()
    folder.chmod(mode)
    before = os.umask(0)
    try:
        with RunLock(folder=str(folder)):
            assert [path.stat().st_mode & 0o777 for path in (folder, folder / "lock")] == [0o700, 0o600]
    finally:
        os.umask(before)


@root
def test_a_full_run_folder_is_one_line_with_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    for call in ("mkdir", "open"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, full)
            with pytest.raises(run_lock.PodperfError) as error:
                RunLock(folder=str(tmp_path / "lock")).__enter__()
        said = f"cannot make the lock {tmp_path}/lock/lock (No space left on device): df -h and df -i show how full"
        assert str(error.value).startswith(said) and "\n" not in str(error.value)
    monkeypatch.setattr(os, "pwrite", full)
    with RunLock(CLEAN, folder=str(tmp_path / "lock")):  # so that `clean` can free it
        message = rf"another podperf run .* \(process {os.getpid()}\)"
        with pytest.raises(Taken, match=message):
            RunLock(folder=str(tmp_path / "lock")).__enter__()


@root
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "lock"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(run_lock.PodperfError, match=r"lock must be root's, and is of user 12345: sudo rm -r "):
        RunLock(folder=str(folder)).__enter__()


@root
def test_the_lock_is_freed_however_its_process_ends(tmp_path: Path) -> None:
    with held_by(RUN, tmp_path / "lock") as process:
        process.kill()
        process.wait()
        with RunLock(folder=str(tmp_path / "lock")):
            pass


def test_who_is_not_root_needs_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with RunLock(folder=str(tmp_path / "lock")):
        assert not (tmp_path / "lock").exists()


@pytest.mark.parametrize(
    ("line", "holder"),
    [
        ("17 run\n", Holder(17, "run")),
        ("17 check ssh\n", Holder(17, "check", over_ssh=True)),
        ("", Holder(None)),
        ("rubbish", Holder(None)),
    ],
)
def test_what_a_holder_has_written_is_read(line: str, holder: Holder) -> None:
    assert Holder.parse(line) == holder


def test_a_run_from_another_machine_is_told_to_be_one() -> None:
    said = Holder(17, RUN, over_ssh=True).describe("this machine")
    assert said == "another podperf run is measuring on this machine (process 17, from another machine)"
    assert Holder(None).describe("there").endswith("(a process that cannot be seen from here)")
