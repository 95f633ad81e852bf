"""The two ends of the tester: processes of podperf-tester in a pod, and on a host outside of the cluster.

In a pod, the process is the command of the container. It reads requests from a FIFO and appends its answers to a file.
So a script in the pod only passes lines on. In a trial it sleeps.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_address
from typing import Any

from podperf.errors import PodperfError, Unavailable
from podperf.frames import Address, AddressFamily, Headers
from podperf.hosts.base import Host
from podperf.hosts.programs import on_host
from podperf.kubernetes import multus
from podperf.kubernetes.api import Api
from podperf.kubernetes.commands_in_pods import LONGEST_SILENCE, CommandInPodFailed, Conversation, execute
from podperf.kubernetes.pod_place import FOLDER as _FOLDER
from podperf.kubernetes.pod_place import PodPlace
from podperf.testers.answers import in_line, receive_answer
from podperf.testers.base import TesterPort
from podperf.testers.software import TESTER_BINARY

DISCARDED = 49152  # the UDP port that test frames are for
_MOST_TOLD = 200  # characters of a wrong answer
OLDER_IMAGE = "its image is older than podperf; build it again: ./podperf image build"
_FOREIGN = re.compile("request: .* is no word of a request|request: part=")  # the complaint about a newer request
# Environment variables of a pod: its address, by which it finds its interface, and the name of another interface.
ADDRESS, INTERFACE = "PODPERF_ADDRESS", "PODPERF_INTERFACE"
_INTERFACE = f"$(cat {_FOLDER}/interface)"
_PROGRAM = (
    f"mkfifo {_FOLDER}/requests && : >{_FOLDER}/answers && ip -o address show to ${ADDRESS} |"
    f' {{ read -r _ name _; echo "${{{INTERFACE}:-$name}}" >{_FOLDER}/interface; }} && exec podperf-tester'
    f' "--$1" "{_INTERFACE}" --engine packet-ring --discard {DISCARDED}'
    f" <>{_FOLDER}/requests >>{_FOLDER}/answers 2>&1"
)
_LOOK_AGAIN, _PATIENCE = 0.01, 1.0  # seconds between looks for an answer, and for all looks of one line at least
SILENT = 10.0  # seconds beyond that after which the connection counts as lost
# Each line of its input has the number of an answer, a number of looks, seconds, and a request. Writes the request, if
# there is one. Prints the answer of this number as soon as it is there: the first look is after these seconds, and the
# next ones _LOOK_AGAIN apart. Prints an empty line if there is no answer.
_PASS_ON = f"""
while read -r number looks seconds request; do
    [ -z "$request" ] || printf '%s\\n' "$request" >{_FOLDER}/requests
    sleep "$seconds"
    until [ "$(wc -l <{_FOLDER}/answers)" -ge "$number" ] || [ "$looks" -le 0 ]; do
        looks=$((looks - 1))
        sleep {_LOOK_AGAIN}
    done
    printf '%s\\n' "$(sed -n "${{number}}p" {_FOLDER}/answers)"
