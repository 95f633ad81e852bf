"""A listener of Robot Framework that shortens the preset `quick`: a search takes two seconds, a latency trial tenths.

Runs whose figures do not matter take it. A search may end then before it has found a rate.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from podperf.methods import presets

ROBOT_LISTENER_API_VERSION = 3

_QUICK = presets.PRESETS["quick"]
_SHORT = replace(
    _QUICK,
    goals=tuple(replace(each, duration_sum=0.4) for each in _QUICK.goals),
    warmup_duration=0.1,
    search_duration_max=2.0,
    further=replace(_QUICK.further, latency_trial=0.2),
)
presets.PRESETS = MappingProxyType({**presets.PRESETS, "quick": _SHORT})
