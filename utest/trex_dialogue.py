"""A dialogue between podperf and a TRex. It is recorded with a real server, and played again without one.

A dialogue is a JSON file. It has the server's answers to the questions for its version, each line between podperf and
TRex's client, and the frames that the system under test saw. The replay is strict: if podperf asks another question
than in the recording, the dialogue must be recorded again (see atest/test_tester_contract.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podperf.errors import PodperfError
from podperf.hosts.base import Commands, Completed, Host, Process
from podperf.testers.trex import TrexTester
from podperf.testers.trex_rpc import Endpoint
from podperf.topology import TrexSettings

FOLDER = Path(__file__).with_name("trex_dialogues")
ENDPOINT = Endpoint("127.0.0.1", 4501)


class Dialogue:
    """One dialogue, in a recording or a replay. `seen` has the observations of the system under test, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.version: dict[str, Any] = {}
        self.lines: list[tuple[str, Any]] = []
        self.seen: list[int] = []

    @staticmethod
    def load(path: Path) -> Dialogue:
        dialogue, content = Dialogue(path), json.loads(path.read_text())
        dialogue.version, dialogue.seen = content["version"], content["seen"]
        dialogue.lines = [next(iter(line.items())) for line in content["lines"]]
        return dialogue

    def save(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        lines = ",\n".join(f"    {json.dumps({speaker: said})}" for speaker, said in self.lines)
        head = f'{{\n  "version": {json.dumps(self.version)},\n  "seen": {json.dumps(self.seen)},'
        self.path.write_text(f'{head}\n  "lines": [\n{lines}\n  ]\n}}\n')


class RecordingProcess:
    """A process whose lines go into a dialogue."""

    def __init__(self, process: Process, dialogue: Dialogue) -> None:
        self._process, self._dialogue = process, dialogue
        self.pid = process.pid

    def send(self, line: str) -> None:
        self._dialogue.lines.append(("podperf", json.loads(line)))
        self._process.send(line)

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        line = self._process.receive(timeout)
        self._dialogue.lines.append(("trex", json.loads(line)))
        return line

    def alive(self, assumed: bool = True) -> bool:
        return self._process.alive()

    def errors(self, assumed: str = "") -> str:
        return self._process.errors()

    def stop(self, timeout: float = 5.0) -> None:
        self._process.stop(timeout)


class RecordingHost(Commands):
    """A host that records the answers of its commands and the output of its processes."""

    def __init__(self, host: Host, dialogue: Dialogue) -> None:
        self._host, self._dialogue = host, dialogue
        self.name = host.name

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        done = self._host.ask(*command, stdin=stdin, check=check, timeout=timeout)
        self._dialogue.version = json.loads(done.stdout)
        return done

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        return RecordingProcess(self._host.spawn(*command, cpus=cpus), self._dialogue)

    def put(self, content: bytes, path: str) -> None:
        self._host.put(content, path)

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        return self._host.get(path)


class PlayedProcess:
    """TRex's client in a replay. It gives the recorded answers to the recorded questions."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue, self._left = dialogue, list(dialogue.lines)
        self.pid = 0
        self.stopped = False

    def send(self, line: str) -> None:
        speaker, said = self._left.pop(0) if self._left else ("nobody", None)
        assert (speaker, said) == ("podperf", json.loads(line)), f"{self._dialogue.path.name} has to be recorded anew"

    def receive(self, timeout: float, assumed: str | None = None) -> str:
        speaker, said = self._left.pop(0) if self._left else ("nobody", None)
        if speaker != "trex":
            raise PodperfError(f"nothing more was recorded in {self._dialogue.path.name}")
        return json.dumps(said)

    def alive(self, assumed: bool = True) -> bool:
        return not self.stopped

    def errors(self, assumed: str = "") -> str:
        return ""

    def stop(self, timeout: float = 5.0) -> None:
        self.stopped = True


class PlayedHost(Commands):
    """A host that replays a dialogue."""

    name = "recording"

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self.processes: list[PlayedProcess] = []

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        return Completed(command, 0, json.dumps(self._dialogue.version), "")

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        self.processes.append(PlayedProcess(self._dialogue))
        return self.processes[-1]

    def put(self, content: bytes, path: str) -> None:
        raise NotImplementedError

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        raise NotImplementedError


def played(dialogue: Dialogue) -> TrexTester:
    """A TRex tester with a replayed dialogue."""
    return TrexTester(PlayedHost(dialogue), TrexSettings(), ENDPOINT, 4500, "/opt/trex/client")
