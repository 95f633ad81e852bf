"""A network namespace of a host, which is a host, too."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from podperf.hosts.base import CommandFailed, Completed, Host, Process, TooMuchOutput
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

    def ask(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        with self._told_from_inside(command):
            done = self._host.ask(*self._inside, *command, stdin=stdin, check=check, timeout=timeout)
        return replace(done, command=command)

    def do(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        with self._told_from_inside(command):
            done = self._host.do(*self._inside, *command, stdin=stdin, check=check, timeout=timeout)
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

    def get(self, path: str) -> bytes:
        return self._host.get(path)
