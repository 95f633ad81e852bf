"""A new part is one file, one line in its registry, and one row in a suite: nothing else needs to know it.

Each test adds parts to a copy of the project as a newcomer would, runs the one command that makes what follows from the
code, and runs the unit tests of the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".*", "build", "results", "__pycache__")
# The tests that look at registries, suites, schemas, pages and layers.
ABOUT_PARTS = (
    *("documentation", "layers", "suites", "topology", "third_party", "forecast", "metrics", "comparison_files"),
    *("dry_run", "chain_length", "damaged_records", "further_methods", "methods_of_a_run"),
)


@dataclass(frozen=True)
class Line:
    """A line of a registry behind another text of it, and the import that it needs."""

    registry: str
    behind: str
    line: str
    imported: str = ""

    def add_to(self, project: Path) -> None:
        """Add it to a copy of the project."""
        registry = project / self.registry
        text = registry.read_text(encoding="utf-8")
        assert self.behind in text, f"{self.registry} has no line {self.behind!r}"
        text = text.replace(self.behind, f"{self.behind}{self.line}", 1)
        first = text.index("from podperf.")
        registry.write_text(f"{text[:first]}{self.imported}\n{text[first:]}", encoding="utf-8")


@dataclass(frozen=True)
class Addition:
    """A new file, its lines in registries, and a row of a suite."""

    file: str
    content: str
    lines: tuple[Line, ...]
    suite: str = ""
    row: str = ""

    def add_to(self, project: Path) -> None:
        """Add it to a copy of the project."""
        (project / self.file).write_text(self.content, encoding="utf-8")
        for line in self.lines:
            line.add_to(project)
        if self.suite:
            with (project / self.suite).open("a", encoding="utf-8") as suite:
                suite.write(self.row)


HUB = '''"""A bridge of the kernel between every two neighbours of the chain."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.dataplanes.base import RunningDataPlane, Worker
from podperf.dataplanes.kernel_state import KernelPods, running_pods
from podperf.dataplanes.segments import forward_along, start_pods, static_address
from podperf.documents.settings import setting
from podperf.hosts.base import Host
from podperf.hosts.linux import ip
from podperf.model import Chain
from podperf.pods.cni import CniPlugins


@dataclass(frozen=True)
class HubSettings:
    """What a topology says of its hubs."""

    vlan: int = setting("a VLAN number", default=1, minimum=1, maximum=4094)
    secret: str | None = setting("the path of a key", default=None, is_path=True)


class Hub(KernelPods):
    """A plug-in makes the bridges and attaches the pods."""

    name: ClassVar[str] = "hub"
    settings: ClassVar[type] = HubSettings

    @staticmethod
    def unavailable(host: Host) -> str | None:
        return CniPlugins(host).missing("bridge", "static")

    def set_up(self, worker: Worker, chain: Chain, undo: ExitStack) -> RunningDataPlane:
        def plugins(segment: int, address: str) -> list[dict[str, Any]]:
            bridge = {"type": "bridge", "bridge": f"hub{segment}", "mtu": worker.mtu, "vlan": worker.settings.vlan}
            return [bridge | {"ipam": static_address(address)}]

        pods = start_pods(worker, chain, plugins, undo)
        ip(worker.host, "link", "set", worker.left.interface, "master", "hub0")
        ip(worker.host, "link", "set", worker.right.interface, "master", f"hub{chain.pods}")
        return running_pods(worker, pods, forward_along(pods, worker))
'''

SKELETON = '''"""DPDK's example skeleton as the application of a pod."""

from __future__ import annotations

from podperf.pods.forwarders.l2fwd import L2fwd


class Skeleton(L2fwd):
    """It forwards between two ports, and leaves frames unchanged."""
'''

REPLAYER = '''"""A tester that sends recorded frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from podperf.testers.base import Site, Tester
from podperf.testers.software import SoftwareTester


@dataclass(frozen=True)
class ReplayerSettings:
    """The settings of a replayer: the path of its recording."""

    recording: str
    type: ClassVar[str] = "replayer"
    engine: ClassVar[str] = "auto"
    runs_already: ClassVar[bool] = False
    has_ports_of_its_own: ClassVar[bool] = False


class Replayer:
    """It sends from the recording, and counts as the software tester does."""

    shortest_trial: ClassVar[float] = 0.0
    settings_schema: ClassVar[Mapping[str, Any]] = {
        "required": ["recording"],
        "properties": {"recording": {"title": "the path of a recording", "type": "string"}},
    }

    @classmethod
    def read_settings(cls, tester: Mapping[str, Any]) -> ReplayerSettings:
        return ReplayerSettings(**tester["settings"])

    @classmethod
    def at(cls, site: Site) -> Tester:
        return SoftwareTester.at(site)
'''

PAUSE = '''"""Pause: how long the first frame takes behind a pause without frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podperf.figures import milliseconds
from podperf.methods.base import MeasuredChain, MethodTable
from podperf.methods.presets import FurtherSettings
from podperf.metrics import Measured, Metrics

