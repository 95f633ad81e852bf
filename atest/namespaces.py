"""Network namespaces of tests. Their names have one prefix, so that namespaces of a killed test run can be found."""

from __future__ import annotations

from contextlib import ExitStack

from podperf.hosts.linux import ip
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import namespaces_named, remove_namespace
from podperf.hosts.network_namespace import NetworkNamespace

PREFIX = "test-"


def add_namespace(name: str, undo: ExitStack) -> NetworkNamespace:
    """A namespace, until `undo` is closed."""
    namespace = NetworkNamespace(PREFIX + name)
    ip(LocalHost(), "netns", "add", namespace.namespace)
    undo.callback(remove_namespace, LocalHost(), namespace.namespace)
    return namespace


def remove_left_behind() -> None:
    """Remove namespaces of an earlier test run. Their addresses would be in the way of this run's addresses."""
    for namespace in namespaces_named(LocalHost(), PREFIX):
        remove_namespace(LocalHost(), namespace)
