"""How long the methods beside MRR and the search take. Each search preset names one of these settings.

Durations are in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FurtherSettings:
    """The trials of each method, as its module explains them. `as_wanted`: as long as the documents want them."""

    as_wanted: bool
    loss_curve_trial: float
    repeated_bursts: int
    longest_burst: float
    latency_trial: float
    recovery_trials: int
    overload: float
    after_overload: float
    set_ups: int
    set_up_trial: float
    soak: float
    soak_interval: float


AS_WANTED = FurtherSettings(
    as_wanted=True,
    loss_curve_trial=60.0,  # RFC 2544 section 24
    repeated_bursts=50,  # RFC 2544 section 26.4
    longest_burst=2.0,  # the same section
    latency_trial=120.0,  # RFC 2544 section 26.2
    recovery_trials=10,  # RFC 2544 section 26.5 wants several
    overload=60.0,  # the same section
    after_overload=60.0,
    set_ups=20,  # podperf
    set_up_trial=1.0,  # as MRR of FD.io CSIT
    soak=6 * 3600.0,  # podperf
    soak_interval=60.0,  # ETSI GS NFV-TST 009 clause 12.3.3, as any of its trials
)
SHORT = FurtherSettings(
    as_wanted=False,
    loss_curve_trial=0.5,
    repeated_bursts=10,
    longest_burst=0.5,
    latency_trial=1.0,
    recovery_trials=10,
    overload=1.0,
    after_overload=1.0,
    set_ups=20,
    set_up_trial=0.3,
    soak=60.0,
    soak_interval=3.0,
)
