"""The tester's own limits and faults, measured on a bare path between its two ports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from operator import mul

from podperf.errors import PodperfError
from podperf.model import AddressedTraffic, Trial, TrialResult
from podperf.testers.base import ACHIEVED_LOAD_FLOOR, PACED_SHARE, UNPACED, OwnLatency, Tester, TesterLimits
from podperf.testers.faults import Fault, Timed, clock_error, clock_fault, faults_in, own_loss, suspected

# Candidates for the ceiling. The first steps are small. The later ones are larger, because each step costs a trial.
STEPS = (PACED_SHARE, 0.9, 0.85, 0.8, 0.7, 0.5)
STARTS = 3  # of the steps, where no bare path shows how far the first reading is wrong
MOST_READINGS = 8  # of a machine so busy that the first ones find no ceiling
ATTEMPTS = 2  # trials at each candidate, because a stall of the machine is not the tester's ceiling
OWN_TRIALS = 12  # at most, at half the ceiling and below, until one clears the tester; each load has two
FEWEST_SENT, LONGEST_SENDING = 300, 5.0  # frames, so that a single late one leaves a trial valid; seconds for these
FEWEST_FRAMES = 20_000  # enough frames in such a trial to show a loss of one frame in some thousands
LATENCY_LOADS = (1e4, 1e5, 1e6)  # frames/s, up to half the ceiling, at which the tester's own latency is measured

CLOCK_FRAMES = 500  # of each trial; few enough that a loss of one frame in a thousand spares some trials
CLOCK_SHORT, CLOCK_LONGER = 0.1, 3.0  # seconds; the long trial is longer by 3 s, or by eight times the shortest trial
CLOCK_SHORT_TRIALS = 3
CLOCK_LONG_TRIALS = 10  # at most, each with a further short one; fewer if the clock is right
CLOCK_RIGHT = 0.003  # an error this small ends the check: a stall of the machine seldom hides a larger one


def calibrate(
    tester: Tester, traffic: AddressedTraffic, *, duration: float = 0.3, repeats: int = 3, known: tuple[Fault, ...] = ()
) -> TesterLimits:
    """The tester's ceiling, its own loss and other faults with this traffic, on the bare path that it is connected to.

    An unpaced trial shows the highest rate that the tester can receive. From 95 % of this rate the load steps down
    until the tester really sends and receives it (99 %). This is one reading. The ceiling is the best of `repeats`
    readings, because noise only lowers a reading. If these find no such load, more readings follow. The trials of a
    kind take `duration` seconds together, or longer if the tester needs it. Own loss and faults come from valid trials
    at half the ceiling. If these show an error, more trials follow at lower loads. A trial at each of LATENCY_LOADS
    shows the latency of a tester without a fault. `known` faults come first. Raises PodperfError if nothing comes back,
    or if no reading finds a load that is delivered.
    """
    duration = max(duration, repeats * tester.shortest_trial)
    found = list[float]()
    for number in range(1, 1 + max(repeats, MOST_READINGS)):
        if (reading := _ceiling(tester, traffic, duration / repeats)) is not None:
            found.append(reading)
        if number >= repeats and (found or known):  # a known fault explains that nothing is found
            break
    if not found:
        why = "; ".join(each.sentence for each in known) or "are its CPUs busy with other work?"
        raise PodperfError(f"calibration: the tester delivers no load on the bare path; {why}")
    trials = _own_trials(tester, traffic, max(found) / 2, duration)
    loss, bound = own_loss(trials)
    faults = (*known, *faults_in(trials))
    own = () if faults else tuple(_own_latencies(tester, traffic, max(found) / 2, duration))
    source = "calibration on the bare path"
    return TesterLimits(max(found), loss, source, own_loss_bound=bound, faults=faults, own_latencies=own)


def check_clock(tester: Tester, traffic: AddressedTraffic, clock: Callable[[], float] = time.monotonic) -> Fault | None:
    """Compare the durations that the tester reports with `clock`. None if they agree.

    The difference between long and short trials cancels the time around a trial. The check is repeated while the
    durations disagree. The tester waits for a lost frame. So only trials without loss count, or only trials that lost
    every frame, if the first one did: such a tester has no way back for its frames yet. None if no long trial counts.
    """
    short_length = max(CLOCK_SHORT, tester.shortest_trial)
    long_length = short_length + max(CLOCK_LONGER, 8 * tester.shortest_trial)

    way_back: list[bool] = []  # whether the first trial that sent frames received one

    def timed(duration: float) -> list[Timed]:
        began = clock()
        # A wrong clock can make the load too low, and the trial invalid. So invalid trials count here, too.
        result = tester.measure(Trial(traffic, CLOCK_FRAMES / duration, duration))
        ended = clock()
        if not result.sent:
            return []
        way_back.append(result.lost < result.sent)
        counts = result.lost == (0 if way_back[0] else result.sent)
        return [Timed(result.duration * (1 - 1 / result.sent), ended - began)] if counts else []

    short_ones = [each for _ in range(CLOCK_SHORT_TRIALS) for each in timed(short_length)]
    long_ones: list[Timed] = []
    for _ in range(CLOCK_LONG_TRIALS):
        long_ones += timed(long_length)
        if short_ones and long_ones and abs(clock_error(short_ones, long_ones)[0]) <= CLOCK_RIGHT:
            return None
        short_ones += timed(short_length)
    return clock_fault(short_ones, long_ones)


def calibrate_sending(
    tester: Tester,
    traffic: AddressedTraffic,
    *,
    most: float | None = None,
    duration: float = 0.5,
    known: tuple[Fault, ...] = (),
) -> TesterLimits:
    """The load that the tester can send if its ports cannot be plugged into each other. Its own loss stays unknown.

    The frames cross the testbed, so no trial sends more than `most` frames/s. Where the kernel does the testbed's work
    in the sender's own time, a slow testbed makes the tester slow, and perhaps much slower at a steady pace than
    unpaced. If all steps are too large, the steps begin again at the highest load that these trials really sent.
    `known` are the tester's faults. Raises PodperfError if the tester delivers no load.
    """
    duration = max(duration, tester.shortest_trial)
    source = "what it sends: this testbed has no bare path to calibrate on"
    first = tester.measure(Trial(traffic, UNPACED if most is None else most, duration))
    if most is not None and first.invalid is None:
        return TesterLimits(most, None, source, faults=known)
    start = first.achieved_load
    for _ in range(STARTS):
        if start <= 0:
            break
        achieved = []
        for load in (start * share for share in accumulate(STEPS, mul) for _ in range(ATTEMPTS)):
            longer = min(max(duration, FEWEST_SENT / load), LONGEST_SENDING)
            result = tester.measure(Trial(traffic, load, longer))
            if result.invalid is None:
                return TesterLimits(load, None, source, faults=known)
            achieved.append(result.achieved_load)
        start = min(load, max(achieved))
    raise PodperfError("calibration: the tester delivers no load; is the link of its ports up?")


def _ceiling(tester: Tester, traffic: AddressedTraffic, duration: float) -> float | None:
    """One reading of the ceiling. None if the tester delivered none of the loads."""
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


def _own_trials(tester: Tester, traffic: AddressedTraffic, load: float, duration: float) -> list[TrialResult]:
    """Valid trials from this load downwards, until the trials clear the tester of the errors that they showed.

    On a quiet machine a sound tester needs one trial. At a lower load a stall of the machine costs no frames, because
    the receive rings hold the frames that arrive in the stall.
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


def _own_latencies(tester: Tester, traffic: AddressedTraffic, most: float, duration: float) -> Iterator[OwnLatency]:
    for load in LATENCY_LOADS:
        if load <= most:
            result = tester.measure(Trial(traffic, load, duration))
            if result.invalid is None and result.latency is not None:
                yield OwnLatency(load, result.latency.percentile(50))
