"""The CPUs and devices of a container as its kubelet tells them to programs of the node: the podresources API, v1.

The API is a cross-check of what the container says (placement.py). Only root of the node can ask, and the node needs
curl. The messages are those of k8s.io/kubelet/pkg/apis/podresources/v1.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podperf.cpu_lists import format_cpu_list
from podperf.hosts.base import Host
from podperf.hosts.shell_script import shell_script

_ASK = shell_script("ask_kubelets.sh", beside=__file__)
_FRAME = 5  # bytes before a message of gRPC: whether it is compressed, and its length
_VARINT, _FIXED, _BYTES = 0, {1: 8, 5: 4}, 2  # wire types of Protocol Buffers


@dataclass(frozen=True)
class ToldByKubelet:
    """The CPUs that a pod has alone, and its devices by the name of their resource."""

    cpus: tuple[int, ...]
    devices: Mapping[str, frozenset[str]]

    def of_resources(self, resources: Iterable[str]) -> frozenset[str]:
        """The devices that the pod has of any of these resources."""
        return frozenset[str]().union(*(self.devices.get(each, ()) for each in resources))

    def describe(self) -> Mapping[str, Any]:
        """For a record."""
        return {
            "cpus": format_cpu_list(self.cpus),
            "devices": {resource: sorted(names) for resource, names in self.devices.items()},
        }


def told_by_kubelet(machine: Host, pod: str, namespace: str) -> ToldByKubelet | None:
    """The CPUs and devices of a pod, as its kubelet on this machine tells. None if none answers or knows the pod."""
    said = machine.ask("sh", "-c", _ASK, check=False).stdout
    for line in said.splitlines():
        try:
            found = read_answer(b64decode(line), pod, namespace)
        except ValueError:  # another version of the API
            continue
        if found is not None:
            return found
    return None


def read_answer(answer: bytes, pod: str, namespace: str) -> ToldByKubelet | None:
    """The resources of one pod in an answer (ListPodResourcesResponse). ValueError if the answer is damaged."""
    for each in _all(answer[_FRAME:], 1):
        if [_text(each, number) for number in (1, 2)] != [pod, namespace]:
            continue
        cpus, devices = set[int](), dict[str, frozenset[str]]()
        for container in _all(each, 3):
            cpus |= {number for packed in _all(container, 3) for number in _varints(packed)}
            for device in _all(container, 2):
                resource = _text(device, 1)
                names = frozenset(name.decode() for name in _all(device, 2))
                devices[resource] = devices.get(resource, frozenset()) | names
        return ToldByKubelet(tuple(sorted(cpus)), devices)
    return None


def _all(message: bytes, wanted: int) -> list[bytes]:
    """The values of a field of a message."""
    return [value for number, value in _fields(message) if number == wanted]


def _text(message: bytes, number: int) -> str:
    return b"".join(_all(message, number)[-1:]).decode()


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and the value of each field that has bytes. Other fields are left out."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind, length = key & 7, 0
        if kind == _VARINT:
            _, at = _varint(message, at)
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise ValueError(f"wire type {kind}")
        value = message[at : at + length]
        if len(value) < length:
            raise ValueError("the message ends in a field")
        at += length
        if kind == _BYTES:
            yield key >> 3, value


def _varints(packed: bytes) -> Iterator[int]:
    at = 0
    while at < len(packed):
        number, at = _varint(packed, at)
        yield number


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length at this place, and the place behind it."""
    value = 0
    for place, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError("the message ends in a number")
