"""The command `podperf test`: podperf's own tests, by tox."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import ArgumentParser, Namespace

from run_command.arguments import ROOT

_TEXT = """Everything but the slow tests: about ten minutes on two CPUs.

  sudo ./podperf test --all                        the slow tests, too: about 40 minutes
  sudo ./podperf test -e atest -- atest/test_X.py  one file; further arguments are those of pytest (-k, -x, ...)

The stages are lint, types, keywords (their documentation is up to date), utest (unit tests) and atest (tests on this
machine, in network namespaces that they make). Each stage is an environment of tox; other options of tox go before --.
PODPERF_VIRTUAL=1 runs the tests on the virtual worker, too (docs/virtual-worker.md)."""


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the arguments, of which tox gets all others."""
    parser.usage, parser.description = "sudo ./podperf test [--all] [-e STAGE,...] [-- PYTEST ARGUMENTS]", _TEXT
    parser.add_argument("--all", action="store_true", help="the slow tests, too")
    parser.set_defaults(passed_on=[])


def main(options: Namespace) -> int:
    """Run the tests, and return the exit code of tox. What they make belongs to the owner of the checkout."""
    environment = {**os.environ, **({"PODPERF_TESTS": "all"} if options.all else {})}
    # The locked versions without their hashes: pip would want a hash for the tools of the tests, too.
    locked = re.findall(r"^(\w.*) \\$", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    (ROOT / "build" / "constraints.txt").write_text("".join(f"{each}\n" for each in locked), encoding="utf-8")
    caches = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else ["-B"]
    command = [sys.executable, "-I", *caches, "-m", "tox", "run", "--conf", ROOT / "tox.ini", *options.passed_on]
    done = subprocess.run(command, env=environment, check=False)
    if ROOT.stat().st_uid != os.geteuid():
        subprocess.run(["chown", "-R", f"--reference={ROOT}", ROOT], check=True)
    return done.returncode
