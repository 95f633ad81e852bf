"""Methods measure a result with a tester. Those that a topology has settings for are made here."""

from podperf.methods.cost import ONLY_COST, CostResult
from podperf.methods.cpu_time import TRAIN, CpuTimeAtShare, not_delivered
from podperf.methods.latency import LatencyAtShare
from podperf.methods.mrr import Mrr, MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.presets import preset
from podperf.topology import MethodSettings

__all__ = [
    "ONLY_COST",
    "TRAIN",
    "CostResult",
    "CpuTimeAtShare",
    "LatencyAtShare",
    "MrrResult",
    "SearchResult",
    "mrr_by",
    "not_delivered",
    "search_by",
]


def mrr_by(settings: MethodSettings) -> Mrr:
    """The maximum receive rate, with the trials of these settings."""
    return Mrr(settings.mrr_trials, settings.mrr_trial_duration)


def search_by(settings: MethodSettings) -> NdrPdr:
    """The search for NDR and PDR, with the preset of these settings."""
    return NdrPdr(preset(settings.search))
