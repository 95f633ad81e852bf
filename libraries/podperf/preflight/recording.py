"""What is done to hosts, step by step: written down while it is done, or while it is only planned.

A RecordingHost passes everything on to another host and writes down what changes something. Numbers and MACs that the
kernel chose are written as what they belong to, so that two recordings of the same set-up are equal, and readable.
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

from podperf.hosts.base import Completed, Host, Process
from podperf.hosts.namespaces import PREFIX
from podperf.pods import POD_RUNTIMES
from podperf.pods.forwarders.testpmd import POLLING_THREADS

NO_MAC = "00:00:00:00:00:00"


class Kind(StrEnum):
    """What a step does."""

    RUN = "run"
    START = "start"
    TELL = "tell"  # a line to a process
    WRITE = "write"
    STOP = "stop"


@dataclass(frozen=True)
class Step:
    """One thing that is done. `text` is a command line or a path, `content` what goes in: standard input or a file."""

    phase: str
    host: str
    namespace: str  # the network namespace in which a command runs; empty: the host's first
    kind: Kind
    text: str
    content: str = ""


@dataclass
class Recording:
    """The steps on all hosts, in their order. `phase` is that of the steps to come."""

    steps: list[Step] = field(default_factory=list)
    phase: str = ""
    _names: dict[str, str] = field(default_factory=dict)

    def write(
        self, host: str, namespace: str, kind: Kind, what: str | Sequence[str], content: str = "", remark: str = ""
    ) -> None:
        """A step: a command line in words, or else a path or a process. What was learnt replaces numbers and MACs."""
        text = what if isinstance(what, str) else shlex.join(map(self._readable, what)) + remark
        self.steps.append(Step(self.phase, host, namespace, kind, text, self._readable(content)))

    def learn(self, value: object, name: str) -> None:
        """A value that the kernel chose, and what it belongs to. A MAC keeps its first name, numbers come again."""
        if ":" not in str(value) or str(value) not in self._names:
            self._names[str(value)] = f"<{name}>"

    def _readable(self, text: str) -> str:
        for value, name in self._names.items():
            text = re.sub(rf"(?<![\w.:-]){re.escape(value)}(?![\w.:-])", name, text)
        return text


class RecordingHost:
    """A host of which everything that changes something is written down. What only asks is not."""

    def __init__(self, host: Host, recording: Recording) -> None:
        self._host, self._recording = host, recording
        self.name = host.name
        self._interfaces: dict[tuple[str, int], str] = {}  # by namespace and index

    def _with_target(self, namespace: str, command: Sequence[str]) -> Sequence[str]:
        """Where a BPF program is told to send frames, as the interface that it is."""
        if command[:4] != ("bpftool", "map", "update", "id"):
            return command
        index = int.from_bytes(bytes(map(int, command[-4:])), sys.byteorder)
        interface = self._interfaces.get((namespace, index), "an interface")
        return (*command[:4], "<map of that program>", *command[5:-4], f"<index of {interface}>")

    def ask(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        done = self._host.ask(*command, stdin=stdin, check=check, timeout=timeout)
        self._learn(*_named(command), done.stdout)
        return done

    def do(self, *command: str, stdin: str | None = None, check: bool = True, timeout: float = 30.0) -> Completed:
        namespace, inner = _named(command)
        self._recording.write(self.name, namespace, Kind.RUN, self._with_target(namespace, inner), stdin or "")
        done = self._host.do(*command, stdin=stdin, check=check, timeout=timeout)
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

    def get(self, path: str) -> bytes:
        content = self._host.get(path)
        if path.endswith("pid"):
            self._recording.learn(content.decode().strip(), f"number in {path}")
        return content


class _RecordingProcess:
    """A process of such a host."""

    def __init__(self, process: Process, recording: Recording, host: str, namespace: str, name: str) -> None:
        self._process, self._recording, self._where, self._name = process, recording, (host, namespace), name
        self._stopped = False
        self.pid = process.pid

    def send(self, line: str) -> None:
        self._recording.write(*self._where, Kind.TELL, self._name, line)
        self._process.send(line)

    def receive(self, timeout: float) -> str:
        line = self._process.receive(timeout)
        with suppress(ValueError, KeyError, TypeError):  # a TRex names its ports' MACs, and many lines are no JSON
            for number, port in enumerate(json.loads(line)["ready"]["ports"]):
                self._recording.learn(port["mac"], f"MAC of TRex port {number}")
        return line

    def alive(self) -> bool:
        return self._process.alive()

    def errors(self) -> str:
        return self._process.errors()

    def stop(self, timeout: float = 5.0) -> None:
        if not self._stopped:
            self._recording.write(*self._where, Kind.STOP, self._name)
        self._stopped = True
        self._process.stop(timeout)


def within(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """The network namespace or the pod in which a command is run, by its name, and the command itself."""
    namespace, words = "", tuple(command)
    for runtime in POD_RUNTIMES.values():
        if (inside := runtime.within(words)) is not None:
            namespace, words = inside[0], tuple(inside[1])
    while len(words) > 3 and words[0] == "nsenter" and words[1].startswith("--net=") and words[2] == "--":
        path = PurePosixPath(words[1].removeprefix("--net="))
        namespace, words = path.name if path.parent == PurePosixPath("/run/netns") else "", words[3:]
    return namespace, words


def _named(command: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """See `within`. The path of bpftool depends on the distribution, so that only its name is written down."""
    namespace, inner = within(command)
    if inner and PurePosixPath(inner[0]).name == "bpftool":
        inner = ("bpftool", *inner[1:])
    return namespace, inner


def program(command: Sequence[str]) -> str:
    """The name of the program that a command line starts, behind `env`, an interpreter and the like."""
    for word in command:
        name = PurePosixPath(word).name
        if name not in {"env", "stdbuf", "taskset", "setpriv", "--", "python3"} and not re.match(r"-|\w+=", word):
            return re.sub(r"^[0-9a-f]{16}-|\.py$", "", name)  # copies on other machines are named by their digest
    return command[0]


def _learnt(namespace: str, command: Sequence[str], answer: str) -> Iterator[tuple[object, str]]:
    """Values in an answer that the kernel or a plug-in chose, and what they belong to."""
    line = " ".join(command)
    with suppress(ValueError, KeyError, IndexError, TypeError):
        if line.startswith("ip -json") and re.search(r" (link|address) show( dev \S+)?$", line):
            for link in json.loads(answer):
                if link.get("address", NO_MAC) != NO_MAC:
                    yield link["address"], f"MAC of {link['ifname']}{_of(namespace)}"
        elif line.startswith("env CNI_COMMAND=ADD"):
            yield from _learnt_from_plugin(json.loads(answer), line)
        elif command[0] == "sh" and len(command) == 6 and command[5].startswith("/proc"):  # threads by their name
            # DPDK's name for them depends on its version.
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
