"""A host for unit tests. It has some files, answers some commands, and remembers all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from podperf.errors import PodperfError
from podperf.hosts.base import CommandFailed, Commands, Completed, Process


class ScriptedHost(Commands):
    """A host with these files and these answers, by the beginning of the command.

    Commands of `refused` fail with these words, also by the beginning of the command. Other commands are not installed,
    or have an empty answer if `patient`. A patient host can list and remove its files. Commands that contain `refuse`
    fail there.
    """

    name = "scripted host"

    def __init__(
        self,
        files: Mapping[str, str] | None = None,
        answers: Mapping[str, str] | None = None,
        *,
        refused: Mapping[str, str] | None = None,
        patient: bool = False,
    ) -> None:
        self.files, self._answers, self._refused, self._patient = (
            dict(files or {}),
            answers or {},
            refused or {},
            patient,
        )
        self.commands: list[str] = []

    def _run(self, *command: str, stdin: str | None, check: bool, timeout: float) -> Completed:
        said = " ".join(command)
        self.commands.append(said)
        for start, answer in self._answers.items():
            if said.startswith(start):
                return Completed(command, 0, answer, "")
        for start, why in self._refused.items():
            if said.startswith(start):
                if check:
                    raise CommandFailed(self.name, command, 1, why)
                return Completed(command, 1, "", why)
        if not self._patient:
            raise PodperfError(f"on {self.name}, `{command[0]}` is not installed")
        if "refuse" in command:
            return Completed(command, 1, "", "no\n")
        if command[0] == "rm":
            self.files = {path: text for path, text in self.files.items() if not _at_or_below(path, command[2:])}
        if command[0] == "ls":
            names = [PurePosixPath(path).name for path in self.files if _at_or_below(path, command[1:])]
            return Completed(command, 0, "\n".join(names), "")
        return Completed(command, 0, "", "")

    def spawn(self, *command: str, cpus: Sequence[int] = ()) -> Process:
        raise NotImplementedError

    def put(self, content: bytes, path: str) -> None:
        self.files[path] = content.decode()

    def get(self, path: str, assumed: bytes | None = None) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path].encode()


def _at_or_below(path: str, folders: Sequence[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)
