"""The usual time of a test that was never run here, estimated from its tags."""

from __future__ import annotations

from collections.abc import Collection

from podperf.dataplanes.wire import Wire
from podperf.methods.comparison import Comparison
from podperf.methods.presets import preset
from podperf.topology import MethodSettings

# Seconds, as measured on a virtual machine with two CPUs.
CHAIN = 3.0  # to build a chain, to check that frames cross it, and to take it down
BETWEEN_TRIALS = 0.2
LATENCY = 1.5
CPU_TIME = 1.0
CHECK = 0.2  # a test without traffic
BUILDS_OF_COST = 6.0  # the number of times that a counted machine builds a chain
COUNTED_CHAIN = 6.0  # to build a chain on a counted machine
SEARCH = 0.5  # share of its preset's time limit that a search takes
BARE_SEARCH = 0.2  # the same share on the bare path, where the tester is the limit

LOSS_CURVE = 20  # trials of a loss curve
BURSTS = 8  # trials until the longest burst is found

_COMPARISONS = {"finding", "published"}
_CONTENDERS = 2  # most claims compare so many chains
_OF_RESOURCES = 4  # those of section 4.2 compare so many


def usual_duration(
    tags: Collection[str], method: MethodSettings, data_planes: Collection[str], counted: bool = False
) -> float:
    """Seconds of a test with these tags. Without telling tags, the test is taken for one that measures everything.

    `counted`: on a counted machine.
    """
    if counted:
        return BUILDS_OF_COST * COUNTED_CHAIN if set(data_planes) & set(tags) else CHECK
    mrr = method.mrr_trials * (method.mrr_trial_duration + BETWEEN_TRIALS)
    share = BARE_SEARCH if Wire.name in tags else SEARCH
    search = share * preset(method.search).search_duration_max + LATENCY + CPU_TIME
    if _COMPARISONS & set(tags):
        each = CHAIN / 2 + Comparison.duration + Comparison.warmup + BETWEEN_TRIALS
        of_resources = any(each.startswith("sec-4.2.") for each in tags)
        return Comparison.rounds * (_OF_RESOURCES if of_resources else _CONTENDERS) * each
    further = preset(method.search).further
    by_method = {
        "loss-curve": LOSS_CURVE * (further.loss_curve_trial + BETWEEN_TRIALS),
        "latency-by-load": search + 3 * (further.latency_trial + BETWEEN_TRIALS),
        "system-recovery": search
        + further.recovery_trials * (further.overload + further.after_overload + BETWEEN_TRIALS),
        "repeated-instantiation": further.set_ups * (CHAIN + 2 * (further.set_up_trial + BETWEEN_TRIALS)),
        "soak": search + further.soak + further.soak / further.soak_interval * BETWEEN_TRIALS,
        "back-to-back": search + further.repeated_bursts * BURSTS * BETWEEN_TRIALS,
    }
    if found := set(by_method) & set(tags):
        return CHAIN + sum(by_method[each] for each in found)
    if "ndrpdr" in tags or not any(each.startswith(("sec-", "appendix-", "mrr")) for each in tags):
        return CHAIN + mrr + search + method.patience
    if "mrr" in tags or set(data_planes) & set(tags):
        return CHAIN + mrr
    return CHECK
