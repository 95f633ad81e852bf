"""Changes of a machine outside of a run's namespaces, each with the command that takes it back.

The command is on disk before the change is made, so that what a killed run changed is taken back at the next start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import module_loaded, unloading

CHANGES = "way-back"  # in the run directory: a JSON list of what was changed and the command that takes it back
TIMEOUT = 60.0  # seconds; a driver may take its time to let go of a device


Thing = Sequence[str]  # a command that succeeds for as long as a thing is there


def existing_path(name: str) -> Thing:
    """A thing that has a path: a device in sysfs, a cgroup."""
    return ("test", "-e", name)


def existing_process(number: int) -> Thing:
    """A process of the machine."""
    return existing_path(f"/proc/{number}")


def existing_namespace(name: str) -> Thing:
    """A network namespace that has a name."""
    return ("ip", "-n", name, "link", "show", "dev", "lo")


def existing_interface(name: str, inside: str | None = None) -> Thing:
    """An interface, in a network namespace of that name or in the machine's own. It is gone when that is."""
    return ("ip", *(("-n", inside) if inside else ()), "link", "show", "dev", name)


@dataclass(frozen=True)
class Change:
    """What was changed, the command that takes it back, and the thing that was changed, where it may go away."""

    changed: str
    command: Sequence[str]
    of: Thing = ()


class WayBack:
    """The way back of one set-up; it is gone at the end of `undo`."""

    def __init__(self, host: Host, run_directory: str, undo: ExitStack) -> None:
        self._host, self._path = host, f"{run_directory}/{CHANGES}"
        self._changes = _changes(host, run_directory)  # what an earlier set-up could not take back is still on record
        undo.callback(go_back, host, run_directory)

    def note(self, changed: str, *command: str, of: Thing = ()) -> None:
        """What is about to be changed, and the command that takes it back. A thing that is gone by then needs none."""
        self._changes.append(Change(changed, command, of))
        _write(self._host, self._path, self._changes)


def unload_at_the_end(host: Host, run_directory: str, module: str, undo: ExitStack) -> None:
    """A module that the set-up is about to load is taken out again, unless it is there already."""
    if not module_loaded(host, module):
        WayBack(host, run_directory, undo).note(f"the kernel's module {module}", "sh", "-c", unloading(module))


def go_back(host: Host, run_directory: str) -> bool:
    """Take back what was changed, the last change first. True when there was something to take back.

    A command that fails does not keep the others from being run; then PodperfError says what is not as it was, and that
    stays on record. What somebody has removed meanwhile needs no taking back.
    """
    changes = _changes(host, run_directory)
    if not changes:
        return False
    kept, failures = [], []
    for change in reversed(changes):
        if (why := _why_not(host, change)) is not None:
            kept.append(change)
            failures.append(f"{change.changed} ({why})")
    if failures:
        _write(host, f"{run_directory}/{CHANGES}", kept[::-1])
        raise PodperfError(f"on {host.name}, not everything is as it was before: {'; '.join(failures)}")
    host.do("rm", "-f", f"{run_directory}/{CHANGES}")
    host.do("rmdir", "--ignore-fail-on-non-empty", run_directory, check=False)
    return True


def _why_not(host: Host, change: Change) -> str | None:
    """Take one change back. Why that is not possible, or None."""
    try:
        done = host.do("timeout", f"{TIMEOUT:.0f}", *change.command, check=False, timeout=TIMEOUT + 5)
        if not done.exit_code or (change.of and host.ask(*change.of, check=False).exit_code):
            return None
    except PodperfError as error:
        return str(error)
    return done.stderr.strip() or f"exit code {done.exit_code}"


def _changes(host: Host, run_directory: str) -> list[Change]:
    try:
        return [Change(*each) for each in json.loads(host.get(f"{run_directory}/{CHANGES}"))]
    except FileNotFoundError:
        return []


def _write(host: Host, path: str, changes: Sequence[Change]) -> None:
    recorded = [(each.changed, each.command, *([each.of] if each.of else [])) for each in changes]
    host.put(json.dumps(recorded).encode(), path)
