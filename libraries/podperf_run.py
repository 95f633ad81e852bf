"""The command `podperf run`: Robot Framework on podperf's suites, with podperf's defaults.

    python -I -m podperf_run SCRIPT INSTALL [arguments of `podperf run`]

SCRIPT is the script `podperf` as the user called it, INSTALL is `no` if it must not install packages. Robot Framework's
own parser reads the arguments, so that they mean what they mean to `robot`.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import robot
from robot.errors import DataError, Information
from robot.run import USAGE
from robot.utils import ArgumentParser

from ChosenNames import ChosenNames
from LastWords import LastWords
from podperf.errors import PodperfError
from podperf.nearness import proposed_paths
from podperf.ownership import Owner, is_open_to_others, ways_to
from podperf.topology import load_topology
from RemainingTests import RemainingTests
from ResultsFolder import ResultsFolder

ROOT = Path(__file__).parents[1]
RESULTS, SUITES, TOPOLOGIES = ROOT / "results", ROOT / "tests", ROOT / "topologies"
NOT_STARTED, INTERRUPTED = 252, 253  # Robot Framework's exit codes
RESUME = "    --resume results *    Leave out what these interrupted runs have measured."
CHOICES = ("include", "test", "task", "suite", "rerunfailed", "rerunfailedsuites")
FILES = ("outputdir", "output", "log", "report", "xunit")

_TOPOLOGY = re.compile(r"[^-].*\.ya?ml")


@dataclass(frozen=True)
class Command:
    """What a user asked for: `options` of Robot Framework by their long names, and podperf's own."""

    options: Mapping[str, Any]
    resume: tuple[str, ...] = ()
    topology: str | None = None
    suites: tuple[str, ...] = ()

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Command:
        """DataError when an option is wrong, Information when help or a version is wanted."""
        parser = ArgumentParser(f"{USAGE}\n{RESUME}\n", env_options="ROBOT_OPTIONS")
        topologies: list[str] = []
        others: list[str] = []
        for before, argument in zip(["", *arguments], arguments, strict=False):
            is_topology = _TOPOLOGY.fullmatch(argument) and not _wants_value(parser, before)
            (topologies if is_topology else others).append(argument)
        if len(topologies) > 1:
            raise DataError(f"a run has one topology, not {' and '.join(topologies)}")
        parsed, suites = parser.parse_args(others)
        options = {name: value for name, value in parsed.items() if value not in (None, [])}
        resume = tuple(options.pop("resume", ()))
        return cls(options, resume, topologies[0] if topologies else None, tuple(suites))

    def missing(self) -> list[str]:
        """A sentence for each path that does not exist."""
        sentences = []
        if self.topology and not Path(self.topology).is_file():
            known = [_as_typed(each) for each in TOPOLOGIES.glob("*.yaml")]
            sentences.append(f"there is no topology {self.topology}{proposed_paths(self.topology, known)}")
        sentences += [_no_suite(suite) for suite in self.suites if not Path(suite).exists()]
        without = [results for results in self.resume if not any((Path(results) / "records").glob("*"))]
        wanted = "--resume wants the results folder of an interrupted run"
        return [*sentences, *(f"{wanted}; {results} has no records" for results in without)]

    def for_robot(self, now: datetime) -> dict[str, Any]:
        """The options of the run: podperf's defaults where the user chose nothing."""
        given = self.options
        options: dict[str, Any] = {"console": "quiet", **given}
        if given.get("dryrun") and not any(name in given for name in FILES):
            options |= {"output": "NONE", "log": "NONE", "report": "NONE"}
        else:
            options = {"xunit": "xunit.xml", **options}
        options.setdefault("outputdir", str(RESULTS / f"{now:%Y-%m-%dT%H-%M-%S}.{now.microsecond // 1000:03}"))
        options["pythonpath"] = [str(ROOT / "libraries"), str(ROOT / "resources"), *given.get("pythonpath", ())]
        options["variable"] = [f"TOPOLOGY:{TOPOLOGIES / 'local.yaml'}", *given.get("variable", ())]
        if self.topology:
            options["variable"].append(f"TOPOLOGY:{Path(self.topology).absolute()}")
        if not any(name in given for name in CHOICES):
            options["include"] = ["quick"]
        if self.suites and self._are_parts:
            options["parseinclude"] = [*given.get("parseinclude", ()), *self.suites]
        return options

    @property
    def sources(self) -> tuple[str, ...]:
        """The suites for Robot Framework. Those of podperf are run as parts of the whole, which opens the testbed."""
        return self.suites if self.suites and not self._are_parts else (str(SUITES),)

    @property
    def _are_parts(self) -> bool:
        return all(SUITES.resolve() in Path(suite).resolve().parents for suite in self.suites)

    def resumed(self, script: Sequence[str], results: Path) -> str:
        """The command line that measures what this command, interrupted, has not. It has results of its own."""
        words = [*(["sudo"] if "SUDO_UID" in os.environ else []), *script, "run"]
        for each in (*self.resume, _as_typed(results)):
            words += ["--resume", each]
        for name, value in self.options.items():
            if isinstance(value, bool):
                words.append(f"--{name}" if value else f"--no{name}")
            elif name != "outputdir":
                for each in value if isinstance(value, list) else [value]:
                    words += [f"--{name}", each]
        return shlex.join([*words, *([self.topology] if self.topology else []), *self.suites])


