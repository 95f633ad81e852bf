"""Prepares a command that measures: the folder of results, and the needs of a machine in QEMU."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from podperf.closed_paths import content_open_to_others, open_to_others
from podperf.errors import BadArguments, PodperfError
from podperf.ownership import Owner, hand_over, note_caller
from podperf.testers import TESTERS
from podperf.topology import load_topology
from run_command.arguments import ROOT, new_folder

_FILES = ("output", "log", "report", "xunit", "debugfile")  # options of Robot Framework that name a file


@contextmanager
def results_folder(output: Path | None) -> Iterator[Path]:
    """The folder `--output` of results, or a new one. At the end a folder that is new belongs to the caller of sudo. A
    folder without results is removed."""
    results = output or new_folder(datetime.now())
    is_new = not results.exists()  # an existing folder may have files of others
    make_results_folder(results, {}, "output")
    caller = Owner.caller(os.environ) if is_new else None
    if caller is not None:
        note_caller(results, caller)
    try:
        yield results
    finally:
        if caller is not None:
            hand_over(results, caller)
        with suppress(OSError):  # a folder with results is not empty
            results.rmdir()


def make_results_folder(results: Path, files: Mapping[str, Any], option: str = "outputdir") -> None:
    """Make the folder of results. `option` names it, and the options `files` can name files in other folders.

    Raises BadArguments if the folder cannot be made, or if another user can change a folder on the way, or a file: root
    writes there, and Robot Framework follows links.
    """
    at = results.absolute()
    reasons = {option: _make(at, option) or content_open_to_others(at, os.environ, depth=1)}
    reasons |= {file: open_to_others(at / files[file], os.environ) for file in _FILES if file in files}
    for name, reason in reasons.items():
        if reason is not None:
            raise BadArguments(f"{reason}, and could have root overwrite any file: choose another --{name}")


def _make(folder: Path, option: str) -> str | None:
    """Make a folder and those above it. The reason why another user could choose where they are made, or None."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        if reason := open_to_others(each, os.environ, replaces=True):
            return reason
        try:
            each.mkdir(mode=0o755)  # also where a default access control list says otherwise
        except OSError as error:
            raise BadArguments(
                f"cannot make {each}, the folder of results ({error.strerror}): name another one with --{option}"
            ) from error
    return None


def set_up_machines(topologies: Iterable[str | Path]) -> None:
    """Install what a machine in QEMU needs, if one of these topologies boots one. The script says what goes wrong."""
    if any(map(_boots_a_machine, topologies)):
        done = subprocess.run([ROOT / "podperf", "virtual-worker"], check=False)
        if done.returncode:
            raise BadArguments("")


def _boots_a_machine(path: str | Path) -> bool:
    """False for a wrong file: the run reports its errors."""
    try:
        topology = load_topology(path, testers=TESTERS)
    except PodperfError:
        return False
    return topology.virtual or topology.counts_instructions
