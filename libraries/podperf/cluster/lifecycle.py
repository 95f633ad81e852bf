"""Starts and ends the cluster of this machine, and tells its state.

Everything that the cluster makes is in its folder, in its control groups, or in namespaces that end with its processes.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podperf.cluster import hierarchies, layout
from podperf.cluster.inside import CONTROL, ENDED, KEEP, LOGS
from podperf.cluster.layout import FOLDER, GROUP, ClusterLayout, ClusterNode
from podperf.cluster.oci_archive import ImageFile, layer_of, write_archive
from podperf.cluster.parts import CACHE, ClusterPrograms
from podperf.cluster.relay import listen
from podperf.errors import PodperfError
from podperf.kubernetes import multus
from podperf.kubernetes.api import ApiError, log_in
from podperf.kubernetes.run_namespace import until
from podperf.ownership import Owner
from podperf.testbed.run_lock import CLUSTER, RunLock

GROUPS = "groups"  # a file in the folder of the cluster
_SWITCHED_ON = "switched-on"  # another one: the controllers that are switched off again at the end, by their group
RUNS_ALREADY = "a cluster runs already: `podperf cluster status` shows it, `podperf cluster down` ends it"
NODES = "/api/v1/nodes"
READY_TIMEOUT = 300.0  # seconds, on emulated CPUs
_LOOK_AGAIN = 0.2  # seconds
_APART = ("unshare", "--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child")
_LIBRARIES = Path(__file__).parents[2]
_INSIDE = "import sys; sys.path.insert(0, sys.argv[1]); from podperf.cluster.inside import main; main(sys.argv[2:])"
_KEEPER = Path(__file__).with_name("keeper.sh")


@dataclass(frozen=True)
class ClusterState:
    """A cluster that runs: its nodes by name with the reason why one is not ready (None: ready), and the memory that
    its processes use (PSS, bytes)."""

    kubeconfig: Path
    version: str
    nodes: dict[str, str | None]
    memory: int

    @property
    def ready(self) -> bool:
        """Whether all nodes take pods."""
        return not any(self.nodes.values())


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for another command that starts or ends the cluster."""
    CACHE.mkdir(parents=True, exist_ok=True)
    # A user who can open a file can lock it. So the lock is a file that only root can open, and not the folder.
    file = os.open(CACHE.with_name(f"{CACHE.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def up(parts: ClusterPrograms, number: int, images: Sequence[Path], say: Callable[[str], None]) -> ClusterState:
    """Start a cluster of so many nodes, and wait until they are ready.

    PodperfError, with the last lines of the part that ended, if they do not become ready. Nothing of it is left then.
    Taken if a run is measuring here, which the start would disturb.
    """
    with _alone(), RunLock(CLUSTER, say):
        if running():
            raise PodperfError(RUNS_ALREADY)
        _remove()  # of a cluster that was killed
        groups = [each.folder / GROUP for each in hierarchies.of_this_machine()]
        with ExitStack() as undo:
            undo.callback(_remove)
            wanted, keep = _start(parts, number, images, groups)
            state = _await_nodes(wanted, say)
            if parts.multus is not None:
                _define_networks(wanted.kubeconfig)
            keep()
            undo.pop_all()
            return state


def _start(
    parts: ClusterPrograms, number: int, images: Sequence[Path], groups: Sequence[Path]
) -> tuple[ClusterLayout, Callable[[], None]]:
    """Returns a function after which the cluster stays. Without its call, the cluster ends with this program."""
    FOLDER.mkdir(mode=0o711)
    (FOLDER / GROUPS).write_text("\n".join(map(str, groups)), encoding="utf-8")
    (FOLDER / LOGS).mkdir()
    with listen() as listening:
        all_images = (_pause_image(parts), *images)
        port = listening.getsockname()[1]
        wanted = ClusterLayout(parts, port, layout.nodes(number), all_images, FOLDER, tuple(map(str, groups)))
        for path, content in layout.files(wanted).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            path.write_bytes(content)
        _link_plugins(wanted)
        if (caller := Owner.caller(os.environ)) is not None:
            caller.take(wanted.kubeconfig)
        _switch_on([each.parent for each in groups])
        hierarchies.make(groups, [CONTROL, *(node.name for node in wanted.nodes)])
        listening.set_inheritable(True)
        python = (sys.executable, "-I", "-B", "-c", _INSIDE, str(_LIBRARIES))
        with (FOLDER / LOGS / "inside").open("wb") as log:
            child = subprocess.Popen(
                ["sh", str(_KEEPER), str(FOLDER / GROUPS), *_APART, *python, wanted.as_json(), str(listening.fileno())],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=[listening.fileno()],
                start_new_session=True,
            )

    def keep() -> None:
        assert child.stdin is not None
        child.stdin.write(f"{KEEP}\n".encode())
        child.stdin.close()

    return wanted, keep


def _switch_on(groups: Sequence[Path]) -> None:
    """Switch on the controllers of control groups, version 2, that the cluster needs. `_remove` switches them off."""
    wanted = {str(each): off for each in groups if (off := hierarchies.switched_off(each))}
    (FOLDER / _SWITCHED_ON).write_text(json.dumps(wanted), encoding="utf-8")
    for group, controllers in wanted.items():
        hierarchies.switch(Path(group), controllers, on=True)


def _link_plugins(wanted: ClusterLayout) -> None:
    """Put the CNI plug-ins of the nodes into one folder, if Multus is one of them."""
    if wanted.parts.multus is None:
        return
    wanted.plugins.mkdir()
    for each in (*Path(wanted.parts.plugins).iterdir(), wanted.parts.multus / "multus"):
        (wanted.plugins / each.name).symlink_to(each)
    shutil.copy(multus.IN_NETWORK, wanted.plugins / multus.PLUGIN)


def _define_networks(kubeconfig: Path) -> None:
    """Let the cluster know NetworkAttachmentDefinitions."""
    with closing(log_in(str(kubeconfig), None)) as api:
        api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", multus.CUSTOM_RESOURCE)
        if not until(lambda: api.exists(multus.API_PATH), READY_TIMEOUT):
            raise PodperfError(f"the API server does not serve {multus.API_PATH}")


def _pause_image(parts: ClusterPrograms) -> Path:
    """The image of the container that holds the network of a pod: busybox alone, asleep."""
    program = Path(parts.of_debian("busybox")).read_bytes()
    layer = layer_of([ImageFile("bin", folder=True), ImageFile("bin/busybox", program, 0o755)])
    command = ["/bin/busybox", "sleep", "2147483647"]
    return write_archive(FOLDER / "pause.tar", layout.PAUSE_IMAGE, [layer], command, architecture()).path


def architecture() -> str:
    """The machine's architecture as images name it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


def _await_nodes(wanted: ClusterLayout, say: Callable[[str], None]) -> ClusterState:
    began = time.monotonic()
    told = 0.0
    while True:
        if ended := _ended():
            raise PodperfError(f"the cluster did not start: {ended}")
        state = _state(wanted.kubeconfig, wanted.nodes)
        if state.ready:
            return state
        waited = time.monotonic() - began
        why = "; ".join(f"{name}: {reason}" for name, reason in state.nodes.items() if reason)
        if waited > READY_TIMEOUT:
            raise PodperfError(f"the cluster did not become ready in {READY_TIMEOUT:.0f} s: {why}")
        if waited - told > 5:
            told = waited
            say(f"cluster: {why}")
        time.sleep(_LOOK_AGAIN)


def _ended() -> str | None:
    """The parts of the cluster that have ended, with their last lines. None if all run."""
    with suppress(FileNotFoundError):
        lines = (FOLDER / ENDED).read_text(encoding="utf-8").splitlines()
        return "; ".join(_how_ended(**json.loads(line)) for line in lines) or None
    return None


def _how_ended(part: str, exit_code: int) -> str:
    log = FOLDER / LOGS / part
    last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:] if log.exists() else []
    return f"{part} ended with exit code {exit_code}: {' | '.join(last)}"


def running() -> bool:
    """Whether processes of a cluster run on this machine."""
    return bool(hierarchies.processes(_groups()))


def state() -> ClusterState | None:
    """The state of the cluster. None if there is none. PodperfError if a part of it has ended."""
    if not running():
        return None
    if ended := _ended():
        raise PodperfError(f"{ended}; `podperf cluster down` ends the rest")
    names = sorted(each.name for each in FOLDER.glob("node*"))
    return _state(FOLDER / "kubeconfig", layout.nodes(len(names)))


def _state(kubeconfig: Path, nodes: Sequence[ClusterNode]) -> ClusterState:
    """Ask the API server."""
    reasons: dict[str, str | None] = {each.name: "the API server does not answer yet" for each in nodes}
    version = ""
    with suppress(ApiError), closing(log_in(str(kubeconfig), None)) as api:
        version = api.ask("GET", "/version")["gitVersion"]
        found = api.ask("GET", NODES)["items"]
        reasons |= dict.fromkeys(reasons, "it has not registered yet")
        reasons |= {each["metadata"]["name"]: why_not_ready(each) for each in found}
    return ClusterState(kubeconfig, version, reasons, _memory())


def why_not_ready(node: Mapping[str, Any]) -> str | None:
    """The reason why a node takes no pods. None: it takes pods."""
    if any(each["key"] == "node.kubernetes.io/not-ready" for each in node["spec"].get("taints", ())):
        return "it is not ready yet"
    for each in node["status"].get("conditions", ()):
        if each["type"] == "Ready":
            return None if each["status"] == "True" else str(each.get("message") or "it is not ready")
    return "it has no condition yet"


def _memory() -> int:
    """The memory of the cluster's processes, where shared pages count in equal parts (proc(5), smaps_rollup, Pss)."""
    total = 0
    for number in hierarchies.processes(_groups()):
        with suppress(OSError, StopIteration):
            lines = Path(f"/proc/{number}/smaps_rollup").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
    return total


def _groups() -> list[Path]:
    with suppress(FileNotFoundError):
        return [Path(line) for line in (FOLDER / GROUPS).read_text(encoding="utf-8").splitlines()]
    return []


def down() -> bool:
    """End the cluster, and remove everything of it. False if there was nothing."""
    with _alone():
        return _remove()


def forget_killed() -> list[str]:
    """Remove what a cluster left that was killed. A cluster that runs stays."""
    if not FOLDER.exists() or running():
        return []
    down()
    return [str(FOLDER)]


def _remove() -> bool:
    there = FOLDER.exists()
    hierarchies.end(_groups())
    with suppress(FileNotFoundError):
        for group, controllers in json.loads((FOLDER / _SWITCHED_ON).read_text(encoding="utf-8")).items():
            hierarchies.switch(Path(group), controllers, on=False)
    if there:
        shutil.rmtree(FOLDER)
    return there
