"""A listener of Robot Framework that compares chains in as few rounds as a verdict can come from.

It is for runs in which the figures of a comparison do not matter, and its verdict does not either.
"""

from __future__ import annotations

from podperf.experiments import rounds

ROBOT_LISTENER_API_VERSION = 3
ROUNDS = 6  # with fewer pairs of trials there is no interval at 95 % (podperf.experiments.ratio_interval)

rounds.CLAIM_ROUNDS = ROUNDS
