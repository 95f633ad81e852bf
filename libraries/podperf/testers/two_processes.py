"""One result of a trial of two processes of the tester: one of them sent, and the other one counted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podperf.model import DirectionResult, Trial, TrialResult
from podperf.testers.software import direction_result
from podperf.testers.validity import Account, judged


def combined(
    trial: Trial, sent: Mapping[str, Any], counted: Mapping[str, Any], *, same_clock: bool = True
) -> TrialResult:
    """One result of the answers of the process that sent and of the one that counted. Without a common clock, the
    result has no latency."""
    (sending,), (counting,) = sent["directions"], counted["directions"]
    keys = ("received", "duplicated", "reordered", "corrupted")
    both = {**sending, **{key: counting[key] for key in keys}}
    if same_clock and "latency" in counting:
        both["latency"] = counting["latency"]
    direction: DirectionResult = direction_result(both)
    result = TrialResult(
        trial=trial,
        started=sent["started"],
        directions=(direction,),
        stray=sent["stray"] + counted["stray"],
        own_drops=sent["own_drops"] + counted["own_drops"],
        elapsed=counted["elapsed"],
    )
    return judged(
        result,
        Account(
            sent["unready"] or counted["unready"],
            " and ".join(filter(None, (sent["own_drops_reason"], counted["own_drops_reason"]))),
        ),
    )
