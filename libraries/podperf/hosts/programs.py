"""podperf's own programs (the helper that rotates priorities, BPF objects) on the host that is to run them."""

from __future__ import annotations

import hashlib
from pathlib import Path

from podperf.errors import PodperfError
from podperf.hosts.base import Host

FOLDER = "/var/lib/podperf"  # root's alone, and not under /run, from which many machines execute nothing
_BOOT = "/proc/sys/kernel/random/boot_id"  # another one on each machine


def on_host(host: Host, program: Path) -> str:
    """Where the host has this program: on this machine where it is, on another one copied under the digest of its
    content. A file at the same path there may be anybody's, who could replace it by the time that root runs it."""
    try:
        content = program.read_bytes()
    except FileNotFoundError as error:
        raise PodperfError(f"{program} is not built yet; once: sudo ./podperf set-up") from error
    digest = hashlib.sha256(content).hexdigest()
    copy = f"{FOLDER}/{digest[:16]}-{program.name}"
    places = [*([str(program)] if _is_this_machine(host) else []), copy]
    known = host.ask("sha256sum", "--", *places, check=False).stdout.splitlines()
    for line in known:
        found, _, path = line.partition("  ")
        if found == digest:
            return path
    host.put(content, copy)
    host.do("chmod", "755", copy)
    return copy


def _is_this_machine(host: Host) -> bool:
    return host.get(_BOOT) == Path(_BOOT).read_bytes()


def remove(host: Host) -> None:
    """Remove what was copied."""
    host.do("rm", "-rf", FOLDER)
