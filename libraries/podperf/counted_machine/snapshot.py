"""Snapshots of counted machines that have just booted. A machine from a snapshot is up in a second, not in fifteen."""

from __future__ import annotations

import hashlib
import json
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import podperf
from podperf.caches import digest_of, half_made, keep_newest
from podperf.errors import PodperfError
from podperf.hosts.base import Host, Process
from podperf.records.files import replace_file

Start = Literal["booted", "restored"]
"""How a counted machine came up: it booted, or it went on from a snapshot."""

PREFIX = "snapshot-"
MOST = 4  # snapshots in the cache, of about 450 MB each
PATIENCE = 60.0  # seconds for QEMU to write a snapshot, or to go on from one
_FASTEST = 2**40  # bytes per second at which QEMU may write


@dataclass(frozen=True)
class Snapshot:
    """A folder of the cache with the state of a machine, and with what was measured on such a machine."""

    folder: Path

    @property
    def state(self) -> Path:
        """QEMU's file."""
        return self.folder / "state"

    @property
    def exists(self) -> bool:
        """Whether the cache has it."""
        return self.state.exists()

    def once(self, what: str, read: Callable[[], str]) -> str:
        """A text that all machines of this snapshot give alike. It is read once, by this very code, and kept here."""
        kept = self._kept(what)
        with suppress(OSError):  # nobody has read it yet, or the snapshot is gone
            return kept.read_text(encoding="utf-8")
        text = read()
        with suppress(OSError):  # on a full disk, the next run reads it again
            replace_file(kept, text.encode())
        return text

    def has(self, what: str) -> bool:
        """Whether `once` would not read."""
        return self._kept(what).exists()

    def _kept(self, what: str) -> Path:
        return self.folder / digest_of([_code(), what])


@cache
def _code() -> str:
    """A digest of podperf's code."""
    root = Path(podperf.__file__).parent
    return hashlib.sha256(b"".join(each.read_bytes() for each in sorted(root.rglob("*.py")))).hexdigest()


def snapshot_in(cache: Path, words: Iterable[str]) -> Snapshot:
    """The place of a snapshot. `words` are all that decides the state: QEMU's command, and digests of files."""
    return Snapshot(cache / f"{PREFIX}{digest_of(list(words))}")


def take(host: Host, control: Path, snapshot: Snapshot) -> None:
    """Write the state of the machine whose QEMU listens at the socket `control`. The machine goes on afterwards.

    The oldest snapshots of the cache go. PodperfError if QEMU cannot write the state, for example on a full disk.
    """
    with ExitStack() as undo:
        qemu = undo.enter_context(Control(control))
        half = Snapshot(half_made(host, snapshot.folder, undo))
        half.folder.chmod(0o700)  # the memory has the users' files, and the private key of the machine's SSH server
        try:
            qemu.do("migrate-set-parameters", **{"max-bandwidth": _FASTEST})
            qemu.do("migrate", uri=f"file:{half.state}")
            qemu.await_migration()
        finally:
            qemu.do("cont")
        with suppress(OSError):  # another run was faster
            half.folder.rename(snapshot.folder)
    keep_newest(host, snapshot.folder, PREFIX, MOST)


def await_restored(control: Path, process: Process) -> None:
    """Wait until a machine that QEMU restores goes on. PodperfError with QEMU's complaint if it does not."""
    deadline = time.monotonic() + PATIENCE
    while not _goes_on(control):
        if not process.alive():
            raise PodperfError("; ".join(process.errors().splitlines()[-1:]) or "QEMU has ended")
        if time.monotonic() > deadline:
            raise PodperfError(f"it does not go on within {PATIENCE:.0f} s")
        time.sleep(0.01)


def _goes_on(control: Path) -> bool:
    try:
        with Control(control) as qemu:
            return bool(qemu.do("query-status")["status"] == "running")
    except OSError:  # QEMU does not listen yet, or has ended
        return False


class Control:
    """QEMU's monitor behind a socket, which speaks QMP. OSError while nothing listens there, or once QEMU ends."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE)
        try:
            self._socket.connect(str(path))
            self._lines = self._socket.makefile("rw", encoding="utf-8")
            self._next()  # QEMU says its version first
            self.do("qmp_capabilities")
        except BaseException:
            self._socket.close()
            raise

    def do(self, command: str, **arguments: Any) -> Any:
        """The answer to a command. PodperfError if QEMU refuses it."""
        self._lines.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self._lines.flush()
        while "return" not in (answer := self._next()):
            if "error" in answer:
                raise PodperfError(f"QEMU refuses {command}: {answer['error'].get('desc')}")
        return answer["return"]

    def await_migration(self) -> None:
        """Wait until QEMU has written the machine's state. PodperfError with the reason if it fails."""
        while (now := self.do("query-migrate"))["status"] != "completed":
            if now["status"] in {"failed", "cancelled"}:
                raise PodperfError(f"QEMU cannot write the machine's state: {now.get('error-desc') or 'no reason'}")
            time.sleep(0.01)

    def _next(self) -> Any:
        line = self._lines.readline()
        if not line:
            raise ConnectionError("QEMU has ended")
        return json.loads(line)

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._lines.close()
        self._socket.close()