done
"""
# Prints MAC and next hop of the way to address $1. The answer to one echo request is not needed, but its ARP is, or its
# neighbour solicitation.
_WAY = (
    f"interface={_INTERFACE};"
    ' set -- "$1" $(ip route get "$1" | sed -n "s/.* via \\([0-9a-f.:]*\\).*/\\1/p"); hop=${2:-$1};'
    ' ping -c 1 -W 1 "$1" >/dev/null 2>&1;'
    ' i=0; until ip neigh show to "$hop" dev "$interface" | grep -q lladdr; do i=$((i + 1)); [ "$i" -le 20 ] || exit 1;'
    ' ping -c 1 -W 1 "$hop" >/dev/null 2>&1; sleep 0.1; done;'
    ' ip neigh show to "$hop" dev "$interface" | sed -n "s/.*lladdr \\([0-9a-f:]*\\).*/\\1/p"'
)

_MTU = f'cat "/sys/class/net/{_INTERFACE}/mtu"'

Addresses = Mapping[AddressFamily, Address]


def by_family(addresses: Iterable[str]) -> Addresses:
    """The first address of each family."""
    found: dict[AddressFamily, Address] = {}
    for address in map(ip_address, addresses):
        found.setdefault(AddressFamily.of(address), address)
    return found


def command_of(side: str) -> list[str]:
    """The command of a pod that is this port of the tester, `left` or `right`."""
    return ["sh", "-c", _PROGRAM, "sh", side]


class TesterEnd(ABC):
    """A process of podperf-tester with one port, `left` or `right`."""

    side: str
    ready: Mapping[str, Any]  # the first answer of the process
    addresses: Addresses  # to which frames for this port go
    machine: str  # on which the process is; ends on one machine have one clock

    def address(self, family: AddressFamily) -> Address:
        """The address of this family to which frames for this port go. Unavailable if there is none."""
        if family not in self.addresses:
            raise Unavailable(f"the tester's {self.side} port on {self.machine} has no {family} address")
        return self.addresses[family]

    @property
    def mac(self) -> str:
        """The MAC of the port."""
        return str(self.ready["ports"][self.side]["mac"])

    @abstractmethod
    def ask(self, line: str, keys: Set[str], timeout: float, busy: float = 0.0) -> dict[str, Any]:
        """Give the process a line. Returns its answer, which has one of these keys. PodperfError with the process's own
        words for another answer.

        Nothing looks for the answer in the first `busy` seconds. It comes at most `timeout` seconds later.
        """

    def connect(self) -> None:  # noqa: B027 — a process of this machine needs no connection
        """Make the connection for the next request now."""

    def keep(self) -> None:  # noqa: B027
        """Keep the connection while there is no request."""


@dataclass(frozen=True)
class PodFacts:
    """What the cluster tells about a running pod."""

    name: str
    node: str
    addresses: Addresses
    image: str  # with its digest

    @classmethod
    def of(cls, pod: Mapping[str, Any], interface: str | None = None) -> PodFacts:
        """The facts in a pod object. The addresses are those of an interface that Multus has attached, or of the pod's
        own one. Unavailable if Multus has not given this interface an address."""
        status = pod["status"]
        own = (each["ip"] for each in status.get("podIPs", ()))
        addresses = by_family(own if interface is None else attached_addresses(pod, interface))
        image = status["containerStatuses"][0]["imageID"]
        return cls(pod["metadata"]["name"], pod["spec"]["nodeName"], addresses, image)


def attached_addresses(pod: Mapping[str, Any], interface: str) -> Sequence[str]:
    """The addresses of an interface that Multus has attached. Unavailable if it has none, or is not there."""
    try:
        found = multus.attached(pod)
    except PodperfError as error:
        raise Unavailable(str(error)) from error
    if not found.get(interface):
        given = ", ".join(f"{name} {' '.join(each)}".strip() for name, each in found.items())
        raise Unavailable(f"Multus gave pod {pod['metadata']['name']} no {interface} with an address: it tells {given}")
    return found[interface]


class PodPort(TesterEnd):
    """The conversation with the tester's process in one pod."""

    def __init__(self, api: Api, namespace: str, side: str, facts: PodFacts, silent: float = SILENT) -> None:
        """The connection counts as lost `silent` seconds after the time in which the pod is busy."""
        self._api, self._namespace, self.side, self.facts = api, namespace, side, facts
        self.addresses, self.machine = facts.addresses, facts.node
        self._read, self._silent = 0, silent  # answers so far
        self._route_mtus: dict[Address, int | None] = {}
        self._conversation = Conversation(api, facts.name, namespace, _PASS_ON)
        self.ready = self._answer("", {"ready"}, 15.0)["ready"]

    @property
    def place(self) -> PodPlace:
        """The pod as a place for other programs."""
        return PodPlace(self._api, self._namespace, self.facts.name)

    def execute(self, *words: str, timeout: float = 10.0) -> str:
        return execute(self._api, self.facts.name, self._namespace, words, timeout)

    def demand_mtu(self, frame: int, headers: Headers, far: Address | None = None) -> None:
        """Unavailable if frames of this size in bytes with FCS are too large for the pod's interface, or for its route
        to an address on another node."""
        needed, given = headers.mtu(frame), min(filter(None, (self.mtu, self.route_mtu(far))))
        if given < needed:
            raise Unavailable(
                f"frames of {frame} B need an MTU of {needed}, and the network of the cluster gives pod "
                f"{self.facts.name} on {self.facts.node} {given}: the largest frame that fits has "
                f"{frame - needed + given} B"
            )

    @cached_property
    def mtu(self) -> int:
        """The MTU of the pod's interface."""
        said = self.execute("sh", "-c", _MTU).strip()
        if not re.fullmatch(r"[0-9]{1,6}", said):
            raise PodperfError(f"pod {self.facts.name} tells no MTU of its interface: {said[:_MOST_TOLD]}")
        return int(said)

    def route_mtu(self, far: Address | None) -> int | None:
        """The MTU of the pod's route to an address. None if the route has none of its own. With Cilium's tunnel it is
        smaller than the interface's."""
        if far is None:
            return None
        if far not in self._route_mtus:
            # Without its folder, the shell of BusyBox would call its own `ip`, which tells no MTU.
            said = self.execute("/bin/ip", "-o", "route", "get", str(far))
            found = re.search(r" mtu (?:lock )?([0-9]{1,6})\b", said)
            self._route_mtus[far] = int(found[1]) if found else None
        return self._route_mtus[far]

    def connect(self) -> None:
        self._pass_on("", 0.0)

    def keep(self) -> None:
        self._conversation.keep()

    def ask(self, line: str, keys: Set[str], timeout: float, busy: float = 0.0) -> dict[str, Any]:
        if busy > LONGEST_SILENCE:
            self._pass_on(line, 0.0)
            time.sleep(busy)
            line, busy = "", 0.0
        return self._answer(line, keys, timeout, busy)

    def _pass_on(self, line: str, patience: float, busy: float = 0.0) -> str:
        looks = f"{patience / _LOOK_AGAIN:.0f}"
        return self._conversation.ask(f"{self._read + 1} {looks} {busy:.3f} {line}", busy + patience + self._silent)

    def _answer(self, line: str, keys: Set[str], timeout: float, busy: float = 0.0) -> dict[str, Any]:
        deadline = time.monotonic() + busy + timeout
        try:
            # The script tells soon that there is no answer yet. So a cluster that hangs is noticed before `timeout`.
            said = self._pass_on(line, _PATIENCE, busy)
            while not said and time.monotonic() < deadline:
                said = self._pass_on("", _PATIENCE)
        except CommandInPodFailed as error:
            raise PodperfError(f"the tester in pod {self.facts.name} gave no answer: {error}") from error
        if not said:
            raise PodperfError(f"the tester in pod {self.facts.name} gave no answer in {timeout:.0f} s")
        self._read += 1
        answer = in_line(said)
        if not keys & answer.keys():
            complaint = str(answer.get("error", said))[:_MOST_TOLD]
            remedy = OLDER_IMAGE if _FOREIGN.search(complaint) else ""
            raise PodperfError(f"the tester in pod {self.facts.name} cannot go on: {remedy or complaint}")
        return answer

    def close(self) -> None:
        self._conversation.close()

    def next_hop(self, address: Address) -> str:
        """The MAC to which the pod sends frames for this address."""
        try:
            return self.execute("sh", "-c", _WAY, "sh", str(address), timeout=20.0).strip()
        except CommandInPodFailed as error:
            raise PodperfError(f"pod {self.facts.name} finds no way to {address}: {error}") from error


