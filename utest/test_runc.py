"""Pods that are containers of runc: their configuration, and the message if one does not start."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.pods import runc
from podperf.pods.runc import ProcessInside, RuncPods, configuration
from scripted_host import ScriptedHost

FOLDERS = "/bin\n/etc\n/usr\n"
DUMP = "uid: 0\nCapability bounding set: chown,net_admin,cap_41\nSecurebits: [none]\n"


def test_a_container_has_the_programs_of_its_worker_for_reading_only() -> None:
    found = configuration(ScriptedHost(answers={"ls -d": FOLDERS, "setpriv --dump": DUMP}))
    assert found["root"]["readonly"]
    options = {each["destination"]: each["options"][1] for each in found["mounts"] if each["type"] == "bind"}
    assert options == {"/dev": "rw", "/run/podperf": "rw", "/bin": "ro", "/etc": "ro", "/usr": "ro"}
    assert {each["type"] for each in found["linux"]["namespaces"]} >= {"network", "pid", "mount"}
    json.dumps(found)


def test_it_may_do_what_its_worker_may_by_the_names_that_capabilities_have() -> None:
    found = configuration(ScriptedHost(answers={"ls -d": FOLDERS, "setpriv --dump": DUMP}))
    assert set(map(tuple, found["process"]["capabilities"].values())) == {("CAP_CHOWN", "CAP_NET_ADMIN")}


def test_a_container_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "case $1 in run) echo 'level=error: no such kernel' >&2; exit 1;; esac"
    monkeypatch.setattr(runc, "_runc", lambda *arguments: ("sh", "-c", script, "sh", *arguments))
    monkeypatch.setattr(runc, "BUNDLES", str(tmp_path))
    refused = "on this machine, runc did not start a process of a pod: level=error: no such kernel"
    with pytest.raises(PodperfError, match=refused), ExitStack() as undo:
        RuncPods(LocalHost(), LocalHost()).start("pod1", [], undo)


def test_a_process_inside_is_spoken_to_through_runc() -> None:
    passed_on = LocalHost().spawn("cat")
    inside = ProcessInside(passed_on, 17)
    inside.send("hello")
    assert (inside.receive(10), inside.pid, inside.alive()) == ("hello", 17, True)
    inside.stop()
    assert not inside.alive()
    assert not passed_on.alive()
    assert not inside.errors()
