"""The command `podperf run`: Robot Framework on podperf's suites, with podperf's defaults.

Robot Framework's own parser reads the arguments, so that they have the same meaning as for `robot`.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from robot.errors import DataError, Information
from robot.run import RobotFramework

from podperf.environment import secrets_put_back
from podperf.errors import BadArguments, ExitCode
from podperf.terminal import say
from run_command.arguments import RESULTS, Command
from run_command.chosen_names import ChosenNames, RemainingTests
from run_command.listeners import LastWords, ResultsFolder, XunitProperties
from run_command.preparation import make_results_folder, set_up_machines

_TEXT = """Measures on the testbed of a topology file, by default topologies/local.yaml: this machine. Results and
reports are in results/<start time> then, and results/latest points there.

  sudo ./podperf run                               the quick tests
  sudo ./podperf run my-lab.yaml                   on another testbed (what can be measured there: podperf check)
  sudo ./podperf run --include linux-bridge        tests with a tag: quick, full, sec-4.1.1, ovs-dpdk, 64B, ...
  sudo ./podperf run --test "Linux bridge, 64 B"   tests of a name, in which * and ? are wildcards
  sudo ./podperf run tests/4.1_networking_models   suites
  sudo ./podperf run --include full --dryrun       only say which tests these would be
  sudo ./podperf run --resume results/latest       what that interrupted run, with the same options, has not measured
  sudo ./podperf run --version-under-test "OVS 3.6, patch 2"   write into each record what is under test

All options of Robot Framework work, before the suites: .venv/bin/robot --help shows them.
Defaults are in docs/installation.md, exit codes in docs/ci.md."""


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the arguments, which Robot Framework's parser reads."""
    parser.usage, parser.description = "sudo ./podperf run [TOPOLOGY] [options] [suites]", _TEXT
    parser.set_defaults(passed_on=[])


def main(options: Namespace, *, only_user: bool = False) -> int:
    """Run, and return Robot Framework's exit code. It is 253 after a signal, and 254 if no test could be measured.

    With `only_user`, the results may be in any folder, because this machine (a container) has no other user.
    """
    try:
        command = Command.parse(options.passed_on)
    except Information as wanted:
        print(wanted)
        return ExitCode.FINE
    except DataError as error:
        raise BadArguments(f"{error}; try: {options.script} run --help") from error
    if missing := command.missing():
        raise BadArguments("\n".join(missing))
    for_robot = command.for_robot(datetime.now())
    if not options.no_install:
        variables = (each.partition(":") for each in for_robot["variable"])
        *_, topology = (value for name, _, value in variables if name.upper() == "TOPOLOGY")
        set_up_machines([topology])
    called = [options.script, *(["--no-install"] if options.no_install else [])]
    return _run(command, for_robot, called, only_user=only_user)


def _run(command: Command, options: dict[str, Any], script: Sequence[str], *, only_user: bool) -> int:
    """Run Robot Framework. `script` is how the user called podperf. `only_user`: see `main`."""
    results = Path(options["outputdir"]).absolute()
    dry_run = bool(options.get("dryrun"))
    words = LastWords(results, command.resumed(script, results), dry_run=dry_run)
    names = ChosenNames(
        name=options.get("name", ""),
        tags=[*options.get("include", ()), *options.get("exclude", ())],
        tests=[*options.get("test", ()), *options.get("task", ())],
        suites=options.get("suite", ()),
    )
    remaining = [RemainingTests(*command.resume)] if command.resume else []
    writes = not dry_run or "xunit" in options or "debugfile" in options
    if writes and not only_user:
        make_results_folder(results, options)
    options["prerunmodifier"] = [names, *remaining, *options.get("prerunmodifier", ())]
    # Robot Framework calls listeners in this order: the results are given to their owner when all are written.
    listeners = [XunitProperties(results), ResultsFolder(str(RESULTS)), words]
    options["listener"] = [*listeners, *options.get("listener", ())]
    with secrets_put_back():
        code = run_robot(command.sources, options)
    with suppress(OSError):  # after a run with results, the folder is not empty
        results.rmdir()
        RESULTS.rmdir()
    if code == ExitCode.REFUSED and command.resume and not names.unknown:
        say(f"nothing is left to measure of these tests: {' and '.join(command.resume)} tells how they ended")
    if not options.get("statusrc", True):
        return code
    if words.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.NOT_DONE if words.nothing_measured and not dry_run and code < ExitCode.REFUSED else code


class _Run(RobotFramework):  # type: ignore[misc]  # robot has no types
    """Robot Framework, but without a traceback if the output does not fit on the disk. `error` then has the cause."""

    error: OSError | None = None

    def main(self, datasources: Sequence[str], **options: Any) -> Any:
        try:
            return super().main(datasources, **options)
        except OSError as error:
            self.error = error
            return ExitCode.NOT_WRITTEN


def run_robot(sources: Sequence[str], options: dict[str, Any]) -> int:
    """Run these suites, and return the exit code. If the output cannot be written, a line says why."""
    run = _Run()
    try:
        code: int = run.execute(*sources, **options)
    except (OSError, ValueError):  # Robot Framework closes the failed file a second time
        if run.error is None:
            raise
        code = ExitCode.NOT_WRITTEN
    if run.error is not None:
        say(
            f"Robot Framework could not write its output to {options['outputdir']} ({run.error.strerror}): "
            "there is no log and no xunit.xml; free some space and run again"
        )
    return code
