"""A workspace as a CI server makes one. `podperf run` gives made-up results there; `podperf report` is the real one.

What a pipeline does with those results is what its tests look at: no test measures anything.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from pathlib import Path
from shlex import quote

import made_up_history
from podperf.experiments.comparison_files import load_comparison
from podperf.experiments.contender import Hook

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "ci"
STEADY = 10  # earlier runs of the history
BRIDGE = "linux-bridge"

LOAD = "import pathlib, sys; from podperf.experiments.comparison_files import *"
LOAD += "; print(load_comparison(pathlib.Path(sys.argv[1])).name)"
PODPERF = f"""#!/bin/bash
# `run` gives what lies in $MADE_UP, and ends with $RUN_CODE. `check` and `compare` end with $CHECK_CODE.
set -euo pipefail
export PYTHONPATH={quote(str(ROOT / "libraries"))}
command=$1
shift
case $command in
    check) exit "$CHECK_CODE" ;;
    run)
        [[ "$1 $3 $5" = "--outputdir --include --version-under-test" && $7 = *.yaml ]]
        if [ -e "$MADE_UP" ]; then
            mkdir -p "$2"
            cp -r "$MADE_UP"/* "$2"
        fi
        exit "$RUN_CODE"
        ;;
    compare)
        [[ $2 = *.yaml && $3 = --output ]]
        name=$({quote(sys.executable)} -c {quote(LOAD)} "$1")
        mkdir -p "$4"
        cp "$1" "$4/comparison.yaml"
        echo "<testsuite/>" >"$4/comparison-$name.xml"
        exit "$CHECK_CODE"
        ;;
    report) exec {quote(sys.executable)} -m podperf report "$@" ;;
    *) exit 252 ;;
esac
"""
XUNIT = """<?xml version="1.0"?><testsuite name="podperf" tests="1" failures="{failures}">
<testcase classname="s" name="t">{failure}</testcase></testsuite>
"""


class Workspace:
    """One folder, and histories beside it: one with steady runs, whose folder has this name.

    `artifacts` is for files that the server keeps. `installed` has a line for each version that `installer` installed.
    """

    def __init__(self, folder: Path, history: str) -> None:
        self.folder, self.histories, self.artifacts = (
            folder / each for each in ("workspace", "podperf-history", "artifacts")
        )
        self.history = self.histories / history
        self.installer, self.installed = folder / "install", folder / "installed"
        self._made_up = folder / "made-up"
        self._run = STEADY
        programs = folder / "bin"
        programs.mkdir()
        self.folder.mkdir()
        (self.folder / "docs").symlink_to(ROOT / "docs")
        for path, text in (
            (self.folder / "podperf", PODPERF),
            (programs / "sudo", '#!/bin/sh\nexec "$@"\n'),
            (self.installer, f"#!/bin/sh -e\necho $1 >>{quote(str(self.installed))}\n[ $1 != broken ]\n"),
        ):
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        for run in range(STEADY):
            made_up_history.write(self.history, run, made_up_history.record(BRIDGE, run, 1.0))
        self.path = f"{programs}:{os.environ['PATH']}"

    def next_run(
        self, factor: float = 1.0, *, failed: bool = False, code: int = 0, check: int = 0, **variables: str
    ) -> dict[str, str]:
        """The environment of a pipeline whose run finds `factor` times the usual rate, or no results where it is 0.

        `variables` are the user's.
        """
        shutil.rmtree(self._made_up, ignore_errors=True)
        if factor:
            record = made_up_history.record(BRIDGE, self._run, factor)
            if failed:
                record |= {"outcome": "failed", "reason": "below the threshold"}
            made_up_history.write(self._made_up, self._run, record)
            (made,) = self._made_up.iterdir()
            for each in made.iterdir():
                each.rename(self._made_up / each.name)
            made.rmdir()
            failure = '<failure message="below the threshold"/>' if failed else ""
            (self._made_up / "xunit.xml").write_text(XUNIT.format(failures=int(failed), failure=failure))
        self._run += 1
        codes = {"RUN_CODE": str(code), "CHECK_CODE": str(check)}
        return {"PATH": self.path, "HOME": str(self.folder.parent), "MADE_UP": str(self._made_up), **codes, **variables}

    def runs(self) -> list[Path]:
        """The folders of the runs in all histories, the steady ones last."""
        found = (path.parent for path in self.histories.rglob("records"))
        return sorted(found, key=lambda path: path.stat().st_ctime_ns, reverse=True)

    def new_runs(self) -> list[Path]:
        """The folders of runs that are not the steady ones, the newest first."""
        return self.runs()[:-STEADY]

    def artifact(self, name: str) -> Path:
        """The file of this name in the newest artifacts that have one."""
        return max(self.artifacts.rglob(name), key=lambda path: path.stat().st_mtime_ns)

    def hook(self) -> Hook:
        """What the comparison does before it sets up the variant that is not the first one."""
        _, after = load_comparison(self.artifact("comparison.yaml")).variants
        (hook,) = after.hooks
        return hook
