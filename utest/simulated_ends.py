"""Two ends of a chain where iperf3 and netperf give recorded answers (application_recordings/).

The answers are of iperf3 3.12 and netperf 2.7.0 of Debian 12, on a loopback interface.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podperf.hosts.base import Commands, Completed, Process
from podperf.model import CpuTime
from podperf.testers.ends import ChainEnd

RECORDINGS = Path(__file__).with_name("application_recordings")


def recorded(name: str) -> str:
    return (RECORDINGS / name).read_text(encoding="utf-8")


class RecordedTools(Commands):
    """A host that answers as iperf3 and netperf did. `absent` are not installed there."""

    name = "recorded host"

    def __init__(self, absent: Collection[str] = ()) -> None:
        self.absent, self.commands, self.servers = absent, list[str](), 0

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        said = " ".join(command)
        self.commands.append(said)
        if command[:2] == ("sh", "-c"):  # is it installed?
            return Completed(command, int(command[-1].split()[-1] in self.absent), "", "")
        return Completed(command, 0, _answer(said), "")

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        self.commands.append(" ".join(command))
        self.servers += 1
        return _Server(self)

    def put(self, content: bytes, path: str) -> None:
        raise NotImplementedError

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        raise NotImplementedError


def _answer(said: str) -> str:
    if "iperf3" in said:
        return recorded("iperf3.json" if "--parallel 1" in said else "iperf3_8_streams.json")
    kind = re.search(r"-t (\w+)", said)
    return recorded(f"netperf_{kind[1]}.txt") if kind else ""


@dataclass
class _Server:
    """A server that listens at once."""

    host: RecordedTools
    pid: int = 7

    def send(self, line: str) -> None:
        raise NotImplementedError

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        raise NotImplementedError

    def alive(self, assumed: bool = True) -> bool:
        return True

    def errors(self, assumed: str = "") -> str:
        return ""

    def stop(self, timeout: float = 5.0) -> None:
        self.host.servers -= 1


@dataclass
class OneSecond:
    """A clock of the system under test: each run takes a second of its only thread."""

    time: CpuTime = field(default_factory=lambda: CpuTime({"receive thread of w-left": 1e9}))

    def start(self) -> None:
        pass

    def stop(self) -> CpuTime:
        return self.time


@contextmanager
def ends(host: Any = None) -> Iterator[tuple[ChainEnd, ChainEnd]]:
    """Both ends on one such host."""
    there = host or RecordedTools()
    yield ChainEnd(there, "198.18.0.1", (0,)), ChainEnd(there, "198.19.0.1", (0,))
