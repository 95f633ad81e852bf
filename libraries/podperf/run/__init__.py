"""One run of the suites on one testbed: what the keyword libraries share, and nothing of Robot Framework."""

from podperf.run.run import Run
from podperf.run.session import Session
from podperf.run.test_in_progress import TestIdentity

__all__ = ["Run", "Session", "TestIdentity"]
