"""Folders that are made once and kept under /var/cache/podperf. Each appears only when it is complete."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import ExitStack, suppress
from pathlib import Path

from podperf.hosts.base import Host

HALF_MADE = "building-"  # prefix of folders that a killed run may leave
REMOVE_TIMEOUT = 1800.0  # seconds


def digest_of(recipe: object) -> str:
    """Sixteen hexadecimal digits for a recipe of JSON types: the name of what is made by it."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:16]


def half_made(host: Host, folder: Path, undo: ExitStack) -> Path:
    """A new folder, beside one that is to be made. `undo` removes it, unless it has become that one.

    Until then this process holds a lock on it (flock(2)), so that `forget` leaves it.
    """
    half = folder.with_name(f"{HALF_MADE}{folder.name}-{os.getpid()}")
    half.parent.mkdir(parents=True, exist_ok=True)
    half.mkdir(mode=0o711)  # a user who can open the folder can lock it, and let podperf wait; apt's user passes it
    lock = os.open(half, os.O_RDONLY)
    undo.callback(os.close, lock)
    fcntl.flock(lock, fcntl.LOCK_EX)
    undo.callback(remove, host, half)
    return half


def remove(host: Host, path: Path) -> None:
    """Remove a file, or a folder with all that is in it."""
    # Stay on this file system: another one may be mounted below.
    host.do("rm", "-rf", "--one-file-system", str(path), timeout=REMOVE_TIMEOUT)


def used(folder: Path) -> None:
    """Tell the cache that a folder is in use, so that others go first."""
    with suppress(OSError):
        os.utime(folder)


def keep_newest(host: Host, folder: Path, prefix: str, most: int) -> None:
    """Keep the `most` folders with this prefix that were used last. This folder is in use, so it is one of them."""
    used(folder)
    for old in sorted(folder.parent.glob(f"{prefix}*"), key=_last_use, reverse=True)[most:]:
        remove(host, old)


def _last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:  # another run has just removed it
        return 0.0


def forget(host: Host, cache: Path, everything: bool) -> list[str]:
    """Remove what killed runs left half-made in this folder, or all that is there. Returns the removed paths.

    A half-made folder stays while a process makes it. A lock on a whole one says nothing: any user can lock it.
    """
    half_made_ones = {each for each in cache.glob(f"{HALF_MADE}*") if not _is_being_made(each)}
    whole = {each for each in cache.glob("*") if everything and not each.name.startswith(HALF_MADE)}
    removed = sorted(half_made_ones | whole)
    for each in removed:
        remove(host, each)
    return list(map(str, removed))


def _is_being_made(path: Path) -> bool:
    opened = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(opened)
    return False
