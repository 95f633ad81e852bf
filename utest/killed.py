"""A process that is killed at a chosen point, as by the kernel's out-of-memory killer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_HERE = Path(__file__).parent


def run_and_kill(*lines: str, arguments: tuple[str, ...]) -> None:
    """Run these lines of Python in a new process, which kills itself at their end, if it comes so far."""
    script = "\n".join(("import os, sys", *lines, "os.kill(os.getpid(), 9)"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(_HERE)])}
    done = subprocess.run([sys.executable, "-c", script, *arguments], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL


def gone(pid: int, within: float = 30.0) -> bool:
    """Whether the process has ended. This machine must show it."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):  # before, and while its file is read (proc(5))
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False
