"""The caches of podperf: `clean` keeps whole folders, and removes those that killed runs left half-made."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import AS_OTHER_USER
from podperf.caches import forget, half_made
from podperf.hosts.local import LocalHost

MAKING = """
import sys
sys.path.insert(0, sys.argv[1])
from contextlib import ExitStack
from pathlib import Path
from podperf.caches import half_made
from podperf.hosts.local import LocalHost
with ExitStack() as undo:
    print(half_made(LocalHost(), Path(sys.argv[2]), undo), flush=True)
    sys.stdin.read()
"""


def test_whole_folders_and_files_are_removed_only_when_asked(tmp_path: Path) -> None:
    for name in ("building-1234-5", "1234"):
        (tmp_path / name).mkdir()
    (tmp_path / "build.log").touch()
    assert forget(LocalHost(), tmp_path, everything=False) == [str(tmp_path / "building-1234-5")]
    assert forget(LocalHost(), tmp_path, everything=True) == [str(tmp_path / "1234"), str(tmp_path / "build.log")]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("everything", [False, True])
def test_a_folder_stays_while_its_process_makes_it_and_not_after_its_death(tmp_path: Path, everything: bool) -> None:
    command = [sys.executable, "-c", MAKING, str(Path(__file__).parents[1] / "libraries"), str(tmp_path / "image")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as making:
        assert making.stdout is not None
        half = making.stdout.readline().strip()
        assert forget(LocalHost(), tmp_path, everything) == []
        making.send_signal(signal.SIGKILL)
        making.wait()
        assert forget(LocalHost(), tmp_path, everything) == [half]
    assert not list(tmp_path.iterdir())


def test_a_lock_of_another_user_keeps_no_whole_folder(reachable: Path) -> None:
    """Any user can open the folders of unpacked packages, and so lock them (flock(2))."""
    (whole := reachable / "1234").mkdir()
    holding = f"exec 9<{shlex.quote(str(whole))} && flock 9 && echo locked && read -r _"
    as_other = AS_OTHER_USER if os.geteuid() == 0 else ()
    with subprocess.Popen(
        [*as_other, "bash", "-c", holding], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as attacker:
        assert attacker.stdout is not None and attacker.stdout.readline() == "locked\n"
        assert forget(LocalHost(), reachable, everything=True) == [str(whole)]
        attacker.communicate("\n")


def test_a_folder_that_became_whole_stays(tmp_path: Path) -> None:
    with ExitStack() as undo:
        half_made(LocalHost(), tmp_path / "image", undo).replace(tmp_path / "image")
    assert [each.name for each in tmp_path.iterdir()] == ["image"]
    assert forget(LocalHost(), tmp_path, everything=False) == []
