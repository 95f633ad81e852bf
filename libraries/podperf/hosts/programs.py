"""Brings podperf's own programs (the helper that rotates priorities, BPF objects) to the host that runs them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import Host

FOLDER = "/var/lib/podperf"  # only root's; not under /run, because many machines mount /run with noexec
_BOOT = "/proc/sys/kernel/random/boot_id"  # differs on each machine


def on_host(host: Host, program: Path) -> str:
    """The path of this program on the host. On this machine it is the program's own path. On another machine it is a
    copy under the digest of its content, because the original path may belong to another user there, who could replace
    the file."""
    content = _content(program)
    digest = hashlib.sha256(content).hexdigest()
    copy = _copy(program, digest)
    places = [*([str(program)] if _is_this_machine(host) else []), copy]
    known = host.ask("sha256sum", "--", *places, check=False).stdout.splitlines()
    for line in known:
        found, _, path = line.partition("  ")
        if found == digest:
            return path
    host.put(content, copy)
    host.do("chmod", "755", copy)
    return copy


def copy_of(program: Path) -> str:
    """The path of the copy of this program on another machine."""
    return _copy(program, hashlib.sha256(_content(program)).hexdigest())


def _copy(program: Path, digest: str) -> str:
    return f"{FOLDER}/{digest[:16]}-{program.name}"


def _content(program: Path) -> bytes:
    try:
        return program.read_bytes()
    except FileNotFoundError as error:
        raise PodperfError(f"{program} is not built yet; once: sudo ./podperf set-up") from error


def _is_this_machine(host: Host) -> bool:
    return host.get(_BOOT) == Path(_BOOT).read_bytes()


def remove(host: Host) -> None:
    """Remove the copies."""
    host.do("rm", "-rf", FOLDER)
