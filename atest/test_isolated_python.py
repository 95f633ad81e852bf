"""Root's Python executes no file of the current folder: another user may have filled it."""

from __future__ import annotations

import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from robot_run import ROOT

pytestmark = [
    pytest.mark.usefixtures("machine_as_before"),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, as the attack is on root"),
    pytest.mark.skipif(not (ROOT / ".venv").exists(), reason="not set up; once: sudo ./podperf set-up"),
]
SOMEBODY = 12345
VENV = ROOT / ".venv" / "bin" / "python"
DRIVERS = """
import os
from contextlib import ExitStack
from podperf.hosts.local import LocalHost
from podperf.kernel.xdp_sockets import describe_sockets
from podperf.quietness.watch import _times_on
print(describe_sockets(LocalHost(), os.getpid()))
with ExitStack() as undo:
    print(_times_on(LocalHost(), undo)(0))
"""

_OF_ROBOT = "pythonpath = '{trap}'\nlistener = '{trap}/json.py'\n"
CONFIGURATION = {
    "robot.toml": f"[tool.robot]\n{_OF_ROBOT}",
    ".robotrc": "--listener {trap}/json.py\n",
    "robot.args": "--listener {trap}/json.py\n",
    "pyproject.toml": f"[tool.robot]\n{_OF_ROBOT}[tool.pytest.ini_options]\naddopts = '-p json'\n",
    "tox.ini": "[tox]\nenv_list = x\n[testenv]\ncommands = python {trap}/json.py\n",
    "__init__.robot": "*** Settings ***\nLibrary    {trap}/json.py\n",
    "pip.conf": "[install]\nfind-links = {trap}\n",
    "Makefile": "all:\n\tpython3 {trap}/json.py\n",
    "pyvenv.cfg": "home = {trap}\n",
}


class Trap:
    """A folder of another user with a module of every name that can be imported. Each module notes that it was
    executed.

    Files that configure tools, by their usual names, are in the folder, too. They name such a module.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "trap"
        self.folder.mkdir()
        self._executed = folder / "executed"
        packages = [str(path) for path in (ROOT / ".venv" / "lib").glob("*/site-packages")] + [str(ROOT / "libraries")]
        modules = {iter_module.name for iter_module in pkgutil.iter_modules(packages)}
        for name in {*sys.stdlib_module_names, *modules, "sitecustomize", "usercustomize"}:
            module = self.folder / f"{name}.py"
            module.write_text(f"open({str(self._executed)!r}, 'a').write('{name} ')\n")
            os.chown(module, SOMEBODY, SOMEBODY)
        for name, content in CONFIGURATION.items():
            (self.folder / name).write_text(content.format(trap=self.folder))
        for resource in (ROOT / "resources").glob("*.resource"):
            (self.folder / resource.name).write_text(f"*** Settings ***\nLibrary    {self.folder}/json.py\n")
        os.chown(self.folder, SOMEBODY, SOMEBODY)

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command in that folder, with an environment that also names the folder."""
        named = {"PYTHONPATH": str(self.folder), "PYTHONSTARTUP": str(self.folder / "json.py")}
        return subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **named, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def executed(self) -> str:
        """The names of the modules that were."""
        return self._executed.read_text() if self._executed.exists() else ""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def test_the_trap_works(trap: Trap) -> None:
    trap.run("env", "--unset=PYTHONPATH", "python3", "-c", "import colorsys")
    # Python 3.13 imports linecache before it runs the text of -c. The linecache of the trap ends it.
    assert {"colorsys", "linecache"} & set(trap.executed().split())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", ROOT / "topologies" / "local.yaml"], (0, 254)),
        (["check", "--plan", "ovs-dpdk"], (0,)),
        (["report", "."], (254,)),
        (["clean"], (0,)),
        (["set-up"], (0,)),
        (["run", "--dryrun"], (0,)),
    ],
)
def test_a_command_imports_nothing_from_the_current_folder(
    trap: Trap, arguments: list[str | Path], code: tuple[int, ...]
) -> None:
    done = trap.run(ROOT / "podperf", "--no-install", *arguments)
    assert done.returncode in code, done.stdout + done.stderr
    assert trap.executed() == ""


def test_the_set_up_of_a_fresh_checkout(trap: Trap, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    ignored = shutil.ignore_patterns(".*", "build", "results", "atest", "utest")
    shutil.copytree(ROOT, checkout, ignore=ignored)
    done = trap.run(checkout / "podperf", "--no-install", "set-up", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    log = (checkout / "build" / "set-up.log").read_text()
    assert done.returncode == 252 and "No matching distribution found" in log, "venv and pip were at work"
    assert trap.executed() == ""


def test_what_drivers_start(trap: Trap) -> None:
    done = trap.run(VENV, "-I", "-c", DRIVERS)
    assert done.returncode == 0 and "Times(" in done.stdout, done.stderr
    assert trap.executed() == ""
