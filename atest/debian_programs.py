"""Programs of Debian packages, unpacked and not installed: some would start services, which listen on every address."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from robot_run import ROOT

FOLDER = ROOT / "build" / "debian-programs"


def program(package: str) -> Path:
    """`/usr/bin/<package>` of this package. Skips the test, with the reason, where the package cannot be had."""
    here = FOLDER / package
    found = here / "usr" / "bin" / package
    if found.exists():
        return found
    if shutil.which("apt-get") is None:
        pytest.skip(f"there is no apt-get here, which fetches {package}")
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    fetched = _run("apt-get", "-o", "Acquire::Retries=1", "download", package, folder=here)
    if fetched.returncode and _run("apt-get", "update", folder=here).returncode == 0:
        fetched = _run("apt-get", "download", package, folder=here)
    files = list(here.glob("*.deb"))
    if fetched.returncode or not files:
        last = (fetched.stderr.strip().splitlines() or ["no file came"])[-1]
        pytest.skip(f"the package {package} cannot be had here: {last}")
    subprocess.run(["dpkg-deb", "--extract", files[0], here], check=True)
    assert os.access(found, os.X_OK)
    return found


def _run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
