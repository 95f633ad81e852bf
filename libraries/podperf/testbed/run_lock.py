"""The lock for one run at a time on a machine, as two runs would disturb each other. Other locks on files (flock(2)).

The lock is a file that only root can open, so nobody else can hold it. The kernel frees the lock at any end of the
process that holds it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from podperf.errors import PodperfError
from podperf.printable import printable

_LONGEST_COMMAND = 100  # characters


def take(path: Path, say: Callable[[str], None]) -> int:
    """Open and lock a file, which stays locked until it is closed. Tells `say` for which process this waits."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.fchmod(file, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for {described(holder_of(file))}, which has locked {path}")
            fcntl.flock(file, fcntl.LOCK_EX)
    except BaseException:
        os.close(file)
        raise
    return file


def holder_of(file: int) -> int | None:
    """The process that has the lock on an open file. None if it cannot be seen from here."""
    return next((locker for locker in _lockers(os.fstat(file).st_ino) if _has_open(locker, file)), None)


def described(process: int | None) -> str:
    """A process and its command line, for a message."""
    if process is None:
        return "a process that cannot be seen from here"
    with suppress(OSError):  # it has ended
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ").split()
        return f"process {process} ({printable(' '.join(words)[:_LONGEST_COMMAND])})"
    return f"process {process}"


def _lockers(inode: int) -> Iterator[int]:
    """The processes with a flock(2) on a file with this inode number, on any file system (proc(5), /proc/locks)."""
    for line in Path("/proc/locks").read_text().splitlines():
        words = line.split()
        if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            yield int(words[4])


def _has_open(process: int, file: int) -> bool:
    with suppress(OSError):  # it has ended
        return any(_same(each, file) for each in Path(f"/proc/{process}/fd").iterdir())
    return False


def _same(path: Path, file: int) -> bool:
    with suppress(OSError):  # closed meanwhile
        return os.path.samestat(path.stat(), os.fstat(file))
    return False


T = TypeVar("T")

FOLDER = "/run/podperf-lock"  # only root can open it
FILE = f"{FOLDER}/lock"  # the holder writes its line here: its process number, RUN or another purpose, and OVER_SSH
RUN, CHECK, CLEAN, CLUSTER = "run", "check", "clean", "cluster"
OVER_SSH = "ssh"  # the mark of a lock that a run on another machine holds
CHECK_PATIENCE = 30.0  # seconds to wait for a check, which takes some seconds
_START_PATIENCE = 1.0  # seconds in which a new holder writes its line
_LOOK_AGAIN = 0.1  # seconds
_DOES = {
    CHECK: "`podperf check` is looking at {machine}",
    CLEAN: "`podperf clean` is putting {machine} back",
    CLUSTER: "`podperf cluster` is starting a cluster on {machine}",
}
_DOES_USUALLY = "another podperf run is measuring on {machine}"


@dataclass(frozen=True)
class Holder:
    """The process that has the lock: its number (None if it is invisible) and its purpose, if its line has one."""

    process: int | None
    what: str = ""
    over_ssh: bool = False

    @staticmethod
    def parse(line: str) -> Holder:
        """The holder in a line of the lock's file."""
        number, what, where = [*line.split(), "", "", ""][:3]
        return Holder(int(number) if number.isdigit() else None, what, where == OVER_SSH)

    def describe(self, machine: str) -> str:
        """The holder and its work on that machine, for a message."""
        known = f"process {self.process}" if self.process else "a process that cannot be seen from here"
        where = ", from another machine" if self.over_ssh else ""
        return f"{_DOES.get(self.what, _DOES_USUALLY).format(machine=machine)} ({known}{where})"


class Taken(PodperfError):
    """Another process has the lock."""

    def __init__(self, holder: Holder, machine: str, advice: str) -> None:
        self.holder = holder
        self.where = holder.describe(machine)
        super().__init__(f"{self.where}; {advice}")


def once_no_check_has_it(take: Callable[[], T], say: Callable[[str], None]) -> T:
    """The result of `take`. Waits while a check has the lock, and tells `say`. Raises Taken if a run has it."""
    began, told, known = time.monotonic(), False, time.monotonic()
    while True:
        try:
            return take()
        except Taken as taken:
            now = time.monotonic()
            # A holder without a purpose has just begun, or is about to end, for example a check at its end.
            known = now if taken.holder.what else known
            patience = {CHECK: CHECK_PATIENCE, "": _START_PATIENCE}.get(taken.holder.what, 0.0)
            if now - (began if taken.holder.what else known) >= patience:
                raise
            if taken.holder.what == CHECK and not told:
                say(f"{taken.where}; waiting for it to end, {CHECK_PATIENCE:.0f} s at most")
                told = True
        time.sleep(_LOOK_AGAIN)


class RunLock:
    """The lock of this machine. Raises Taken with the name of the other process if one holds it already.

    A process without root's rights measures nothing, and needs no lock.
    """

    def __init__(self, what: str = RUN, say: Callable[[str], None] = lambda _: None, folder: str = FOLDER) -> None:
        self._what, self._say, self._folder = what, say, folder
        self._file: int | None = None

    def __enter__(self) -> RunLock:
        if os.geteuid() == 0:
            self._file = once_no_check_has_it(self._take, self._say)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def _take(self) -> int:
        try:
            file = _open(self._folder)
        except OSError as error:
            raise PodperfError(
                f"cannot make the lock {self._folder}/lock ({error.strerror}): df -h and df -i show how full /run is"
            ) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _holder(file)
            os.close(file)
            raise Taken(holder, "this machine", _advice(holder)) from error
        os.ftruncate(file, 0)
        with suppress(OSError):  # /run is full, and `clean` may free it; the kernel names the process, too
            os.pwrite(file, f"{os.getpid()} {self._what}\n".encode(), 0)
        return file


def _advice(holder: Holder) -> str:
    stop = "" if holder.over_ssh else ", or stop it with Ctrl-C"
    return f"wait until it has ended{stop}"


def _open(folder: str) -> int:
    """Open the lock's file, in a folder that only root can open."""
    with suppress(FileExistsError):
        Path(folder).mkdir(0o700)
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(inside)
        if found.st_uid != 0:
            raise PodperfError(f"{folder} must be root's, and is of user {found.st_uid}: sudo rm -r {folder}")
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.fchmod(inside, 0o700)
        return os.open("lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=inside)
    finally:
        os.close(inside)


def _holder(file: int) -> Holder:
    """The holder of the lock on an open file. Its line counts only if the kernel names the same process."""
    said = Holder.parse(os.pread(file, 100, 0).decode(errors="replace"))
    process = holder_of(file)
    return said if said.process == process else Holder(process)
