"""The owner of results. With sudo, the caller owns them, also after a killed run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
NOTE = ".run-by"  # in a results folder while its run works: `UID GID` of the caller and the PID of the run


@dataclass(frozen=True)
class Owner:
    """A user and a group, by their numbers."""

    user: int
    group: int

    @classmethod
    def caller(cls, environment: Mapping[str, str]) -> Owner | None:
        """The user who called sudo. None without sudo, or if this process cannot change the owner of files."""
        if os.geteuid() != 0 or "SUDO_UID" not in environment:
            return None
        return cls(int(environment["SUDO_UID"]), int(environment["SUDO_GID"]))

    @classmethod
    def of(cls, path: Path) -> Owner:
        """The owner of a file or folder."""
        status = path.lstat()
        return cls(status.st_uid, status.st_gid)

    def take(self, *paths: Path) -> None:
        """Make this owner own `paths`. A link itself gets the owner, and its target does not."""
        for path in paths:
            os.chown(path, self.user, self.group, follow_symlinks=False)


def note_caller(results: Path, caller: Owner) -> None:
    """Write down the future owner of a results folder. Until the run has ended, root owns the folder."""
    results.mkdir(parents=True, exist_ok=True)
    (results / NOTE).write_text(f"{caller.user} {caller.group} {os.getpid()}\n")


def hand_over(results: Path, owner: Owner) -> None:
    """Give a results folder and its content to its owner.

    Each file is reached through its open folder, and gets its owner before that folder does. So nobody can put a link
    in its place.
    """
    (results / NOTE).unlink(missing_ok=True)
    for _, folders, files, inside in os.fwalk(results, topdown=False):
        for each in (*folders, *files):
            os.chown(each, owner.user, owner.group, dir_fd=inside, follow_symlinks=False)
    owner.take(results)


def hand_over_killed(folder: Path) -> list[str]:
    """Give the results of killed runs to their callers, and return the folders.

    `folder` may belong to a user, who can put anything there. So only notes and folders that root owns count.
    """
    handed_over = []
    for note in sorted(folder.glob(f"*/{NOTE}")):
        results = note.parent
        if not (_is_roots(results, stat.S_ISDIR) and _is_roots(note, stat.S_ISREG)):
            continue
        noted = note.read_text().split()
        if len(noted) != 3 or not all(map(str.isdecimal, noted)):  # the disk was full when it was written
            continue
        user, group, process = map(int, noted)
        if not Path(f"/proc/{process}").exists():
            hand_over(results, Owner(user, group))
            handed_over.append(str(results))
    return handed_over


def _is_roots(path: Path, kind: Callable[[int], bool]) -> bool:
    status = path.lstat()
    return status.st_uid == 0 and kind(status.st_mode)
