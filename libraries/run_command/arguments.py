"""The arguments of `podperf run`, and the options that Robot Framework gets for them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from robot.errors import DataError, Information
from robot.run import USAGE
from robot.utils import ArgumentParser

from podperf.errors import PodperfError
from podperf.kubernetes.settings import pods_of_tester
from podperf.nearness import proposed_paths
from podperf.records import record_files
from podperf.testers import TESTERS
from podperf.topology import load_topology

ROOT = Path(__file__).parents[2]
RESULTS, SUITES, TOPOLOGIES = ROOT / "results", ROOT / "tests", ROOT / "topologies"
OWN_OPTIONS = """
    --resume results *    Leave out the tests that these interrupted runs have measured.
    --versionundertest text    The version under test, in your words. Each record has it.
"""
CHOICES = ("include", "test", "task", "suite", "rerunfailed", "rerunfailedsuites")
FILES = ("outputdir", "output", "log", "report", "xunit")

_TOPOLOGY = re.compile(r"[^-].*\.ya?ml")
_NO_TOPOLOGY = re.compile(r"TOPOLOGY:\s*", re.IGNORECASE)


def new_folder(now: datetime) -> Path:
    """The folder for the results of a command that starts now."""
    return RESULTS / f"{now:%Y-%m-%dT%H-%M-%S}.{now.microsecond // 1000:03}"


@dataclass(frozen=True)
class Command:
    """The parsed command line: `options` are Robot Framework's by their long names, the other fields podperf's own."""

    options: Mapping[str, Any]
    resume: tuple[str, ...] = ()
    version: str | None = None  # under test
    topology: str | None = None
    suites: tuple[str, ...] = ()

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> Command:
        """Raises DataError if an option is wrong, and Information if the user asks for help or the version.

        An empty argument or value is as if it was not given: CI servers pass on parameters that nobody filled in.
        """
        parser = ArgumentParser(f"{USAGE}\n{OWN_OPTIONS}", env_options="ROBOT_OPTIONS")
        topologies: list[str] = []
        others: list[str] = []
        for before, argument in zip(["", *arguments], arguments, strict=False):
            if _wants_value(parser, before):
                others.append(argument)
            elif argument.strip():
                (topologies if _TOPOLOGY.fullmatch(argument) else others).append(argument)
        if {("-A", ""), ("--argumentfile", "")} & set(pairwise(others)) or "--argumentfile=" in others:
            raise DataError("--argumentfile has no value; name a file, or leave this option out")
        if len(topologies) > 1:
            raise DataError(f"a run has one topology, not {' and '.join(topologies)}")
        parsed, suites = parser.parse_args(others)
        parsed["variable"] = [each for each in parsed["variable"] if not _NO_TOPOLOGY.fullmatch(each)]
        given = {name: _without_empty(value) for name, value in parsed.items()}
        options = {name: value for name, value in given.items() if value not in (None, [])}
        resume = tuple(options.pop("resume", ()))
        version = options.pop("versionundertest", None)
        return cls(options, resume, version, topologies[0] if topologies else None, tuple(suites))

    def missing(self) -> list[str]:
        """A sentence for each path that does not exist."""
        sentences = []
        if self.topology and not Path(self.topology).is_file():
            known = [_as_typed(each) for each in TOPOLOGIES.glob("*.yaml")]
            sentences.append(f"there is no topology {self.topology}{proposed_paths(self.topology, known)}")
        sentences += [_no_suite(suite) for suite in self.suites if not Path(suite).exists()]
        if not sentences and len({_is_own(suite) for suite in self.suites}) > 1:
            mine = next(suite for suite in self.suites if not _is_own(suite))
            sentences.append(f"{mine} is not one of podperf's suites, and others of this run are; run it alone")
        without = [results for results in self.resume if not record_files(Path(results) / "records")]
        wanted = "--resume wants the results folder of an interrupted run"
        return [*sentences, *(f"{wanted}; {results} has no records" for results in without)]

    def for_robot(self, now: datetime) -> dict[str, Any]:
        """The options of the run. podperf's defaults stand for options that the user does not set."""
        given = self.options
        options: dict[str, Any] = {"console": "quiet", **given}
        if given.get("dryrun") and not any(name in given for name in FILES):
            options |= {"output": "NONE", "log": "NONE", "report": "NONE"}
        else:
            options = {"xunit": "xunit.xml", **options}
        options.setdefault("outputdir", str(new_folder(now)))
        options["pythonpath"] = [str(ROOT / "libraries"), str(ROOT / "resources"), *given.get("pythonpath", ())]
        options["variable"] = [f"TOPOLOGY:{TOPOLOGIES / 'local.yaml'}", *given.get("variable", ())]
        if self.version:
            options["variable"].append(f"VERSION_UNDER_TEST:{self.version}")
        if self.topology:
            options["variable"].append(f"TOPOLOGY:{Path(self.topology).absolute()}")
        if not any(name in given for name in CHOICES) and all(map(_is_own, self.suites)):
            options["include"] = [_usual_tag(self.topology)]
        if self.suites and self._are_parts:
            options["parseinclude"] = [*given.get("parseinclude", ()), *self.suites]
        return options

    @property
    def sources(self) -> tuple[str, ...]:
        """The suites for Robot Framework. podperf's own run as parts of the whole; the whole opens the testbed."""
        return self.suites if self.suites and not self._are_parts else (str(SUITES),)

    @property
    def _are_parts(self) -> bool:
        return all(SUITES.resolve() in Path(suite).resolve().parents for suite in self.suites)

    def resumed(self, script: Sequence[str], results: Path) -> str:
        """The command line that measures the remaining tests after an interruption, into a new results folder."""
        words = [*(["sudo"] if "SUDO_UID" in os.environ else []), *script, "run"]
        for each in (*self.resume, _as_typed(results)):
            words += ["--resume", each]
        words += ["--version-under-test", self.version] if self.version else []
        for name, value in self.options.items():
            if isinstance(value, bool):
                words.append(f"--{name}" if value else f"--no{name}")
            elif name != "outputdir":
                for each in value if isinstance(value, list) else [value]:
                    words += [f"--{name}", each]
        return shlex.join([*words, *([self.topology] if self.topology else []), *self.suites])


