"""Reads files where other users can write."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int) -> bytes:
    """The first `most` bytes of a regular file. Raises OSError if there is none.

    Other users may write in the folder, and replace the file by a pipe or by a link to a file of the kernel. Neither
    can make this reader wait.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        with open(file, "rb", closefd=False) as content:
            return content.read(most) or b""  # None: the kernel has nothing to say now
    finally:
        os.close(file)
