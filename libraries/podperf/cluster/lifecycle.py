"""Starts and ends the cluster of this machine, and tells its state.

Everything that the cluster makes is in its folder, in its control groups, or in namespaces that end with its processes.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from podperf.cluster import core, hierarchies, layout
from podperf.cluster.inside import CONTROL, ENDED, KEEP, LAYOUT, LOGS
from podperf.cluster.layout import FOLDER, GROUP, ClusterLayout, ClusterNode, ClusterPrograms
from podperf.cluster.oci_archive import ImageFile, layer_of, write_archive
from podperf.cluster.programs import CACHE
from podperf.cluster.relay import listen
from podperf.errors import PodperfError
from podperf.kubernetes.api import ApiError, log_in
from podperf.kubernetes.pod_network import PodNetwork, told_by
from podperf.kubernetes.settings import architecture
from podperf.ownership import Owner
from podperf.testbed.run_lock import CLUSTER, RunLock, take

GROUPS = "groups"  # a file in the folder of the cluster
_SWITCHED_ON = "switched-on"  # another one: the controllers that are switched off again at the end, by their group
RUNS_ALREADY = "a cluster runs already: `podperf cluster status` shows it, `podperf cluster down` ends it"
NODES = "/api/v1/nodes"
_NO_ANSWER = "the API server does not answer yet"
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
    network: str = ""  # a value of `cluster up --network`


@contextmanager
def _alone(say: Callable[[str], None]) -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    # A user who can open a file can lock it. So the lock is a file that only root can open, and not the folder.
    file = take(CACHE.with_name(f"{CACHE.name}.lock"), say)
    try:
        yield
    finally:
        os.close(file)


def up(
    programs: ClusterPrograms,
    number: int,
    images: Sequence[Path],
    say: Callable[[str], None],
    undo: ExitStack | None = None,
) -> ClusterState:
    """Start a cluster of `number` nodes, and wait until they are ready.

    With `undo`, the cluster ends when this stack is closed, and with this process, even if the process is killed.
    Without it, the cluster stays.

    PodperfError, with the last lines of the part that ended, if they do not become ready. Nothing of it is left then.
    Taken if a run is measuring here, which the start would disturb.
    """
    with _alone(say), RunLock(CLUSTER, say):
        if running():
            raise PodperfError(RUNS_ALREADY)
        _remove()  # of a cluster that was killed
        groups = [each.folder / GROUP for each in hierarchies.of_this_machine()]
        with ExitStack() as failed:
            failed.callback(_remove)
            wanted, child = _start(programs, number, images, groups)
            _awaited(wanted, lambda state: None if state.version else _NO_ANSWER, say)
            with closing(log_in(str(wanted.kubeconfig), None)) as api:
                for part in programs.parts:
                    part.prepare(api)
            state = _awaited(wanted, _not_ready, say)
            if undo is None:
                _keep(child)
            else:
                undo.enter_context(child)  # closes its standard input, and waits for its end
                undo.callback(down, say)
            failed.pop_all()
            return state


def _start(
    programs: ClusterPrograms, number: int, images: Sequence[Path], groups: Sequence[Path]
) -> tuple[ClusterLayout, Popen[bytes]]:
    """Returns the process that is the cluster. The cluster ends with this program, unless it is kept (`_keep`)."""
    FOLDER.mkdir(mode=0o711)
    (FOLDER / GROUPS).write_text("\n".join(map(str, groups)), encoding="utf-8")
    (FOLDER / LOGS).mkdir()
    with listen() as listening:
        all_images = (_pause_image(programs), *images)
        port = listening.getsockname()[1]
        wanted = ClusterLayout(programs, port, layout.nodes(number), all_images, FOLDER, tuple(map(str, groups)))
        for path, content in {**core.files(wanted), FOLDER / LAYOUT: pickle.dumps(wanted)}.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o600)
            path.write_bytes(content)
        for node in wanted.nodes:
            (wanted.of_node(node) / layout.CNI_OF_CONTAINERD).mkdir()
        _give_plugins(wanted)
        if (caller := Owner.caller(os.environ)) is not None:
            caller.take(wanted.kubeconfig)
        _switch_on([group.parent for group in groups])
        hierarchies.make(groups, [CONTROL, *(node.name for node in wanted.nodes)])
        listening.set_inheritable(True)
        python = (sys.executable, "-I", "-B", "-c", _INSIDE, str(_LIBRARIES))
        with (FOLDER / LOGS / "inside").open("wb") as log:
            child = Popen(
                ["sh", str(_KEEPER), str(FOLDER / GROUPS), *_APART, *python, str(listening.fileno())],
                stdin=PIPE,
                stdout=log,
                stderr=log,
                cwd="/",
                pass_fds=[listening.fileno()],
                start_new_session=True,
            )
    return wanted, child


def _keep(cluster: Popen[bytes]) -> None:
    assert cluster.stdin is not None
    cluster.stdin.write(f"{KEEP}\n".encode())
    cluster.stdin.close()


def _switch_on(groups: Sequence[Path]) -> None:
    """Switch on the controllers of control groups, version 2, that the cluster needs. `_remove` switches them off."""
    wanted = {str(each): off for each in groups if (off := hierarchies.switched_off(each))}
    (FOLDER / _SWITCHED_ON).write_text(json.dumps(wanted), encoding="utf-8")
    for group, controllers in wanted.items():
        hierarchies.switch(Path(group), controllers, on=True)


def _give_plugins(wanted: ClusterLayout) -> None:
    """Put the CNI plug-ins of the nodes into one folder. A node may not see the folder of a part's own script."""
    wanted.plugins.mkdir()
    for each in wanted.programs.plugins.iterdir():
        (wanted.plugins / each.name).symlink_to(each)
    for part in wanted.programs.parts:
        for name, file in part.plugins().items():
            shutil.copy(file, wanted.plugins / name)


