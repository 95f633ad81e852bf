"""podperf's own programs on the machine that is to run them: nobody else can have put them there."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from podperf.hosts.local import LocalHost
from podperf.hosts.programs import FOLDER, on_host
from scripted_host import ScriptedHost

BOOT = "/proc/sys/kernel/random/boot_id"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "podperf-program"
    file.write_text("content")
    return file


def test_this_machine_runs_what_is_here(program: Path) -> None:
    assert on_host(LocalHost(), program) == str(program)


@pytest.mark.parametrize("copied_before", [False, True])
def test_another_machine_runs_its_copy_even_where_the_same_file_is_at_the_same_path(
    program: Path, copied_before: bool
) -> None:
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    copy = f"{FOLDER}/{digest[:16]}-podperf-program"
    answers = {f"sha256sum -- {program}": f"{digest}  {program}"}
    if copied_before:
        answers[f"sha256sum -- {copy}"] = f"{digest}  {copy}"
    there = ScriptedHost({BOOT: "another"}, answers, patient=True)
    assert on_host(there, program) == copy
    assert (copy in there.files) is not copied_before
