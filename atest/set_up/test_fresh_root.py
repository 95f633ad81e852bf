"""The set-up on new machines: minimal roots of Debian's and Ubuntu's releases, made by debootstrap.

Takes some minutes and the package servers, so it runs only with PODPERF_SLOW=1.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("in_fresh_root.sh")
UBUNTU_KEYS = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")


@pytest.mark.skipif("PODPERF_SLOW" not in os.environ, reason="takes minutes; set PODPERF_SLOW=1 to run it")
@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="debootstrap is not installed")
@pytest.mark.parametrize("suite", ["bookworm", "trixie", "noble"])
def test_set_up(suite: str) -> None:
    if suite == "noble" and not UBUNTU_KEYS.exists():
        pytest.skip("the keys of Ubuntu are not here; apt-get install ubuntu-keyring")
    done = subprocess.run([SCRIPT, suite], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    seconds = dict(re.findall(rf"^{suite}: (.*) took ([\d.]+) s$", done.stdout, re.MULTILINE))
    assert float(seconds["set-up"]) <= 180
    assert float(seconds["second set-up, offline"]) <= 2
