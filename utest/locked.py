"""Another process that has the lock on a file (flock(2))."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked_by_another(path: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The process, which has these words in its command line. It frees the lock when its input ends."""
    program = Path(__file__)  # by its name alone: podperf shows only the first part of a long command line
    command = [sys.executable, program.name, *words, path]
    with subprocess.Popen(
        command, cwd=program.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.stdin.close()


if __name__ == "__main__":
    with Path(sys.argv[-1]).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        print("locked", flush=True)
        sys.stdin.read()
