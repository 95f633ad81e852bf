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

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "ci"
STEADY = 10  # earlier runs of the history
BRIDGE = "linux-bridge"

PODPERF = f"""#!/bin/bash
# `run` gives what lies in $MADE_UP, and ends with $RUN_CODE. `check` ends with $CHECK_CODE.
set -euo pipefail
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
    report) PYTHONPATH={quote(str(ROOT / "libraries"))} exec {quote(sys.executable)} -m podperf report "$@" ;;
    *) exit 252 ;;
esac
"""
XUNIT = """<?xml version="1.0"?><testsuite name="podperf" tests="1" failures="{failures}">
<testcase classname="s" name="t">{failure}</testcase></testsuite>
"""


class Workspace:
    """One folder, and a history beside it with steady runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.history = folder / "workspace", folder / "podperf-history"
        self._made_up = folder / "made-up"
        self._run = STEADY
        programs = folder / "bin"
        for path, text in ((self.folder / "podperf", PODPERF), (programs / "sudo", '#!/bin/sh\nexec "$@"\n')):
            path.parent.mkdir()
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        for run in range(STEADY):
            made_up_history.write(self.history, run, made_up_history.record(BRIDGE, run, 1.0))
        self.path = f"{programs}:{os.environ['PATH']}"

    def next_run(self, factor: float = 1.0, *, failed: bool = False, code: int = 0, check: int = 0) -> dict[str, str]:
        """The environment of a pipeline whose run finds `factor` times the usual rate, or no results where it is 0."""
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
        return {"PATH": self.path, "HOME": str(self.folder.parent), "MADE_UP": str(self._made_up), **codes}

    def runs_in_history(self) -> int:
        """How many runs it has."""
        return len(list(self.history.glob("*/records")))
