"""Methods measure a result with a tester. Those of the topology's settings are in `METHODS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from podperf.errors import PodperfError
from podperf.methods.base import Method
from podperf.methods.mrr import Mrr
from podperf.methods.ndrpdr import NdrPdr
from podperf.methods.presets import preset
from podperf.topology import MethodSettings

METHODS: Mapping[str, Callable[[MethodSettings], Method]] = MappingProxyType(
    {
        "mrr": lambda settings: Mrr(settings.mrr_trials, settings.mrr_trial_duration),
        "ndrpdr": lambda settings: NdrPdr(preset(settings.search)),
    }
)


def method(name: str, settings: MethodSettings) -> Method:
    """The method of this name, with the testbed's settings. For an unknown name, raises PodperfError with all names."""
    try:
        make = METHODS[name]
    except KeyError:
        raise PodperfError(f"there is no method {name!r}; choose one of: {', '.join(METHODS)}") from None
    return make(settings)
