"""All commands: `python -m podperf [--no-install] COMMAND …`. The script `podperf` calls it after the set-up."""

from __future__ import annotations

import sys
from argparse import REMAINDER, SUPPRESS, ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from podperf.environment import take_password
from podperf.errors import BadArguments, ExitCode, PodperfError
from podperf.terminal import say, with_output

# Each module has `add_arguments(parser)`, and `main(options)`, which returns the exit code or raises PodperfError.
# Unknown arguments are an error, unless the parser has a default for `passed_on`, which gets them.
# A module is imported when its command is called: `clean` must work where `report` cannot.
COMMANDS = {
    "run": "run_command.run",
    "job": "run_command.job",
    "compare": "run_command.compare",
    "test": "run_command.own_tests",
    "check": "podperf.preflight.command",
    "report": "podperf.report.command",
    "thresholds": "podperf.report.thresholds_command",
    "clean": "podperf.cleanup",
    "cluster": "podperf.cluster.command",
    "cni-table": "run_command.cni_table",
    "image": "podperf.cluster.pod_image",
}


class _Parser(ArgumentParser):
    def __init__(self, program: str) -> None:
        super().__init__(program, add_help=False, formatter_class=RawDescriptionHelpFormatter)
        self.add_argument("-h", "-?", "--help", action="help", help=SUPPRESS)

    def error(self, message: str) -> NoReturn:
        raise BadArguments(f"{message}; try: {self.prog} --help")


def call(arguments: Sequence[str]) -> int:
    """Run one command, and return its exit code. Raises PodperfError with another one."""
    whole = _Parser("podperf")
    whole.add_argument("--script", default="podperf", help=SUPPRESS)  # as the user has called it
    whole.add_argument("--no-install", action="store_true", help="leave the packages of this machine alone")
    whole.add_argument("command", choices=COMMANDS, metavar="COMMAND", help=f"one of {', '.join(COMMANDS)}")
    whole.add_argument("rest", nargs=REMAINDER, help=SUPPRESS)
    options = whole.parse_args(arguments)
    command = import_module(COMMANDS[options.command])
    parser = _Parser(f"{options.script} {options.command}")
    command.add_arguments(parser)
    options, others = parser.parse_known_intermixed_args(options.rest, options)
    if others and "passed_on" not in options:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    options.passed_on = others
    return int(command.main(options))


def main(arguments: Sequence[str]) -> int:
    """Run one command, tell its error if there is one, and return the exit code."""
    take_password()

    def ended() -> int:
        try:
            return call(arguments)
        except PodperfError as error:
            for line in str(error).splitlines():
                say(line)
            return error.ends_with
        except KeyboardInterrupt:
            return ExitCode.INTERRUPTED

    return with_output(ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
