"""Network namespaces that tests make: all carry one prefix, so that what a killed test run left can be found."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress

from podperf.hosts.linux import ip
from podperf.hosts.local import LocalHost, NetworkNamespace

PREFIX = "test-"


def add_namespace(name: str, undo: ExitStack) -> NetworkNamespace:
    """A namespace, until `undo` is closed."""
    namespace = NetworkNamespace(PREFIX + name)
    ip(LocalHost(), "netns", "add", namespace.namespace)
    undo.callback(_remove, namespace.namespace)
    return namespace


def remove_left_behind() -> None:
    """Take away what an earlier test run did not get to: its addresses would be in the way of this one's."""
    for line in LocalHost().run("ip", "netns", "list").stdout.splitlines():
        if line.startswith(PREFIX):
            _remove(line.split()[0])


def _remove(namespace: str) -> None:
    for process in LocalHost().run("ip", "netns", "pids", namespace).stdout.split():
        with suppress(ProcessLookupError):
            os.kill(int(process), signal.SIGKILL)
    ip(LocalHost(), "netns", "del", namespace)
