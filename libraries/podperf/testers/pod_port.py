"""One port of the tester: a process of podperf-tester in a pod, with the pod's own interface.

The process is the command of the pod's container. It reads requests from a FIFO and appends its answers to a file. So a
command in the pod only writes a line or reads one, and none runs in a trial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any, Protocol

from podperf.errors import PodperfError
from podperf.kubernetes.api import Api
from podperf.kubernetes.execute import CommandInPodFailed, execute

DISCARDED = 49152  # the UDP port that test frames are for
_FOLDER = "/run/podperf"
_MOST_TOLD = 200  # characters of a wrong answer
_PROGRAM = (
    f"mkfifo {_FOLDER}/requests && : >{_FOLDER}/answers && exec podperf-tester"
    f' "--$1" eth0 --engine packet-ring --discard {DISCARDED} <>{_FOLDER}/requests >>{_FOLDER}/answers 2>&1'
)
_WRITE = f'echo "$1" >{_FOLDER}/requests'
# Prints line $1 of the answers, as soon as it is there. Exit code 3 after $2 looks, a hundredth of a second apart.
_READ = (
    f'i=0; until [ "$(wc -l <{_FOLDER}/answers)" -ge "$1" ]; do i=$((i + 1)); [ "$i" -le "$2" ] || exit 3;'
    f' sleep 0.01; done; sed -n "$1p" {_FOLDER}/answers'
)
# Prints MAC and next hop of the way to address $1. The answer to one echo request is not needed, but its ARP is.
_WAY = (
    'set -- "$1" $(ip -4 route get "$1" | sed -n "s/.* via \\([0-9.]*\\).*/\\1/p"); hop=${2:-$1};'
    ' ping -c 1 -W 1 "$1" >/dev/null 2>&1;'
    ' i=0; until ip neigh show to "$hop" dev eth0 | grep -q lladdr; do i=$((i + 1)); [ "$i" -le 20 ] || exit 1;'
    ' ping -c 1 -W 1 "$hop" >/dev/null 2>&1; sleep 0.1; done;'
    ' ip neigh show to "$hop" dev eth0 | sed -n "s/.*lladdr \\([0-9a-f:]*\\).*/\\1/p"'
)


def command(side: str) -> list[str]:
    """The command of a pod that is this port of the tester, `left` or `right`."""
    return ["sh", "-c", _PROGRAM, "sh", side]


class TesterEnd(Protocol):
    """A process of podperf-tester with one port, `left` or `right`."""

    @property
    def ready(self) -> Mapping[str, Any]:
        """The first answer of the process."""

    @property
    def address(self) -> IPv4Address:
        """The address to which frames for this port go."""

    @property
    def machine(self) -> str:
        """The machine on which the process is. Ends on one machine have one clock."""

    @property
    def mac(self) -> str:
        """The MAC of the port."""

    def request(self, line: str) -> None:
        """Give the process a line."""

    def answer(self, keys: Set[str], timeout: float) -> dict[str, Any]:
        """The next answer, which has one of these keys. PodperfError with the process's own words for another one."""


@dataclass(frozen=True)
class PodFacts:
    """What the cluster tells about a running pod."""

    name: str
    node: str
    address: IPv4Address
    image: str  # with its digest

    @classmethod
    def of(cls, pod: Mapping[str, Any]) -> PodFacts:
        """The facts in a pod object. PodperfError for a pod without an IPv4 address."""
        status = pod["status"]
        addresses = [each["ip"] for each in status.get("podIPs", ()) if ":" not in each["ip"]]
        if not addresses:
            raise PodperfError(f"pod {pod['metadata']['name']} has no IPv4 address, and test frames are IPv4")
        image = status["containerStatuses"][0]["imageID"]
        return cls(pod["metadata"]["name"], pod["spec"]["nodeName"], IPv4Address(addresses[0]), image)


class PodPort:
    """The conversation with the tester's process in one pod."""

    def __init__(self, api: Api, namespace: str, side: str, facts: PodFacts) -> None:
        self._api, self._namespace, self.side, self.facts = api, namespace, side, facts
        self._read = 0  # answers so far
        self.ready: Mapping[str, Any] = self.answer({"ready"}, 15.0)["ready"]

    @property
    def address(self) -> IPv4Address:
        """The address of the pod."""
        return self.facts.address

    @property
    def machine(self) -> str:
        """The node on which the pod is."""
        return self.facts.node

    @property
    def mac(self) -> str:
        """The MAC of the pod's interface."""
        return str(self.ready["ports"][self.side]["mac"])

    def execute(self, *words: str, timeout: float = 10.0) -> str:
        """The output of a short command in the pod."""
        return execute(self._api, self.facts.name, self._namespace, words, timeout)

    def request(self, line: str) -> None:
        """Give the process a line."""
        self.execute("sh", "-c", _WRITE, "sh", line)

    def answer(self, keys: Set[str], timeout: float) -> dict[str, Any]:
        """The next answer, which has one of these keys. PodperfError with the process's own words for another one."""
        self._read += 1
        wait = ("sh", "-c", _READ, "sh", str(self._read), str(int(timeout * 100)))
        try:
            said = self.execute(*wait, timeout=timeout + 10).strip()
        except CommandInPodFailed as error:
            raise PodperfError(f"the tester in pod {self.facts.name} gave no answer: {error}") from error
        try:
            answer = json.loads(said)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict) or not keys & answer.keys():
            complaint = str(answer.get("error") if isinstance(answer, dict) else said)[:_MOST_TOLD]
            raise PodperfError(f"the tester in pod {self.facts.name} cannot go on: {complaint}")
        return answer

    def next_hop(self, address: IPv4Address) -> str:
        """The MAC to which the pod sends frames for this address."""
        try:
            return self.execute("sh", "-c", _WAY, "sh", str(address), timeout=20.0).strip()
        except CommandInPodFailed as error:
            raise PodperfError(f"pod {self.facts.name} finds no way to {address}: {error}") from error
