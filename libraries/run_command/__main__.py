"""The command `podperf run`: Robot Framework on podperf's suites, with podperf's defaults.

    python -I -m run_command SCRIPT INSTALL [arguments of `podperf run`]

SCRIPT is the script `podperf` as the user called it. INSTALL is `no` if the script must not install packages. Robot
Framework's own parser reads the arguments, so that they have the same meaning as for `robot`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from robot.errors import DataError, Information

from podperf.errors import PodperfError
from podperf.printable import printable
from podperf.terminal import to_nobody
from run_command.arguments import FILES, RESULTS, ROOT, Command
from run_command.chosen_names import ChosenNames
from run_command.last_words import LastWords
from run_command.remaining_tests import RemainingTests
from run_command.results_folder import ResultsFolder
from run_command.robot_framework import run_robot
from run_command.safe_results import unsafe_results
from run_command.topologies import boots_a_machine
from run_command.xunit_properties import XunitProperties

NOT_STARTED, INTERRUPTED = 252, 253  # Robot Framework's exit codes
NOT_MEASURED = 254  # which Robot Framework does not use


def main(arguments: Sequence[str], *, only_user: bool = False) -> int:
    """Run, and return Robot Framework's exit code. It is 253 after a signal, and 254 if no test could be measured.

    With `only_user`, the results may be in any folder, because this machine (a container) has no other user.
    """
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
    called = [script, "--no-install"] if install == "no" else [script]
    return run(command, options, called, only_user=only_user)


def run(command: Command, options: dict[str, Any], script: Sequence[str], *, only_user: bool = False) -> int:
    """Run Robot Framework. `script` is how the user called podperf. `only_user`: see `main`."""
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
    if not dry_run and not only_user and (sentence := unsafe_results(options, FILES)):
        say(f"podperf: {sentence}")
        return NOT_STARTED
    options["prerunmodifier"] = [names, *remaining, *options.get("prerunmodifier", ())]
    # Robot Framework calls listeners in this order: the results are given to their owner when all are written.
    listeners = [XunitProperties(results), ResultsFolder(str(RESULTS)), words]
    options["listener"] = [*listeners, *options.get("listener", ())]
    code = run_robot(command.sources, options, say)
    with suppress(OSError):  # after a run with results, the folder is not empty
        results.rmdir()
        RESULTS.rmdir()
    if code == NOT_STARTED and command.resume and not names.unknown:
        say(f"podperf: nothing is left to measure of these tests: {' and '.join(command.resume)} tells how they ended")
    if not options.get("statusrc", True):
        return code
    if words.interrupted:
        return INTERRUPTED
    return NOT_MEASURED if words.nothing_measured and not dry_run and code < NOT_STARTED else code


def uses_virtual_worker(variables: Sequence[str]) -> bool:
    """Whether the topology of the run boots a machine in QEMU."""
    named = [value for name, _, value in (each.partition(":") for each in variables) if name.upper() == "TOPOLOGY"]
    return boots_a_machine(named[-1])


def say(text: str) -> None:
    """Print to standard error, where the table and the progress of a run go, too."""
    try:
        print(printable(text), file=sys.stderr, flush=True)
    except BrokenPipeError:
        to_nobody(sys.stderr)


def end(code: int) -> NoReturn:
    """Exit with this code, also where nobody reads the output any more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            to_nobody(stream)
    sys.exit(code)


if __name__ == "__main__":
    end(main(sys.argv[1:]))
