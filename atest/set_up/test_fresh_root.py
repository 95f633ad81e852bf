"""The set-up on new machines: minimal roots of Debian's and Ubuntu's releases, made by debootstrap.

These tests take some minutes and need the package servers. So they only run with PODPERF_SLOW=1.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("in_fresh_root.sh")
ROOTS = Path(os.environ.get("PODPERF_ROOTS", "/var/tmp/podperf-roots"))
UBUNTU_KEYS = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")


pytestmark = [
    pytest.mark.skipif("PODPERF_SLOW" not in os.environ, reason="takes minutes; set PODPERF_SLOW=1 to run it"),
    pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not installed"),
]


@pytest.mark.parametrize("suite", ["bookworm", "trixie", "noble"])
def test_set_up(suite: str) -> None:
    if suite == "noble" and not UBUNTU_KEYS.exists():
        pytest.skip("the keys of Ubuntu are not here; apt-get install ubuntu-keyring")
    done = subprocess.run([SCRIPT, suite], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    seconds = dict(re.findall(rf"^{suite}: (.*) took ([\d.]+) s$", done.stdout, re.MULTILINE))
    assert float(seconds["set-up"]) <= 180
    assert float(seconds["second set-up, offline"]) <= 2


def test_the_exit_code_is_that_of_the_command() -> None:
    done = subprocess.run([SCRIPT, "trixie", "nosuch"], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 252, done.stdout + done.stderr
    assert "there is no command nosuch" in done.stderr


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_one_leaves_nothing(by: signal.Signals) -> None:
    script = subprocess.Popen([SCRIPT, "trixie"], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert script.stdout is not None
    assert "installing" in script.stdout.readline()
    (scratch,) = ROOTS.glob("scratch.*")
    script.send_signal(by)
    assert script.wait(30) == 128 + by
    assert not scratch.exists()
    assert not [path for path in Path("/proc").glob("[0-9]*/root") if is_below(path, scratch)]


def is_below(root: Path, folder: Path) -> bool:
    """True if the root directory of this process is below the folder."""
    try:
        return root.readlink().is_relative_to(folder)
    except OSError:  # the process has ended, or is a zombie
        return False
