"""Keeps the best times of this machine's CPUs from run to run, until the next boot.

A whole run may fall into a slow hour. Its own best times would then look normal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from podperf.hosts.local import LocalHost
from podperf.quietness import cpu_speed
from podperf.quietness.cpu_speed import Times

KEPT = Path(__file__).parents[3] / "build" / "cpu-speed.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def remembered(path: Path = KEPT) -> dict[int, Times]:
    """The shortest times of each CPU (`cpu_speed.times_of`). Empty if none are stored for this boot and this Python."""
    try:
        kept = json.loads(path.read_text())
        best = kept["best"] if kept["of"] == _of() else {}
        return {int(cpu): Times(*map(float, times)) for cpu, times in best.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def remember(best: Mapping[int, Times], path: Path = KEPT) -> None:
    """Store these times. A shorter stored time stays. If the folder is missing, nothing is stored."""
    known = remembered(path)
    shortest = {cpu: tuple(map(min, times, known.get(cpu, times))) for cpu, times in {**known, **best}.items()}
    with suppress(OSError):
        owner = path.parent.stat()
        LocalHost().put(json.dumps({"of": _of(), "best": shortest}).encode(), str(path))
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _of() -> list[str]:
    """The facts for which stored times are valid: this boot, this Python, and this version of `cpu_speed`.

    After a boot, a virtual machine may be on another computer.
    """
    work = sha256(Path(cpu_speed.__file__).read_bytes()).hexdigest()
    return [_BOOT.read_text().strip(), sys.version, work]
