"""What somebody has removed meanwhile needs no putting back, and keeps nothing else from being put back."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.hosts.way_back import (
    CHANGES,
    Thing,
    WayBack,
    existing_interface,
    existing_namespace,
    existing_path,
    existing_process,
    go_back,
)

GONE = {
    "namespace": existing_namespace("podperf-no-such"),
    "interface": existing_interface("no-such-if"),
    "interface of a namespace that is gone": existing_interface("lo", "podperf-no-such"),
    "cgroup": existing_path("/sys/fs/cgroup/podperf-no-such"),
    "process": existing_process(2**22 + 1),  # more than Linux has (kernel.pid_max)
}
THERE = {
    "interface": existing_interface("lo"),
    "cgroup": existing_path("/sys/fs/cgroup"),
    "process": existing_process(os.getpid()),
    "nothing that could go away": (),
}


def note(folder: Path, thing: Thing, *back: str) -> None:
    """On record, by a run that was killed before it could take it back."""
    with ExitStack() as undo:
        WayBack(LocalHost(), str(folder), undo).note("something", *back, of=thing)
        undo.pop_all()


@pytest.mark.parametrize("thing", GONE.values(), ids=GONE)
def test_a_change_of_something_that_is_gone_is_off_the_record(thing: Thing, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    done = tmp_path / "done"
    note(folder, (), "touch", str(done))
    note(folder, thing, "false")
    assert go_back(LocalHost(), str(folder))
    assert done.exists(), "the others are put back all the same"
    assert not folder.exists()


@pytest.mark.parametrize("thing", THERE.values(), ids=THERE)
def test_a_change_of_something_that_is_there_stays_on_record(thing: Thing, tmp_path: Path) -> None:
    note(tmp_path, thing, "sh", "-c", "echo no >&2; exit 1")
    for _ in range(2):
        with pytest.raises(PodperfError, match=r"not everything is as it was before: something \(no\)$"):
            go_back(LocalHost(), str(tmp_path))


def test_whether_a_thing_is_there_is_asked_only_where_its_change_cannot_be_taken_back(tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    note(tmp_path / "run", ("touch", str(asked)), "true")
    assert go_back(LocalHost(), str(tmp_path / "run"))
    assert not asked.exists()


def test_where_nobody_can_tell_whether_it_is_there_it_stays_on_record(tmp_path: Path) -> None:
    note(tmp_path, ("no-such-command",), "false")
    with pytest.raises(PodperfError, match=r"something \(on this machine, `no-such-command` is not installed\)"):
        go_back(LocalHost(), str(tmp_path))


def test_what_an_earlier_version_has_put_on_record_is_understood(tmp_path: Path) -> None:
    (tmp_path / CHANGES).write_text(json.dumps([["something", ["touch", str(tmp_path / "done")]]]))
    assert go_back(LocalHost(), str(tmp_path))
    assert (tmp_path / "done").exists()
