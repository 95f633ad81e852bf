"""Records each change of a host, in a run or in a plan.

A RecordingHost passes each call on to another host, and records the calls that change something. The kernel chooses
numbers and MACs anew each time. So the recording has a name in place of such a value (`<MAC of net1 in pod1>`). Two
recordings of the same set-up are then equal.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any

from podperf.hosts.base import Completed, Host, Process
from podperf.hosts.namespaces import PREFIX
from podperf.kernel.control_groups import joined
from podperf.kernel.sriov import NO_MAC
from podperf.pods import POD_RUNTIMES
from podperf.pods.forwarders.testpmd import POLLING_THREADS


class Kind(StrEnum):
    RUN = "run"
    START = "start"
    TELL = "tell"  # a line to a process
    WRITE = "write"
    STOP = "stop"


@dataclass(frozen=True)
class Step:
    """One change. `text` is a command line or a path. `content` is the standard input, or the content of the file."""

    phase: str
    host: str
    namespace: str  # the network namespace in which a command runs; empty: the host's first
    kind: Kind
    text: str
    content: str = ""


@dataclass
class Recording:
    """The steps on all hosts, in their order. The next steps belong to `phase`."""

    steps: list[Step] = field(default_factory=list)
    phase: str = ""
    _names: dict[str, str] = field(default_factory=dict)

    def write(
        self, host: str, namespace: str, kind: Kind, what: str | Sequence[str], content: str = "", remark: str = ""
    ) -> None:
        """Add a step. `what` is a command line as a list of words, or a path, or the name of a process.

        Names that `learn` got replace the values in command line and content.
        """
        text = what if isinstance(what, str) else shlex.join(map(self._readable, what)) + remark
        self.steps.append(Step(self.phase, host, namespace, kind, text, self._readable(content)))

    def learn(self, value: object, name: str) -> None:
        """From now on, write `name` in place of `value`, which the kernel chose.

        A MAC keeps its first name. A number gets the latest name, because the kernel uses numbers again.
        """
        if ":" not in str(value) or str(value) not in self._names:
            self._names[str(value)] = f"<{name}>"

    def _readable(self, text: str) -> str:
        # One pass for all names, because a chain of 255 pods has thousands of them.
        return re.sub(r"[\w.:-]+", lambda word: self._names.get(word[0], word[0]), text)


class RecordingHost:
    """A host that records the calls that change something. It does not record calls that only ask."""

    def __init__(self, host: Host, recording: Recording) -> None:
        self._host, self._recording = host, recording
        self.name = host.name
        self._interfaces: dict[tuple[str, int], str] = {}  # by namespace and index

    def _with_target(self, namespace: str, command: Sequence[str]) -> Sequence[str]:
        """The command; if it writes a BPF program's target interface, with the interface's name for its number."""
        if command[:4] != ("bpftool", "map", "update", "id"):
            return command
        index = int.from_bytes(bytes(map(int, command[-4:])), sys.byteorder)
        interface = self._interfaces.get((namespace, index), "an interface")
        return (*command[:4], "<map of that program>", *command[5:-4], f"<index of {interface}>")

    def ask(self, *command: str, **how: Any) -> Completed:
        done = self._host.ask(*command, **how)
        self._learn(*_named(command), done.stdout)
        return done

    def do(self, *command: str, **how: Any) -> Completed:
        namespace, inner = _named(command)
        self._recording.write(
            self.name, namespace, Kind.RUN, self._with_target(namespace, inner), how.get("stdin") or ""
        )
        done = self._host.do(*command, **how)
        self._learn(namespace, inner, done.stdout)
        return done

    def _learn(self, namespace: str, command: Sequence[str], answer: str) -> None:
        for index, interface in _indices(command, answer):
            self._interfaces[namespace, index] = interface
        for value, name in _learnt(namespace, command, answer):
            self._recording.learn(value, name)

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        namespace, inner = within(command)
        held = f" (on CPU {','.join(map(str, cpus))})" if cpus else ""
        self._recording.write(self.name, namespace, Kind.START, inner, remark=held)
        process = self._host.spawn(*command, cpus=cpus)
        name = program(inner) + (f" in {_short(namespace)}" if namespace else "")
        self._recording.learn(process.pid, f"process of {name}")
        return _RecordingProcess(process, self._recording, self.name, namespace, name)

    def put(self, content: bytes, path: str) -> None:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = f"({len(content)} bytes)"
        self._recording.write(self.name, "", Kind.WRITE, path, text)
        self._host.put(content, path)

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        content = self._host.get(path, assumed)
        if path.endswith("pid"):
            self._recording.learn(content.decode().strip(), f"number in {path}")
        return content


class _RecordingProcess:
    """A process of a RecordingHost."""

    def __init__(self, process: Process, recording: Recording, host: str, namespace: str, name: str) -> None:
        self._process, self._recording, self._where, self._name = process, recording, (host, namespace), name
        self._stopped = False
        self.pid = process.pid

    def send(self, line: str) -> None:
        self._recording.write(*self._where, Kind.TELL, self._name, line)
        self._process.send(line)

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        line = self._process.receive(timeout, assumed)
        with suppress(ValueError, KeyError, TypeError):  # only TRex's answer has MACs; many lines are no JSON
            for number, port in enumerate(json.loads(line)["ready"]["ports"]):
                self._recording.learn(port["mac"], f"MAC of TRex port {number}")
        return line

    def alive(self, assumed: bool = True) -> bool:
        return self._process.alive(assumed)

    def errors(self, assumed: str = "") -> str:
        return self._process.errors(assumed)

    def stop(self, timeout: float = 5.0) -> None:
        if not self._stopped:
            self._recording.write(*self._where, Kind.STOP, self._name)
        self._stopped = True
        self._process.stop(timeout)


def within(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The name of the network namespace or pod that runs a command, and the command itself."""
    namespace, words = "", tuple(command)
    for runtime in POD_RUNTIMES.values():
        if (inside := runtime.within(words)) is not None:
            namespace, words = inside[0], tuple(inside[1])
    while len(words) > 3 and words[0] == "nsenter" and words[1].startswith("--net=") and words[2] == "--":
        path = PurePosixPath(words[1].removeprefix("--net="))
        namespace, words = path.name if path.parent == PurePosixPath("/run/netns") else "", words[3:]
    return namespace, words


