"""Puts the machine back to what it was before a run that could not do so itself."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from podperf.hosts.base import Host
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import left_behind, remove_namespace
from podperf.hugepages import give_back
from podperf.run_lock import RunLock

RUN_DIRECTORY = Path("/run/podperf")


def put_back(host: Host) -> list[str]:
    """Remove what killed runs left; returns what that was. Call it under the run lock.

    Everything that a run makes lies in namespaces of its own prefix or in its run directory, which also says how many
    hugepages there were, and its processes die with it, so there is nothing else to look for.
    """
    found = left_behind(host)
    for namespace in found:
        remove_namespace(host, namespace)
    if give_back(host, str(RUN_DIRECTORY)):
        found.append("hugepages")
    if RUN_DIRECTORY.exists():
        shutil.rmtree(RUN_DIRECTORY)
        found.append(str(RUN_DIRECTORY))
    return found


def main(arguments: Sequence[str]) -> int:
    """`podperf clean`: exit code 0 when the machine is as it was."""
    if arguments:
        print("usage: podperf clean")
        return 2
    with RunLock():
        removed = put_back(LocalHost())
    print(f"removed: {', '.join(removed)}" if removed else "nothing was left behind")
    return 0
