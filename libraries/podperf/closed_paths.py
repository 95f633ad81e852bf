"""Paths that only root and trusted users can change: root writes results, and imports code, at no other path."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from podperf.ownership import CHECKOUT, Owner


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


MOST_LINKS = 40  # on the way to a file, as in the kernel (path_resolution(7))
_ACCESS_LIST = "system.posix_acl_access"  # an extended attribute: a header of 4 bytes, then entries (acl(5))
_ENTRY = struct.Struct("<HHI")  # tag, permissions, number of the user or group
_USER, _OWNING_GROUP, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10  # tags
_WRITE = 2  # a permission


def open_to_others(path: Path, environment: Mapping[str, str], *, replaces: bool = False) -> str | None:
    """The reason why a user who cannot run code as root already can choose or change what is at `path`, or None.

    Such a user owns a folder, a link or a file on the way there, or can write to it. In a folder with the sticky bit,
    like /tmp, other users cannot replace a folder or a link of root. But they can make entries that are missing. So
    such a folder is open at the end of the way. With `replaces`, the caller replaces the entry and follows no link
    there, so that such a folder is closed.
    """
    return _way_open_to_others(path, _trusted(environment), replaces=replaces)


def only_writer(path: Path) -> tuple[int, str | None]:
    """The only user who can choose or change what is at `path`, beside root: 0 if root alone can.

    The second part is the reason why others can do so, too, or None. It holds as long as that user changes nothing.
    """
    owners = {Owner.of(each).user for each in ways_to(path)} - {0}
    writer = min(owners, default=0)
    return writer, _way_open_to_others(path, frozenset({0, writer}))


def content_open_to_others(folder: Path, environment: Mapping[str, str], *, depth: int | None = None) -> str | None:
    """As `open_to_others`, for a folder and all that is in it, also behind links. `depth`: 1 for its entries alone."""
    trusted = _trusted(environment)
    reasons = (
        _way_open_to_others(each, trusted)
        if each == folder or each.is_symlink()
        else _changed_by_others(each, trusted, passed=False)
        for each in _within(folder, depth, set())
    )
    return next(filter(None, reasons), None)


def _way_open_to_others(path: Path, trusted: frozenset[int], *, replaces: bool = False) -> str | None:
    ways = ways_to(path)
    for each, following in zip(ways, [*ways[1:], None], strict=True):
        passed = following is not None and (replaces or following.is_dir())
        if reason := _changed_by_others(each, trusted, passed=passed):
            return reason
    return None


def ways_to(path: Path) -> list[Path]:
    """All folders and links on the way to a path, as the kernel walks it, and the path itself."""
    at, ways, left, links = Path("/"), [Path("/")], list(reversed(path.absolute().parts[1:])), 0
    while left:
        name = left.pop()
        if name == "..":
            at = at.parent
            continue
        ways.append(at / name)
        if links < MOST_LINKS and ways[-1].is_symlink():
            links += 1
            target = ways[-1].readlink()
            at = Path("/") if target.is_absolute() else at
            left += reversed(target.parts[target.is_absolute() :])
        else:
            at /= name
    return ways


def _within(folder: Path, depth: int | None, seen: set[Path]) -> Iterator[Path]:
    yield folder
    resolved = folder.resolve()
    if depth == 0 or resolved in seen or not resolved.is_dir():
        return
    seen.add(resolved)
    for each in sorted(folder.iterdir()):
        yield from _within(each, None if depth is None else depth - 1, seen)


def _trusted(environment: Mapping[str, str]) -> frozenset[int]:
    """The users who can run code as root already, as seen from this process: root, this process's user, the caller of
    sudo, and the owners of the checkout and of the folders above it."""
    caller = Owner.caller(environment)
    owners = {Owner.of(each).user for each in (CHECKOUT, *CHECKOUT.parents)}
    return frozenset({0, os.geteuid(), *owners, *([caller.user] if caller else [])})


def _changed_by_others(path: Path, trusted: frozenset[int], *, passed: bool) -> str | None:
    """How others can change a folder, link or file. A missing one has no writers. `passed`: see `open_to_others`."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = status.st_mode
    sticky = mode & stat.S_ISVTX
    if status.st_uid not in trusted:
        return f"{_user(status.st_uid)} owns {path}"
    of_checkout = path in (CHECKOUT, *CHECKOUT.parents)  # whose writers can change podperf itself
    if stat.S_ISLNK(mode) or (passed if sticky else of_checkout):
        return None
    if mode & stat.S_IWOTH:
        return f"all users can write to {path}"
    if mode & stat.S_IWGRP:
        return _written_by_group(path, status.st_gid, trusted)
    return None


def _written_by_group(path: Path, group: int, trusted: frozenset[int]) -> str | None:
    """The reason why members of the group, or users of the access control list, can change the path, or None.

    The permissions of the group are the mask of the list.
    """
    users, groups = _writers(path, group)
    if others := sorted(users - trusted):
        return f"{_user(others[0])} can write to {path} by its access control list (chmod g-w ends that)"
    if others := sorted(each for each in groups if not _members(each) or not _members(each) <= trusted):
        return f"the members of the group {_group(others[0])} can write to {path} (chmod g-w ends that)"
    return None


def _writers(path: Path, group: int) -> tuple[set[int], set[int]]:
    """The users and groups, beside the owner, who can write to a file of this group whose group bits allow it."""
    try:
        entries = list(_ENTRY.iter_unpack(os.getxattr(path, _ACCESS_LIST)[4:]))
    except OSError:  # it has no access control list
        return set(), {group}
    mask = next((permissions for tag, permissions, _ in entries if tag == _MASK), _WRITE)
    write = [(tag, number) for tag, permissions, number in entries if permissions & mask & _WRITE]
    groups = {group if tag == _OWNING_GROUP else number for tag, number in write if tag in {_OWNING_GROUP, _GROUP}}
    return {number for tag, number in write if tag == _USER}, groups


@cache
def _members(group: int) -> frozenset[int]:
    """The users in a group. Empty if no user is known in it: programs can have its rights without being of a user.

    The private group of a user, as Debian and Ubuntu make for each, has the user alone.
    """
    members = {each.pw_uid for each in pwd.getpwall() if each.pw_gid == group}
    with suppress(KeyError):
        for name in grp.getgrgid(group).gr_mem:
            try:
                members.add(pwd.getpwnam(name).pw_uid)
            except KeyError:
                return frozenset()
    return frozenset(members)


def _user(number: int) -> str:
    try:
        return f"the user {number} ({pwd.getpwuid(number).pw_name})"
    except KeyError:
        return f"the user {number}"


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
