"""Changes of a machine outside of a run's namespaces, each with the command that takes it back.

The command is on disk before the change is made, so that what a killed run changed is taken back at the next start.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.linux import module_loaded, unloading

Change = tuple[str, Sequence[str]]  # what was changed, and the command that takes it back

CHANGES = "way-back"  # in the run directory: a JSON list of what was changed and the command that takes it back
TIMEOUT = 60.0  # seconds; a driver may take its time to let go of a device


class WayBack:
    """The way back of one set-up; it is gone at the end of `undo`."""

    def __init__(self, host: Host, run_directory: str, undo: ExitStack) -> None:
        self._host, self._path = host, f"{run_directory}/{CHANGES}"
        self._changes = _changes(host, run_directory)  # what an earlier set-up could not take back is still on record
        undo.callback(go_back, host, run_directory)

    def note(self, changed: str, *command: str) -> None:
        """What is about to be changed, and the command that takes it back."""
        self._changes.append((changed, command))
        _write(self._host, self._path, self._changes)


def unload_at_the_end(host: Host, run_directory: str, module: str, undo: ExitStack) -> None:
    """A module that the set-up is about to load is taken out again, unless it is there already."""
    if not module_loaded(host, module):
        WayBack(host, run_directory, undo).note(f"the kernel's module {module}", "sh", "-c", unloading(module))


def go_back(host: Host, run_directory: str) -> bool:
    """Take back what was changed, the last change first. True when there was something to take back.

    A command that fails does not keep the others from being run; then PodperfError says what is not as it was, and that
    stays on record.
    """
    changes = _changes(host, run_directory)
    if not changes:
        return False
    kept, failures = [], []
    for changed, command in reversed(changes):
        try:
            done = host.run("timeout", f"{TIMEOUT:.0f}", *command, check=False, timeout=TIMEOUT + 5)
        except PodperfError as error:
            why = str(error)
        else:
            if not done.exit_code:
                continue
            why = done.stderr.strip() or f"exit code {done.exit_code}"
        kept.append((changed, command))
        failures.append(f"{changed} ({why})")
    if failures:
        _write(host, f"{run_directory}/{CHANGES}", kept[::-1])
        raise PodperfError(f"on {host.name}, not everything is as it was before: {'; '.join(failures)}")
    host.run("rm", "-f", f"{run_directory}/{CHANGES}")
    host.run("rmdir", "--ignore-fail-on-non-empty", run_directory, check=False)
    return True


def _changes(host: Host, run_directory: str) -> list[Change]:
    try:
        found: list[Change] = json.loads(host.get(f"{run_directory}/{CHANGES}"))
    except FileNotFoundError:
        return []
    return found


def _write(host: Host, path: str, changes: Sequence[Change]) -> None:
    host.put(json.dumps(changes).encode(), path)