NAME = "pause"


@dataclass(frozen=True)
class PauseResult:
    """Seconds of one pause."""

    seconds: float

    @property
    def metrics(self) -> Metrics:
        return {"wake_up_time": Measured(self.seconds)}

    @property
    def said(self) -> Sequence[str]:
        return [milliseconds(self.seconds)]

    def as_record(self) -> Mapping[str, Any]:
        return {"method": NAME, "seconds": self.seconds}


class Pause:
    """One trial at a low load."""

    name: ClassVar[str] = NAME
    searches: ClassVar[bool] = False

    @classmethod
    def on(cls, chain: MeasuredChain, amount: float | None = None) -> PauseResult:
        return PauseResult(chain.trials(NAME).measure(1000.0, amount or 1.0).elapsed)

    @staticmethod
    def usual_seconds(settings: FurtherSettings, between: float, set_up: float) -> float:
        return 1.0 + between

    @staticmethod
    def table(found: Mapping[str, Any]) -> MethodTable:
        return MethodTable("Pause", [("First frame", milliseconds(found["seconds"]))])
'''

LIBRARIES = "libraries/podperf"
ADDITIONS = {
    "data plane": Addition(
        f"{LIBRARIES}/dataplanes/hub.py",
        HUB,
        (
            Line(
                f"{LIBRARIES}/dataplanes/__init__.py",
                "        LinuxBridge,\n",
                "        Hub,\n",
                "from podperf.dataplanes.hub import Hub",
            ),
        ),
        "tests/4.1_networking_models/4.1.1_kernel_space.robot",
        "Hub, 64 B               hub\n    [Tags]    hub    64B\n",
    ),
    "forwarder": Addition(
        f"{LIBRARIES}/pods/forwarders/skeleton.py",
        SKELETON,
        (
            Line(
                f"{LIBRARIES}/pods/forwarders/__init__.py",
                '    "l2fwd": L2fwd(),\n',
                '    "skeleton": Skeleton(),\n',
                "from podperf.pods.forwarders.skeleton import Skeleton",
            ),
        ),
        "tests/4.1_networking_models/4.1.2_user_space.robot",
        "OVS-DPDK, 64 B, skeleton                ovs-dpdk             forwarder=skeleton\n"
        "    [Tags]    ovs-dpdk    skeleton    -quick\n",
    ),
    "tester": Addition(
        f"{LIBRARIES}/testers/replayer.py",
        REPLAYER,
        (
            Line(
                f"{LIBRARIES}/testers/__init__.py",
                "_OWN: dict[str, TesterKind] = {",
                '"replayer": Replayer, ',
                "from podperf.testers.replayer import Replayer",
            ),
        ),
    ),
    "method with a metric": Addition(
        f"{LIBRARIES}/methods/pause.py",
        PAUSE,
        (
            Line(
                f"{LIBRARIES}/methods/__init__.py",
                "*(LossCurve, ",
                "Pause, ",
                "from podperf.methods.pause import Pause",
            ),
            Line(
                f"{LIBRARIES}/metrics.py",
                '        *_latency_at("10", "10 % of PDR"),\n',
                '        Metric("wake_up_time", "wake-up time", "wake-up", TIME, "pause", "the time of the first frame '
                'behind a pause", frozenset({Need.CLOCK}), column=False),\n',
            ),
        ),
        "tests/4.2_resources/4.2_methods.robot",
        "Pause, linux bridge, 64 B    Measure By Method    linux-bridge    method=pause\n"
        "    [Tags]    kernel-space    linux-bridge    pause\n",
    ),
}


def copy_with(folder: Path, *parts: str) -> Path:
    """A copy of the project with these parts and all that follows from them."""
    project = folder / "project"
    shutil.copytree(ROOT, project, ignore=LEFT_OUT, symlinks=True)
    if (ROOT / "build").exists():
        (project / "build").symlink_to(ROOT / "build")
    for part in parts:
        ADDITIONS[part].add_to(project)
    done = run(project, "docs/make.py")
    assert done.returncode == 0, done.stderr
    return project


def run(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHONPATH"))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_new_parts_of_all_kinds_leave_the_tests_green(tmp_path: Path) -> None:
    project = copy_with(tmp_path, *ADDITIONS)
    tests = [f"utest/test_{about_part}.py" for about_part in ABOUT_PARTS]
    done = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout[-6000:]
