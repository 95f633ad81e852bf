"""The files that users put into the counted machine, and the changes that they make to it after its boot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from podperf.counted_machine.archive import ArchiveEntry, archive, parents, place, tree
from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Host
from podperf.testbed.kernel_settings import apply
from podperf.topology import CountedSettings

HOOK = "/run/podperf-hook"
HOOK_TIMEOUT = 300.0  # seconds


def missing_inputs(settings: CountedSettings) -> list[str]:
    """A line for each file or folder of the settings that does not exist."""
    kernel = settings.kernel
    named: dict[str, list[str | None]] = {
        "kernel.image": [kernel.image],
        "kernel.modules": [kernel.modules],
        "files": [each.source for each in settings.files],
        "nftables": [each for files in settings.nftables.values() for each in files],
        "hook": [settings.hook],
    }
    return [
        f"there is no file or folder {path} (the key `{key}` of the counted machine)"
        for key, paths in named.items()
        for path in paths
        if path is not None and not Path(path).exists()
    ]


def overlay(settings: CountedSettings) -> Iterator[bytes]:
    """The archive of the files that users put into the machine. Files keep their modes, and belong to root."""
    entries = list(_entries(settings))
    yield from archive({each.name: each for each in entries}.values()) if entries else ()


def _entries(settings: CountedSettings) -> Iterator[ArchiveEntry]:
    for each in settings.files:
        name, source = place(each.target), Path(each.source)
        yield from parents(name)
        yield ArchiveEntry(name, source.resolve() if not source.is_dir() else None)
        if source.is_dir():
            yield from tree(source, below=name)


def change(machine: Host, settings: CountedSettings) -> None:
    """Set the kernel's parameters and rules of the machine itself, then run the hook.

    PodperfError, with the first words of the complaint, if the machine refuses one of them or the hook fails.
    """
    apply(machine, "machine", settings)
    if settings.hook is not None:
        machine.put(Path(settings.hook).read_bytes(), HOOK)
        machine.do("chmod", "755", HOOK)
        try:
            machine.do(HOOK, timeout=HOOK_TIMEOUT)
        except CommandFailed as error:
            raise PodperfError(f"the hook {settings.hook} failed: {error}") from error
