"""Brings podperf's own programs (the helper that rotates priorities, BPF objects) to the host that runs them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from weakref import WeakKeyDictionary

from podperf.errors import PodperfError
from podperf.hosts.base import Host

FOLDER = "/var/lib/podperf"  # only root's; not under /run, because many machines mount /run with noexec
# The copies that are known to be on other machines.
_there: WeakKeyDictionary[Host, set[str]] = WeakKeyDictionary()
BOOT = "/proc/sys/kernel/random/boot_id"  # differs on each machine


def on_host(host: Host, program: Path) -> str:
    """The path of this program on the host. On this machine it is the program's own path. On another machine it is a
    copy under the digest of its content, because the original path may belong to another user there, who could replace
    the file."""
    content = program.read_bytes() if program.exists() else b""
    digest = hashlib.sha256(content).hexdigest()
    copy = _copy(program, digest)
    if copy in _there.get(host, ()):
        return copy
    here = is_this_machine(host)
    places, assumed = ([str(program), copy], f"{digest}  {program}") if here else ([copy], "")
    known = host.ask("sha256sum", "--", *places, check=False, assumed=assumed).stdout.splitlines()
    for line in known:
        found, _, path = line.partition("  ")
        if found == digest:
            return path if here else _known(host, path)
    if not content and host.ask("test", "-s", copy, check=False, assumed="").exit_code:
        raise _not_built(program)
    host.put(content, copy)
    host.do("chmod", "755", copy)
    return copy if here else _known(host, copy)


def _known(host: Host, copy: str) -> str:
    _there.setdefault(host, set()).add(copy)
    return copy


def copy_of(program: Path) -> str:
    """The path of the copy of this program on another machine."""
    try:
        return _copy(program, hashlib.sha256(program.read_bytes()).hexdigest())
    except FileNotFoundError as error:
        raise _not_built(program) from error


def _copy(program: Path, digest: str) -> str:
    return f"{FOLDER}/{digest[:16]}-{program.name}"


def _not_built(program: Path) -> PodperfError:
    return PodperfError(f"{program} is not built yet; once: sudo ./podperf set-up")


def is_this_machine(host: Host) -> bool:
    """Whether the host has this machine's kernel. Its files may be others, as in a container."""
    return host.get(BOOT, b"of another machine") == Path(BOOT).read_bytes()


def remove(host: Host) -> None:
    host.do("rm", "-rf", FOLDER)
