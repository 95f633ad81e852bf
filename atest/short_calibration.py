"""A listener of Robot Framework for runs whose figures do not matter: the tester is calibrated in tenths of a second.

The length of a calibration is a parameter of its functions. This gives a run shorter ones than users get. The check of
the tester's clock is left out, because a short one finds faults in a sound clock.
"""

from __future__ import annotations

from functools import partial

from podperf.run import limits

ROBOT_LISTENER_API_VERSION = 3

limits.calibrate = partial(limits.calibrate, duration=0.05, repeats=1)
limits.calibrate_sending = partial(limits.calibrate_sending, duration=0.05)
limits.check_clock = lambda *_: None
