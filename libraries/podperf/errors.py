"""The errors that podperf raises on purpose. Their texts are for the person who runs the suite."""

import re

from podperf.printable import printable

_MARKUP = "*HTML*"  # Robot Framework shows a message with this beginning as HTML


class PodperfError(Exception):
    """An error whose text says what is wrong, where, and what to do. It is shown without a traceback.

    The text often quotes a program or a machine. So this class makes control characters and HTML in it harmless, which
    could steer a terminal or Robot Framework's log.
    """

    ROBOT_SUPPRESS_NAME = True  # Robot Framework shows the text alone

    def __str__(self) -> str:
        """The text, with harmless codes for control characters and HTML from another machine or a file."""
        text = printable(super().__str__())
        return f"\\{text}" if text.startswith(_MARKUP) else text


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
    """The innermost reason of a connection that failed."""
    inner = [getattr(error, "reason", None), *error.args]
    found = next((each for each in inner if isinstance(each, BaseException)), None)
    return cause(found) if found is not None else re.sub(r"^HTTPS?Connection(Pool)?\(.*?\): ", "", str(error))
