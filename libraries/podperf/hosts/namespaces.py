"""The network namespaces that a run makes. All carry one prefix, so that what a killed run left can be found."""

from __future__ import annotations

from contextlib import ExitStack

from podperf.hosts.base import Host
from podperf.hosts.linux import ip, sysctl
from podperf.hosts.network_namespace import NetworkNamespace

PREFIX = "podperf-"

# Run by `sh -c` with a namespace as $1: an end is deleted with its other end, which may be the next one of the list.
_DELETE_PAIRS = (
    'ip -n "$1" -brief link show type veth | while read -r end rest; do ip -n "$1" link del dev "${end%%@*}"; done'
)


def add_namespace(host: Host, name: str, undo: ExitStack) -> NetworkNamespace:
    """A namespace for test traffic: no IPv6 of its own accord, no reverse path filter, nothing that talks unasked."""
    return _of_ours(host, undo, "add", PREFIX + name)


def name_namespace(host: Host, name: str, process: int, undo: ExitStack) -> NetworkNamespace:
    """The same, of the network namespace that a process has. `undo` ends the process."""
    return _of_ours(host, undo, "attach", PREFIX + name, str(process))


def _of_ours(host: Host, undo: ExitStack, how: str, name: str, *process: str) -> NetworkNamespace:
    namespace = NetworkNamespace(name, host)
    ip(host, "netns", how, name, *process)
    undo.callback(remove_namespace, host, namespace.namespace)
    ip(namespace, "link", "set", "lo", "up")
    sysctl(
        namespace,
        net__ipv6__conf__all__disable_ipv6=1,
        net__ipv6__conf__default__disable_ipv6=1,
        net__ipv4__conf__all__rp_filter=0,
        net__ipv4__conf__default__rp_filter=0,
        net__ipv4__conf__all__send_redirects=0,
        net__ipv4__conf__default__send_redirects=0,
    )
    return namespace


def remove_namespace(host: Host, namespace: str) -> None:
    """End what still runs in a namespace of ours, then delete it with all that is in it. Safe to repeat.

    Its veth pairs go first. The kernel takes a namespace apart some time after it is gone, and until then the other
    end of a pair, which may be elsewhere, keeps its name from the next one.
    """
    if namespace not in _namespaces(host):
        return
    end_processes(host, namespace)
    host.do("sh", "-c", _DELETE_PAIRS, "sh", namespace, check=False)
    host.do("ip", "netns", "del", namespace)


def end_processes(host: Host, namespace: str) -> None:
    """End what still runs in a namespace of ours."""
    processes = host.ask("ip", "netns", "pids", namespace, check=False).stdout.split()
    if processes:
        host.do("kill", "-KILL", *processes, check=False)


def namespaces_named(host: Host, prefix: str = PREFIX) -> list[str]:
    """The namespaces whose names begin so; by default all that a run makes."""
    return [name for name in _namespaces(host) if name.startswith(prefix)]


def _namespaces(host: Host) -> list[str]:
    return [line.split()[0] for line in host.ask("ip", "netns", "list").stdout.splitlines() if line.strip()]
