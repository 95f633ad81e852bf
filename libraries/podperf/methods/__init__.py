"""Methods measure a result with a tester. Those that a topology has settings for are made here."""

from podperf.methods.cost import ONLY_COST, CostResult
from podperf.methods.cpu_time import TRAIN, CpuTimeAtShare, not_delivered
from podperf.methods.further_settings import FurtherSettings
from podperf.methods.latency import LatencyAtShare, LatencyResult
from podperf.methods.mrr import Mrr, MrrResult
from podperf.methods.ndrpdr import NdrPdr, SearchResult
from podperf.methods.presets import preset
from podperf.topology import MethodSettings

__all__ = [
    "ONLY_COST",
    "TRAIN",
    "CostResult",
    "CpuTimeAtShare",
    "FurtherSettings",
    "LatencyAtShare",
    "LatencyResult",
    "MrrResult",
    "SearchResult",
    "further_settings_by",
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


def further_settings_by(settings: MethodSettings) -> FurtherSettings:
    """The settings of the methods beside MRR and the search, with the preset of these settings."""
    return preset(settings.search).further
