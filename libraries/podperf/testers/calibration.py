"""What the tester can do by itself, and what it does wrong by itself, measured on a bare path between its two ports."""

from __future__ import annotations

import time
from collections.abc import Callable

from podperf.errors import PodperfError
from podperf.model import Traffic, Trial, TrialResult
from podperf.testers.base import ACHIEVED_LOAD_FLOOR, PACED_SHARE, UNPACED, Tester, TesterLimits
from podperf.testers.faults import Fault, Timed, clock_error, clock_fault, faults_in, own_loss, suspected

# From one candidate for the ceiling down to the next: closely at first, then quickly, as each costs a trial.
STEPS = (PACED_SHARE, 0.9, 0.85, 0.8, 0.7, 0.5)
ATTEMPTS = 2  # at each: a stall of the machine is not the tester's ceiling
OWN_TRIALS = 12  # at half the ceiling and below, until one of them clears the tester; each load has two
FEWEST_FRAMES = 20_000  # of such a trial, for a loss of one frame in some thousands to show; no lower load has less

CLOCK_FRAMES = 500  # of each trial, however long: few enough that one frame in a thousand is not in every trial
CLOCK_SHORT, CLOCK_LONGER = 0.1, 3.0  # seconds; the long trial takes so much longer, or eight times the shortest trial
CLOCK_SHORT_TRIALS = 3
CLOCK_LONG_TRIALS, CLOCK_MOST_LONG_TRIALS = 6, 12  # noise that hides an error asks for the larger number
CLOCK_RIGHT = 0.005  # an error that small ends the check: by chance a stall of the machine seldom hides a larger one


def calibrate(
    tester: Tester, traffic: Traffic, *, duration: float = 0.3, repeats: int = 3, known: tuple[Fault, ...] = ()
) -> TesterLimits:
    """The tester's ceiling, its own loss and other faults with this traffic, on the bare path that it is connected to.

    An unpaced trial shows what can be received at all; from 95 % of that, the load steps down to one that the tester
    really sends and receives back (99 %). That is one reading. The ceiling is the best of `repeats` readings, as noise
    only lowers them; the trials of a kind last `duration` together, or longer where the tester needs it. Own loss and
    faults are those of valid trials at half the ceiling, and where these are not faultless, of more at lower loads;
    faults that are `known` already come first.
    PodperfError when nothing comes back, or no reading finds a load that is delivered.
    """
    duration = max(duration, repeats * tester.shortest_trial)
    readings = [_ceiling(tester, traffic, duration / repeats) for _ in range(repeats)]
    found = [each for each in readings if each is not None]
    if not found:
        why = "; ".join(each.sentence for each in known) or "are its CPUs busy with other work?"
        raise PodperfError(f"calibration: the tester delivers no load on the bare path; {why}")
    trials = _own_trials(tester, traffic, max(found) / 2, duration)
    loss, bound = own_loss(trials)
    faults = (*known, *faults_in(trials))
    return TesterLimits(max(found), loss, "calibration on the bare path", own_loss_bound=bound, faults=faults)


def check_clock(tester: Tester, traffic: Traffic, clock: Callable[[], float] = time.monotonic) -> Fault | None:
    """Hold the durations that the tester tells against `clock`; None when they agree.

    The time around a trial is taken off by comparing short trials with long ones; it is repeated while they disagree.
    Trials that lost a frame do not count, as the tester waits for it. None, too, where all long ones did.
    """
    short_length = max(CLOCK_SHORT, tester.shortest_trial)
    long_length = short_length + max(CLOCK_LONGER, 8 * tester.shortest_trial)

    def timed(duration: float) -> list[Timed]:
        began = clock()
        # A clock that runs wrong can make the load too low, and the trial invalid: it is looked at all the same.
        result = tester.measure(Trial(traffic, CLOCK_FRAMES / duration, duration))
        return [] if result.lost or not result.sent else [Timed(result.duration, clock() - began)]

    short_ones = [each for _ in range(CLOCK_SHORT_TRIALS) for each in timed(short_length)]
    long_ones: list[Timed] = []
    for number in range(1, CLOCK_MOST_LONG_TRIALS + 1):
        long_ones += timed(long_length)
        if short_ones and long_ones and abs(clock_error(short_ones, long_ones)) <= CLOCK_RIGHT:
            return None
        short_ones += timed(short_length)
        if number >= CLOCK_LONG_TRIALS and (fault := clock_fault(short_ones, long_ones)):
            return fault
    return None


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


def _own_trials(tester: Tester, traffic: Traffic, load: float, duration: float) -> list[TrialResult]:
    """Valid trials from this load downwards, until one of them clears the tester of what the others showed.

    A sound tester has one trial on a quiet machine. At a lower load a stall of the machine costs no frames, as the
    receive rings hold those that arrive meanwhile.
    """
    trials: list[TrialResult] = []
    for attempt in range(1, 1 + OWN_TRIALS):
        result = tester.measure(Trial(traffic, load, duration))
        trials += [result] if result.invalid is None else []
        if not suspected(trials):
            break
        if attempt % 2 == 0 and load * duration >= 2 * FEWEST_FRAMES:
            load /= 2
    return trials
