"""Docker and Podman of Debian's packages, unpacked and not installed, with all that they keep in a folder of a test.

The Docker daemon has a network, a socket and mounts of its own. So no container of the machine's own engine is touched,
and this engine leaves no rule and no bridge on the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from debian_programs import unpacked

OF_DOCKER = ("docker.io", "containerd", "runc", "tini", "libdevmapper1.02.1")
OF_PODMAN = (
    *("podman", "conmon", "runc", "golang-github-containers-common", "golang-github-containers-image"),
    *("libgpgme11", "libassuan0", "libsubid4", "libdevmapper1.02.1"),
)
GROUPS = "test-engines"  # the control groups of the containers
PATIENCE = 60.0  # seconds
# The daemon and its containerd also write into these folders.
_WRITTEN = ("/etc/docker", "/opt/containerd", "/run/containerd", "/run/docker")
_ALONE = f'ip link set lo up; for i in {" ".join(_WRITTEN)}; do mount -t tmpfs tmpfs $i; done; exec "$@"'


def docker_programs() -> dict[str, str]:
    """The variables with which the programs of Docker are found."""
    return _found_first(unpacked(*OF_DOCKER))


@contextmanager
def docker(folder: Path) -> Iterator[dict[str, str]]:
    """A Docker daemon. Yields the variables with which `docker` asks this daemon."""
    variables = {**docker_programs(), "DOCKER_HOST": f"unix://{folder}/docker.sock"}
    daemon = [
        *("dockerd", "--host", variables["DOCKER_HOST"], "--pidfile", f"{folder}/pid", "--storage-driver", "vfs"),
        *("--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--cgroup-parent", f"/{GROUPS}"),
        *("--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false"),
    ]
    own = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation", "slave"]
    environment = {**os.environ, **variables}
    with ExitStack() as undo:
        for each in _WRITTEN:
            _make_folder(Path(each), undo)
        with (folder / "log").open("w") as log:
            start = [*own, "sh", "-ec", _ALONE, "sh", *daemon]
            process = subprocess.Popen(start, stdout=log, stderr=log, env=environment)
        undo.callback(_remove_groups)
        undo.callback(process.wait, PATIENCE)
        undo.callback(process.terminate)
        deadline = time.monotonic() + PATIENCE
        while subprocess.run(["docker", "version"], capture_output=True, env=environment, check=False).returncode:
            assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[-2000:]
            time.sleep(0.1)
        yield variables


def _make_folder(path: Path, undo: ExitStack) -> None:
    """Make an empty folder until `undo`, unless it is there."""
    if not path.exists():
        path.mkdir()
        undo.callback(path.rmdir)


def podman_programs(folder: Path) -> dict[str, str]:
    """The variables with which Podman and its programs are found, and Podman's configuration in the folder."""
    programs = unpacked(*OF_PODMAN)
    configuration: dict[str, dict[str, object]] = {
        "containers": {"cgroup_parent": GROUPS},
        "network": {"network_config_dir": f"{folder}/networks"},
        "engine": {
            "cgroup_manager": "cgroupfs",
            "conmon_path": [f"{programs}/usr/bin/conmon"],
            "events_logger": "none",
            "runtime": "runc",
            "tmp_dir": f"{folder}/tmp",
        },
    }
    storage = {"storage": {"driver": "vfs", "graphroot": f"{folder}/data", "runroot": f"{folder}/run"}}
    (folder / "containers.conf").write_text(_toml(configuration))
    (folder / "storage.conf").write_text(_toml(storage))
    own = folder / ".config" / "containers"  # the user's, which come before those of /etc
    shutil.copytree(programs / "etc" / "containers", own)
    libraries = [str(path.parent) for path in programs.glob("usr/lib/*/libgpgme.so.11")]
    return {
        **_found_first(programs),
        "HOME": str(folder),
        "LD_LIBRARY_PATH": ":".join(libraries),
        "CONTAINERS_CONF": f"{folder}/containers.conf",
        "CONTAINERS_STORAGE_CONF": f"{folder}/storage.conf",
    }


@contextmanager
def podman(folder: Path) -> Iterator[dict[str, str]]:
    """Podman, which has no daemon. Yields the variables with which it keeps all of its files in the folder."""
    variables = podman_programs(folder)
    with ExitStack() as undo:
        _make_folder(Path("/run/runc"), undo)
        undo.callback(_remove_groups)
        undo.callback(shutil.rmtree, folder / "data", ignore_errors=True)
        yield variables


def _found_first(programs: Path) -> dict[str, str]:
    return {"PATH": f"{programs}/usr/bin:{programs}/usr/sbin:{os.environ['PATH']}"}


def _toml(tables: Mapping[str, Mapping[str, object]]) -> str:
    """A TOML file with strings and lists of strings, which JSON writes alike."""
    rows = (
        [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in of.items())] for name, of in tables.items()
    )
    return "\n".join(row for table in rows for row in table) + "\n"


def _remove_groups() -> None:
    """Remove the group in which the engines made those of their containers. They remove only the latter."""
    for group in {*Path("/sys/fs/cgroup").glob(GROUPS), *Path("/sys/fs/cgroup").glob(f"*/{GROUPS}")}:
        for path in sorted(group.rglob("*/"), reverse=True):
            path.rmdir()
        group.rmdir()
