"""Writes files so that a reader finds a whole file or none, also after a crash."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Write a file. At any time it has its old or its new content. On return the new content is on the disk.

    Raises OSError if the file cannot be written; the old content then stays.
    """
    os.close(begin_file(path, content))


def begin_file(path: Path, content: bytes) -> int:
    """As `replace_file`. Returns the open file, at whose end each further write goes.

    Other users may write in the folder, and podperf is root. So the temporary file is new and has a random name, and
    podperf follows no link there. A device, a pipe or a folder is not replaced by a file, also behind a link.
    """
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, f"{path.name} is no regular file")
    half = path.with_name(f".{path.name}.{secrets.token_hex(4)}.half")
    file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_APPEND, 0o644)
    try:
        write_all(file, content)
        os.fsync(file)
        half.replace(path)
        sync_folder(path.parent)
    except BaseException:  # also a signal, which Robot Framework makes an exception
        os.close(file)
        with contextlib.suppress(OSError):
            half.unlink(missing_ok=True)
        raise
    return file


def write_all(file: int, content: bytes) -> None:
    """Write everything to an open file, in as many calls as needed."""
    while content:
        content = content[os.write(file, content) :]


def sync_folder(path: Path) -> None:
    """Write a folder's entries to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
