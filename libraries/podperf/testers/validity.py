"""Whether a trial is valid. Testers count, and give their own account of the trial; the verdict is made here. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podperf.model import DirectionResult, TrialResult
from podperf.testers.base import ACHIEVED_LOAD_FLOOR, UNPACED

OVERRUN_LIMIT = 0.02  # of the planned duration
DISTURBED = "repeated, as the machine was noisy"


@dataclass(frozen=True)
class Account:
    """A tester's own account of a trial, beside its counts.

    `took` is given by a tester whose time is virtual: it sends the planned number of frames, only later. Its sending
    took at least so many seconds by the clock on the wall, and the durations that it counts are estimates.
    """

    trouble: str = ""  # the reason why the counts tell nothing
    own_drops: str = ""  # where the tester itself lost frames, if it did
    took: float | None = None


def judged(result: TrialResult, account: Account) -> TrialResult:
    """The result, with the reason where the tester has spoilt the trial."""
    return replace(result, invalid=_why_invalid(result, account))


def disturbance(result: TrialResult) -> str | None:
    """The reason why a valid trial is repeated while there is patience, or None on a quiet machine."""
    reason = result.noise.reason if result.noise and result.invalid is None else None
    return reason and f"{DISTURBED}: {reason}"


def _why_invalid(result: TrialResult, account: Account) -> str | None:
    if account.trouble:
        return account.trouble
    if result.own_drops:
        return f"the tester itself lost {result.own_drops} frames: {account.own_drops}"
    if result.trial.load == UNPACED:
        return None
    for each in result.directions:
        share = _share_of_load(each, result.trial.load, exact=account.took is None)
        if share < ACHIEVED_LOAD_FLOOR:
            return f"the tester sent only {share:.1%} of the intended load {each.direction}"
    return _why_late(account.took, result.trial.duration)


def _share_of_load(result: DirectionResult, load: float, *, exact: bool) -> float:
    """The share of the intended load that was sent: of the frames and, where durations are exact, of the rate.

    A trial that was cut short sends at the right rate, and yet too few frames.
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
