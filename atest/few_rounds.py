"""A listener of Robot Framework that compares chains in as few rounds as a verdict can come from.

It is for runs in which the figures of a comparison do not matter, and its verdict does not either.
"""

from __future__ import annotations

from functools import partial

from podperf.methods.comparison import Comparison
from podperf.run import comparison

ROBOT_LISTENER_API_VERSION = 3
ROUNDS = 6  # with fewer pairs of trials there is no interval at 95 % (podperf.verdicts.ratio_interval)

comparison.Comparison = partial(Comparison, rounds=ROUNDS)  # type: ignore[misc, assignment]
