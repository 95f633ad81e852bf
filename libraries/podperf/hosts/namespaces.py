"""The network namespaces that a run makes. Their names have one prefix. So podperf finds namespaces of a killed run."""

from __future__ import annotations

from contextlib import ExitStack

from podperf.hosts.base import Host
from podperf.hosts.linux import configure, ip
from podperf.hosts.network_namespace import NetworkNamespace

PREFIX = "podperf-"

# `sh -c` gets a namespace as $1. Both ends of a pair are deleted together. The other end may be in the list, too; its
# deletion then fails, and this does no harm.
_DELETE_PAIRS = (
    'ip -n "$1" -brief link show type veth | while read -r end rest; do ip -n "$1" link del dev "${end%%@*}"; done'
)


def add_namespace(host: Host, name: str, undo: ExitStack) -> NetworkNamespace:
    """Make a namespace for test traffic: without IPv6, reverse path filters and ICMP redirects."""
    return _of_ours(host, undo, "add", PREFIX + name)


def name_namespace(host: Host, name: str, process: int, undo: ExitStack) -> NetworkNamespace:
    """Give a name to the network namespace of a process, with the settings of `add_namespace`.

    `undo` ends the process.
    """
    return _of_ours(host, undo, "attach", PREFIX + name, str(process))


def _of_ours(host: Host, undo: ExitStack, how: str, name: str, *process: str) -> NetworkNamespace:
    namespace = NetworkNamespace(name, host)
    ip(host, "netns", how, name, *process)
    undo.callback(remove_namespace, host, namespace.namespace)
    configure(
        namespace,
        ("link", "set", "lo", "up"),
        net__ipv6__conf__all__disable_ipv6=1,
        net__ipv6__conf__default__disable_ipv6=1,
        net__ipv4__conf__all__rp_filter=0,
        net__ipv4__conf__default__rp_filter=0,
        net__ipv4__conf__all__send_redirects=0,
        net__ipv4__conf__default__send_redirects=0,
    )
    return namespace


def remove_namespace(host: Host, namespace: str) -> None:
    """End the processes in one of the run's namespaces, then delete the namespace with its interfaces. Safe to repeat.

    veth pairs are deleted first. The kernel removes a namespace's interfaces some time after its deletion. Until then
    the other end of a pair keeps its name, and a new pair cannot have that name.
    """
    if namespace not in _namespaces(host):
        return
    end_processes(host, namespace)
    host.do("sh", "-c", _DELETE_PAIRS, "sh", namespace, check=False)
    host.do("ip", "netns", "del", namespace)


def end_processes(host: Host, namespace: str) -> None:
    """End the processes in one of the run's namespaces."""
    processes = host.ask("ip", "netns", "pids", namespace, check=False).stdout.split()
    if processes:
        host.do("kill", "-KILL", *processes, check=False)


def namespaces_named(host: Host, prefix: str = PREFIX) -> list[str]:
    """The namespaces with names that begin with `prefix`. By default all namespaces of runs."""
    return [name for name in _namespaces(host) if name.startswith(prefix)]


def _namespaces(host: Host) -> list[str]:
    return [line.split()[0] for line in host.ask("ip", "netns", "list").stdout.splitlines() if line.strip()]