def _usual_tag(topology: str | None) -> str:
    """The tags of the tests for who chooses none: the rows of a cluster's network, if the tester is in pods of one. But
    a small cluster has no room for the rows with up to 150 pods, and shares of loss-free rates take a minute each."""
    with suppress(PodperfError):  # the run tells the mistakes of the file
        if topology and pods_of_tester(load_topology(topology, testers=TESTERS)) is not None:
            return "kubernetes NOT many-pods NOT loss-free-share"
    return "quick"


def _is_own(suite: str) -> bool:
    """Whether this suite is podperf's: another one of the user's has its own tags."""
    path = Path(suite).resolve()
    return SUITES.resolve() in (path, *path.parents)


def _without_empty(value: Any) -> Any:
    """The value of an option. None stands for an empty one, and empty items of a list are left out."""
    if isinstance(value, list):
        return [each for each in value if each.strip()]
    return None if isinstance(value, str) and not value.strip() else value


def _wants_value(parser: Any, argument: str) -> bool:
    """Whether this is an option whose value is the next argument."""
    if argument == "-A" or argument.lower() == "--argumentfile":
        return True
    if not argument.startswith("-") or "=" in argument:
        return False
    try:
        parser.parse_args([argument])
    except DataError as error:
        return "requires argument" in str(error)
    except Information:
        pass
    return False


def _no_suite(path: str) -> str:
    if path.startswith("-"):
        return f"{path} stands behind a suite: options come first"
    near = proposed_paths(path, [_as_typed(each) for each in SUITES.rglob("[!_]*")])
    tag = "" if set("./") & set(path) else f"; tests with a tag of this name: --include {path}"
    return f"there is no suite {path}{f'{near}{tag}' or f'; the suites are in {_as_typed(SUITES)}'}"


def _as_typed(path: Path) -> str:
    """The path; relative to the current folder if it lies below this folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)
