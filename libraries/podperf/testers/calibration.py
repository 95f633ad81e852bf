"""What the tester can do by itself, measured on a bare path between its two ports."""

from __future__ import annotations

from podperf.errors import PodperfError
from podperf.model import Traffic, Trial, TrialResult
from podperf.testers.base import ACHIEVED_LOAD_FLOOR, UNPACED, Tester, TesterLimits

# From one candidate for the ceiling down to the next: closely at first, then quickly, as each costs a trial.
STEPS = (0.95, 0.9, 0.85, 0.8, 0.7, 0.5)
ATTEMPTS = 2  # at each: a stall of the machine is not the tester's ceiling
ATTEMPTS_AT_HALF = 4  # at a load that the tester can deliver: as often as a method tries a trial


def calibrate(tester: Tester, traffic: Traffic, *, duration: float = 0.3, repeats: int = 3) -> TesterLimits:
    """The tester's ceiling and its own loss with this traffic, on the bare path that it is connected to.

    An unpaced trial shows what can be received at all; from 95 % of that, the load steps down to one that the tester
    really sends and receives back (99 %). That is one reading. The ceiling is the best of `repeats` readings, as noise
    only lowers them; the trials of a kind last `duration` together, or longer where the tester needs it. The loss is
    what was lost at half the ceiling, in a valid trial; None where none of a few was valid, on a machine with too much
    to do. PodperfError when nothing comes back, or no reading finds a load that is delivered.
    """
    duration = max(duration, repeats * tester.shortest_trial)
    readings = [_ceiling(tester, traffic, duration / repeats) for _ in range(repeats)]
    found = [each for each in readings if each is not None]
    if not found:
        raise PodperfError(
            "calibration: the tester delivers no load on the bare path; are its CPUs busy with other work?"
        )
    half = (tester.measure(Trial(traffic, max(found) / 2, duration)) for _ in range(ATTEMPTS_AT_HALF))
    own_loss = next((each.loss_ratio for each in half if each.invalid is None), None)
    return TesterLimits(max(found), own_loss, "calibration on the bare path")


def calibrate_sending(
    tester: Tester, traffic: Traffic, *, most: float | None = None, duration: float = 0.5
) -> TesterLimits:
    """What the tester can send, where its ports cannot be plugged into each other; nothing is known of its own loss.

    The frames cross the testbed: where that must not be given more than `most` frames/s, no more is tried.
    PodperfError when it delivers no load at all.
    """
    duration = max(duration, tester.shortest_trial)
    source = "what it sends: this testbed has no bare path to calibrate on"
    first = tester.measure(Trial(traffic, UNPACED if most is None else most, duration))
    if most is not None and first.invalid is None:
        return TesterLimits(most, None, source)
    load = first.achieved_load
    for step in STEPS:
        load *= step
        if load > 0 and any(tester.measure(Trial(traffic, load, duration)).invalid is None for _ in range(ATTEMPTS)):
            return TesterLimits(load, None, source)
    raise PodperfError("calibration: the tester delivers no load; is the link of its ports up?")


def _ceiling(tester: Tester, traffic: Traffic, duration: float) -> float | None:
    """One reading of the ceiling; None when none of the loads that were tried was delivered."""
    load = tester.measure(Trial(traffic, UNPACED, duration)).receive_rate
    if load <= 0:
        raise PodperfError("calibration: no frame came back on the bare path; is it connected and up?")
    for step in STEPS:
        load *= step
        if any(_delivered(tester.measure(Trial(traffic, load, duration))) for _ in range(ATTEMPTS)):
            return load
    return None


def _delivered(result: TrialResult) -> bool:
    return result.invalid is None and result.loss_ratio <= 1 - ACHIEVED_LOAD_FLOOR
