"""The values that one test of a run leaves to the next test."""

from __future__ import annotations

from podperf.methods.trials import Patience
from podperf.run.baselines import Baselines
from podperf.run.cost import BarePaths
from podperf.run.limits import KnownLimits
from podperf.run.session import Session


class Kept:
    """The unused patience of earlier tests, the limits of the tester, and the baselines."""

    def __init__(self, session: Session) -> None:
        self.patience = Patience()
        self.limits = KnownLimits(session, self.patience)
        self.baselines = Baselines()
        self.bare_paths = BarePaths()
