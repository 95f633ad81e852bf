"""The network namespaces that a run makes. Their names have one prefix. So podperf finds namespaces of a killed run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from podperf.hosts.base import CommandFailed, Completed, Host, Process, TooMuchOutput, shell_script
from podperf.hosts.linux import configure, ip
from podperf.hosts.local import LocalHost


class NetworkNamespace:
    """A network namespace of a host, by its name under /run/netns. It shares everything else with the host."""

    def __init__(self, namespace: str, host: Host | None = None) -> None:
        self._host = host or LocalHost()
        self.namespace = namespace
        self.name = f"namespace {namespace}"
        if not isinstance(self._host, LocalHost):
            self.name += f" of {self._host.name}"
        # nsenter, unlike `ip netns exec`, keeps the mount namespace: other namespaces stay reachable by name.
        self._inside: tuple[str, ...] = ("nsenter", f"--net=/run/netns/{namespace}", "--")

    def ask(self, *command: str, **how: Any) -> Completed:
        with self._told_from_inside(command):
            done = self._host.ask(*self._inside, *command, **how)
        return replace(done, command=command)

    def do(self, *command: str, **how: Any) -> Completed:
        with self._told_from_inside(command):
            done = self._host.do(*self._inside, *command, **how)
        return replace(done, command=command)

    @contextlib.contextmanager
    def _told_from_inside(self, command: Sequence[str]) -> Iterator[None]:
        """An error names this namespace and the command, without the words that enter the namespace."""
        try:
            yield
        except CommandFailed as error:
            raise CommandFailed(self.name, command, error.exit_code, error.output) from None
        except TooMuchOutput:
            raise TooMuchOutput(self.name, command) from None

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return self._host.spawn(*self._inside, *command, cpus=cpus)

    def put(self, content: bytes, path: str) -> None:
        self._host.put(content, path)

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        return self._host.get(path, assumed)


PREFIX = "podperf-"

_EMPTY = shell_script("empty_namespace.sh", beside=__file__)


def add_namespace(host: Host, name: str, undo: ExitStack) -> NetworkNamespace:
    """Make a namespace for test traffic: without IPv6, reverse path filters and ICMP redirects.

    Where a chain switches IPv6 on, addresses can be used at once (no duplicate address detection), and nobody asks for
    routers.
    """
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
        net__ipv6__conf__all__accept_dad=0,
        net__ipv6__conf__default__accept_dad=0,
        net__ipv6__conf__default__accept_ra=0,
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
    if host.do("sh", "-c", _EMPTY, "sh", namespace, check=False).exit_code == 0:
        host.do("ip", "netns", "del", namespace)


def end_processes(host: Host, namespace: str) -> None:
    processes = host.ask("ip", "netns", "pids", namespace, check=False, assumed="").stdout.split()
    if processes:
        host.do("kill", "-KILL", *processes, check=False)


def namespaces_named(host: Host, prefix: str = PREFIX) -> list[str]:
    """The namespaces with names that begin with `prefix`. By default all namespaces of runs."""
    said = host.ask("ip", "netns", "list", assumed=f"{prefix}worker").stdout
    names = [line.split()[0] for line in said.splitlines() if line.strip()]
    return [name for name in names if name.startswith(prefix)]
