"""Network namespaces of tests. Their names have one prefix, so that namespaces of a killed test run can be found."""

from __future__ import annotations

from contextlib import ExitStack

from podperf.hosts.base import Host
from podperf.hosts.linux import ip, ip_json
from podperf.hosts.local import LocalHost
from podperf.hosts.namespaces import NetworkNamespace, namespaces_named, remove_namespace

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


class ThirdPort:
    """A further port of a bridge on this host, where nobody lives: it only gets the frames that the bridge floods."""

    def __init__(self, host: Host, bridge: str) -> None:
        self._host = host
        ip(host, "link", "add", "third", "up", "type", "veth", "peer", "name", "nobody")
        host.do("sysctl", "-q", "-w", "net.ipv6.conf.third.disable_ipv6=1", "net.ipv6.conf.nobody.disable_ipv6=1")
        ip(host, "link", "set", "nobody", "up")
        ip(host, "link", "set", "third", "master", bridge)

    @property
    def frames(self) -> int:
        """Its frames so far."""
        (nobody,) = ip_json(self._host, "-s", "link", "show", "dev", "nobody")
        return int(nobody["stats64"]["rx"]["packets"])
