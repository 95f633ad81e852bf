"""The tester's port on a host outside of the cluster: a process of podperf-tester there, which counts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Host
from podperf.hosts.programs import on_host
from podperf.testers.answers import receive_answer
from podperf.testers.base import TesterPort
from podperf.testers.pod_port import DISCARDED
from podperf.testers.software import TESTER_BINARY

START_TIMEOUT = 15.0  # seconds


@dataclass(frozen=True)
class Outside:
    """A machine outside of the cluster, and the CPUs of the tester there."""

    host: Host
    cpus: Sequence[int] = ()


class OutsidePort:
    """The conversation with the tester's process on a host outside of the cluster."""

    side = "right"

    def __init__(self, outside: Outside, port: TesterPort) -> None:
        """PodperfError if the interface has no IPv4 address, or if the process does not start."""
        self._host, self._port = outside.host, port
        self.address = address_of(outside.host, port)
        name = f"{port.interface}@{port.namespace}" if port.namespace else port.interface
        counting = ("--right", name, "--engine", "packet-ring", "--discard", str(DISCARDED))
        self._process = outside.host.spawn(on_host(outside.host, TESTER_BINARY), *counting, cpus=outside.cpus)
        try:
            self.ready: Mapping[str, Any] = self.answer({"ready"}, START_TIMEOUT)["ready"]
        except BaseException:
            self.close()
            raise

    @property
    def machine(self) -> str:
        """The machine on which this port is. No node of the cluster has this name."""
        return f"{self._host.name}, outside"

    @property
    def mac(self) -> str:
        """The MAC of the interface."""
        return str(self.ready["ports"][self.side]["mac"])

    def request(self, line: str) -> None:
        """Give the process a line."""
        self._process.send(line)

    def answer(self, keys: Set[str], timeout: float) -> dict[str, Any]:
        """The next answer, which has one of these keys. PodperfError with the process's own words for another one."""
        answer = receive_answer(self._process, timeout, {*keys, "error"}, f"the tester on {self._host.name}")
        if "error" in answer:
            raise PodperfError(f"the tester on {self._host.name} cannot go on: {answer['error']}")
        return answer

    def describe(self) -> Mapping[str, Any]:
        """For a record."""
        return {
            "host": self._host.name,
            "interface": self._port.interface,
            "namespace": self._port.namespace,
            "address": str(self.address),
            "mac": self.mac,
            "mode": self.ready["ports"][self.side]["mode"],
            "kernel": self._host.ask("cat", "/proc/sys/kernel/osrelease").stdout.strip(),
        }

    def close(self) -> None:
        """End the process. Safe to call twice."""
        self._process.stop()


def address_of(host: Host, port: TesterPort) -> IPv4Address:
    """The first IPv4 address of an interface. PodperfError if it has none."""
    namespace = ("-n", port.namespace) if port.namespace else ()
    found = json.loads(host.ask("ip", "-json", *namespace, "address", "show", "dev", port.interface).stdout)
    with suppress(StopIteration):
        return IPv4Address(next(each["local"] for each in found[0]["addr_info"] if each["family"] == "inet"))
    raise PodperfError(f"interface {port.interface} of {host.name} has no IPv4 address, to which pods could send")