def _wants_value(parser: Any, argument: str) -> bool:
    """Whether this is an option whose value is the next argument."""
    if not argument.startswith("-") or "=" in argument:
        return False
    try:
        parser.parse_args([argument])
    except DataError as error:
        return "requires argument" in str(error)
    except Information:
        pass
    return False


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code, which is Robot Framework's, and 253 whenever a signal ended the run."""
    script, install, *given = arguments
    try:
        command = Command.parse(given)
    except Information as wanted:
        print(wanted)
        return 0
    except DataError as error:
        say(f"podperf: {error}; try: {script} run --help")
        return NOT_STARTED
    if missing := command.missing():
        for sentence in missing:
            say(f"podperf: {sentence}")
        return NOT_STARTED
    options = command.for_robot(datetime.now())
    if install != "no" and uses_virtual_worker(options["variable"]):
        done = subprocess.run([ROOT / "podperf", "virtual-worker"], check=False)
        if done.returncode:
            return done.returncode
    return run(command, options, [script, "--no-install"] if install == "no" else [script])


def run(command: Command, options: dict[str, Any], script: Sequence[str]) -> int:
    """Robot Framework in this process, so that signals reach it. `script` is how the user called podperf."""
    results = Path(options["outputdir"]).absolute()
    dry_run = bool(options.get("dryrun"))
    words = LastWords(say, results, command.resumed(script, results), dry_run=dry_run)
    names = ChosenNames(
        lambda sentence: say(f"podperf: {sentence}"),
        name=options.get("name", ""),
        tags=[*options.get("include", ()), *options.get("exclude", ())],
        tests=[*options.get("test", ()), *options.get("task", ())],
        suites=options.get("suite", ()),
    )
    try:
        remaining = [RemainingTests(*command.resume)] if command.resume else []
    except PodperfError as error:
        say(f"podperf: {error}")
        return NOT_STARTED
    if not dry_run and (sentence := _unsafe(options)):
        say(f"podperf: {sentence}")
        return NOT_STARTED
    options["prerunmodifier"] = [names, *remaining, *options.get("prerunmodifier", ())]
    options["listener"] = [ResultsFolder(str(RESULTS)), words, *options.get("listener", ())]
    code: int = robot.run(*command.sources, **options)
    with suppress(OSError):  # it is not empty, as a run has results
        results.rmdir()
        RESULTS.rmdir()
    if code == NOT_STARTED and command.resume and not names.unknown:
        say(f"podperf: nothing is left to measure of these tests: {' and '.join(command.resume)} tells how they ended")
    if words.interrupted and options.get("statusrc", True):
        return INTERRUPTED
    return code


def _unsafe(options: Mapping[str, Any]) -> str | None:
    """Why root must not write where these options say. The folder of the results is made first: then it is root's."""
    results = Path(options["outputdir"]).absolute()
    checkout = (ROOT, *ROOT.parents)  # who can change these has root do what he likes, whatever is written where
    trusted = {caller.user for caller in [Owner.caller(os.environ)] if caller} | {
        Owner.of(each).user for each in checkout
    }
    with suppress(OSError):  # Robot Framework says so
        results.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        for path in ways_to(results / str(options.get(name, ""))):
            if path not in checkout and is_open_to_others(path, trusted):
                return (
                    f"another user owns {path}, or can write there, and could have root overwrite any file: "
                    f"choose another --{name}"
                )
    return None


def _no_suite(path: str) -> str:
    if path.startswith("-"):
        return f"{path} stands behind a suite: options come first"
    near = proposed_paths(path, [_as_typed(each) for each in SUITES.rglob("[!_]*")])
    tag = "" if set("./") & set(path) else f"; tests with a tag of this name: --include {path}"
    return f"there is no suite {path}{f'{near}{tag}' or f'; the suites are in {_as_typed(SUITES)}'}"


def uses_virtual_worker(variables: Sequence[str]) -> bool:
    """Whether the topology of the run boots one. A wrong topology file does not: the run says what is wrong."""
    named = [value for name, _, value in (each.partition(":") for each in variables) if name.upper() == "TOPOLOGY"]
    try:
        return load_topology(named[-1]).worker.connection == "virtual"
    except PodperfError:
        return False


def say(text: str) -> None:
    """To whoever looks: the table and the progress of a run go to the same stream."""
    print(text, file=sys.stderr, flush=True)


def _as_typed(path: Path) -> str:
    """Relative to the current folder where the path lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