def _named(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """See `within`. bpftool's path depends on the distribution, so only the name `bpftool` is recorded."""
    namespace, inner = within(command)
    if inner and PurePosixPath(inner[0]).name == "bpftool":
        inner = ("bpftool", *inner[1:])
    return namespace, inner


def program(command: Sequence[str]) -> str:
    """The name of the program that a command line starts. `env`, interpreters and the like are skipped."""
    for word in joined(command):
        name = PurePosixPath(word).name
        if name not in {"env", "stdbuf", "taskset", "setpriv", "--", "python3"} and not re.match(r"-|\w+=", word):
            return re.sub(r"^[0-9a-f]{16}-|\.py$", "", name)  # a copy on another machine has its digest in its name
    return command[0]


def _learnt(namespace: str, command: Sequence[str], answer: str) -> Iterator[tuple[object, str]]:
    """Values in an answer that the kernel or a plug-in chose, each with a name for it."""
    line = " ".join(command)
    with suppress(ValueError, KeyError, IndexError, TypeError):
        if line.startswith("ip -json") and re.search(r" (link|address) show( dev \S+)?$", line):
            for link in json.loads(answer):
                if link.get("address", NO_MAC) != NO_MAC:
                    yield link["address"], f"MAC of {link['ifname']}{_of(namespace)}"
        elif line.startswith("env CNI_COMMAND=ADD"):
            yield from _learnt_from_plugin(json.loads(answer), line)
        elif command[0] == "sh" and " /proc/[0-9]*/cgroup" in line:
            yield answer.strip(), f"first process of {command[-1]}"
        elif command[0] == "sh" and "/proc/[0-9]*/environ" in line:
            yield answer.split("/")[2], "first process of the container"
        elif command[0] == "cat" and line.endswith("/children"):
            yield answer.strip(), "process in a container"
        elif command[0] == "sh" and len(command) == 6 and command[5].startswith("/proc"):  # threads by their name
            # DPDK's name for its polling threads depends on its version.
            whose = "those of DPDK that poll" if command[4] in POLLING_THREADS else f"those named {command[4]}*"
            for number, thread in enumerate(answer.split(), start=1):
                yield thread, f"thread {number} of {whose}"


def _indices(command: Sequence[str], answer: str) -> Iterator[tuple[int, str]]:
    with suppress(ValueError, KeyError, TypeError):
        if command[:2] == ("ip", "-json") and "link" in command:
            for link in json.loads(answer):
                yield link["ifindex"], link["ifname"]


def _learnt_from_plugin(result: dict[str, list[dict[str, str]]], line: str) -> Iterator[tuple[str, str]]:
    container = line.split("CNI_CONTAINERID=")[1].split(maxsplit=1)[0]
    interface = line.split("CNI_IFNAME=")[1].split(maxsplit=1)[0]
    for each in result["interfaces"]:
        if each.get("sandbox"):
            yield each["mac"], f"MAC of {each['name']} in {container}"
        elif each["name"].startswith("veth"):
            yield each["name"], f"host end of {interface} of {container}"
            yield each["mac"], f"MAC of the host end of {interface} of {container}"


def _of(namespace: str) -> str:
    return f" in {_short(namespace)}" if namespace else ""


def _short(namespace: str) -> str:
    return namespace.removeprefix(PREFIX)
