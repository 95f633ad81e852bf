"""Network namespaces that tests make: all carry one prefix, so that what a killed test run left can be found."""

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
    """Take away what an earlier test run did not get to: its addresses would be in the way of this one's."""
    for namespace in namespaces_named(LocalHost(), PREFIX):
        remove_namespace(LocalHost(), namespace)
