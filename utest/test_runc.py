"""Pods that are containers of runc: their configuration, and the message if one does not start."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from podperf.errors import PodperfError
from podperf.hosts.local import LocalHost
from podperf.pods import runc
from podperf.pods.runc import RuncPods, configuration
from scripted_host import ScriptedHost

FOLDERS = "/bin\n/etc\n/usr\n"
DUMP = "uid: 0\nCapability bounding set: chown,net_admin,cap_41\nSecurebits: [none]\n"


def test_a_container_has_the_programs_of_its_worker_for_reading_only() -> None:
    found = configuration(ScriptedHost(answers={"ls -d": FOLDERS, "setpriv --dump": DUMP}))
    assert found["root"]["readonly"]
    options = {mount["destination"]: mount["options"][1] for mount in found["mounts"] if mount["type"] == "bind"}
    assert options == {"/dev": "rw", "/run/podperf": "rw", "/bin": "ro", "/etc": "ro", "/usr": "ro"}
    assert {namespace["type"] for namespace in found["linux"]["namespaces"]} >= {"network", "pid", "mount"}
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
