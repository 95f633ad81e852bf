"""Whether a trial is valid. Testers count frames and report their own troubles; this module decides. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podperf.figures import percent
from podperf.model import DirectionResult, Trial, TrialResult
from podperf.testers.base import ACHIEVED_LOAD_FLOOR, UNPACED

NEGATIVE_LIMIT = 0.001  # share of the frames; a few are negative, because the clocks of two CPUs differ a little
STANDSTILL = 3.0  # seconds that a trial may take longer than planned
OVERRUN_LIMIT = 0.02  # share of the planned duration by which a valid trial may be late
DISTURBED = "repeated, as the machine was noisy"


@dataclass(frozen=True)
class Account:
    """A tester's own account of a trial, beside its counts.

    Only a tester with virtual time gives `took`. If it is too slow, it sends all planned frames, but later. `took` is
    the least number of seconds that the sending took in real time. The durations in its counts are then estimates.
    """

    trouble: str = ""  # the reason why the counts are useless
    own_drops: str = ""  # the place where the tester itself lost frames
    took: float | None = None


def judged(result: TrialResult, account: Account) -> TrialResult:
    """The result without impossible latencies. Its `invalid` has the reason if the tester has spoilt the trial."""
    reason = next(filter(None, (_why_impossible(direction, result.elapsed) for direction in result.directions)), None)
    return replace(without_latency(result, reason), invalid=_why_invalid(result, account))


def without_latency(result: TrialResult, reason: str | None) -> TrialResult:
    """The result without its latencies, which are wrong for this reason. None: they are right."""
    if not reason:
        return result
    without = tuple(replace(direction, latency=None) for direction in result.directions)
    return replace(result, directions=without, impossible_latency=result.impossible_latency or reason)


def disturbance(result: TrialResult) -> str | None:
    """The reason why a valid trial is repeated while patience lasts. None if the machine was quiet."""
    reason = result.noise.reason if result.noise and result.invalid is None else None
    return reason and f"{DISTURBED}: {reason}"


def standstill(trial: Trial, took: float) -> str | None:
    """The reason why a trial that took this time (s) is repeated, or None if it took about as long as planned.

    A tester needs less than a second around the sending. All counts of a longer trial can be wrong: the sender, the
    receiver, or the watch over other work stood still in it.
    """
    still = took - trial.longest
    if still < STANDSTILL:
        return None
    return f"the run stood still for {still:.0f} s: a signal stopped it, or the machine was suspended"


def _why_invalid(result: TrialResult, account: Account) -> str | None:
    if reason := account.trouble or _why_not_whole(result):
        return reason
    if result.own_drops:
        return f"the tester itself lost {result.own_drops} frames: {account.own_drops}"
    if result.trial.frames and result.sent < result.intended_count:
        return f"the tester sent only {result.sent} of {result.intended_count} frames"
    if result.trial.load == UNPACED:
        return None
    for direction in result.directions:
        share = _share_of_load(direction, result.trial.mean_load, exact=account.took is None)
        if share < ACHIEVED_LOAD_FLOOR:
            return f"the tester sent only {share:.1%} of the intended load {direction.direction}"
    return _why_late(account.took, result.trial.duration)


def _why_impossible(result: DirectionResult, elapsed: float) -> str | None:
    """The reason why no frame can have the latencies of this direction, or None.

    A frame arrives after it was sent, and before the trial ended, `elapsed` seconds after its beginning.
    """
    if result.negative_latencies > NEGATIVE_LIMIT * result.received:
        share = percent(result.negative_latencies / result.received)
        return f"by the tester's stamps, {share} of the frames {result.direction} arrived before they were sent"
    longest = result.latency.maximum / 1e9 if result.latency else 0.0
    if elapsed and longest > elapsed:
        return (
            f"by the tester's stamps, a frame {result.direction} was on its way for {longest:.3g} s, "
            f"and the trial took {elapsed:.3g} s"
        )
    return None


def _why_not_whole(result: TrialResult) -> str | None:
    """The reason why the counts of the groups of flows are not the whole count, or None."""
    groups = result.trial.traffic.groups
    for each in result.directions if groups > 1 else ():
        if len(each.received_by_group) != groups:
            return f"the tester counted {len(each.received_by_group)} of {groups} groups of flows {each.direction}"
        if (total := sum(each.received_by_group)) != each.received:
            return f"{total} frames arrived in all groups of flows, and {each.received} in all, {each.direction}"
    return None


def _share_of_load(result: DirectionResult, load: float, *, exact: bool) -> float:
    """The share of the intended load that the tester sent: by frames and, if durations are exact, also by rate.

    Both are needed: a trial that was cut short sends too few frames, although at the right rate.
    """
    frames = result.sent / result.intended if result.intended else 1.0
    return min(frames, result.achieved_load / load) if exact else frames


def _why_late(took: float | None, planned: float) -> str | None:
    if took is None or took <= planned * (1 + OVERRUN_LIMIT):
        return None
    return (
        f"the tester took {took:.3f} s to send what was planned for {planned:.3f} s: its time is virtual, and its CPUs "
        "do not keep up with this load"
    )
