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
    found = unpacked(package) / "usr" / "bin" / package
    assert os.access(found, os.X_OK)
    return found


def unpacked(*packages: str) -> Path:
    """The files of these packages, in a folder. Skips the test, with the reason, where they cannot be had."""
    here = FOLDER / packages[0]
    whole = here / "whole"
    if whole.exists() and whole.read_text() == " ".join(packages):
        return here
    if shutil.which("apt-get") is None:
        pytest.skip(f"there is no apt-get here, which fetches {packages[0]}")
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    fetched = _run("apt-get", "-o", "Acquire::Retries=1", "download", *packages, folder=here)
    if fetched.returncode and _run("apt-get", "update", folder=here).returncode == 0:
        fetched = _run("apt-get", "download", *packages, folder=here)
    files = list(here.glob("*.deb"))
    if fetched.returncode or not files:
        last = (fetched.stderr.strip().splitlines() or ["no file came"])[-1]
        pytest.skip(f"the package {packages[0]} cannot be had here: {last}")
    for file in files:
        subprocess.run(["dpkg-deb", "--extract", file, here], check=True)
        file.unlink()
    whole.write_text(" ".join(packages))
    return here


def _run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