START_TIMEOUT = 15.0  # seconds


@dataclass(frozen=True)
class Outside:
    """A machine outside of the cluster, and the CPUs of the tester there."""

    host: Host
    cpus: Sequence[int] = ()


class OutsidePort(TesterEnd):
    """The conversation with the tester's process on a host outside of the cluster."""

    side = "right"

    def __init__(self, outside: Outside, port: TesterPort) -> None:
        """PodperfError if the process does not start."""
        self._host, self._port = outside.host, port
        self.addresses = addresses_of(outside.host, port)
        self.machine = f"{self._host.name}, outside"  # no node of the cluster has this name
        name = f"{port.interface}@{port.namespace}" if port.namespace else port.interface
        counting = ("--right", name, "--engine", "packet-ring", "--discard", str(DISCARDED))
        self._process = outside.host.spawn(on_host(outside.host, TESTER_BINARY), *counting, cpus=outside.cpus)
        try:
            self.ready = self._answer({"ready"}, START_TIMEOUT)["ready"]
        except BaseException:
            self.close()
            raise

    def ask(self, line: str, keys: Set[str], timeout: float, busy: float = 0.0) -> dict[str, Any]:
        self._process.send(line)
        return self._answer(keys, busy + timeout)

    def _answer(self, keys: Set[str], timeout: float) -> dict[str, Any]:
        answer = receive_answer(self._process, timeout, {*keys, "error"}, f"the tester on {self._host.name}")
        if "error" in answer:
            raise PodperfError(f"the tester on {self._host.name} cannot go on: {answer['error']}")
        return answer

    def describe(self) -> Mapping[str, Any]:
        return {
            "host": self._host.name,
            "interface": self._port.interface,
            "namespace": self._port.namespace,
            "address": ", ".join(map(str, self.addresses.values())),
            "mac": self.mac,
            "mode": self.ready["ports"][self.side]["mode"],
            "kernel": self._host.ask("cat", "/proc/sys/kernel/osrelease").stdout.strip(),
        }

    def close(self) -> None:
        self._process.stop()


def addresses_of(host: Host, port: TesterPort) -> Addresses:
    """The first address of each family of an interface, without those of the link alone."""
    namespace = ("-n", port.namespace) if port.namespace else ()
    found = json.loads(host.ask("ip", "-json", *namespace, "address", "show", "dev", port.interface).stdout)
    return by_family(each["local"] for each in found[0]["addr_info"] if each["scope"] != "link")
