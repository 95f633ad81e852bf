"""The script that tries podperf in a bare root. Root runs the files there, so no other user may have made them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "atest" / "set_up" / "in_fresh_root.sh"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the script needs root")


@pytest.mark.parametrize("planted", ["owned", "writable", "link"])
def test_a_root_that_somebody_else_can_have_made_is_not_entered(planted: str, tmp_path: Path) -> None:
    """/var/tmp, where these roots are kept, is everybody's."""
    entered, roots, elsewhere = tmp_path / "entered", tmp_path / "roots", tmp_path / "elsewhere"
    (elsewhere / "trixie" / "bin").mkdir(parents=True)
    (elsewhere / "trixie" / "bin" / "bash").write_text(f"#!/bin/sh\ntouch {entered}\n")
    if planted == "link":
        roots.symlink_to(elsewhere)
    else:
        elsewhere.rename(roots)
    if planted == "writable":
        roots.chmod(0o1777)
    else:
        os.chown(roots, 12345, 12345, follow_symlinks=False)
    done = subprocess.run(
        [SCRIPT, "trixie"],
        env={**os.environ, "PODPERF_ROOTS": str(roots)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"{roots} must be a folder that only root can write: remove it, or name another one in PODPERF_ROOTS\n"
    )
    assert not list(roots.glob("scratch.*")) and not entered.exists()
