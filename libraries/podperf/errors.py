"""The errors that podperf raises on purpose; their text is written for the person who runs the suite."""


class PodperfError(Exception):
    """Something is wrong and the text says what, where, and what to do. Shown without a traceback."""


class Unavailable(PodperfError):
    """This testbed cannot offer what a test needs. The test is skipped, and the text is the reason."""


class TesterLimit(PodperfError):
    """The tester, not the system under test, could not deliver a trial, even when it was repeated."""
