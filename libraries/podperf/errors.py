"""The errors that podperf raises on purpose; their text is written for the person who runs the suite."""

from podperf.printable import printable

_MARKUP = "*HTML*"  # Robot Framework shows a message that begins so as the HTML that follows


class PodperfError(Exception):
    """Something is wrong and the text says what, where, and what to do. Shown without a traceback.

    Often the text quotes a program or a machine, so it is made fit for a terminal and for Robot Framework's log here,
    for all of them.
    """

    ROBOT_SUPPRESS_NAME = True  # Robot Framework shows the text alone

    def __str__(self) -> str:
        """The text, which may hold what another machine or a file said, without what would steer its reader."""
        text = printable(super().__str__())
        return f"\\{text}" if text.startswith(_MARKUP) else text


class Unavailable(PodperfError):
    """This testbed cannot offer what a test needs. The test is skipped, and the text is the reason."""

    ROBOT_SKIP_EXECUTION = True  # Robot Framework skips the test


class TrialNotDelivered(PodperfError):
    """The tester, not the system under test, could not deliver a trial, even when it was repeated.

    `delivered` is the highest load (frames/s, per direction) that it sent instead.
    """

    def __init__(self, text: str, delivered: float = 0.0) -> None:
        super().__init__(text)
        self.delivered = delivered
