"""Whether a trial is valid. Testers count frames and report their own troubles; this module decides. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podperf.model import DirectionResult, TrialResult
from podperf.testers.base import ACHIEVED_LOAD_FLOOR, UNPACED

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
    """The result. Its `invalid` has the reason if the tester has spoilt the trial."""
    return replace(result, invalid=_why_invalid(result, account))


def disturbance(result: TrialResult) -> str | None:
    """The reason why a valid trial is repeated while patience lasts. None if the machine was quiet."""
    reason = result.noise.reason if result.noise and result.invalid is None else None
    return reason and f"{DISTURBED}: {reason}"


def _why_invalid(result: TrialResult, account: Account) -> str | None:
    if reason := account.trouble or _why_not_whole(result):
        return reason
    if result.own_drops:
        return f"the tester itself lost {result.own_drops} frames: {account.own_drops}"
    if result.trial.frames and result.sent < result.intended_count:
        return f"the tester sent only {result.sent} of {result.intended_count} frames"
    if result.trial.load == UNPACED:
        return None
    for each in result.directions:
        share = _share_of_load(each, result.trial.mean_load, exact=account.took is None)
        if share < ACHIEVED_LOAD_FLOOR:
            return f"the tester sent only {share:.1%} of the intended load {each.direction}"
    return _why_late(account.took, result.trial.duration)


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
