"""Methods measure a result with a tester. A method beside MRR and the search is one file and one line in `METHODS`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podperf.methods.application_traffic import ApplicationTraffic
from podperf.methods.back_to_back import BackToBack
from podperf.methods.base import FurtherMethod
from podperf.methods.latency_by_load import LatencyByLoad
from podperf.methods.loss_curve import LossCurve
from podperf.methods.many_pairs import ManyPairs
from podperf.methods.reconfiguration import Reconfiguration
from podperf.methods.repeated_instantiation import RepeatedInstantiation
from podperf.methods.soak import Soak
from podperf.methods.system_recovery import SystemRecovery

METHODS: Mapping[str, type[FurtherMethod[Any]]] = {
    each.name: each
    for each in (
        *(LossCurve, BackToBack, LatencyByLoad, SystemRecovery, Reconfiguration, RepeatedInstantiation, Soak),
        *(ApplicationTraffic, ManyPairs),
    )
}
