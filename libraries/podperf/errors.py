"""The errors that podperf raises on purpose. Their texts are for the person who runs the suite."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from ssl import SSLError

from podperf.printable import printable

_MOST_QUOTED = 200  # characters of what is wrong in an answer
_MARKUP = "*HTML*"  # Robot Framework shows a message with this beginning as HTML


class ExitCode(IntEnum):
    """The exit codes of all commands (docs/ci.md). Beside them, 1 to 250 is the number of failed tests of a run."""

    FINE = 0
    WORSE = 3  # judged: a variant is slower, a figure has regressed
    FAILED = 4  # judged: the newest run has a failed test
    UNDECIDED = 5  # measure again
    BLIND = 6  # judged: the newest run lacks a test, or nothing in it could be judged
    REFUSED = 252  # a wrong argument, as with Robot Framework; or no root, or no set-up
    INTERRUPTED = 253
    NOT_DONE = 254  # could not measure, read or put back
    NOT_WRITTEN = 255  # the output


class PodperfError(Exception):
    """An error whose text says what is wrong, where, and what to do. It is shown without a traceback.

    The text often quotes a program or a machine. So this class makes control characters and HTML in it harmless, which
    could steer a terminal or Robot Framework's log.
    """

    ROBOT_SUPPRESS_NAME = True  # Robot Framework shows the text alone
    ends_with = ExitCode.NOT_DONE  # the exit code of a command that ends with this error

    def __str__(self) -> str:
        """The text, with harmless codes for control characters and HTML from another machine or a file."""
        text = printable(super().__str__())
        return f"\\{text}" if text.startswith(_MARKUP) else text


class BadArguments(PodperfError):
    """The arguments of a command are wrong."""

    ends_with = ExitCode.REFUSED


class Unavailable(PodperfError):
    """The testbed lacks something that a test needs. The test is skipped, and the text is the reason."""

    ROBOT_SKIP_EXECUTION = True  # Robot Framework skips the test


class TrialNotDelivered(PodperfError):
    """The tester could not deliver a trial, also after repeats. The system under test is not the cause.

    `delivered` is the highest load (frames/s per direction) that the tester sent instead.
    """

    def __init__(self, text: str, delivered: float = 0.0) -> None:
        super().__init__(text)
        self.delivered = delivered


def cause(error: BaseException) -> str:
    """The innermost reason of a connection that failed.

    A ValueError is told without its text, which quotes the refused value: a header or a proxy, for example, with its
    login.
    """
    inner = [getattr(error, "reason", None), *error.args]
    found = next((each for each in inner if isinstance(each, BaseException)), None)
    if found is None and isinstance(error, ValueError) and not isinstance(error, SSLError):
        return type(error).__name__
    return cause(found) if found is not None else re.sub(r"^\w*Connection(Pool)?\(.*?\): ", "", str(error))


@contextmanager
def understood(who: str) -> Iterator[None]:
    """Turn the errors of code that reads JSON into a PodperfError: an answer has other parts than it should have.

    `who` answered. A function can have this as its decorator.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        wrong = f"{type(error).__name__}: {str(error)[:_MOST_QUOTED]}"
        raise PodperfError(f"{who} gave an answer that podperf does not understand ({wrong})") from error