def _pause_image(programs: ClusterPrograms) -> Path:
    """The image of the container that holds the network of a pod: busybox alone, asleep."""
    program = Path(programs.of_debian("busybox")).read_bytes()
    layer = layer_of([ImageFile("bin", folder=True), ImageFile("bin/busybox", program, 0o755)])
    command = ["/bin/busybox", "sleep", "2147483647"]
    return write_archive(FOLDER / "pause.tar", layout.PAUSE_IMAGE, [layer], command, architecture()).path


def _not_ready(state: ClusterState) -> str | None:
    return "; ".join(f"{name}: {reason}" for name, reason in state.nodes.items() if reason) or None


def _awaited(
    wanted: ClusterLayout, why_not: Callable[[ClusterState], str | None], say: Callable[[str], None]
) -> ClusterState:
    """The first state of the cluster that has no reason against it."""
    began = time.monotonic()
    told = 0.0
    while True:
        if ended := _ended():
            raise PodperfError(f"the cluster did not start: {ended}")
        state = _state(wanted.kubeconfig, wanted.nodes)
        if (why := why_not(state)) is None:
            return state
        waited = time.monotonic() - began
        if waited > READY_TIMEOUT:
            told_last = _last_lines(f"{wanted.programs.network.name} of {wanted.nodes[0].name}")
            agent = f"; the last lines of its network: {told_last}" if told_last else ""
            raise PodperfError(f"the cluster did not become ready in {READY_TIMEOUT:.0f} s: {why}{agent}")
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


def _how_ended(part: str, exit_code: int, log: str) -> str:
    return f"{part} ended with exit code {exit_code}: {_last_lines(log)}"


def _last_lines(log: str) -> str:
    """The last lines of a log. Empty if there is none."""
    with suppress(FileNotFoundError):
        return " | ".join((FOLDER / LOGS / log).read_text("utf-8", errors="replace").strip().splitlines()[-3:])
    return ""


def running() -> bool:
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
    reasons: dict[str, str | None] = {node.name: _NO_ANSWER for node in nodes}
    version = network = ""
    with suppress(ApiError), closing(log_in(str(kubeconfig), None)) as api:
        version = api.ask("GET", "/version")["gitVersion"]
        found = api.ask("GET", NODES)["items"]
        reasons |= dict.fromkeys(reasons, "it has not registered yet")
        reasons |= {each["metadata"]["name"]: why_not_ready(each) for each in found}
        told = next(filter(None, map(told_by, found)), PodNetwork())
        network = ":".join(filter(None, (told.name, told.mode)))
    return ClusterState(kubeconfig, version, reasons, _memory(), network)


def why_not_ready(node: Mapping[str, Any]) -> str | None:
    """The reason why a node takes no pods. None: it takes pods."""
    for condition in node["status"].get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] != "True":
            return str(condition.get("message") or "it is not ready")
        if condition["type"] == "Ready":
            taints = (taint["key"] for taint in node["spec"].get("taints", ()))
            return "it is not ready yet" if "node.kubernetes.io/not-ready" in taints else None
    return "it has no condition yet"


def in_words(nodes: Mapping[str, str | None]) -> str:
    """The nodes by name, each with the reason why it is not ready (None: ready), in one line."""
    return "; ".join(f"{name}: {reason or 'ready'}" for name, reason in nodes.items())


@dataclass(frozen=True)
class UsedByPart:
    """Memory and CPU time of a part's processes on all nodes, in bytes, and in seconds since they started."""

    memory: int
    cpu_seconds: float


def used_by(part: str) -> UsedByPart | None:
    """Memory and CPU time of a part of the running cluster, by its name. None: it has no process.

    A process belongs to the part whose log it writes. CPU time includes that of its children that have ended.
    """
    logs = {FOLDER / LOGS / f"{part} of {node.name}" for node in FOLDER.glob("node*")}
    memory, ticks, found = 0, 0, False
    for number in hierarchies.processes(_groups()):
        with suppress(OSError):  # the process has ended meanwhile
            if Path(f"/proc/{number}/fd/1").readlink() in logs:
                # The name of a program is in brackets, and may have spaces and brackets (proc(5)).
                fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
                ticks += sum(map(int, fields[11:15]))
                memory += _memory_of(number)
                found = True
    return UsedByPart(memory, ticks / os.sysconf("SC_CLK_TCK")) if found else None


def _memory() -> int:
    """The memory of the cluster's processes, in bytes."""
    return sum(map(_memory_of, hierarchies.processes(_groups())))


def _memory_of(process: int) -> int:
    """Bytes of memory of a process, where shared pages count in equal parts (proc(5), smaps_rollup, Pss). 0: it has
    ended."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
    return 0


def _groups() -> list[Path]:
    with suppress(FileNotFoundError):
        return [Path(line) for line in (FOLDER / GROUPS).read_text(encoding="utf-8").splitlines()]
    return []


def down(say: Callable[[str], None]) -> bool:
    """End the cluster, and remove everything of it. False if there was nothing."""
    with _alone(say):
        return _remove()


def forget_killed(say: Callable[[str], None]) -> list[str]:
    """Remove what a cluster left that was killed. A cluster that runs stays."""
    if not FOLDER.exists() or running():
        return []
    down(say)
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
