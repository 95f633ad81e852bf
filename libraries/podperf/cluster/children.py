"""The child processes of the first process of the cluster. It also buries processes whose parents have ended."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from podperf.kernel.control_groups import joining

_LOOK_AGAIN = 0.1  # seconds


class Children:
    """Starts processes. `ended` is called with the part and the exit code of each long-running one that ends."""

    def __init__(self, ended: Callable[[str, int], None], environment: Mapping[str, str]) -> None:
        self._ended, self._environment = ended, dict(environment)
        self._parts: dict[int, str] = {}
        self._exit_codes: dict[int, int] = {}
        self._changed = threading.Condition()

    def start(self, part: str, command: Sequence[str], log: Path, groups: Sequence[Path] = ()) -> int:
        """Start a part that runs as long as the cluster. Returns its process number."""
        return self._start(command, log, groups, part)

    def run(self, command: Sequence[str], log: Path) -> int:
        """Run a command to its end. Returns its exit code."""
        number = self._start(command, log, (), None)
        with self._changed:
            self._changed.wait_for(lambda: number in self._exit_codes)
            return self._exit_codes.pop(number)

    def _start(self, command: Sequence[str], log: Path, groups: Sequence[Path], part: str | None) -> int:
        with self._changed, log.open("ab") as output:
            child = subprocess.Popen(
                joining(list(map(str, groups)), command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                cwd="/",
                start_new_session=True,
            )
            self._exit_codes.pop(child.pid, None)  # of a process that had this number before
            if part is not None:
                self._parts[child.pid] = part
            child.returncode = 0  # `bury` waits for it
            return child.pid

    def bury(self) -> None:
        """Wait for children for ever."""
        while True:
            try:
                number, status = os.wait()
            except ChildProcessError:  # there is none at the moment
                time.sleep(_LOOK_AGAIN)
                continue
            exit_code = os.waitstatus_to_exitcode(status)
            with self._changed:
                self._exit_codes[number] = exit_code
                part = self._parts.pop(number, None)
                self._changed.notify_all()
            if part is not None:
                self._ended(part, exit_code)
