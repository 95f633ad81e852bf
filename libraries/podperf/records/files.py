"""Files that are whole or not there, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that its old or its new content is there at any time, and the new one for good on return.

    The half-written file has a name that nobody can know before, and must be new: others may write in the folder, too,
    and podperf, which is root, follows no link that they put there. OSError when it cannot be written; the old content
    then stays.
    """
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}.half")
    file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    try:
        try:
            write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        half.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_regular(path: Path, most: int) -> bytes:
    """The first `most` bytes of a regular file. OSError when there is none.

    Others may write in the folder, and put a pipe, or a link to a file of the kernel, where a file was a moment ago:
    neither keeps the reader waiting.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        with open(file, "rb", closefd=False) as content:
            return content.read(most)
    finally:
        os.close(file)


def write_all(file: int, content: bytes) -> None:
    """Write everything to an open file, however many calls it takes."""
    while content:
        content = content[os.write(file, content) :]


def sync_folder(path: Path) -> None:
    """Bring a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
