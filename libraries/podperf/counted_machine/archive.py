"""Archives in the cpio format `newc`, of which an initramfs consists. The same files give the same bytes, whenever they
were made. The kernel unpacks several archives of one initramfs in their order, each over the one before."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# In the machine, these are links to folders below /usr. An archive that has a folder of this name removes the link.
_BELOW_USR = ("bin", "lib", "lib64", "sbin")
_MODES = {"root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777}  # of folders above a file; others have 0755


@dataclass(frozen=True)
class ArchiveEntry:
    """A file, a folder or a link of an archive. `path` is where its content is, or None for a folder."""

    name: str  # relative to the machine's root
    path: Path | None
    keep_owner: bool = False  # otherwise it belongs to root


def tree(root: Path, wanted: Callable[[str], bool] = lambda _: True, below: str = "") -> Iterator[ArchiveEntry]:
    """All files of a folder by their names, at `below` in the machine. `wanted` is asked by the name inside of `root`.

    Nothing below an unwanted folder is in the archive.
    """
    for folder, folders, files in os.walk(root):
        inside = Path(folder).relative_to(root)
        folders[:] = sorted(each for each in folders if wanted(str(inside / each)))
        for name in sorted([*folders, *(file for file in files if wanted(str(inside / file)))]):
            yield ArchiveEntry(str(PurePosixPath(below, inside, name)), root / inside / name, keep_owner=not below)


def place(target: str) -> str:
    """The name of an absolute path of the machine in an archive."""
    name = str(PurePosixPath(target)).lstrip("/")
    return f"usr/{name}" if name.split("/")[0] in _BELOW_USR else name


def parents(name: str) -> Iterator[ArchiveEntry]:
    for folder in reversed(PurePosixPath(name).parents):
        if folder.name:
            yield ArchiveEntry(str(folder), None)


def archive(entries: Iterable[ArchiveEntry]) -> Iterator[bytes]:
    for number, entry in enumerate(entries, start=1):
        if entry.path is None:
            yield from _header(entry.name, b"", number, stat.S_IFDIR | _MODES.get(entry.name, 0o755), (0, 0), (0, 0))
            continue
        status = entry.path.lstat()
        if stat.S_ISLNK(status.st_mode):
            content = str(entry.path.readlink()).encode()
        else:
            content = entry.path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        owner = (status.st_uid, status.st_gid) if entry.keep_owner else (0, 0)
        device = os.major(status.st_rdev), os.minor(status.st_rdev)
        yield from _header(entry.name, content, number, status.st_mode, owner, device)
    yield from _header("TRAILER!!!", b"", 0, 0, (0, 0), (0, 0))


def _header(
    name: str, content: bytes, number: int, mode: int, owner: tuple[int, int], device: tuple[int, int]
) -> Iterator[bytes]:
    raw = name.encode() + b"\0"
    fields = (number, mode, *owner, 1, 0, len(content), 0, 0, *device, len(raw), 0)
    yield _padded(b"070701" + b"".join(b"%08x" % field for field in fields) + raw)
    yield _padded(content)


def _padded(chunk: bytes) -> bytes:
    return chunk + b"\0" * (-len(chunk) % 4)
